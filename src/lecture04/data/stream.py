"""Documents concatenated to one stream, cut into blocks: as large models are trained, and for testing at any length.

    <eos> the cat rests . <eos> her hen waters ... <eos>

A document's first token (<bos>) is left out: its last (<eos>) stands between documents, and one before the first, so
that every other token is predicted once. A block is one sequence with positions 0 .. length - 1; it looks across
documents, and mostly begins inside one.

Shapes: B blocks, T tokens of a block.
"""

from collections.abc import Iterator

import numpy as np
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.documents import order
from lecture04.data.types import IGNORE, Batch, Split

TOKENS_EVALUATED = 8192  # at a time


@register("layout", "stream", options=config.Stream)
class Blocks:
    """Documents end to end, cut into blocks of layout.length tokens; a batch counts blocks."""

    def __init__(self, options: config.Layout) -> None:
        self.length = options.length

    def training(self, split: Split, *, seed: int, batch_size: int) -> Iterator[Batch]:
        """The documents in the order of a seed and epoch, cut anew in each; what is left at an epoch's end is dropped.

        Raises ValueError where all documents together are shorter than a block.
        """
        epoch = 0
        while True:
            source = stream(split, order(split.n_docs, seed=seed, epoch=epoch))
            n_blocks = len(source) // self.length
            if not n_blocks:
                raise ValueError(
                    f"layout.length={self.length}: the {split.n_docs} training documents have {len(source)} tokens."
                )
            blocks = source[: n_blocks * self.length].reshape(n_blocks, self.length)
            before = np.concatenate([[-1], source[:-1]])[: n_blocks * self.length].reshape(n_blocks, self.length)
            for start in range(0, n_blocks, batch_size):
                here = slice(start, start + batch_size)
                yield make_batch(split, blocks[here], before[here])
            epoch += 1

    def evaluation(self, split: Split) -> Iterator[Batch]:
        """The documents in the split's order; the last block is filled up with padding."""
        source = stream(split, np.arange(split.n_docs))
        padded = np.full((-(-len(source) // self.length), self.length), -1)
        before = padded.copy()
        padded.ravel()[: len(source)] = source
        before.ravel()[1 : len(source)] = source[:-1]
        n_blocks = max(1, TOKENS_EVALUATED // self.length)
        for start in range(0, len(padded), n_blocks):
            yield make_batch(split, padded[start : start + n_blocks], before[start : start + n_blocks])

    def position(self, split: Split) -> np.ndarray:
        """Each token's place in its block."""
        return np.arange(split.n_predicted) % self.length


def stream(split: Split, documents: np.ndarray) -> np.ndarray:
    """The places in the split's flat arrays of these documents' tokens, in order, without their first."""
    lengths = split.offsets[documents + 1] - split.offsets[documents] - 1
    ends = np.cumsum(lengths)
    return np.repeat(split.offsets[documents] + 1 - (ends - lengths), lengths) + np.arange(ends[-1])


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
