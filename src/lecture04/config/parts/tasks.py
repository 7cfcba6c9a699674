"""Options of the tasks: sources whose documents are problems, each with one right answer."""

from dataclasses import dataclass
from typing import ClassVar

from lecture04.config.fields import bounded
from lecture04.config.parts.data import Data, Facts, Layout


@dataclass(frozen=True, kw_only=True)
class Task(Data):
    """What every task has: how many problems of each split, and a seed of the task's own.

    `task_seed` draws other problems of the same kind; it is no seed of a run.
    """

    primary: ClassVar[str] = "answers/accuracy"
    columns: ClassVar[tuple[str, ...]] = ("answers/exact",)

    n_train: int = bounded(10000, at_least=1)
    n_val: int = bounded(1000, at_least=1)
    n_test: int = bounded(1000, at_least=1)
    task_seed: int = bounded(0, at_least=0)

    def lengths(self, split: str) -> tuple[int, int]:
        """The shortest and the longest problem of a split."""
        raise NotImplementedError

    def n_tokens(self, length: int) -> int:
        """The tokens of the document of a problem of this length."""
        raise NotImplementedError

    def n_answers(self, length: float) -> float:
        """The tokens of the answer to a problem of this length; of mean length, the mean."""
        raise NotImplementedError

    def n_words(self) -> int:
        """How many different tokens there are."""
        raise NotImplementedError

    def facts(self) -> Facts:
        """By the options alone. A row has room for the longest problem, which may be one of the test split."""
        longest = max(self.lengths(split)[1] for split in ("train", "test"))
        n_answers = self.n_answers(sum(self.lengths("train")) / 2)
        return Facts(self.n_words(), self.n_tokens(longest) - 1, self.n_train, self.n_train * n_answers)

    def problem_errors(self) -> list[str]:
        """Options of the task that do not go together, a sentence each."""
        return []

    def errors(self, layout: Layout) -> list[str]:
        """Problems that cannot be drawn, rows that cut them, and rows that are too short for one."""
        errors = self.problem_errors()
        longest = self.facts().max_len
        if not layout.keeps_documents:
            errors.append(
                f"layout={layout.name}: a document of data={self.name} is one problem and stands by itself; "
                "choose layout=documents."
            )
        elif layout.length < longest:
            errors.append(
                f"layout.length={layout.length}: must be at least {longest}, the tokens of the longest problem of "
                f"data={self.name} less its first."
            )
        return errors


@dataclass(frozen=True, kw_only=True)
class FixedLength(Task):
    """A task whose problems are all `length` tokens long."""

    length: int = bounded(64, at_least=4)

    def lengths(self, split: str) -> tuple[int, int]:
        """The one that there is."""
        return self.length, self.length

    def n_tokens(self, length: int) -> int:
        """The problem with its answers in it."""
        return length


@dataclass(frozen=True, kw_only=True)
class MQAR(FixedLength):
    """Multi-query associative recall, with Zoology's parameters.

    `n_pairs` keys with their values stand in front; each key is asked for once. The place of a question is drawn by a
    power law: place i has the weight i^(power - 1), so that 1 makes all equally likely. `random_filler` fills the
    places between with tokens of the whole vocabulary, else they are blank.
    """

    vocab_size: int = bounded(256, at_least=4)
    n_pairs: int = bounded(4, at_least=1)
    power: float = bounded(0.01, above=0)
    random_filler: bool = True

    @property
    def n_keys(self) -> int:
        """Half of the vocabulary, less the blank; the other half are values."""
        return self.vocab_size // 2 - 1

    def n_answers(self, length: float) -> float:
        """A value for each key."""
        return self.n_pairs

    def n_words(self) -> int:
        """Blank, keys and values."""
        return self.vocab_size

    def problem_errors(self) -> list[str]:
        """Too few keys, or too few places."""
        errors = list[str]()
        if self.n_pairs > self.n_keys:
            errors.append(
                f"data.n_pairs={self.n_pairs}: data.vocab_size={self.vocab_size} has {self.n_keys} keys; "
                f"a vocabulary of {2 * self.n_pairs + 2} would do."
            )
        if self.length < 4 * self.n_pairs:
            errors.append(
                f"data.length={self.length}: must be at least {4 * self.n_pairs}, two tokens for each of "
                f"data.n_pairs={self.n_pairs} and two for its question."
            )
        return errors


