"""The notebook's plots, one function per plot, from evidence alone.

Colours are Okabe and Ito's, which colour-blind readers can distinguish; lines differ in style as well.
"""

import math
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lecture04.lecture.evidence import Evidence, NotYetError, mean, numbers
from lecture04.lecture.judges.compare import family
from lecture04.lecture.judges.norm import last_perplexity, unigram_perplexity
from lecture04.report.results import Results

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#7F7F7F")
# Dots and gaps of each row's line, in line widths: told apart in grey too.
DASHES = ((), (6, 2), (1, 1.5), (8, 2, 1, 2), (3, 1.5), (10, 3), (6, 1, 1, 1, 1, 1), (1, 4), (2, 1, 6, 1))
WIDTH = 9.0  # inches; at 150 dots each a little more than GitHub shows
SMOOTH = 16  # positions
TRAINED = 64  # tokens


def save(figure: Figure, path: Path) -> None:
    """As PNG."""
    figure.savefig(path, dpi=150)


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    _plain(axes)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def smoothed(values: np.ndarray, width: int = SMOOTH) -> np.ndarray:
    """Means over non-overlapping stretches of so many positions; a shorter one at the end is left out."""
    n = len(values) // width * width
    return values[:n].reshape(-1, width).mean(axis=1)


def curves(results: Results, row: str) -> np.ndarray:
    """Excess by position of a row's runs, [seeds, positions]. Raises NotYetError where a run has no curve."""
    key = results.manifest.rows[row].evaluation
    found = [
        record.evaluation(key).get("curves", {}).get("excess") for _, record in sorted(results.records[row].items())
    ]
    if not all(found):
        raise NotYetError(f"a run of {row!r} has no curve by position")
    return np.array(found, float)


