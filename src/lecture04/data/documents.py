"""Whole documents in rows that hold several, bin-packed so full that little padding is paid for; the order of a seed.

A third of a plain batch of documents of differing length is padding. Here the documents of a batch are laid end to end
in rows of `length` tokens; positions start again with each document and attention stays inside it, so the result is
that of the plain batch. Which documents make a batch depends on the seed and the epoch alone.

Shapes: B rows, T tokens in the longest row.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.types import IGNORE, PAD, Batch, Split


@register("layout", "documents", options=config.Layout)
class Documents:
    """Whole documents, one after the other in rows of at most layout.length tokens; a batch counts documents."""

    def __init__(self, options: config.Layout) -> None:
        self.length = options.length

    def training(self, split: Split, *, seed: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See `training_batches`."""
        return training_batches(split, seed=seed, batch_size=batch_size, length=self.length, start=start)

    def evaluation(self, split: Split) -> Iterator[Batch]:
        """See `evaluation_batches`."""
        return evaluation_batches(split, length=self.length)

    def position(self, split: Split) -> None:
        """Rows are documents."""


def pack(lengths: np.ndarray, capacity: int) -> list[list[int]]:
    """Indices of items in rows whose lengths sum to at most `capacity`: best fit, the longest first.

    Raises ValueError where an item alone is longer than a row.
    """
    rows: list[list[int]] = []
    free: list[int] = []
    for i in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[i])
        if length > capacity:
            raise ValueError(f"layout.length={capacity}: document {i} has {length} tokens to predict.")
        fits = [(left, row) for row, left in enumerate(free) if left >= length]
        if fits:
            _, row = min(fits)
            rows[row].append(i)
            free[row] -= length
        else:
            rows.append([i])
            free.append(capacity - length)
    return rows


def make_batch(split: Split, documents: np.ndarray, length: int) -> Batch:
    """The batch of these documents: inputs are all tokens but the last of each, targets all but the first."""
    starts = split.offsets[documents]
    lengths = split.offsets[documents + 1] - starts - 1
    rows = pack(lengths, length)
    shape = len(rows), max(int(lengths[row].sum()) for row in rows)
    pos, source, document = np.zeros(shape, np.int64), np.full(shape, -1), np.full(shape, -1)
    for r, row in enumerate(rows):
        column = 0
        for i in row:
            here = slice(column, column + lengths[i])
            pos[r, here] = np.arange(lengths[i])
            source[r, here] = starts[i] + 1 + pos[r, here]
            document[r, here] = i
            column += lengths[i]
    real, targets = source >= 0, split.targets(source)
    return Batch(
        tokens_BT=torch.from_numpy(np.where(real, split.tokens[source - 1], PAD).astype(np.int64)),
        targets_BT=torch.from_numpy(targets),
        pos_BT=torch.from_numpy(pos),
        document_BT=torch.from_numpy(document),
        source_BT=torch.from_numpy(source),
        n_predicted=int((targets != IGNORE).sum()),
    )


def order(n_docs: int, *, seed: int, epoch: int) -> np.ndarray:
    """The documents' order in one epoch of one seed; nothing else enters it."""
    return generator(f"data order/{epoch}", seed).permutation(n_docs)


def generator(name: str, seed: int) -> np.random.Generator:
    """Random numbers of a seed that no other name shares."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def training_batches(split: Split, *, seed: int, batch_size: int, length: int, start: int = 0) -> Iterator[Batch]:
    """Batches of `batch_size` documents, epoch after epoch without end, without the first `start` of them.

    An epoch's last batch may be smaller.
    """
    epoch, first = divmod(start, -(-split.n_docs // batch_size))
    while True:
        documents = order(split.n_docs, seed=seed, epoch=epoch)
        for at in range(first * batch_size, split.n_docs, batch_size):
            yield make_batch(split, documents[at : at + batch_size], length)
        epoch, first = epoch + 1, 0


def evaluation_batches(split: Split, *, length: int, n_docs: int = 128) -> Iterator[Batch]:
    """Every document once, in the split's order."""
    for start in range(0, split.n_docs, n_docs):
        yield make_batch(split, np.arange(start, min(start + n_docs, split.n_docs)), length)
