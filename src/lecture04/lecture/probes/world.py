"""The Garden World in figures (sections 0.3, 1.3 and 4.5), and on which tokens trained models lose to the truth.

A pairing is (given, token): the word that a token was drawn for, and the token (see data/garden/source.py). It is
that of the derivation which made the document; where another derivation gives the same words, its pairing may be
another one. A pairing is seen where it occurs in the training split.

Shapes: N tokens of a split's flat arrays.
"""

import sys
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.garden.source import FACTS
from lecture04.data.types import Corpus, Split, load
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.expected import ExpectedExcess, language_of, pairing_counts, pairings
from lecture04.lecture.probes.finished import Finished, of_config, sweep_command
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import labelled, number
from lecture04.training.evaluate import token_nll

# Parts of the table, how often a pairing was seen in training, and quantities; the dictionaries have them as shown.
CORPUS, EXCESS, EXPECTED = "corpus", "excess", "expected"
UNSEEN, NONE, ALL = "unseen", "no_pairing", "all"
BUCKETS = {UNSEEN: 0, "seen_1": 1, "seen_3": 3, "seen_11": 11, "seen_101": 101}  # from so many times on
PAIRINGS = {
    UNSEEN: "never seen",
    "seen_1": "seen 1-2 times",
    "seen_3": "seen 3-10 times",
    "seen_11": "seen 11-100 times",
    "seen_101": "seen over 100 times",
    NONE: "no pairing",
    ALL: "all",
}
TOKENS, SHARE, MEAN = "tokens", "excess_share", "mean_excess"
LABELS = {
    "documents": "documents",
    "predicted_tokens": "predicted tokens",
    "mean_tokens": "tokens of a document, mean",
    "median_tokens": "tokens of a document, median",
    "longest": "tokens of the longest",
    "true_nats": "true NLL, nats a token",
    "true_ppl": "true perplexity",
    "possessives": "possessives",
    "far_possessives": "far possessives",
}

# claim, part, split, pairing, seed, quantity, value
Row = tuple[str, str, str, str, int | None, str, float]


def accounted(corpus: Corpus, window: int) -> Iterator[Row]:
    """What the corpus is, split by split: documents, lengths, entropy, pronouns."""
    yield "", CORPUS, ALL, "", None, "vocabulary", corpus.vocab_size
    for name in config.SPLITS:
        split: Split = getattr(corpus, name)
        lengths = np.diff(split.offsets) - 1
        nats = corpus.true_nll(name)
        figures = {
            "documents": split.n_docs,
            "predicted_tokens": split.n_predicted,
            "mean_tokens": lengths.mean(),
            "median_tokens": np.median(lengths),
            "longest": lengths.max(),
            "true_nats": nats,
            "true_ppl": np.exp(nats),
            "possessives": (split.facts["subject_distance"] > 0).sum(),
            "far_possessives": (split.facts["subject_distance"] > window).sum(),
        }
        claims = {"mean_tokens": "doc_length"} | ({"true_ppl": "floor"} if name == "test" else {})
        for quantity, value in figures.items():
            yield claims.get(quantity, ""), CORPUS, name, "", None, quantity, float(value)


def times_seen(split: Split, training: Split, n_words: int) -> np.ndarray:
    """How often each token's pairing occurs in the training split, int64 [N]; -1 where there is no pairing."""

    given = split.facts["given"].astype(np.int64)
    return np.where(given < 0, -1, pairing_counts(training, n_words)[np.maximum(given, 0) * n_words + split.tokens])


def buckets(seen: np.ndarray) -> np.ndarray:
    """The bucket of each count, as a number into (*BUCKETS, NONE)."""
    return np.where(seen < 0, len(BUCKETS), np.digitize(seen, list(BUCKETS.values())) - 1)


def by_times_seen(excess: np.ndarray, seen: np.ndarray, weight: np.ndarray) -> dict[str, tuple[float, float]]:
    """{bucket: (sum of the weights, sum of the excess)}."""
    place, n = buckets(seen), len(BUCKETS) + 1
    sums = (np.bincount(place, values, minlength=n) for values in (weight, excess))
    return {name: (float(w), float(nats)) for name, w, nats in zip((*BUCKETS, NONE), *sums, strict=True)}


def excess(runs: Iterable[Finished], corpus: Corpus, options: config.Garden) -> Iterator[Row]:
    """The excess of finished runs on test, by how often a pairing was seen; a seed at a time.

    EXCESS is that of the words which stand there, EXPECTED the mean over those that could (see expected.py).
    """
    test = corpus.test
    seen_N = times_seen(test, corpus.train, corpus.vocab_size)[test.predicted]
    could = pairings(corpus, language_of(options))
    for found in runs:
        expected = ExpectedExcess(could)
        nll_N, seed = token_nll(trained(found), test, corpus.layout, (expected,)), found.seed
        excess_N = (nll_N + test.facts["log_prob"])[test.predicted]
        n_tokens = len(excess_N)
        for part, by in (
            (EXCESS, by_times_seen(excess_N, seen_N, np.ones(n_tokens))),
            (EXPECTED, by_times_seen(expected.nats_M, could.seen_M, could.prob_M)),
        ):
            whole = sum(nats for _, nats in by.values())
            for bucket, (weight, nats) in by.items():
                claim = "unseen_pairs" if bucket == UNSEEN else ""
                yield claim, part, "test", bucket, seed, TOKENS, weight
                yield claim, part, "test", bucket, seed, SHARE, nats / whole
                yield claim, part, "test", bucket, seed, MEAN, nats / weight if weight else np.nan
            yield "", part, "test", ALL, seed, TOKENS, n_tokens
            yield "", part, "test", ALL, seed, MEAN, whole / n_tokens