def extrapolation(evidence: Evidence) -> Figure:
    """Excess by position, smoothed, a line per row with the range of its seeds; training ended at the mark."""
    results = evidence.sweep("extrapolation")
    figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    steady: list[float] = []
    for row, colour, dashes in zip(results.rows, cycle(COLOURS), cycle(DASHES)):
        by_seed = np.array([smoothed(curve) for curve in curves(results, row)])
        x = np.arange(by_seed.shape[1]) * SMOOTH + SMOOTH / 2
        middle = by_seed.mean(axis=0)
        if middle.max() < 0.5:
            steady.append(float(by_seed.max()))
        for axes in (left, right):
            axes.plot(x, middle, color=colour, dashes=dashes, label=row, linewidth=1.6)
            axes.fill_between(x, by_seed.min(axis=0), by_seed.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    for axes, title in ((left, "all"), (right, "the same, enlarged")):
        _plain(axes)
        axes.axvline(TRAINED, color="0.4", linewidth=1, linestyle=":")
        axes.set(xlabel="position in the block (tokens)", title=title)
    right.set_ylim(0, max(steady, default=0.5) * 1.1)
    left.set_ylabel("excess over the true NLL (nats per token)")
    left.annotate(
        "trained to 64",
        (TRAINED, 1),
        xycoords=("data", "axes fraction"),
        xytext=(4, -12),
        textcoords="offset points",
        color="0.4",
        fontsize=8,
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, handlelength=4)
    return figure


def recipe(evidence: Evidence) -> Figure:
    """Test perplexity along the path: seeds as dots, means joined, and each step's band round the row before."""
    results = evidence.sweep("recipe")
    figure, axes = _axes(4.2)
    values = numbers(results, "test/ppl")
    steps = {d.row: d for d in family(results, "test/nll", "step")}
    means = [mean(results, "test/ppl", row) for row in results.rows]
    for x, row in enumerate(results.rows):
        axes.plot([x] * len(values[row]), list(values[row].values()), "o", color=COLOURS[0], alpha=0.45, markersize=4)
        if x and not math.isnan(half := steps[row].half_width):
            low, high = (means[x - 1] * math.exp(sign * half) for sign in (-1, 1))
            axes.fill_between([x - 0.28, x + 0.28], low, high, color="0.85", linewidth=0)
            apart = steps[row].is_apart
            axes.annotate(
                steps[row].written().partition(" [")[0] + " %",
                (x, max(high, *values[row].values())),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=COLOURS[1] if apart else "0.4",
                fontweight="bold" if apart else "normal",
            )
    axes.plot(range(len(means)), means, "-D", color=COLOURS[0], markersize=5, linewidth=1.2)
    axes.set_xticks(range(len(means)), results.rows)
    axes.set(
        ylabel="test perplexity",
        title="Grey: how far the seeds alone can move a row's mean from that of the row before",
    )
    axes.margins(y=0.15)
    return figure


def warmup(evidence: Evidence) -> Figure:
    """The last validation perplexity of each seed, cell by cell, on a logarithmic scale."""
    results = evidence.sweep("warmup")
    figure, axes = _axes(3.8)
    slices = list(dict.fromkeys((results.slices or {}).values()))
    for name, colour, marker, shift in (("pre", COLOURS[0], "o", -0.15), ("post", COLOURS[1], "s", 0.15)):
        for x, slice_ in enumerate(slices):
            seeds = last_perplexity(evidence, f"{slice_}: {name}")
            label = f"{name}-norm" if not x else None
            beside = x + shift + 0.05 * (np.arange(len(seeds)) - (len(seeds) - 1) / 2)
            axes.plot(beside, seeds, marker, color=colour, label=label, alpha=0.8, markersize=6)
    try:
        level = unigram_perplexity(evidence)
        axes.axhline(level, color="0.4", linewidth=1, linestyle=":")
        axes.annotate(
            "unigram model",
            (len(slices) - 0.6, level),
            xytext=(0, 3),
            textcoords="offset points",
            color="0.4",
            fontsize=8,
            ha="right",
        )
    except NotYetError:
        pass
    axes.set_yscale("log")
    axes.set_yticks([4, 6, 10, 20, 40], ["4", "6", "10", "20", "40"])
    axes.minorticks_off()
    axes.set_xticks(range(len(slices)), slices)
    axes.set(ylabel="validation perplexity after 2 epochs (log scale)", xlim=(-0.5, len(slices) - 0.5))
    axes.legend(frameon=False)
    return figure


def uptraining(evidence: Evidence) -> Figure:
    """Test perplexity by the added steps, a line per merge; GQA and MQA side by side on one scale."""
    direct, trained = evidence.sweep("uptrain_direct"), evidence.sweep("uptrain")
    figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
    original = mean(trained, "test/ppl", "MHA")
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("GQA-2", "MQA"), strict=True):
        _plain(axes)
        for how, colour, marker in zip(("mean", "first", "random"), COLOURS[:3], "osD", strict=True):
            columns = [
                (0, direct, f"{kind}, {how}"),
                *((steps, trained, f"{kind}, {how}, {steps}") for steps in (75, 250)),
            ]
            by_seed = [list(numbers(results, "test/ppl", row)[row].values()) for _, results, row in columns]
            x = [steps for steps, _, _ in columns]
            axes.plot(
                x, [float(np.mean(seeds)) for seeds in by_seed], f"-{marker}", color=colour, label=how, markersize=5
            )
            axes.fill_between(
                x, list(map(min, by_seed)), list(map(max, by_seed)), color=colour, alpha=0.15, linewidth=0
            )
        scratch = mean(trained, "test/ppl", f"{kind} from scratch")
        axes.axhline(original, color="0.3", linewidth=1, label="MHA, the source")
        axes.axhline(scratch, color="0.3", linewidth=1, linestyle=":", label="from scratch")
        axes.set(title=kind.replace("GQA-2", "GQA, 2 KV heads"), xlabel="steps after merging", xticks=[0, 75, 250])
        axes.set_yscale("log")
        axes.minorticks_off()
    first = figure.axes[0]
    ticks = [t for t in (4, 5, 6, 8, 10, 15, 20, 30, 50, 100) if t < first.get_ylim()[1] * 1.05]
    first.set_yticks(ticks, [f"{t:g}" for t in ticks])
    first.set_ylabel("test perplexity (log scale)")
    first.legend(frameon=False, title="heads of a group")
    return figure


Plot = Callable[[Evidence], Figure]
PLOTS: dict[str, Plot] = {
    "extrapolation": extrapolation,
    "recipe": recipe,
    "warmup": warmup,
    "uptraining": uptraining,
}
