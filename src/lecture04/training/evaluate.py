"""What a trained model reaches on each split: a run's evaluation, which can be made again from its checkpoint.

All NLL are means in nats per predicted token; <eos> counts, <bos> does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from lecture04 import config
from lecture04.config import RopeScaling
from lecture04.data.stream import Blocks
from lecture04.data.types import IGNORE, Corpus, Layout, MakeMeasure, Measure, Split
from lecture04.nn.model import LanguageModel
from lecture04.training.activity import activity
from lecture04.training.sample import judged


@dataclass(frozen=True)
class Evaluation:
    """What was measured: figures by name, and curves as lists of equal length."""

    metrics: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)


@torch.no_grad()
def token_nll(model: LanguageModel, split: Split, layout: Layout, measures: Sequence[Measure] = ()) -> np.ndarray:
    """The NLL of each token of a split's flat arrays, nll_N (0.0 where nothing is predicted).

    The measures see each batch's logits at its predicted tokens, which are not kept.
    """
    nll_N = np.zeros(len(split.tokens))
    for batch in layout.evaluation(split):
        real = batch.targets_BT != IGNORE
        logits_NV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)[real]
        place = batch.source_BT[real].numpy()
        nll_N[place] = F.cross_entropy(logits_NV, batch.targets_BT[real], reduction="none").numpy()
        for measure in measures:
            measure.add(logits_NV, place)
    return nll_N


@torch.no_grad()
def mean_nll(model: LanguageModel, split: Split, layout: Layout, n_tokens: int | None = None) -> float:
    """Mean NLL of a split's predicted tokens; of its first batches, with so many tokens or a few more, where given."""
    total, n = 0.0, 0
    for batch in layout.evaluation(split):
        logits_BTV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)
        total += F.cross_entropy(logits_BTV.flatten(0, 1), batch.targets_BT.flatten(), reduction="sum").item()
        n += batch.n_predicted
        if n_tokens is not None and n >= n_tokens:
            break
    return total / n


def ppl(nll: float) -> float:
    """Perplexity exp(nll); infinite where that is too large for a float."""
    return math.inf if nll > 700 else math.exp(nll)


def ranges(block: int, length: int) -> list[tuple[int, int]]:
    """Positions 0 to length - 1 in ranges [start, end): the block, then as many again, and so on doubling."""
    edges = [0, *(block << i for i in range(64) if block << i < length), length]
    return list(zip(edges[:-1], edges[1:], strict=True))


def by_position(nll_N: np.ndarray, split: Split, layout: Layout, block: int) -> Evaluation:
    """NLL, and its excess over the true NLL of the same tokens, by the position in a row.

    Figures for each of the `ranges`, `test/nll@64-127`, and a curve with a mean for every position. Nothing where rows
    are documents, whose lengths differ.
    """
    if (position := layout.position(split)) is None:
        return Evaluation({})
    places, count = np.flatnonzero(split.predicted), np.bincount(position)
    found = {"nll": np.bincount(position, nll_N[places]) / count}
    if "log_prob" in split.facts:
        found["excess"] = found["nll"] + np.bincount(position, split.facts["log_prob"][places]) / count
    metrics: dict[str, float] = {}
    for start, end in ranges(block, len(count)):
        weight = count[start:end] / count[start:end].sum()
        for name, values in found.items():
            metrics[f"test/{name}@{start}-{end - 1}"] = float(values[start:end] @ weight)
    curves = {name: values.tolist() for name, values in found.items()}
    return Evaluation(metrics, {"position": list(range(len(count))), **curves})


def with_rope_scaling(model: LanguageModel, c: config.Architecture, scaling: config.Scaling) -> LanguageModel:
    """The same parameters with RoPE scaled in another way; the model itself where nothing is to be scaled."""
    if scaling.name is RopeScaling.none:
        return model
    assert isinstance(c.posenc, config.Rope)
    longer = LanguageModel(replace(c, posenc=replace(c.posenc, scaling=scaling)))
    longer.load_state_dict(model.state_dict())
    return longer.eval()


def on_test(
    model: LanguageModel,
    corpus: Corpus,
    run: config.Run,
    evaluation: config.Evaluation,
    extra: Sequence[MakeMeasure] = (),
) -> Evaluation:
    """The test split's NLL and what the source and `extra` measure; in a stream at eval.length, and by position too."""
    layout = corpus.layout if evaluation.length is None else Blocks(replace(run.layout, length=evaluation.length))
    measures = [make(corpus.test, evaluation) for make in (*corpus.measures, *extra)]
    nll_N = token_nll(with_rope_scaling(model, run, evaluation.scaling), corpus.test, layout, measures)
    metrics = {"test/nll": float(nll_N.sum()) / corpus.test.n_predicted}
    for measure in measures:
        metrics |= measure.metrics()
    by = by_position(nll_N, corpus.test, layout, run.layout.length)
    return Evaluation(metrics | by.metrics, by.curves)


def evaluate(
    model: LanguageModel,
    corpus: Corpus,
    run: config.Run,
    evaluation: config.Evaluation,
    extra: Sequence[MakeMeasure] = (),
) -> Evaluation:
    """NLL and perplexity of every split, their excess where the truth is known, what `on_test` measures, and the FFN's
    zeros.

    `ffn/zeros` is the share of exact zeros among what enters the down-projections, on the first eval.n_docs validation
    documents; `ffn/dead` counts the units that are 0 at every token of them, in the layer that has most. With
    eval.n_samples as many documents are drawn and judged (see training/sample.py).
    """
    model.eval()
    test = on_test(model, corpus, run, evaluation, extra)
    nll = {
        "train": mean_nll(model, corpus.train, corpus.layout, evaluation.train_tokens),
        "val": mean_nll(model, corpus.val, corpus.layout),
        "test": test.metrics["test/nll"],
    }
    metrics = dict(test.metrics)
    for name in config.SPLITS:
        metrics |= {f"{name}/nll": nll[name], f"{name}/ppl": ppl(nll[name])}
        if corpus.n_bytes:
            metrics |= {
                f"{name}/bpb": corpus.bits_per_byte(name, nll[name]),
                f"{name}/unigram": corpus.unigram_nll(name),
            }
        if corpus.has_truth:
            metrics[f"{name}/excess"] = nll[name] - corpus.true_nll(name)
    layers = activity(model, corpus.layout.evaluation(corpus.val.first(evaluation.n_docs)))
    if layers:  # an FFN without a down-projection has none
        metrics["ffn/zeros"] = float(np.mean([layer.zeros for layer in layers]))
        metrics["ffn/dead"] = max(layer.dead for layer in layers)
    return Evaluation(metrics | judged(model, corpus, run, evaluation.n_samples), test.curves)
