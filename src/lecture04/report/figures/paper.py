"""The figures for papers, in matplotlib on white: each a function from results to a figure, or to None."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lecture04.report.comparison import Judged, judge_primary
from lecture04.report.figures import data
from lecture04.report.figures.style import LOOKS, MOST_TOLD_APART, kind, line
from lecture04.report.results import Results

WIDTH = 7.0  # inches, a page's text
ROW = 0.28  # inches a row
LIFT = 0.14  # of a row: the interval stands above the middle, the seeds below
PANEL, LABEL = 2.7, 0.14  # inches: a plot of curves, and the label of one
GREY = "0.35"
AGAINST = {"star": "{first}", "step": "the row before", "total": "{first}", "grid": "its slice's first row"}


def figures(results: Results) -> dict[str, Figure]:
    """Every figure that these results can fill, by the name of its file."""
    judged = judge_primary(results)
    made: dict[str, Figure | None] = {}
    for family in judged.families:
        made["forest" if len(judged.families) == 1 else f"forest-{family}"] = forest(judged, family)
    made |= {
        "strip": strip(results, judged),
        "curves": curves(results),
        "waterfall": waterfall(judged),
        "positions": positions(results),
        "grid": grid(results, judged),
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def forest(judged: Judged, family: str) -> Figure | None:
    """Each difference with its interval and its single seeds; grey: what noise alone could do; dotted: the margin."""
    verdicts = judged.of_family(family)
    if not any(math.isfinite(v.delta) for v in verdicts):
        return None
    figure, axes = _rows([v.row for v in verdicts])
    for y, v in enumerate(verdicts):
        noise_low, noise_high = judged.shown(-v.half_width), judged.shown(v.half_width)
        if math.isfinite(noise_high - noise_low):
            axes.barh(y, noise_high - noise_low, left=noise_low, height=1.0, color="0.88", zorder=0)
        look = LOOKS[kind(v.verdict)]
        colour = look.colour.light
        axes.annotate(v.verdict, (1, y), xycoords=("axes fraction", "data"), **_beside(colour))
        if not math.isfinite(v.delta):
            continue
        low, high = judged.shown(v.lower), judged.shown(v.upper)
        if math.isfinite(low + high):
            axes.plot([low, high], [y - LIFT, y - LIFT], color=colour, linewidth=1.2, zorder=2)
        fill = colour if look.filled else "white"
        style: dict[str, Any] = {"color": colour, "markerfacecolor": fill, "markersize": 5.5, "zorder": 3}
        axes.plot(judged.shown(v.delta), y - LIFT, look.marker, **style)
        dots = [x for x in data.seed_differences(judged, v).values() if math.isfinite(x)]
        axes.plot(dots, [y + 2 * LIFT] * len(dots), ".", color="0.2", markersize=3.5, zorder=2, gid="seeds")
    axes.axvline(0, color="0.2", linewidth=0.8, zorder=1)
    for margin in data.margins(judged):
        axes.axvline(margin, color="0.2", linewidth=1, linestyle=":", zorder=1)
    against = AGAINST[family].format(first=_short(verdicts[0].reference, 40))
    unit = f" in {judged.unit}" if judged.unit else ""
    better = data.side_of_better(judged.about)
    axes.set_xlabel(f"{judged.about.label}: difference to {against}{unit} ({better})")
    margin = "; dotted: the declared margin" if data.margins(judged) else ""
    note = f"{data.dots_in_words(judged, family, against)}\ngrey: what the seeds alone could do{margin}"
    axes.set_title(note, fontsize=8, color=GREY, loc="left")
    return figure


def _beside(colour: str, size: int = 8) -> dict[str, Any]:
    return {
        "xytext": (4, 0),
        "textcoords": "offset points",
        "va": "center",
        "fontsize": 8,
        "color": colour,
        "annotation_clip": False,
    }


def strip(results: Results, judged: Judged) -> Figure | None:
    """Every seed of every row, the same seed joined by a thin line; diverged runs are crosses at the edge."""
    seeds = data.strip(results, judged)
    finite = [s.value for s in seeds if math.isfinite(s.value)]
    if not finite:
        return None
    rows = results.rows
    figure, axes = _rows(rows)
    for seed in sorted({s.seed for s in seeds}):
        of_row = {s.row: s.value for s in seeds if s.seed == seed}
        x = [of_row.get(row, math.nan) for row in rows]
        axes.plot(x, range(len(rows)), "-", color="0.75", linewidth=0.6, zorder=1)
        axes.plot(x, range(len(rows)), "o", color=LOOKS["better"].colour.light, alpha=0.6, markersize=4.5, zorder=2)
    for y, row in enumerate(rows):
        values = [s.value for s in seeds if s.row == row]
        if values and all(map(math.isfinite, values)):
            axes.plot(sum(values) / len(values), y, "|", color="black", markersize=13, markeredgewidth=1.6, zorder=3)
        if n := sum(map(math.isnan, values)):
            axes.annotate("×" * n, (1, y), xycoords=("axes fraction", "data"), **_beside("black", 12))
    axes.set_xlabel(data.with_direction(judged.about))
    crosses = "; crosses at the edge: diverged" if any(math.isnan(s.value) for s in seeds) else ""
    note = f"dots: runs, joined by their seed; bars: means{crosses}"
    axes.set_title(note, fontsize=8, color=GREY, loc="left")
    return figure


def waterfall(judged: Judged) -> Figure | None:
    """A path's steps as bars from mean to mean, each with its interval."""
    steps = data.waterfall(judged)
    if not any(math.isfinite(s.start) for s in steps):
        return None
    figure, axes = _rows([s.row for s in steps])
    for y, s in enumerate(steps):
        if not math.isfinite(s.end):
            axes.annotate(s.verdict, (0.01, y), xycoords=("axes fraction", "data"), va="center", color=GREY)
        elif not math.isfinite(s.start):
            axes.plot(s.end, y, "|", color="black", markersize=15, markeredgewidth=2)
        else:
            look = LOOKS[kind(s.verdict)]
            colour = look.colour.light
            bar = {"left": s.start, "height": 0.5, "color": colour if look.filled else "white", "edgecolor": colour}
            axes.barh(y, s.end - s.start, hatch=None if look.filled else "////", **bar)
            if math.isfinite(s.low + s.high):
                axes.errorbar((s.low + s.high) / 2, y, xerr=(s.high - s.low) / 2, color="black", lw=1, capsize=3)
            axes.annotate(s.verdict, (1, y), xycoords=("axes fraction", "data"), **_beside(colour))
        if y and math.isfinite(s.start):
            axes.plot([s.start, s.start], [y - 1, y], color="0.6", linewidth=0.6, zorder=0)
    # Differences are the question here, so the scale need not begin at 0.
    axes.set_xlabel(f"{data.with_direction(judged.about)}, from the row before to this one")
    note = "hatched: nothing was called; whiskers: the interval of the step"
    axes.set_title(note, fontsize=8, color=GREY, loc="left")
    axes.margins(x=0.08)
    return figure


