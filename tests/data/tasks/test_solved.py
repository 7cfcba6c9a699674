"""Every answer is found again by a solver that reads the words of a problem alone, and nothing else is an answer."""

import re
from itertools import pairwise

import pytest

from tests.data.tasks.examples import problems


def until(words, sign):
    """What stands in front of a sign, and what stands behind it."""
    place = words.index(sign)
    return words[:place], words[place + 1 :]


def solve_mqar(words, n_pairs):
    """{place: word} by reading from left to right with a dictionary; without filler, so that keys are questions."""
    front, rest = words[: 2 * n_pairs], words[2 * n_pairs :]
    value = dict(zip(front[::2], front[1::2], strict=True))
    assert len(value) == len(set(value.values())) == n_pairs
    return {2 * n_pairs + i + 1: value[word] for i, word in enumerate(rest) if word in value}


def solve_induction(words):
    """What followed the trigger."""
    first = words.index("<trigger>")
    assert words.count("<trigger>") == 2
    assert words[-2] == "<trigger>"
    return {len(words) - 1: words[first + 1]}


def solve_selective_copy(words):
    """The words that are not blank, before the sign."""
    front, rest = until(words, "<answer>")
    return dict(enumerate((word for word in front if word != "<blank>"), len(words) - len(rest)))


def solve_sequence(reorder):
    def solve(words):
        front, rest = until(words, "<answer>")
        assert front[0] == "<bos>"
        return dict(enumerate([*reorder(front[1:]), "<eos>"], len(words) - len(rest)))

    return solve


def solve_addition(words):
    """Python's own sum of the numbers as they are written."""
    a, b = re.fullmatch(r"<bos>(\d+)\+(\d+)=\d+<eos>", "".join(words)).groups()
    assert len(a) == len(b)
    said = str(int(a) + int(b)).rjust(len(a) + 1, "0")
    return dict(enumerate([*said, "<eos>"], 3 + 2 * len(a)))


SOLVERS = {
    "mqar": lambda words: solve_mqar(words, 4),
    "induction": solve_induction,
    "selective_copy": solve_selective_copy,
    "copy": solve_sequence(list),
    "reverse": solve_sequence(lambda symbols: symbols[::-1]),
    "sort": solve_sequence(lambda symbols: sorted(symbols, key=lambda s: int(s[1:]))),
    "addition": solve_addition,
}
PLAIN = {"mqar": ("data.random_filler=false",)}


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_solver_finds_every_answer_and_no_other(drawn, task, split):
    splits, n = drawn(task, *PLAIN.get(task, ())), 0
    for words, is_answer in problems(splits, split):
        answers = {place: words[place] for place, asked in enumerate(is_answer) if asked}
        assert answers == SOLVERS[task](words)
        n += 1
    assert n == getattr(splits, split).n_docs == {"train": 400, "val": 60, "test": 80}[split]


def test_among_random_filler_each_key_is_asked_for_once_and_has_its_value(drawn):
    splits = drawn("mqar", "data.vocab_size=40")
    assert not any("<blank>" not in words for words, _ in problems(drawn("mqar", "data.random_filler=false"), "val"))
    for words, is_answer in problems(splits, "test"):
        pairs = list(zip(words[:8:2], words[1:8:2], strict=True))
        asked = [pair for pair, answer in zip(pairwise(words), is_answer[1:], strict=True) if answer]
        assert sorted(asked) == sorted(pairs)
        assert len(words) == 64


def test_the_splits_differ_and_a_task_has_other_problems_by_its_seed(drawn, task):
    splits, other = drawn(task), drawn(task, "data.task_seed=1")
    starts = {tuple(getattr(s, name).tokens[:300]) for s in (splits, other) for name in ("train", "val", "test")}
    assert len(starts) == 6