@dataclass(frozen=True, kw_only=True)
class Induction(FixedLength):
    """Induction heads: what followed the trigger the first time follows it again."""

    length: int = bounded(30, at_least=4)
    n_symbols: int = bounded(20, at_least=2)

    def n_answers(self, length: float) -> float:
        """The last token."""
        return 1

    def n_words(self) -> int:
        """Padding, the trigger and the symbols."""
        return 2 + self.n_symbols


@dataclass(frozen=True, kw_only=True)
class SelectiveCopy(FixedLength):
    """Selective copy: `n_data` symbols at random places among blanks, to be given again in their order."""

    length: int = bounded(64, at_least=4)
    n_symbols: int = bounded(16, at_least=2)
    n_data: int = bounded(8, at_least=1)

    def n_tokens(self, length: int) -> int:
        """The problem, a sign that the answer begins, and the answer."""
        return length + 1 + self.n_data

    def n_answers(self, length: float) -> float:
        """The symbols."""
        return self.n_data

    def n_words(self) -> int:
        """The blank, the sign and the symbols."""
        return 2 + self.n_symbols

    def problem_errors(self) -> list[str]:
        """More symbols than places."""
        if self.n_data > self.length:
            return [f"data.n_data={self.n_data}: must be at most data.length={self.length}, the places that there are."]
        return []


@dataclass(frozen=True, kw_only=True)
class Lengths(Task):
    """A task that is trained on problems of train_min to train_max symbols and tested on longer ones.

    Validation is of the lengths of training. Every length of a range is as frequent as every other.
    """

    train_min: int = bounded(1, at_least=1)
    train_max: int = bounded(20, at_least=1)
    test_min: int = bounded(21, at_least=1)
    test_max: int = bounded(40, at_least=1)

    def lengths(self, split: str) -> tuple[int, int]:
        """Those of the test split are its own."""
        return (self.test_min, self.test_max) if split == "test" else (self.train_min, self.train_max)

    def problem_errors(self) -> list[str]:
        """Ranges that are none, or that are in the wrong order."""
        errors = [
            f"data.{name}_max={high}: must be at least data.{name}_min={low}."
            for name, low, high in (("train", self.train_min, self.train_max), ("test", self.test_min, self.test_max))
            if high < low
        ]
        if self.test_min <= self.train_max:
            errors.append(
                f"data.test_min={self.test_min}: must be above data.train_max={self.train_max}; "
                "the test is of longer problems than training."
            )
        if not errors and self.n_test < (n_lengths := self.test_max - self.test_min + 1):
            errors.append(
                f"data.n_test={self.n_test}: must be at least {n_lengths}, a problem for each length of the test range."
            )
        return errors


@dataclass(frozen=True, kw_only=True)
class Sequences(Lengths):
    """A sequence of random symbols, and the same symbols in some order: copy, reverse and sort."""

    n_symbols: int = bounded(26, at_least=2)

    def n_tokens(self, length: int) -> int:
        """<bos>, the symbols, a sign that the answer begins, the symbols, <eos>."""
        return 2 * length + 3

    def n_answers(self, length: float) -> float:
        """The symbols and <eos>."""
        return length + 1

    def n_words(self) -> int:
        """Padding, <bos>, <eos>, the sign and the symbols."""
        return 4 + self.n_symbols


@dataclass(frozen=True, kw_only=True)
class Addition(Lengths):
    """Two numbers of equally many digits and their sum; a problem's length is the digits of each."""

    def n_tokens(self, length: int) -> int:
        """<bos>, two numbers with a sign behind each, a sum with one digit more, <eos>."""
        return 3 * length + 5

    def n_answers(self, length: float) -> float:
        """The digits of the sum and <eos>."""
        return length + 2

    def n_words(self) -> int:
        """Padding, <bos>, <eos>, + and =, and the digits."""
        return 15
