"""What a trained model reaches on each split: a run's evaluation, which can be made again from its checkpoint.

All NLL are means in nats per predicted token; <eos> counts, <bos> does not.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from lecture04 import config
from lecture04.config import RopeScaling
from lecture04.data.batches import Layout
from lecture04.data.corpus import Corpus, Split
from lecture04.data.packed import Blocks, stream
from lecture04.nn.model import LanguageModel
from lecture04.training.activity import activity

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Evaluation:
    """What was measured: figures by name, and curves as lists of equal length."""

    metrics: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)


@torch.no_grad()
def token_nll(model: LanguageModel, split: Split, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """For each token of a split's flat arrays its NLL (0.0 at <bos>), and the logits row at each predicted token.

    Returns nll_N and logits_NV (float32), N tokens with those that are not predicted.
    """
    nll = np.zeros(len(split.tokens))
    logits = np.zeros((len(split.tokens), model.embed.num_embeddings), np.float32)
    for batch in layout.evaluation(split):
        real = batch.source_BT >= 0
        logits_NV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)[real]
        source = batch.source_BT[real].numpy()
        nll[source] = F.cross_entropy(logits_NV, batch.targets_BT[real], reduction="none").numpy()
        logits[source] = logits_NV.numpy()
    return nll, logits


@torch.no_grad()
def mean_nll(model: LanguageModel, split: Split, layout: Layout) -> float:
    """Mean NLL of a split's predicted tokens."""
    total = 0.0
    for batch in layout.evaluation(split):
        logits_BTV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)
        total += F.cross_entropy(logits_BTV.flatten(0, 1), batch.targets_BT.flatten(), reduction="sum").item()
    return total / split.n_predicted


def possessive_accuracy(logits_NV: np.ndarray, split: Split, window: int) -> tuple[float, int]:
    """How often the right pronoun ranks first among the possessives, and at how many places.

    The places are pronouns whose subject stands more than `window` tokens back. NaN where there are none, or where the
    model's outputs are not numbers.
    """
    places = np.flatnonzero(split.subject_distance > window)
    if not len(places) or not np.isfinite(logits_NV[places]).all():
        return math.nan, len(places)
    choices = np.unique(split.tokens[split.subject_distance > 0])
    guessed = choices[logits_NV[places][:, choices].argmax(axis=1)]
    return float((guessed == split.tokens[places]).mean()), len(places)


def ppl(nll: float) -> float:
    """Perplexity exp(nll); infinite where that is too large for a float."""
    return math.inf if nll > 700 else math.exp(nll)


def ranges(block: int, length: int) -> list[tuple[int, int]]:
    """Positions 0 to length - 1 in ranges [start, end): the block, then as many again, and so on doubling."""
    edges = [0, *(block << i for i in range(64) if block << i < length), length]
    return list(zip(edges[:-1], edges[1:], strict=True))


def by_position(nll_N: np.ndarray, split: Split, blocks: Blocks, block: int) -> Evaluation:
    """NLL and its excess over the true NLL of the same tokens, by the position in a block.

    Figures for each of the `ranges`, `test/nll@64-127`, and a curve with a mean for every position.
    """
    places = stream(split, np.arange(split.n_docs))
    position = np.arange(len(places)) % blocks.length
    count = np.bincount(position)
    nll = np.bincount(position, nll_N[places]) / count
    excess = nll + np.bincount(position, split.log_prob[places]) / count
    metrics: dict[str, float] = {}
    for start, end in ranges(block, len(count)):
        weight = count[start:end] / count[start:end].sum()
        metrics[f"test/nll@{start}-{end - 1}"] = float(nll[start:end] @ weight)
        metrics[f"test/excess@{start}-{end - 1}"] = float(excess[start:end] @ weight)
    return Evaluation(metrics, {"position": list(range(len(count))), "nll": nll.tolist(), "excess": excess.tolist()})


def stretched(model: LanguageModel, cfg: config.Root) -> LanguageModel:
    """The same parameters with RoPE stretched as `eval.scaling` says."""
    if cfg.eval.scaling.name is RopeScaling.none:
        return model
    assert isinstance(cfg.posenc, config.Rope)
    longer = LanguageModel(replace(cfg, posenc=replace(cfg.posenc, scaling=cfg.eval.scaling)))
    longer.load_state_dict(model.state_dict())
    return longer.eval()


def on_test(model: LanguageModel, corpus: Corpus, cfg: config.Root) -> Evaluation:
    """The test split's NLL and possessive accuracy; where documents are packed, at eval.length and by position too."""
    layout, by = corpus.layout, Evaluation({})
    if isinstance(layout, Blocks):
        layout = Blocks(cfg.eval.length or layout.length)
    nll_N, logits_NV = token_nll(stretched(model, cfg), corpus.test, layout)
    accuracy, n = possessive_accuracy(logits_NV, corpus.test, cfg.eval.window)
    if isinstance(layout, Blocks):
        by = by_position(nll_N, corpus.test, layout, cfg.data.max_len)
    nll = float(nll_N.sum()) / corpus.test.n_predicted
    return replace(by, metrics={"test/nll": nll, "possessive/accuracy": accuracy, "possessive/n": n} | by.metrics)


def evaluate(model: LanguageModel, corpus: Corpus, cfg: config.Root) -> Evaluation:
    """NLL, perplexity and excess of every split, what `on_test` measures, and how much of the FFN is silent.

    `ffn/zeros` is the share of exact zeros among what enters the down-projections, on the first eval.n_docs validation
    documents; `ffn/dead` counts the units that are 0 at every token of them, in the layer that has most.
    """
    model.eval()
    test = on_test(model, corpus, cfg)
    nll = {name: mean_nll(model, getattr(corpus, name), corpus.layout) for name in ("train", "val")}
    nll["test"] = test.metrics["test/nll"]
    metrics = dict(test.metrics)
    for name in SPLITS:
        excess = nll[name] - corpus.true_nll(name)
        metrics |= {f"{name}/nll": nll[name], f"{name}/ppl": ppl(nll[name]), f"{name}/excess": excess}
    layers = activity(model, corpus.layout.evaluation(corpus.val.first(cfg.eval.n_docs)))
    if layers:  # an FFN without a down-projection has none
        metrics["ffn/zeros"] = float(np.mean([layer.zeros for layer in layers]))
        metrics["ffn/dead"] = max(layer.dead for layer in layers)
    return Evaluation(metrics, test.curves)
