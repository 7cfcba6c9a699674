"""Evaluation against the slowest way to do it: one document at a time, one token at a time."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch

from lecture04.config import Evaluation, Layout, Scaling
from lecture04.data.documents import Documents
from lecture04.data.garden.source import PronounAccuracy
from lecture04.data.types import LAYOUTS, Split
from lecture04.nn.init import build
from lecture04.records.metrics import METRICS
from lecture04.training import memory
from lecture04.training.evaluate import evaluate, mean_nll, ppl, token_nll

LAYOUT = Documents(Layout(name="documents", length=16))


class Kept:
    """All logits, in the split's order: what no measure of ours does."""

    def __init__(self, split):
        self.logits = np.zeros((len(split.tokens), 15), np.float32)

    def add(self, logits_NV, place_N):
        self.logits[place_N] = logits_NV.numpy()


@pytest.fixture(scope="module")
def model(small):
    return build(small("recipe=llama"))


def slowly(model, split):
    """NLL of each token in the split's order, and the logits that it was predicted from."""
    nll, rows = [], []
    for i in range(split.n_docs):
        tokens = torch.from_numpy(split.tokens[split.offsets[i] : split.offsets[i + 1]].astype(np.int64))
        nll.append(0.0)
        rows.append(np.zeros(15))
        for t in range(1, len(tokens)):
            with torch.no_grad():
                logits = model(tokens[None, :t])[0, -1].double()
            nll.append(float(logits.logsumexp(0) - logits[tokens[t]]))
            rows.append(logits.numpy())
    return np.array(nll), np.stack(rows)


def test_token_nll_is_that_of_each_document_alone(model, tiny_corpus):
    split = tiny_corpus.val
    kept = Kept(split)
    nll = token_nll(model, split, LAYOUT, [kept])
    slow_nll, slow_logits = slowly(model, split)
    assert nll == pytest.approx(slow_nll, abs=1e-5)
    assert kept.logits == pytest.approx(slow_logits, abs=1e-5)
    assert (nll[split.offsets[:-1]] == 0).all()


def test_mean_nll_counts_predicted_tokens_alone(model, tiny_corpus):
    split = tiny_corpus.val
    expected = slowly(model, split)[0].sum() / (len(split.tokens) - split.n_docs)
    assert mean_nll(model, split, LAYOUT) == pytest.approx(expected, abs=1e-5)


def test_mean_nll_does_not_depend_on_how_documents_are_packed(model, tiny_corpus):
    narrow, wide = (
        mean_nll(model, tiny_corpus.train, Documents(Layout(name="documents", length=n))) for n in (16, 100)
    )
    assert narrow == pytest.approx(wide, abs=1e-5)


def test_a_model_of_equal_logits_has_the_uniform_nll(small, tiny_corpus):
    blank = build(small())
    with torch.no_grad():
        blank.embed.weight.zero_()
    assert mean_nll(blank, tiny_corpus.test, LAYOUT) == pytest.approx(math.log(15), abs=1e-6)


def a_split(tokens, distance):
    n = len(tokens)
    return Split(np.array(tokens, np.int16), np.array([0, n]), {"subject_distance": np.array(distance, np.int16)})


#        <bos> cat  sat  HIS  ...            HER            ITS            HER
TOKENS = [1, 9, 9, 6, 9, 9, 9, 7, 9, 8, 9, 7]
DISTANCE = [0, 0, 0, 2, 0, 0, 0, 5, 0, 6, 0, 7]


def logits_that_say(guesses):
    """Logits whose best word is always 9, no possessive; among the possessives, the guess at each place."""
    logits = np.zeros((len(TOKENS), 15), np.float32)
    logits[:, 9] = 10
    logits[:, 12] = 5
    for place, word in guesses.items():
        logits[place, word] = 1
    return logits


