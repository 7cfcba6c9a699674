"""What the tasks share: problems drawn as matrices, made into splits whose answers alone are predicted.

A task draws its problems many at once, as the rows of a matrix with holes. Without the holes the rows are documents,
end to end. Each split has a seed of its own.

Facts of a token: `answer`, whether it belongs to one; `length`, that of its problem (see the options of each task).

Shapes: D documents, W the widest of them in tokens, with room for holes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lecture04 import config
from lecture04.data.cache import Arrays, cached, code_of
from lecture04.data.tasks.accuracy import AnswerAccuracy
from lecture04.data.tokenizer import of_words
from lecture04.data.types import Split, Splits

SEEDS = {"train": 1, "val": 2, "test": 3}
HOLE = -1
AT_ONCE = 4096
"""Problems that are drawn at once, so that memory does not grow with their number."""


@dataclass(frozen=True)
class Problems:
    """Documents as rows: tokens_DW is HOLE where there is none, answer_DW is True at tokens of answers."""

    tokens_DW: np.ndarray
    answer_DW: np.ndarray


class Draw(Protocol):
    """A task: options, a generator and the lengths of the problems wanted -> the problems.

    It is a function on the top level of its module: the files that it has made are known by its code.
    """

    __module__: str
    __name__: str

    def __call__(self, options: Any, rng: np.random.Generator, length_D: np.ndarray, /) -> Problems: ...


def prepared(options: config.Task, cache: Path, draw: Draw, words: Sequence[str]) -> Splits:
    """The splits of a task; `words` are its tokens as text, the first one that of padding."""
    settings = asdict(options) | {
        "seeds": SEEDS,
        "code": code_of((__name__, "make"), (draw.__module__, draw.__name__)),
    }
    arrays = cached(cache, options.name, settings, lambda: make(options, draw))
    splits = {
        name: Split(
            arrays[f"{name}.tokens"],
            arrays[f"{name}.offsets"],
            {"answer": arrays[f"{name}.answer"], "length": arrays[f"{name}.length"]},
        )
        for name in config.SPLITS
    }
    return Splits(
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        vocab_size=len(words),
        tokenizer=of_words(words, unknown=words[0]),
        measures=(AnswerAccuracy,),
    )


def make(options: config.Task, draw: Draw) -> Arrays:
    """The arrays of every split."""
    arrays = Arrays()
    for name, n_docs in {"train": options.n_train, "val": options.n_val, "test": options.n_test}.items():
        rng = np.random.default_rng([SEEDS[name], options.task_seed])
        length_D = balanced(rng, n_docs, *options.lengths(name))
        parts = [flat(draw(options, rng, here), here) for here in np.split(length_D, range(AT_ONCE, n_docs, AT_ONCE))]
        tokens, answer, length, n_tokens = (np.concatenate(part) for part in zip(*parts, strict=True))
        arrays |= {
            f"{name}.tokens": tokens.astype(np.int16 if options.n_words() < 1 << 15 else np.int32),
            f"{name}.answer": answer,
            f"{name}.length": length.astype(np.int32),
            f"{name}.offsets": np.concatenate([[0], np.cumsum(n_tokens)]),
        }
    return arrays


def balanced(rng: np.random.Generator, n: int, low: int, high: int) -> np.ndarray:
    """n lengths from low to high in random order, each as often as any other (or once more)."""
    return rng.permutation(low + np.arange(n) % (high - low + 1))


def flat(problems: Problems, length_D: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows end to end without their holes: of each token itself, answer and length; of each row its tokens."""
    there_DW = problems.tokens_DW != HOLE
    n_tokens_D = there_DW.sum(axis=1)
    return (
        problems.tokens_DW[there_DW],
        problems.answer_DW[there_DW],
        np.repeat(length_D, n_tokens_D),
        n_tokens_D,
    )


def beside(*parts: tuple[np.ndarray, bool]) -> Problems:
    """Problems of parts side by side: each a matrix of tokens, and whether they are the answer."""
    return Problems(
        np.concatenate([tokens for tokens, _ in parts], axis=1),
        np.concatenate([np.full(tokens.shape, is_answer) for tokens, is_answer in parts], axis=1),
    )


def column(token: int, n_docs: int) -> np.ndarray:
    """One token in every document."""
    return np.full((n_docs, 1), token)
