"""What is trained on and measured: answers alone, token by token and whole, by the length of their problems."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lecture04 import config
from lecture04.config import Layout
from lecture04.data.documents import Documents
from lecture04.data.tasks.accuracy import AnswerAccuracy, ranges
from lecture04.data.types import Split
from lecture04.nn.init import build
from lecture04.records.metrics import METRICS, Metrics
from lecture04.training.evaluate import token_nll
from lecture04.training.loop import batch_loss

SMALL = ("model.d_model=16", "model.n_heads=2", "ffn.d_ff=16")


@pytest.fixture
def evaluation(requested):
    return requested().evaluation


@pytest.fixture
def model(compose):
    run = compose("data=copy", *SMALL)
    return build(run).eval()


def altered(split, places):
    tokens = split.tokens.copy()
    tokens[places] = 4 + (tokens[places] - 4 + 1) % 26
    return Split(tokens, split.offsets, split.facts)


def whole(split):
    """All of its documents as one batch."""
    return next(Documents(Layout(name="documents", length=200)).training(split, seed=0, batch_size=split.n_docs))


def test_the_loss_is_the_mean_nll_of_answers(drawn, model):
    split = drawn("copy").val
    batch = whole(split)
    is_answer = torch.from_numpy(split.facts["answer"][batch.source_BT.numpy()]) & (batch.source_BT >= 0)
    assert batch.n_predicted == int(is_answer.sum()) == split.n_predicted == split.facts["answer"].sum()
    log_prob_NV = model(batch.tokens_BT, batch.pos_BT, batch.document_BT)[is_answer].log_softmax(dim=-1)
    right = torch.from_numpy(split.tokens[batch.source_BT[is_answer].numpy()]).long()
    expected = -log_prob_NV[torch.arange(len(right)), right].mean().item()
    assert batch_loss(model, batch).item() == pytest.approx(expected, rel=1e-5)


def test_a_target_that_is_no_answer_may_be_anything(drawn, model):
    """The inputs stay; of the targets first all others are changed, then one answer."""
    split = drawn("copy").val
    batch, is_answer = whole(split), split.facts["answer"]
    loss = batch_loss(model, batch).item()

    def loss_with(places):
        return batch_loss(model, replace(whole(altered(split, places)), tokens_BT=batch.tokens_BT)).item()

    assert loss_with(np.flatnonzero(~is_answer)) == loss
    assert loss_with(np.flatnonzero(is_answer)[:1]) != loss


@pytest.fixture
def two_problems():
    """Lengths 1 and 2: the answers are (5, 2) and (6, 7, 2)."""
    tokens = np.array([1, 5, 3, 5, 2, 1, 6, 7, 3, 6, 7, 2], np.int16)
    answer = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1], bool)
    return Split(tokens, np.array([0, 5, 12]), {"answer": answer, "length": np.repeat([1, 2], [5, 7])})


def guesses(words):
    return torch.nn.functional.one_hot(torch.tensor(words), 9).float()


def test_counts_by_hand(two_problems, evaluation):
    measure = AnswerAccuracy(two_problems, evaluation)
    measure.add(guesses([5, 2]), np.array([3, 4]))
    measure.add(guesses([6, 8, 2]), np.array([9, 10, 11]))
    assert measure.metrics() == {
        "answers/accuracy": 4 / 5,
        "answers/n": 5,
        "answers/exact": 1 / 2,
        "answers/problems": 2,
        "answers/accuracy@1-1": 1,
        "answers/n@1-1": 2,
        "answers/exact@1-1": 1,
        "answers/problems@1-1": 1,
        "answers/accuracy@2-2": 2 / 3,
        "answers/n@2-2": 3,
        "answers/exact@2-2": 0,
        "answers/problems@2-2": 1,
    }


def test_outputs_that_are_no_numbers_have_no_accuracy(two_problems, evaluation):
    measure = AnswerAccuracy(two_problems, evaluation)
    measure.add(torch.full((5, 9), math.nan), np.array([3, 4, 9, 10, 11]))
    found = measure.metrics()
    assert math.isnan(found["answers/accuracy"])
    assert math.isnan(found["answers/exact@2-2"])
    assert found["answers/n"] == 5


def test_an_evaluation_is_that_of_each_problem_alone(drawn, model, evaluation):
    """Against the model's likeliest words of one document at a time."""
    split = drawn("copy", "data.test_min=21", "data.test_max=24").test
    measure = AnswerAccuracy(split, evaluation)
    token_nll(model, split, Documents(Layout(name="documents", length=82)), [measure])
    right, whole = dict.fromkeys(range(21, 25), 0), dict.fromkeys(range(21, 25), 0)
    for start, end in zip(split.offsets[:-1], split.offsets[1:], strict=True):
        document = torch.from_numpy(split.tokens[start:end].astype(np.int64))
        with torch.no_grad():
            guessed = model(document[None, :-1]).argmax(dim=-1)[0]
        length = (len(document) - 3) // 2
        hits = (guessed == document[1:])[-length - 1 :]
        right[length] += int(hits.sum())
        whole[length] += bool(hits.all())
    found = measure.metrics()
    assert sum(right.values()) > 0
    assert found["answers/accuracy"] * found["answers/n"] == pytest.approx(sum(right.values()))
    for length, n in right.items():
        assert found[f"answers/n@{length}-{length}"] == 20 * (length + 1)
        assert found[f"answers/accuracy@{length}-{length}"] == pytest.approx(n / (20 * (length + 1)))
        assert found[f"answers/exact@{length}-{length}"] == whole[length] / 20


@pytest.mark.parametrize(("low", "high"), [(21, 40), (9, 16), (5, 7), (1, 1000), (3, 3)])
def test_ranges_are_quarters_that_hold_every_length_once(low, high):
    found = ranges(low, high)
    if low == high:
        assert found == []
        return
    assert [n for a, b in found for n in range(a, b + 1)] == list(range(low, high + 1))
    assert len(found) == min(4, high - low + 1)
    sizes = [b - a for a, b in found]
    assert max(sizes) - min(sizes) <= 1


def test_an_accuracy_by_length_is_judged_by_its_own_count():
    for name, items in (("accuracy", "n"), ("exact", "problems")):
        whole, part = METRICS[f"answers/{name}"], METRICS[f"answers/{name}@21-25"]
        assert (part.scale, part.items) == ("logit", f"answers/{items}@21-25")
        assert METRICS[part.items].format == METRICS[whole.items].format
        assert not part.lower_is_better
        assert part.label == f"{whole.label} at 21-25"
    for unknown in ("answers/other@21-25", "answers/n@21", "params@1-2", "answers/n@"):
        assert unknown not in METRICS
    assert "answers/n@1-2" not in Metrics(), "what is not declared has no ranges"


def test_the_measure_is_the_evaluations_and_no_other_run(compose, requested):
    from lecture04.records.identity import evaluation_code, run_code

    run, evaluation = compose("data=mqar"), requested("data=mqar").evaluation
    name = "data/tasks/accuracy.py::AnswerAccuracy"
    assert name in evaluation_code(run, evaluation).definitions
    assert name not in run_code(run).definitions
    assert "data/tasks/recall.py::mqar_problems" in run_code(run).definitions
    assert "data/tasks/recall.py::induction_problems" not in run_code(run).definitions
    assert isinstance(evaluation, config.Evaluation)
