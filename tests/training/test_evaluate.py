"""Evaluation against the slowest way to do it: one document at a time, one token at a time."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lecture04.data.batches import Documents
from lecture04.data.corpus import Split
from lecture04.nn.init import build
from lecture04.records.metrics import METRICS
from lecture04.training.evaluate import evaluate, mean_nll, possessive_accuracy, ppl, token_nll

LAYOUT = Documents(16)


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
    nll, logits = token_nll(model, split, LAYOUT)
    slow_nll, slow_logits = slowly(model, split)
    assert nll == pytest.approx(slow_nll, abs=1e-5)
    assert logits == pytest.approx(slow_logits, abs=1e-5)
    assert (nll[split.offsets[:-1]] == 0).all()


def test_mean_nll_counts_predicted_tokens_alone(model, tiny_corpus):
    split = tiny_corpus.val
    expected = slowly(model, split)[0].sum() / (len(split.tokens) - split.n_docs)
    assert mean_nll(model, split, LAYOUT) == pytest.approx(expected, abs=1e-5)


def test_mean_nll_does_not_depend_on_how_documents_are_packed(model, tiny_corpus):
    narrow, wide = (mean_nll(model, tiny_corpus.train, Documents(n)) for n in (16, 100))
    assert narrow == pytest.approx(wide, abs=1e-5)


def test_a_model_of_equal_logits_has_the_uniform_nll(small, tiny_corpus):
    blank = build(small())
    with torch.no_grad():
        blank.embed.weight.zero_()
    assert mean_nll(blank, tiny_corpus.test, LAYOUT) == pytest.approx(math.log(15), abs=1e-6)


def a_split(tokens, distance):
    n = len(tokens)
    return Split(np.array(tokens, np.int16), np.array([0, n]), np.zeros(n), np.array(distance, np.int16))


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
def test_possessive_accuracy_by_hand(guesses, window, expected):
    assert possessive_accuracy(logits_that_say(guesses), a_split(TOKENS, DISTANCE), window) == pytest.approx(expected)


def test_possessive_accuracy_without_a_place_is_nan():
    accuracy, n = possessive_accuracy(logits_that_say({}), a_split(TOKENS, DISTANCE), window=7)
    assert math.isnan(accuracy)
    assert n == 0


def test_possessive_accuracy_of_models_logits(model, tiny_corpus):
    split = tiny_corpus.test
    _, logits = slowly(model, split)
    right = [
        logits[i, [6, 7, 8]].argmax() + 6 == split.tokens[i]
        for i in range(len(split.tokens))
        if split.subject_distance[i] > 4
    ]
    _, ours = token_nll(model, split, LAYOUT)
    assert possessive_accuracy(ours, split, 4) == pytest.approx((np.mean(right), len(right)))


def test_evaluate_says_all_there_is_of_each_split(model, tiny_corpus, small):
    cfg = small("recipe=llama")
    metrics = evaluate(model, tiny_corpus, cfg).metrics
    for name in ("train", "val", "test"):
        split = getattr(tiny_corpus, name)
        nll = slowly(model, split)[0].sum() / split.n_predicted
        assert metrics[f"{name}/nll"] == pytest.approx(nll, abs=1e-5)
        assert metrics[f"{name}/ppl"] == pytest.approx(math.exp(nll), rel=1e-4)
        true = -split.log_prob.sum() / split.n_predicted
        assert metrics[f"{name}/excess"] == pytest.approx(nll - true, abs=1e-5)
    assert metrics["possessive/n"] == (tiny_corpus.test.subject_distance > 4).sum()
    assert 0 <= metrics["possessive/accuracy"] <= 1
    wide = evaluate(model, tiny_corpus, replace(cfg, eval=replace(cfg.eval, window=6))).metrics
    assert wide["possessive/n"] == (tiny_corpus.test.subject_distance > 6).sum() < metrics["possessive/n"]


def test_every_evaluated_metric_can_stand_in_a_table(model, tiny_corpus, small):
    assert set(evaluate(model, tiny_corpus, small("recipe=llama")).metrics) <= set(METRICS)


def test_evaluating_changes_nothing_and_repeats(model, tiny_corpus, small):
    before = [p.clone() for p in model.parameters()]
    first, second = (evaluate(model, tiny_corpus, small("recipe=llama")) for _ in range(2))
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_perplexity_of_a_hopeless_model_is_infinite_not_an_error():
    assert ppl(0.0) == 1.0
    assert ppl(2.0) == pytest.approx(math.e**2)
    assert ppl(1e6) == math.inf
    assert ppl(math.inf) == math.inf


def test_perplexity_of_nan_is_nan():
    assert math.isnan(ppl(math.nan))
