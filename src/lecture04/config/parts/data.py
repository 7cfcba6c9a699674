"""Options of the sources of data, and of how their documents become rows."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from lecture04.config.fields import Options, bounded, opened

SPLITS = ("train", "val", "test")
"""What a model is trained on, what is watched meanwhile, and what it is judged by."""


class Facts(NamedTuple):
    """What has to be known of a source before anything is trained.

    vocab_size   how many different tokens there are
    max_len      the most tokens that are predicted in a document
    n_documents  of the training split
    n_tokens     of the training split that are predicted, about
    """

    vocab_size: int
    max_len: int
    n_documents: int
    n_tokens: float


@dataclass(frozen=True, kw_only=True)
class Data(Options):
    """A source of documents.

    One of your own gives `facts`, and errors where its options do not go together. One that reads files registers a
    function beside it, `@register("settle", NAME)`: see `config.resolve.SETTLERS`.

    `primary` is the metric that carries the verdicts of its tables, `columns` are those of its own that they show.
    `judges_samples`: it has a grammar that says what it could have produced (`Splits.fault`).
    """

    primary: ClassVar[str] = "test/nll"
    columns: ClassVar[tuple[str, ...]] = ()
    judges_samples: ClassVar[bool] = False

    name: str

    def facts(self) -> Facts:
        """See `Facts`. Raises ValueError with a sentence where the source cannot be read."""
        raise NotImplementedError(f"data={self.name}: its options have no facts().")

    def tokens(self) -> str:
        """What tells its tokens from those of another run: nats a token compare runs where it is equal."""
        return ""

    def identified(self) -> object:
        """What makes a run on it another run: all that can be set."""
        return self

    def errors(self, layout: "Layout") -> list[str]:
        """What cannot be trained on it, a sentence each."""
        return []


@dataclass(frozen=True, kw_only=True)
class Garden(Data):
    """The Garden World: how many documents of each split, and the seed of its collocations.

    `vocab_size` and `max_len` are facts of the language.
    """

    # Facts of the Garden World, held to data/garden by a test: importing it would load numpy on every command.
    VOCAB_SIZE: ClassVar[int] = 92
    MAX_LEN: ClassVar[int] = 64
    MEAN_LEN: ClassVar[float] = 25.0
    """Tokens that are predicted in a training document, on average."""
    columns: ClassVar[tuple[str, ...]] = ("test/excess", "pronouns/accuracy")
    judges_samples: ClassVar[bool] = True

    vocab_size: int = bounded(VOCAB_SIZE, at_least=1)
    max_len: int = bounded(MAX_LEN, at_least=1)
    n_train: int = bounded(8000, at_least=1)
    n_val: int = bounded(1000, at_least=1)
    n_test: int = bounded(2000, at_least=1)
    world_seed: int = bounded(0, at_least=0)

    def facts(self) -> Facts:
        """By the options alone."""
        return Facts(self.vocab_size, self.max_len, self.n_train, self.n_train * self.MEAN_LEN)

    def errors(self, layout: "Layout") -> list[str]:
        """Another vocabulary, or rows that are too short for a document."""
        errors = list[str]()
        if self.vocab_size != self.VOCAB_SIZE:
            errors.append(f"data.vocab_size={self.vocab_size}: the Garden World has {self.VOCAB_SIZE} words.")
        if layout.keeps_documents and layout.length < self.MAX_LEN:
            name = "data.max_len" if layout.length == self.max_len else "layout.length"
            errors.append(
                f"{name}={layout.length}: must be at least {self.MAX_LEN}, "
                "the most tokens that are predicted in a document of the Garden World."
            )
        return errors


@dataclass(frozen=True, kw_only=True)
class Garden1(Garden):
    """The Garden World of the first edition, with the same options."""

    MEAN_LEN: ClassVar[float] = 24.87


@dataclass(frozen=True, kw_only=True)
class Layout(Options):
    """How documents become rows. `length` is that of a row in tokens, null for the longest document."""

    keeps_documents: ClassVar[bool] = True
    """Whether no row looks beyond a document."""

    name: str
    length: int = opened(lambda own, c: c.facts.max_len, at_least=1)

    def steps_per_epoch(self, facts: Facts, batch_size: int) -> int:
        """Optimiser steps that see every training document once."""
        return math.ceil(facts.n_documents / batch_size)


@dataclass(frozen=True, kw_only=True)
class Stream(Layout):
    """Documents end to end, cut into blocks of `length` tokens."""

    keeps_documents: ClassVar[bool] = False

    def steps_per_epoch(self, facts: Facts, batch_size: int) -> int:
        """Optimiser steps that see about so many tokens as there are."""
        return max(1, round(facts.n_tokens / self.length / batch_size))
