"""What a source of data gives and what a layout makes of it: splits, corpora, batches, and what is measured of them.

Shapes: B rows, T tokens in the longest row, N tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from lecture04 import config
from lecture04.config.registry import Family

if TYPE_CHECKING:
    from torch import Tensor

PAD, IGNORE = 0, -100  # IGNORE is cross_entropy's own default
AT_ONCE = 1 << 20
"""Tokens that are counted together."""


@dataclass(frozen=True)
class Split:
    """Documents end to end; document i is `tokens[offsets[i]:offsets[i + 1]]`, and its first token is not predicted.

    Attributes:
        tokens: any integer type [n_tokens], token ids.
        offsets: int64 [n_docs + 1].
        facts: {name: [n_tokens]}, what the source knows of each token. `log_prob`, where it is there, is the true
            log p(token | prefix) in nats, 0 at a document's first token; without it there is no excess. `answer`,
            where it is there, is True at the tokens of an answer: they alone are predicted, in training too.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    facts: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    @property
    def n_docs(self) -> int:
        """How many documents there are."""
        return len(self.offsets) - 1

    @cached_property
    def n_predicted(self) -> int:
        """The tokens that a model predicts: all but the first of each document, or those of its answers."""
        return int(self.predicted.sum()) if "answer" in self.facts else len(self.tokens) - self.n_docs

    @property
    def predicted(self) -> np.ndarray:
        """bool [n_tokens], False at the first token of each document, and where an answer is asked for beside it."""
        mask = np.array(self.facts["answer"]) if "answer" in self.facts else np.ones(len(self.tokens), dtype=bool)
        mask[self.offsets[:-1]] = False
        return mask

    def counts(self, vocab_size: int) -> np.ndarray:
        """How often each token is predicted, int64 [vocab_size]; read in parts, so that no memory grows with tokens."""
        counted = np.zeros(vocab_size, dtype=np.int64)
        for start in range(0, len(self.tokens), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            tokens = self.tokens[here][self.facts["answer"][here]] if "answer" in self.facts else self.tokens[here]
            counted += np.bincount(tokens, minlength=vocab_size)
        if "answer" not in self.facts:
            counted -= np.bincount(self.tokens[self.offsets[:-1]], minlength=vocab_size)
        return counted

    def targets(self, place: np.ndarray) -> np.ndarray:
        """The tokens at these places of the flat arrays, int64; IGNORE at -1 and where nothing is predicted."""
        wanted = place >= 0
        if "answer" in self.facts:
            wanted &= self.facts["answer"][place]
        return np.where(wanted, self.tokens[place].astype(np.int64), IGNORE)

    def first(self, n_docs: int) -> Split:
        """Its first documents alone; all where there are no more."""
        offsets = self.offsets[: n_docs + 1]
        end = offsets[-1]
        return Split(self.tokens[:end], offsets, {name: fact[:end] for name, fact in self.facts.items()})


class Measure(Protocol):
    """What is measured on the test split beside the NLL: it sees each batch once, so no memory grows with N x V."""

    def add(self, logits_NV: Tensor, place_N: np.ndarray) -> None:
        """The logits at predicted tokens, and the tokens' places in the split's flat arrays."""
        ...

    def metrics(self) -> dict[str, float]:
        """The figures by name; each is declared in records/metrics.py, or by the file that brings the measure."""
        ...


MakeMeasure = Callable[[Split, config.Evaluation], Measure]


@dataclass(frozen=True)
class Splits:
    """What a source prepares: training, validation and test documents, and what is measured of them by itself.

    `tokenizer` is what its tokens are as text. `n_bytes` are the bytes of each split's text, from which bits per byte
    follow; {} where nobody would compare them. `bos` is the first token of every document and `eos` the last, which may
    be the same; `pad` is one that stands in none. None where there is no such token. `fault` says of a document,
    without its first token, why the source's grammar cannot produce it; empty where it can, also of one that is not
    ended.
    """

    train: Split
    val: Split
    test: Split
    vocab_size: int
    tokenizer: Tokenizer | None = None
    n_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    measures: tuple[MakeMeasure, ...] = ()
    bos: int | None = None
    eos: int | None = None
    pad: int | None = None
    fault: Callable[[Sequence[int]], str] | None = None


@dataclass(frozen=True)
class Batch:
    """Rows of tokens. At padding, `targets` is IGNORE and `document` -1; `source` is the target's place in the split's
    flat arrays (or -1), for whatever else is known of that token.

    Where `pos` and `document` are None each row is one sequence, whatever documents it is cut from.
    """

    tokens_BT: Tensor
    targets_BT: Tensor
    pos_BT: Tensor | None
    document_BT: Tensor | None
    source_BT: Tensor
    n_predicted: int


class Layout(Protocol):
    """How documents become batches."""

    def training(self, split: Split, *, seed: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """Batches in the order of a seed, epoch after epoch without end; the first `start` of them left out."""
        ...

    def evaluation(self, split: Split) -> Iterator[Batch]:
        """Every predicted token once, in the split's order."""
        ...

    def position(self, split: Split) -> np.ndarray | None:
        """The position in its row of each token of an evaluation, in their order; None where rows are documents."""
        ...


@dataclass(frozen=True, kw_only=True)
class Corpus(Splits):
    """The documents of a source in a layout."""

    layout: Layout

    @property
    def has_truth(self) -> bool:
        """Whether the true distribution is known, so that there is an excess."""
        return "log_prob" in self.test.facts

    def true_nll(self, split: str) -> float:
        """The entropy rate on a split: mean -log p of the true distribution, in nats per predicted token."""
        chosen = self._split(split)
        return float(-chosen.facts["log_prob"].sum() / chosen.n_predicted)

    def bits_per_byte(self, split: str, nll: float) -> float:
        """A split's mean NLL in nats a token as bits for each byte of its text: comparable across tokenizers."""
        return nll * self._split(split).n_predicted / (math.log(2) * self.n_bytes[split])

    def unigram_nll(self, split: str) -> float:
        """Nats per predicted token of the training set's token frequencies, with one added to every token's count."""
        counts = self._train_counts + 1
        own = self._split(split).counts(self.vocab_size)
        return float(-(np.log(counts / counts.sum()) * own).sum() / own.sum())

    @cached_property
    def _train_counts(self) -> np.ndarray:
        return self.train.counts(self.vocab_size)

    def _split(self, name: str) -> Split:
        if name not in config.SPLITS:
            raise ValueError(f"split is {name!r}, must be one of {', '.join(config.SPLITS)}")
        return getattr(self, name)


class Prepare(Protocol):
    """A source: options and the folder that keeps what is made once -> its splits."""

    def __call__(self, options: Any, cache: Path) -> Splits: ...


class MakeLayout(Protocol):
    """A layout of these options."""

    def __call__(self, options: Any) -> Layout: ...


SOURCES: Family[Prepare] = Family("data")
LAYOUTS: Family[MakeLayout] = Family("layout")


def load(run: config.Run, outputs: str | Path) -> Corpus:
    """The corpus of a run: its splits in its layout. Raises ValueError as `splits`."""
    made, layout = splits(run, outputs), LAYOUTS.lookup(run.layout.name)(run.layout)
    return Corpus(**{f.name: getattr(made, f.name) for f in fields(Splits)}, layout=layout)


def splits(run: config.Run, outputs: str | Path) -> Splits:
    """The splits of a run; made on first use and kept under OUTPUTS/data. Raises ValueError where they are another's.

    Without torch, where the source needs none.
    """
    made = SOURCES.lookup(run.data.name)(run.data, Path(outputs) / "data")
    if made.vocab_size != run.vocab_size:
        raise ValueError(f"data={run.data.name} has {made.vocab_size} tokens, and the model {run.vocab_size}.")
    return made


def row_start(run: config.Run, splits: Splits) -> int | None:
    """The token that a row of this run begins with: a document's first, or in a stream the last of the one before."""
    return splits.bos if run.layout.keeps_documents else splits.eos
