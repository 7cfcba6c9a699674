"""What a trained model reaches on each split: a run's evaluation, which can be made again from its checkpoint.

All NLL are means in nats per predicted token; <eos> counts, <bos> does not.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from lecture04 import config
from lecture04.data.batches import evaluation_batches
from lecture04.data.corpus import Corpus, Split
from lecture04.nn.model import LanguageModel

SPLITS = ("train", "val", "test")


@torch.no_grad()
def token_nll(model: LanguageModel, split: Split, max_len: int) -> tuple[np.ndarray, np.ndarray]:
    """For each token of a split's flat arrays its NLL (0.0 at <bos>), and the logits row at each predicted token.

    Returns nll_N and logits_NV (float32), N tokens with those that are not predicted.
    """
    nll = np.zeros(len(split.tokens))
    logits = np.zeros((len(split.tokens), model.embed.num_embeddings), np.float32)
    for batch in evaluation_batches(split, max_len=max_len):
        real = batch.source_BT >= 0
        logits_NV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)[real]
        source = batch.source_BT[real].numpy()
        nll[source] = F.cross_entropy(logits_NV, batch.targets_BT[real], reduction="none").numpy()
        logits[source] = logits_NV.numpy()
    return nll, logits


@torch.no_grad()
def mean_nll(model: LanguageModel, split: Split, max_len: int) -> float:
    """Mean NLL of a split's predicted tokens."""
    total = 0.0
    for batch in evaluation_batches(split, max_len=max_len):
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


def evaluate(model: LanguageModel, corpus: Corpus, cfg: config.Root) -> dict[str, float]:
    """NLL, perplexity and the excess over the true distribution of every split, and possessive accuracy on test."""
    metrics: dict[str, float] = {}
    model.eval()
    for name in SPLITS:
        split: Split = getattr(corpus, name)
        if name == "test":
            nll_N, logits_NV = token_nll(model, split, cfg.data.max_len)
            nll = float(nll_N.sum()) / split.n_predicted
            accuracy, n = possessive_accuracy(logits_NV, split, cfg.eval.window)
            metrics |= {"possessive/accuracy": accuracy, "possessive/n": n}
        else:
            nll = mean_nll(model, split, cfg.data.max_len)
        metrics |= {f"{name}/nll": nll, f"{name}/ppl": ppl(nll), f"{name}/excess": nll - corpus.true_nll(name)}
    return metrics
