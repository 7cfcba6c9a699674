"""How problems are drawn: their lengths, the laws by which they are random, and what is kept of them."""

import math
from collections import Counter

import numpy as np
import pytest

from lecture04 import config
from lecture04.data.tasks import problems as shared
from lecture04.data.tasks.recall import first_of_shuffled
from tests.data.tasks.examples import TASKS
from tests.data.tasks.examples import problems as words_of

LONGER = ("copy", "reverse", "sort", "addition")


def lengths(split):
    return split.facts["length"][split.offsets[:-1]]


@pytest.mark.parametrize("task", LONGER)
def test_the_test_has_longer_problems_than_training_and_every_length_equally_often(drawn, task):
    splits = drawn(task, "data.train_min=2", "data.train_max=6", "data.test_min=9", "data.test_max=12")
    for split, low, high in ((splits.train, 2, 6), (splits.val, 2, 6), (splits.test, 9, 12)):
        counts = Counter(lengths(split).tolist())
        assert set(counts) == set(range(low, high + 1))
        assert max(counts.values()) - min(counts.values()) <= 1


def test_a_length_is_what_the_options_say_it_is(drawn, task):
    """Symbols behind <bos>, digits of a number, or the tokens of the problem."""
    splits = drawn(task)
    for (words, is_answer), length in zip(words_of(splits, "test"), lengths(splits.test).tolist(), strict=True):
        question = words[: is_answer.index(True)]
        if task == "addition":
            assert question.index("+") == length + 1
        elif task in LONGER:
            assert len(question) == length + 2
        else:
            assert (words.index("<answer>") if "<answer>" in words else len(words)) == length


def test_the_facts_are_those_of_the_problems(compose, drawn, task):
    """What the options say without drawing anything, against what was drawn."""
    overrides = ("data.n_train=4000", "data.n_val=10", "data.n_test=80")
    facts, splits = compose(f"data={task}", *overrides).data.facts(), drawn(task, few=overrides)
    longest = max(int(np.diff(getattr(splits, name).offsets).max()) for name in ("train", "val", "test"))
    assert (facts.vocab_size, facts.max_len, facts.n_documents) == (splits.vocab_size, longest - 1, 4000)
    assert splits.tokenizer.get_vocab_size() == facts.vocab_size
    assert facts.n_tokens == pytest.approx(splits.train.n_predicted)
    assert facts.max_len == compose(f"data={task}", *overrides).layout.length


def test_questions_follow_the_power_law(drawn):
    """One pair: its question's place has the law itself. n p (1 - p) is a count's variance."""
    power, n = 0.3, 4000
    few = (f"data.n_train={n}", "data.n_val=1", "data.n_test=1", "data.n_pairs=1", "data.length=14")
    splits = drawn("mqar", f"data.power={power}", few=few)
    answers = np.flatnonzero(splits.train.facts["answer"]) - splits.train.offsets[:-1]
    weight = np.arange(1, 7) ** (power - 1.0)
    p = weight / weight.sum()
    counts = np.bincount((answers - 3) // 2, minlength=6)
    assert (answers % 2 == 1).all()
    assert (abs(counts - n * p) < 5 * np.sqrt(n * p * (1 - p))).all()


def test_places_are_drawn_one_after_the_other_without_repetition():
    """Pairs of places have the probabilities of draws by weight from what is left."""
    weight, n = np.array([4.0, 2.0, 1.0]), 20000
    drawn = first_of_shuffled(np.random.default_rng(0), np.log(weight), n, 2)
    for (first, second), count in Counter(map(tuple, drawn.tolist())).items():
        assert first != second
        p = weight[first] / weight.sum() * weight[second] / (weight.sum() - weight[first])
        assert abs(count - n * p) < 5 * math.sqrt(n * p * (1 - p))


def test_what_is_drawn_at_once_does_not_show(drawn, monkeypatch):
    """Documents of one chunk and the next are whole, and their facts go with them."""
    monkeypatch.setattr(shared, "AT_ONCE", 7)
    for words, is_answer in words_of(drawn("copy"), "train"):
        place = words.index("<answer>")
        assert words[1:place] == words[place + 1 : -1]
        assert is_answer == [i > place for i in range(len(words))]


def test_it_is_made_once_and_anew_for_other_options_and_other_code(drawn, tmp_path, monkeypatch):
    def files():
        return sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".npz")

    made = drawn("copy", folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shared, "make", lambda *_: pytest.fail("made again"))
        again = drawn("copy", folder=tmp_path)
    assert np.array_equal(again.train.tokens, made.train.tokens)
    assert np.array_equal(again.test.facts["answer"], made.test.facts["answer"])
    assert len(files()) == 1
    for changed in ("data.n_symbols=5", "data.task_seed=2", "data.test_max=41"):
        drawn("copy", changed, folder=tmp_path)
    assert len(files()) == 4
    monkeypatch.setattr(shared, "code_of", lambda *_: "changed")
    drawn("copy", folder=tmp_path)
    assert len(files()) == 5


def test_a_large_vocabulary_has_room(drawn):
    few = ("data.n_train=50", "data.n_val=1", "data.n_test=1")
    tokens = drawn("mqar", "data.vocab_size=70000", few=few).train.tokens
    assert tokens.min() >= 0
    assert 1 << 15 < tokens.max() < 70000


def test_the_code_of_one_task_is_not_anothers():
    codes = {
        name: shared.code_of((f"lecture04.data.tasks.{module}", f"{name}_problems"))
        for module, names in {"recall": TASKS[:2], "selective_copy": TASKS[2:3], "sequences": TASKS[3:]}.items()
        for name in names
    }
    assert len(set(codes.values())) == len(TASKS) == len(codes)


def test_every_task_says_what_it_is_judged_by(compose, task):
    data = compose(f"data={task}").data
    assert isinstance(data, config.Task)
    assert (data.primary, data.columns) == ("answers/accuracy", ("answers/exact",))
