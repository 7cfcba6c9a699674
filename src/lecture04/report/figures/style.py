"""How a verdict and a row look, in every figure and on the page: by shape and dashes as well as by colour.

Each colour is given twice, on white and on the page's dark ground. `tools/colours.py` says how far apart the lines stay
for readers who cannot see red, and in grey.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour on white, and the same on the page's dark ground."""

    light: str
    dark: str


@dataclass(frozen=True)
class Look:
    """A verdict's colour, and its marker as matplotlib and Vega name it; hollow where nothing was called."""

    colour: Colour
    marker: str
    shape: str
    filled: bool


_QUIET = Colour("#565d66", "#a6adb6")
LOOKS = {
    "better": Look(Colour("#005f99", "#6cbcf2"), "o", "circle", True),
    "worse": Look(Colour("#a84300", "#ff9a57"), "s", "square", True),
    "equivalent": Look(Colour("#006f52", "#4fd0a5"), "D", "diamond", True),
    "unconfirmed": Look(Colour("#7d5600", "#e5b652"), "^", "triangle-up", False),
    "within noise": Look(_QUIET, "o", "circle", False),
    "single run": Look(_QUIET, "v", "triangle-down", False),
    "diverged": Look(Colour("#000000", "#ffffff"), "x", "cross", True),
    "no noise": Look(_QUIET, "D", "diamond", False),
    "no verdict": Look(_QUIET, "x", "cross", False),
}

COLOURS = (
    Colour("#005f99", "#58abe2"),
    Colour("#a84300", "#f07c2c"),
    Colour("#006f52", "#2bb286"),
    Colour("#b8860b", "#8a6712"),
    Colour("#3f98d4", "#2874a8"),
    Colour("#cc79b0", "#a5528a"),
    Colour("#111418", "#f4f6f8"),
    Colour("#3b1a5e", "#e6daff"),
    Colour("#4a1200", "#ffe9d6"),
)
DASHES: tuple[tuple[int, ...], ...] = ((), (10, 3), (2, 2), (9, 2, 2, 2), (5, 2), (9, 2, 2, 2, 2, 2))
MOST_TOLD_APART = 18
"""Rows whose lines can be told apart; more are drawn in grey. Nine colours and six kinds of dashes meet again after
18 rows, and of the three colours that meet one kind of dashes one is light, one is middling and one is dark."""


def kind(verdict: str) -> str:
    """The verdict without its count: `diverged 1/3` is `diverged`."""
    return "diverged" if verdict.startswith("diverged") else verdict


def line(i: int) -> tuple[Colour, tuple[int, ...]]:
    """The colour and the dashes of the i-th row's line."""
    return COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
