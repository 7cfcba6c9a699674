"""Documents end to end, cut into blocks or windows: as large models are trained, and for testing at any length.

    <eos> the cat rests . <eos> her hen waters ... <eos>

A document's first token (<bos>) is left out: its last (<eos>) stands between documents, and one before the first, so
that every other token is predicted once. A block is one sequence with positions 0 .. length - 1; it looks across
documents, and mostly begins inside one.

Shapes: B blocks, T tokens of a block.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.documents import generator, order
from lecture04.data.types import IGNORE, Batch, Split

TOKENS_EVALUATED = 8192  # at a time


@register("layout", "stream", options=config.Stream)
class Blocks:
    """Documents end to end, cut into blocks of layout.length tokens; a batch counts blocks."""

    def __init__(self, options: config.Layout) -> None:
        self.length = options.length

    def training(self, split: Split, *, seed: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """The documents in the order of a seed and epoch, cut anew in each; what is left at an epoch's end is dropped.

        Raises ValueError where all documents together are shorter than a block.
        """
        n_blocks = Concatenated(split, np.arange(split.n_docs)).length_in_blocks(self.length)  # in whatever order
        epoch, left_out = divmod(start, -(-n_blocks // batch_size))
        while True:
            stream = Concatenated(split, order(split.n_docs, seed=seed, epoch=epoch))
            for first in range(left_out * batch_size, n_blocks, batch_size):
                block_B = np.arange(first, min(first + batch_size, n_blocks))
                yield stream.batch(block_B * self.length, self.length)
            epoch, left_out = epoch + 1, 0

    def evaluation(self, split: Split) -> Iterator[Batch]:
        """The documents in the split's order; the last block is filled up with padding."""
        stream = Concatenated(split, np.arange(split.n_docs))
        n_blocks, at_once = -(-stream.length // self.length), max(1, TOKENS_EVALUATED // self.length)
        for first in range(0, n_blocks, at_once):
            block_B = np.arange(first, min(first + at_once, n_blocks))
            yield stream.batch(block_B * self.length, self.length)

    def position(self, split: Split) -> np.ndarray:
        """Each token's place in its block."""
        return np.arange(split.n_predicted) % self.length


@register("layout", "windows", options=config.Stream)
class Windows(Blocks):
    """Documents end to end, in windows that begin anywhere and are drawn anew; a test is cut into blocks."""

    def training(self, split: Split, *, seed: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """Windows whose first token is drawn by the seed, each equally likely; none ends before the next begins.

        Raises ValueError where all documents together are shorter than a window.
        """
        stream = Concatenated(split, np.arange(split.n_docs))
        stream.length_in_blocks(self.length)
        rng = generator("data order", seed)
        for step in count():
            first_B = rng.integers(0, stream.length - self.length + 1, batch_size)
            if step >= start:
                yield stream.batch(first_B, self.length)


class Concatenated:
    """Documents of a split in an order, end to end without their first tokens; read where it is asked for."""

    def __init__(self, split: Split, documents: np.ndarray) -> None:
        lengths = split.offsets[documents + 1] - split.offsets[documents] - 1
        self.split, self.ends = split, np.cumsum(lengths)
        self.length = int(self.ends[-1])
        # A place in the stream, plus this, is the place in the split's flat arrays; one number a document.
        self.shift = split.offsets[documents] + 1 - (self.ends - lengths)

    def length_in_blocks(self, length: int) -> int:
        """How many blocks of a length it has. Raises ValueError where there is none."""
        if self.length < length:
            raise ValueError(
                f"layout.length={length}: the {self.split.n_docs} training documents have {self.length} tokens."
            )
        return self.length // length

    def places(self, at: np.ndarray) -> np.ndarray:
        """Places in the split's flat arrays; -1 before the stream and behind it."""
        inside = (at >= 0) & (at < self.length)
        document = np.searchsorted(self.ends, np.where(inside, at, 0), side="right")
        return np.where(inside, at + self.shift[document], -1)

    def batch(self, first_B: np.ndarray, length: int) -> Batch:
        """Rows of a length that begin at these places of the stream."""
        at_BT = first_B[:, None] + np.arange(length)
        return make_batch(self.split, self.places(at_BT), self.places(np.where(at_BT < self.length, at_BT - 1, -1)))


def make_batch(split: Split, source_BT: np.ndarray, before_BT: np.ndarray) -> Batch:
    """The batch that predicts the tokens at `source` from those at `before`, the tokens in front of them.

    Both are places in the split's flat arrays, -1 for padding; what stands in front of the stream is what ends the
    first document.
    """
    eos = split.tokens[split.offsets[1] - 1]
    targets = split.targets(source_BT)
    return Batch(
        tokens_BT=torch.from_numpy(np.where(before_BT >= 0, split.tokens[before_BT], eos).astype(np.int64)),
        targets_BT=torch.from_numpy(targets),
        pos_BT=None,
        document_BT=None,
        source_BT=torch.from_numpy(source_BT),
        n_predicted=int((targets != IGNORE).sum()),
    )