def grid(results: Results, judged: Judged) -> Figure | None:
    """The primary metric of each row from slice to slice: a line through the means, a dot for each run."""
    by_row = data.grid(results, judged)
    if not any(math.isfinite(value) for by_slice in by_row.values() for runs in by_slice.values() for value in runs):
        return None
    slices = list(dict.fromkeys((results.slices or {}).values()))
    figure = Figure(figsize=(WIDTH, PANEL), layout="constrained")
    axes = figure.subplots()
    _plain(axes)
    for i, (row, by_slice) in enumerate(by_row.items()):
        (colour, _), dashes = line(i)
        runs = [[value for value in by_slice.get(name, []) if math.isfinite(value)] for name in slices]
        means = [sum(values) / len(values) if values else math.nan for values in runs]
        style = (0, tuple(x / 2 for x in dashes)) if dashes else "-"
        axes.plot(range(len(slices)), means, color=colour, linestyle=style, label=_short(row, 24))
        dots = [(x, value) for x, values in enumerate(runs) for value in values]
        axes.plot([x for x, _ in dots], [y for _, y in dots], ".", color=colour, markersize=5)
    axes.set_xticks(range(len(slices)), [_short(name, 24) for name in slices])
    axes.set_ylabel(data.with_direction(judged.about).replace(" (", "\n("))
    axes.set_title("line: the mean of a row's runs; dots: the runs", fontsize=8, color=GREY, loc="left")
    figure.legend(loc="outside right upper", fontsize=7.5, frameon=False)
    return figure