def accuracy_of(logits, split, window, n_at_once=5):
    """What is measured of logits that come in batches, in any order."""
    options = Evaluation(window=window, scaling=Scaling(n_original=16, beta_fast=32.0))
    measure, places = PronounAccuracy(split, options), np.arange(1, len(split.tokens))[::-1]
    for start in range(0, len(places), n_at_once):
        here = places[start : start + n_at_once].copy()
        measure.add(torch.from_numpy(logits[here]), here)
    found = measure.metrics()
    assert found.keys() == {"pronouns/accuracy", "pronouns/n"}
    return found["pronouns/accuracy"], found["pronouns/n"]


@pytest.mark.parametrize("n_at_once", [1, 5, 100])
@pytest.mark.parametrize(
    ("guesses", "window", "expected"),
    [
        ({3: 6, 7: 7, 9: 8, 11: 7}, 4, (1.0, 3)),
        ({3: 6, 7: 7, 9: 7, 11: 7}, 4, (2 / 3, 3)),
        ({3: 7, 7: 7, 9: 8, 11: 7}, 4, (1.0, 3)),
        ({3: 7, 7: 7, 9: 8, 11: 7}, 0, (3 / 4, 4)),
        ({3: 7, 7: 8, 9: 7, 11: 8}, 4, (0.0, 3)),
        ({3: 6, 7: 6, 9: 8, 11: 7}, 5, (1.0, 2)),
        ({3: 6, 7: 6, 9: 6, 11: 7}, 6, (1.0, 1)),
    ],
)
def test_pronoun_accuracy_by_hand(guesses, window, expected, n_at_once):
    found = accuracy_of(logits_that_say(guesses), a_split(TOKENS, DISTANCE), window, n_at_once)
    assert found == pytest.approx(expected)


def test_pronoun_accuracy_of_what_is_no_number_is_nan():
    logits = logits_that_say({3: 6, 7: 7, 9: 8, 11: 7})
    logits[7, 0] = math.nan
    accuracy, n = accuracy_of(logits, a_split(TOKENS, DISTANCE), 4)
    assert math.isnan(accuracy)
    assert n == 3
    logits[7, 0], logits[8] = 0, math.nan
    assert accuracy_of(logits, a_split(TOKENS, DISTANCE), 4) == (1.0, 3), "what is no place does not matter"


def test_pronoun_accuracy_without_a_place_is_nan():
    accuracy, n = accuracy_of(logits_that_say({}), a_split(TOKENS, DISTANCE), window=7)
    assert math.isnan(accuracy)
    assert n == 0


def test_pronoun_accuracy_of_models_logits(model, tiny_corpus):
    split = tiny_corpus.test
    _, logits = slowly(model, split)
    right = [
        logits[i, [6, 7, 8]].argmax() + 6 == split.tokens[i]
        for i in range(len(split.tokens))
        if split.facts["subject_distance"][i] > 4
    ]
    measure = PronounAccuracy(split, Evaluation(scaling=Scaling(n_original=16, beta_fast=32.0)))
    token_nll(model, split, LAYOUT, [measure])
    expected = {"pronouns/accuracy": np.mean(right), "pronouns/n": len(right)}
    assert measure.metrics() == pytest.approx(expected)


@pytest.fixture(scope="module")
def asked(small_request):
    return small_request("recipe=llama")


def test_evaluate_says_all_there_is_of_each_split(model, tiny_corpus, asked):
    run, evaluation = asked.run, asked.evaluation
    metrics = evaluate(model, tiny_corpus, run, evaluation).metrics
    for name in ("train", "val", "test"):
        split = getattr(tiny_corpus, name)
        nll = slowly(model, split)[0].sum() / split.n_predicted
        assert metrics[f"{name}/nll"] == pytest.approx(nll, abs=1e-5)
        assert metrics[f"{name}/ppl"] == pytest.approx(math.exp(nll), rel=1e-4)
        true = -split.facts["log_prob"].sum() / split.n_predicted
        assert metrics[f"{name}/excess"] == pytest.approx(nll - true, abs=1e-5)
    distance = tiny_corpus.test.facts["subject_distance"]
    assert metrics["pronouns/n"] == (distance > 4).sum()
    assert 0 <= metrics["pronouns/accuracy"] <= 1
    wide = evaluate(model, tiny_corpus, run, replace(evaluation, window=6)).metrics
    assert wide["pronouns/n"] == (distance > 6).sum() < metrics["pronouns/n"]


