"""What a model without context reaches on the corpus, and the bounds on either side (section 2.3)."""

import math

import pandas as pd

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.types import load
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import number, times

Row = tuple[str, str, str, str, float]


@register("probe", "unigram")
def unigram(request: config.Request, options: Probe) -> pd.DataFrame:
    """The unigram model's perplexity on every split, beside the uniform one's and the true distribution's.

    Columns: claim, split, model, quantity (nats a predicted token, perplexity), value. The unigram model has the
    training split's word frequencies, one added to each count; the uniform one gives every word of the vocabulary the
    same probability, also <pad> and <bos>, which are never predicted; the true one is the corpus's own generator, where
    it is known.
    """
    corpus = load(request.run, request.session.outputs)
    rows: list[Row] = []
    for split in config.SPLITS:
        nll = {"uniform": math.log(corpus.vocab_size), "unigram": corpus.unigram_nll(split)}
        if corpus.has_truth:
            nll["true"] = corpus.true_nll(split)
        for model, nats in nll.items():
            claim = "unigram" if (split, model) == ("val", "unigram") else ""
            rows.append(("", split, model, "nats", nats))
            rows.append((claim, split, model, "perplexity", math.exp(nats)))
    return pd.DataFrame(rows, columns=["claim", "split", "model", "quantity", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table of nats and one of perplexities, a row a split."""
    frames = {}
    for quantity, title in (("perplexity", "Perplexity"), ("nats", "Nats a predicted token")):
        wide = table[table.quantity == quantity].pivot(index="split", columns="model", values="value")
        frames[title] = wide.loc[table.split.unique(), table.model.unique()].reset_index()
    return frames


def sentence(table: pd.DataFrame) -> str:
    """How far a model without context comes, from both ends, on test."""
    ppl = table[(table.split == "test") & (table.quantity == "perplexity")].set_index("model").value
    own, uniform, best = (ppl.get(model) for model in ("unigram", "uniform", "true"))
    known = f"{times(own / best)} the best possible ({number(best, 3)}) and " if best else ""
    return (
        f"On test a model without context has perplexity {number(own, 3)}: {known}{times(own / uniform)} the uniform "
        f"model's ({number(uniform, 3)})."
    )