SEEDS = "line: the mean of a row's seeds; band: from the lowest to the highest"


def curves(results: Results) -> Figure | None:
    """Validation and training loss by step, a line a row; bands reach from the lowest seed to the highest."""
    found = {name: data.learning(results, name) for name in data.CURVES}
    found = {name: curves for name, curves in found.items() if curves}
    if not found:
        return None
    floors = {name: data.floor(results, name.partition("/")[0]) for name in found}
    figure = Figure(figsize=(WIDTH, PANEL * len(found)), layout="constrained")
    for axes, (name, by_row) in zip(np.atleast_1d(figure.subplots(len(found))), found.items(), strict=True):
        _lines(axes, results.rows, by_row, floors[name])
        axes.set(xlabel="step", ylabel=data.CURVES[name].replace(" (", "\n("))
    figure.axes[0].set_title(SEEDS, fontsize=8, color=GREY, loc="left")
    return figure


def positions(results: Results) -> Figure | None:
    """Excess loss by position in the block, for sweeps that were tested so."""
    by_row = data.positions(results)
    if not by_row:
        return None
    figure = Figure(figsize=(WIDTH, PANEL), layout="constrained")
    axes = figure.subplots()
    _lines(axes, results.rows, by_row, 0.0)
    axes.set(xlabel="position in the block, tokens", ylabel=data.POSITIONS.replace(" (", "\n("))
    axes.set_title(SEEDS, fontsize=8, color=GREY, loc="left")
    return figure


def _lines(axes: Axes, rows: Sequence[str], by_row: dict[str, data.Curve], best: float | None) -> None:
    """A line a row, its name at its end, and a dotted one for the best that is possible."""
    _plain(axes)
    told_apart = len(rows) <= MOST_TOLD_APART
    low, high = data.y_range(by_row.values(), best)
    axes.set_ylim(low, high)
    axes.margins(x=0)
    shown = [row for row in rows if row in by_row]
    labelled = [row for row in shown if told_apart or row == rows[0]]
    places = data.spread([by_row[row].mean[-1] for row in labelled], LABEL / PANEL * (high - low), low, high)
    place = dict(zip(labelled, places, strict=True))
    for row in shown:
        curve, i = by_row[row], rows.index(row)
        colour, dashes = ("black" if i == 0 else "0.6"), ()
        if told_apart:
            (colour, _), dashes = line(i)
        style = (0, tuple(x / 2 for x in dashes)) if dashes else "-"
        width = 1.5 if told_apart or i == 0 else 0.6
        one = len(curve.x) == 1
        axes.plot(curve.x, curve.mean, marker="o" if one else None, color=colour, linestyle=style, linewidth=width)
        if one:
            axes.vlines(curve.x, curve.low, curve.high, color=colour, linewidth=1)
        else:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        if row in place:
            at_edge, leader = ("axes fraction", "data"), {"arrowstyle": "-", "color": colour, "linestyle": style}
            ends: dict[str, Any] = {"xy": (1, curve.mean[-1]), "xycoords": at_edge, "xytext": (1.07, place[row])}
            axes.annotate(
                _short(row, 24),
                **ends,
                textcoords=at_edge,
                va="center",
                fontsize=7.5,
                annotation_clip=False,
                arrowprops=leader | {"shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)},
            )
    if best is not None:
        axes.axhline(best, color="0.2", linewidth=1, linestyle=":")
        said = f"best possible: {best:.4g}"
        axes.annotate(
            said, (0, best), (4, -3), xycoords=("axes fraction", "data"), textcoords="offset points", **_UNDER
        )


_UNDER: dict[str, Any] = {"va": "top", "fontsize": 7.5, "color": "0.2"}


def _short(name: str, most: int) -> str:
    """A name in one line; what does not fit is left out."""
    name = " ".join(name.split())
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _rows(names: Sequence[str]) -> tuple[Figure, Axes]:
    """Axes with a line a row, the first on top."""
    figure = Figure(figsize=(WIDTH, 1.0 + ROW * len(names)), layout="constrained")
    axes = figure.subplots()
    _plain(axes)
    axes.grid(axis="y", visible=False)
    axes.set_yticks(range(len(names)), [_short(name, 40) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.set_axisbelow(True)
