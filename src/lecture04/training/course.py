"""How a training went that ended no better than the unigram model: it collapsed, or it was only too short."""

from collections.abc import Sequence
from statistics import fmean

RISE = 0.25
"""Nats a token: a loss that rose by more than this broke down; batches alone move a quarter's mean by hundredths."""
FALL = 0.1
"""Nats a token: a loss that fell by less than this stood still; one that had collapsed fell by 0.01."""
STANDING = 100
"""Steps from which on a loss that stands still says something.

Every training stays at the unigram model's loss for some tens of steps before it learns more.
"""


def quarters(losses: Sequence[float]) -> list[float]:
    """The first loss, then the mean loss of each quarter of a training; of a very short one of fewer parts."""
    n = len(losses)
    parts = [losses[i * n // 4 : (i + 1) * n // 4] for i in range(4)]
    return [*losses[:1], *(fmean(part) for part in parts if part)]


def has_collapsed(losses: Sequence[float], unigram: float) -> bool:
    """Whether the loss broke down, or stood still where word frequencies alone bring it.

    losses    the training loss of each step, in nats, all finite
    unigram   the unigram model's NLL

    It broke down where it rose by more than RISE from one quarter (or from the first step) to a later one. It stood
    still where, in STANDING steps or more, it fell by less than FALL from the second quarter to the last, which lies no
    more than RISE above the unigram model. What has done neither was on its way down, or had hardly begun.
    """
    course = quarters(losses)
    if any(later > min(course[:i]) + RISE for i, later in enumerate(course) if i):
        return True
    return len(losses) >= STANDING and course[2] - course[-1] < FALL and course[-1] < unigram + RISE