@register("probe", "world")
def world(request: config.Request, options: Probe) -> pd.DataFrame:
    """The Garden World in figures, and on which word pairings trained models lose to the true distribution.

    Columns: claim, part, split, pairing (see PAIRINGS), seed, quantity, value. Lengths count predicted tokens, <eos>
    among them; a possessive is far where its subject stands more than eval.window tokens back. The excess of a token is
    the model's NLL less the true one, in nats; where a model gives a word more than the truth does it is negative, so
    that a share can lie outside 0 to 1. Beside that of the words which stand in the documents is the expected one, over
    all words that could stand there. Both are taken of every finished run of the config, whatever its seed; where there
    are none, they are left out and stderr says what makes them.
    """
    run, outputs = request.run, request.session.outputs
    corpus, runs = load(run, outputs), of_config(run, outputs)
    if lacks := [fact for fact in FACTS if fact not in corpus.test.facts]:
        raise config.UserError(f"data={run.data.name}: says nothing of {', '.join(lacks)}, which probe=world counts.")
    rows = [*accounted(corpus, request.evaluation.window)]
    if runs and isinstance(run.data, config.Garden):
        rows += excess(runs, corpus, run.data)
    if not runs:
        command = sweep_command(outputs, "norm")
        print(
            f"Where the excess falls needs finished runs of this config; for the standard one: {command}",
            file=sys.stderr,
        )
    table = pd.DataFrame(rows, columns=["claim", "part", "split", "pairing", "seed", "quantity", "value"])
    return table.astype({"seed": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The corpus, a column a split; and the excess, a row a bucket with the mean and range over seeds."""
    corpus = labelled(table.loc[(table.part == CORPUS) & (table.split != ALL)], LABELS)
    wide = corpus.pivot(index="quantity", columns="split", values="value")
    wide = wide.loc[corpus.quantity.unique(), corpus.split.unique()].reset_index()
    (n_words,) = table.value[table.quantity == "vocabulary"]
    frames = {f"The corpus: {int(n_words)} words": wide}
    seeds = ", ".join(map(str, table.seed.dropna().unique()))
    for part, title, amount in (
        (EXPECTED, "Expected excess on test by pairing", "probability, tokens"),
        (EXCESS, "Excess of the words that stand there", "tokens"),
    ):
        lines = table.loc[table.part == part]
        if len(lines):
            frames[f"{title}: mean [lowest, highest] of seeds {seeds}"] = _by_pairing(lines, amount)
    return frames


def _by_pairing(lines: pd.DataFrame, amount: str) -> pd.DataFrame:
    """A row a bucket: how much stands or could stand there, and what is lost on it."""
    wide = lines.groupby(["pairing", "quantity"], sort=False).value.agg(["mean", "min", "max"]).unstack("quantity")
    names = list(PAIRINGS)
    found = pd.DataFrame({"pairing": PAIRINGS.values(), amount: wide["mean"][TOKENS][names].round().to_numpy()})
    for quantity, heading, scale, digits in (
        (SHARE, "share of the excess, %", 100, 1),
        (MEAN, "excess, nats a token", 1, 3),
    ):
        figures = zip(*(scale * wide[how][quantity][names] for how in ("mean", "min", "max")), strict=True)
        found[heading] = [
            "" if np.isnan(mean) else f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
            for mean, low, high in figures
        ]
    return found


def sentence(table: pd.DataFrame) -> str:
    """The best possible perplexity; and of trained models, where their distance from it lies."""
    of_test = table[(table.part == CORPUS) & (table.split == "test")].set_index("quantity").value
    said = f"The best possible perplexity on test is {number(of_test.true_ppl, 3)}, the true distribution's"
    lines = table[table.part == EXPECTED]
    if lines.empty:
        far = of_test.far_possessives / of_test.possessives
        return f"{said}; of the possessives there {number(100 * far)} % stand far from their subject."
    mean = lines.groupby(["pairing", "quantity"]).value.mean().unstack("quantity")
    shares = mean[SHARE].drop(index=ALL)
    most, of_tokens = str(shares.idxmax()), mean[TOKENS] / mean[TOKENS][ALL]
    where = "without a pairing" if most == NONE else f"whose pairing was {PAIRINGS[most]}"
    rest = f"; on those whose pairing was never seen it is {number(100 * shares[UNSEEN])} %"
    return (
        f"{said}. Of the {number(mean[MEAN][ALL])} nats a token that trained models lose to it most are lost on words "
        f"{where} ({number(100 * shares[most])} %){'' if most == UNSEEN else rest}. Words whose pairing was never seen "
        f"have {number(100 * of_tokens[UNSEEN])} % of the probability."
    )