def test_every_evaluated_metric_can_stand_in_a_table(model, tiny_corpus, asked):
    assert set(evaluate(model, tiny_corpus, asked.run, asked.evaluation).metrics) <= set(METRICS)


def test_evaluating_changes_nothing_and_repeats(model, tiny_corpus, asked):
    before = [p.clone() for p in model.parameters()]
    first, second = (evaluate(model, tiny_corpus, asked.run, asked.evaluation) for _ in range(2))
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("layout", ["documents", "stream"])
def test_a_source_without_a_known_truth_is_evaluated_without_an_excess(model, tiny_corpus, small_request, layout):
    asked = small_request("recipe=llama", f"layout={layout}")
    splits = {name: replace(getattr(tiny_corpus, name), facts={}) for name in ("train", "val", "test")}
    batches = LAYOUTS.lookup(layout)(asked.run.layout)
    plain = replace(tiny_corpus, **splits, measures=(), layout=batches)
    assert not plain.has_truth
    found = evaluate(model, plain, asked.run, asked.evaluation)
    known = evaluate(model, replace(tiny_corpus, layout=batches), asked.run, asked.evaluation)
    assert not [name for name in (*found.metrics, *found.curves) if "excess" in name or "pronouns" in name]
    left = {name for name in known.metrics if "excess" in name or "pronouns" in name}
    assert found.metrics == {name: value for name, value in known.metrics.items() if name not in left}
    assert len(left) == (5 if layout == "documents" else 6)


def test_what_a_file_from_outside_measures_is_among_the_metrics(model, tiny_corpus, asked):
    class Seen:
        def __init__(self, split, evaluation):
            self.n, self.split = 0, split

        def add(self, logits_NV, place_N):
            assert len(logits_NV) == len(place_N) <= self.split.n_predicted
            self.n += len(place_N)

        def metrics(self):
            return {"seen": float(self.n)}

    found = evaluate(model, tiny_corpus, asked.run, asked.evaluation, [Seen]).metrics
    assert found["seen"] == tiny_corpus.test.n_predicted


def test_memory_does_not_grow_with_tokens_times_vocabulary():
    """60 000 tokens of 6 000 words: their logits together would take 1.4 GB."""
    vocab_size, n_docs, n = 6000, 2000, 30
    tokens = np.random.default_rng(0).integers(3, vocab_size, n_docs * (n + 1)).astype(np.int32)
    split = Split(tokens, np.arange(n_docs + 1) * (n + 1), {"subject_distance": np.full(len(tokens), 5, np.int16)})
    largest = [0]

    class Uniform(torch.nn.Module):
        def forward(self, tokens_BT, pos_BT=None, document_BT=None):
            largest[0] = max(largest[0], tokens_BT.numel())
            return torch.zeros(()).expand(*tokens_BT.shape, vocab_size)

    class Words:
        """As PronounAccuracy, of all words."""

        def __init__(self):
            self.n = 0

        def add(self, logits_NV, place_N):
            self.n += len(place_N)

    layout, measure = Documents(Layout(name="documents", length=64)), Words()
    memory.reset_peak()
    before = memory.peak_mib()
    tracemalloc.start()
    nll = token_nll(Uniform(), split, layout, [measure])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert nll.sum() / split.n_predicted == pytest.approx(math.log(vocab_size), rel=1e-5)
    assert measure.n == split.n_predicted == n_docs * n
    assert largest[0] < split.n_predicted / 10
    assert peak < 4 * n_docs * n * 50, "no array of tokens by words"
    assert memory.peak_mib() - before < 500, "nor a tensor"


def test_perplexity_of_a_hopeless_model_is_infinite_not_an_error():
    assert ppl(0.0) == 1.0
    assert ppl(2.0) == pytest.approx(math.e**2)
    assert ppl(1e6) == math.inf
    assert ppl(math.inf) == math.inf


def test_perplexity_of_nan_is_nan():
    assert math.isnan(ppl(math.nan))
