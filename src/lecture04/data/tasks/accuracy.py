"""How many tokens of the answers are right, and how many whole answers, by the length of their problems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lecture04 import config
from lecture04.data.types import Split

if TYPE_CHECKING:
    from torch import Tensor

N_RANGES = 4
"""Ranges of lengths that a test's problems are told apart by, where they are of several lengths."""


class AnswerAccuracy:
    """The share of answer tokens that rank first, and of answers without a fault, given the right tokens before each.

    Over all problems, and over each quarter of their range of lengths, `answers/accuracy@21-25`. NaN where the model's
    outputs are not numbers.
    """

    def __init__(self, split: Split, evaluation: config.Evaluation) -> None:
        self.tokens, self.offsets, self.length = split.tokens, split.offsets, split.facts["length"]
        self.predicted = split.predicted
        self.right, self.is_finite = np.zeros(len(split.tokens), dtype=bool), True

    def add(self, logits_NV: Tensor, place_N: np.ndarray) -> None:
        """Note which of these tokens rank first."""
        self.is_finite = self.is_finite and bool(logits_NV.isfinite().all())
        self.right[place_N] = logits_NV.argmax(dim=1).numpy() == self.tokens[place_N]

    def metrics(self) -> dict[str, float]:
        """The shares, with what they are shares of."""
        right = np.add.reduceat(self.right & self.predicted, self.offsets[:-1], dtype=np.int64)
        asked = np.add.reduceat(self.predicted, self.offsets[:-1], dtype=np.int64)
        length = self.length[self.offsets[:-1]]
        found = self._shares("", right, asked)
        for low, high in ranges(int(length.min()), int(length.max())):
            here = (low <= length) & (length <= high)
            found |= self._shares(f"@{low}-{high}", right[here], asked[here])
        return found

    def _shares(self, where: str, right: np.ndarray, asked: np.ndarray) -> dict[str, float]:
        """Of documents with so many right tokens of so many asked for."""
        n_tokens, n_problems = int(asked.sum()), len(asked)
        known = self.is_finite and n_tokens > 0
        return {
            f"answers/accuracy{where}": right.sum() / n_tokens if known else math.nan,
            f"answers/n{where}": n_tokens,
            f"answers/exact{where}": float((right == asked).mean()) if known else math.nan,
            f"answers/problems{where}": n_problems,
        }


def ranges(shortest: int, longest: int) -> list[tuple[int, int]]:
    """The lengths in at most N_RANGES equal ranges, ends included; none where there is one length alone."""
    if shortest == longest:
        return []
    parts = np.array_split(np.arange(shortest, longest + 1), min(N_RANGES, longest - shortest + 1))
    return [(int(part[0]), int(part[-1])) for part in parts]
