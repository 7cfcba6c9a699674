"""How a verdict and a row look, in every figure: by shape and line as well as by colour, so that grey will do.

The colours are Okabe and Ito's, which the colour-blind tell apart.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A verdict's colour on white, and its marker as matplotlib and Vega name it; hollow where nothing was called."""

    colour: str
    marker: str
    shape: str
    filled: bool


LOOKS = {
    "better": Look("#0072B2", "o", "circle", True),
    "worse": Look("#D55E00", "s", "square", True),
    "equivalent": Look("#009E73", "D", "diamond", True),
    "unconfirmed": Look("#9A6A00", "^", "triangle-up", False),
    "within noise": Look("#595959", "o", "circle", False),
    "single run": Look("#595959", "v", "triangle-down", False),
    "diverged": Look("#000000", "x", "cross", True),
    "no verdict": Look("#8C8C8C", "x", "cross", False),
}

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#9A6A00", "#3A9BD6", "#000000", "#7A5195", "#7F7F7F")
DASHES: tuple[tuple[int, ...], ...] = ((), (6, 2), (2, 2), (8, 2, 2, 2))
MOST_TOLD_APART = len(COLOURS) * 2
"""Rows whose lines can be told apart; more are drawn in grey."""


def kind(verdict: str) -> str:
    """The verdict without its count: `diverged 1/3` is `diverged`."""
    return "diverged" if verdict.startswith("diverged") else verdict


def line(i: int) -> tuple[str, tuple[int, ...]]:
    """The colour and the dashes of the i-th row's line."""
    return COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
