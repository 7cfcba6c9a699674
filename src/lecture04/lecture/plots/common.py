"""What the plots share: their size, which a phone can show, their colours, and axes that say little.

A verdict's colour and marker, and the colours of lines, are those of every table and page (report/figures/style.py).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lecture04.lecture.evidence import Evidence
from lecture04.report.figures.style import COLOURS, LOOKS, kind, line

Plot = Callable[[Evidence], Figure]
WIDTH = 6.4  # inches; on a screen of 400 pixels a letter of 10 points is 9 pixels high
ROW = 0.36  # inches a row
DPI = 170
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "font.family": "sans-serif",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
}
SERIES = [COLOURS[i] for i in (7, 5, 3, 4, 8, 6)]
"""Colours of lines and groups: those that no verdict has, so that nothing looks better or worse that was not judged."""
QUIET = LOOKS["within noise"].colour.light
BAND = "0.88"
SEED = "0.2"
PLOTS: dict[str, Plot] = {}


def plot(draw: Plot) -> Plot:
    """Register a plot under its name, drawn in the style of all."""

    @wraps(draw)
    def drawn(evidence: Evidence) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(evidence)

    PLOTS[draw.__name__] = drawn
    return drawn


def save(figure: Figure, path: Path) -> None:
    """As PNG."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=DPI)


def values_by(table: pd.DataFrame, *columns: str) -> dict[tuple[Any, ...], list[float]]:
    """{what stands in these columns: the values of the rows with it}, in the table's order."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for *key, value in table[[*columns, "value"]].itertuples(index=False):
        found.setdefault(tuple(key), []).append(float(value))
    return found


def panels(n: int, height: float) -> tuple[Figure, list[Axes]]:
    """So many plots below each other, each so high in inches."""
    figure = Figure(figsize=(WIDTH, n * height), layout="constrained")
    found = list(figure.subplots(n, squeeze=False)[:, 0])
    for axes in found:
        plain(axes)
    return figure, found


def row_panels(*names: Sequence[str], more: float = 0.9) -> tuple[Figure, list[Axes]]:
    """Plots below each other with a line a row, the first on top; `more` is the height of all else."""
    heights = [ROW * len(rows) + more for rows in names]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    found = list(figure.subplots(len(names), squeeze=False, height_ratios=heights)[:, 0])
    for axes, rows in zip(found, names, strict=True):
        plain(axes)
        axes.grid(axis="y", visible=False)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    return figure, found


def bars(sizes: Mapping[str, float], said: str) -> Figure:
    """A bar a row from 0, with its figure beside it."""
    figure, (axes,) = row_panels(list(sizes))
    for y, size in enumerate(sizes.values()):
        axes.barh(y, size, height=0.6, color=SERIES[0].light)
        beside(axes, y, f"{size:,.0f}", SEED)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(said)
    return figure


def plain(axes: Axes) -> None:
    """Without the box, with a faint grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.set_axisbelow(True)


def stroke(i: int) -> dict[str, Any]:
    """The colour and the dashes of the i-th line."""
    colour, (_, dashes) = SERIES[i % len(SERIES)], line(i + i // len(SERIES))  # as many dashes as colours
    return {"color": colour.light, "linestyle": (0, tuple(x / 2 for x in dashes)) if dashes else "-"}


def marked(verdict: str, size: float = 8) -> dict[str, Any]:
    """A verdict's marker, hollow where nothing was called."""
    look = LOOKS[kind(verdict)]
    colour = look.colour.light
    fill = colour if look.filled else "white"
    return {"marker": look.marker, "color": colour, "markerfacecolor": fill, "markersize": size, "linestyle": "none"}


def beside(axes: Axes, y: float, text: str, colour: str) -> None:
    """Words right of a row."""
    axes.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=colour,
        annotation_clip=False,
    )


def note(axes: Axes, text: str, at: tuple[float, float], coordinates: Any, **how: Any) -> None:
    """A few quiet words in a plot."""
    style = {"xytext": (4, -4), "textcoords": "offset points", "va": "top", "fontsize": 9, "color": QUIET} | how
    axes.annotate(text, at, xycoords=coordinates, **style)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """One legend below all plots."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.5)
