"""How far apart the lines of the figures stay where colours are lost: `python tools/colours.py`.

For the two lines with the same dashes that are nearest to each other: their difference by CIEDE2000 (2 is just seen
side by side), as they are, as a reader without the receptors for red sees them (protanopia, by the matrix of Machado,
Oliveira and Fernandes 2009), and printed in grey (by luminance). Lines with other dashes differ by these.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lecture04.report.figures.style import MOST_TOLD_APART, line

Array = NDArray[np.float64]
GROUNDS = {"light": "#ffffff", "dark": "#14171b"}
LUMINANCE = np.array([0.2126729, 0.7151522, 0.0721750])
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], LUMINANCE, [0.0193339, 0.1191920, 0.9503041]])
WHITE = TO_XYZ.sum(1)
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
SEEN: dict[str, Callable[[Array], Array]] = {
    "in colour": lambda rgb: rgb,
    "protanopia": lambda rgb: np.clip(PROTANOPIA @ rgb, 0, 1),
    "in grey": lambda rgb: np.full(3, rgb @ LUMINANCE),
}


def linear(colour: str) -> Array:
    """The linear red, green and blue of `#rrggbb`, each in [0, 1]."""
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: Array) -> Array:
    """CIELAB's L*, a*, b* of a linear colour, white being D65."""
    t = TO_XYZ @ rgb / WHITE
    x, y, z = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one: Array, other: Array) -> float:
    """The difference of two colours in CIELAB (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    g = 1.5 - 0.5 * np.sqrt(c7 / (c7 + 25**7))
    c1, c2 = np.hypot(g * a1, b1), np.hypot(g * a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, g * a1)), np.degrees(np.arctan2(b2, g * a2))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + turn / 2 if c1 * c2 else h1 + h2

    def cos(times: float, less: float) -> float:
        return float(np.cos(np.radians(times * mean_h + less)))

    t = 1 - 0.17 * cos(1, -30) + 0.24 * cos(2, 0) + 0.32 * cos(3, 6) - 0.20 * cos(4, -63)
    light = (l2 - l1) / (1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2))
    chroma = (c2 - c1) / (1 + 0.045 * mean_c)
    hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * mean_c * t)
    bend = 60 * np.exp(-(((mean_h % 360 - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25**7)) * np.sin(np.radians(bend))
    return float(np.sqrt(light**2 + chroma**2 + hue**2 + rotation * chroma * hue))


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours' luminances; 3 is asked of lines, 4.5 of text."""
    low, high = sorted(float(linear(colour) @ LUMINANCE) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def nearest(ground: str, seen: Callable[[Array], Array]) -> tuple[float, int, int]:
    """(the smallest difference, its two rows) of the lines that have the same dashes and can be told apart."""
    lines = [line(i) for i in range(MOST_TOLD_APART)]
    seen_as = [lab(seen(linear(getattr(colour, ground)))) for colour, _ in lines]
    pairs = [(i, j) for i, j in combinations(range(len(lines)), 2) if lines[i][1] == lines[j][1]]
    return min((ciede2000(seen_as[i], seen_as[j]), i, j) for i, j in pairs)


def report() -> Iterator[str]:
    """What the command prints, line by line."""
    for ground, colour in GROUNDS.items():
        for name, seen in SEEN.items():
            difference, i, j = nearest(ground, seen)
            yield f"{ground}, {name}: the nearest lines of the same dashes differ by {difference:.1f} (rows {i}, {j})"
        least = min(contrast(getattr(line(i)[0], ground), colour) for i in range(MOST_TOLD_APART))
        yield f"{ground}: every line has a contrast of {least:.1f} or more with its ground"


if __name__ == "__main__":
    print("\n".join(report()))
