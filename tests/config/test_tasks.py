"""Options of the tasks: what does not go together is one sentence, and what does has none."""

import pytest

from lecture04.config import UserError
from lecture04.config.resolve import resolve_for_training

TASKS = ("mqar", "induction", "selective_copy", "copy", "reverse", "sort", "addition")


def errors(settings):
    try:
        resolve_for_training(settings)
    except UserError as e:
        return str(e).splitlines()
    return []


@pytest.mark.parametrize("task", TASKS)
def test_the_defaults_are_sound_and_rows_hold_the_longest_problem(settings, task):
    assert errors(settings(f"data={task}")) == []
    run = resolve_for_training(settings(f"data={task}", "posenc=learned")).run
    assert run.posenc.n_positions == run.layout.length == run.data.facts().max_len


@pytest.mark.parametrize("task", TASKS)
def test_a_problem_stands_by_itself(settings, task):
    (error,) = errors(settings(f"data={task}", "layout=stream"))
    assert error == (
        f"layout=stream: a document of data={task} is one problem and stands by itself; choose layout=documents."
    )


@pytest.mark.parametrize("task", ["copy", "reverse", "sort", "addition"])
def test_rows_have_room_for_the_longest_test(settings, task):
    facts = settings(f"data={task}").data
    longest = (3 * facts.test_max + 4) if task == "addition" else (2 * facts.test_max + 2)
    assert errors(settings(f"data={task}", f"layout.length={longest}")) == []
    (error,) = errors(settings(f"data={task}", f"layout.length={longest - 1}"))
    assert error.startswith(f"layout.length={longest - 1}: must be at least {longest}, ")


MQAR = {
    "data.n_pairs=128": [
        "data.n_pairs=128: data.vocab_size=256 has 127 keys; ",
        "data.length=64: must be at least 512",
    ],
    "data.length=15": ["data.length=15: must be at least 16, two tokens for each of data.n_pairs=4 "],
    "data.vocab_size=9": ["data.n_pairs=4: data.vocab_size=9 has 3 keys; a vocabulary of 10 would do."],
    "data.vocab_size=3": ["data.vocab_size=3: must be at least 4."],
    "data.power=0": ["data.power=0.0: must be above 0."],
    "data.n_pairs=0": ["data.n_pairs=0: must be at least 1."],
}
SELECTIVE = {
    "data.n_data=65": ["data.n_data=65: must be at most data.length=64, "],
    "data.n_symbols=1": ["data.n_symbols=1: must be at least 2."],
}
COPY = {
    "data.test_min=20": ["data.test_min=20: must be above data.train_max=20; "],
    "data.train_max=40": ["data.test_min=21: must be above data.train_max=40; "],
    "data.train_min=21": ["data.train_max=20: must be at least data.train_min=21."],
    "data.test_max=20": ["data.test_max=20: must be at least data.test_min=21."],
    "data.n_test=19": ["data.n_test=19: must be at least 20, a problem for each length of the test range."],
    "data.train_min=0": ["data.train_min=0: must be at least 1."],
}
BAD = [
    (task, override, said)
    for task, cases in {"mqar": MQAR, "selective_copy": SELECTIVE, "copy": COPY, "sort": COPY}.items()
    for override, said in cases.items()
]


@pytest.mark.parametrize(("task", "override", "said"), BAD)
def test_what_does_not_go_together_is_one_sentence_each(settings, task, override, said):
    found = errors(settings(f"data={task}", override))
    assert len(found) == len(said), found
    assert all(error.startswith(start) for error, start in zip(found, said, strict=True))


def test_a_vocabulary_that_the_sentence_names_would_do(settings):
    assert errors(settings("data=mqar", "data.vocab_size=10")) == []
    assert errors(settings("data=mqar", "data.length=16")) == []
