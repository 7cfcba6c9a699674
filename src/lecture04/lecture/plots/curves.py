"""Plots of curves: by position, by added steps, by training step."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lecture04.lecture.evidence import Evidence, NotYetError, curve, is_diverged, mean, numbers, seeds_of
from lecture04.lecture.judges.norm import last_perplexity, unigram_perplexity
from lecture04.lecture.plots.common import QUIET, SERIES, legend_below, marked, note, panels, plot, stroke
from lecture04.report.results import Results

SMOOTH = 16  # positions
TRAINED = 64  # tokens
FLAT = 0.5  # nats: a row that stays below it is enlarged
TICKS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)


def smoothed(values: np.ndarray, width: int = SMOOTH) -> np.ndarray:
    """Means over non-overlapping stretches of so many positions; a shorter one at the end is left out."""
    n = len(values) // width * width
    return values[:n].reshape(-1, width).mean(axis=1)


def by_position(results: Results, row: str) -> np.ndarray:
    """Excess by position of a row's runs, [seeds, positions]. Raises NotYetError where a run has no curve."""
    key = results.manifest.rows[row].evaluation
    found = [
        record.evaluation(key).get("curves", {}).get("excess") for _, record in sorted(results.records[row].items())
    ]
    if not all(found):
        raise NotYetError(f"a run of {row!r} has no curve by position")
    return np.array(found, float)


@plot
def extrapolation(evidence: Evidence) -> Figure:
    """Excess by position, smoothed, a line a row with the range of its seeds; training ended at the mark."""
    results = evidence.sweep("extrapolation")
    smooth = {row: np.array([smoothed(one) for one in by_position(results, row)]) for row in results.rows}
    steady = [float(by_seed.max()) for by_seed in smooth.values() if by_seed.mean(axis=0).max() < FLAT]
    titles = ["all", "the same, enlarged"] if steady else ["all"]
    figure, found = panels(len(titles), 3.0)
    for axes, title in zip(found, titles, strict=True):
        for i, (row, by_seed) in enumerate(smooth.items()):
            x, look = np.arange(by_seed.shape[1]) * SMOOTH + SMOOTH / 2, stroke(i)
            axes.plot(x, by_seed.mean(axis=0), label=row, linewidth=1.6, **look)
            axes.fill_between(x, by_seed.min(axis=0), by_seed.max(axis=0), color=look["color"], alpha=0.15, linewidth=0)
        axes.axvline(TRAINED, color=QUIET, linewidth=1, linestyle=":")
        axes.set_title(title, loc="left")
        axes.set_ylabel("excess, nats a token")
    found[-1].set_xlabel("position in the block, tokens")
    if steady:
        found[-1].set_ylim(0, max(steady) * 1.1)
    note(found[0], f"trained to {TRAINED}", (TRAINED, 1), ("data", "axes fraction"))
    legend_below(figure, found[0], 3)
    return figure


def unigram_line(axes: Axes, evidence: Evidence, *, as_nats: bool = False) -> None:
    """A dotted line where a model ends up that knows word frequencies alone, where that is known."""
    try:
        level = unigram_perplexity(evidence)
    except NotYetError:
        return
    level = math.log(level) if as_nats else level
    axes.axhline(level, color=QUIET, linewidth=1, linestyle=":")
    note(axes, "unigram model", (1, level), ("axes fraction", "data"), xytext=(-4, -4), ha="right")


def log_perplexity(axes: Axes) -> None:
    """A logarithmic axis of perplexities with readable ticks."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


@plot
def warmup(evidence: Evidence) -> Figure:
    """The last validation perplexity of each seed, cell by cell; a diverged one is a cross."""
    results = evidence.sweep("warmup")
    figure, (axes,) = panels(1, 3.6)
    slices = list(dict.fromkeys((results.slices or {}).values()))
    highest = 0.0
    for i, (name, marker) in enumerate((("pre", "o"), ("post", "s"))):
        for x, slice_ in enumerate(slices):
            row = f"{slice_}: {name}"
            ends = last_perplexity(evidence, row)
            highest = max([highest, *(end for end in ends if math.isfinite(end))])
            beside = x + 0.3 * i - 0.15 + 0.05 * (np.arange(len(ends)) - (len(ends) - 1) / 2)
            diverged = [is_diverged(results, row, seed) for seed in seeds_of(results, row)]
            for at, end, is_dead in zip(beside, ends, diverged, strict=True):
                look = marked("diverged") if is_dead else {"marker": marker, "color": SERIES[i].light, "markersize": 6}
                axes.plot(at, end, **look, alpha=0.85, gid="seeds")
        axes.plot([], [], marker, color=SERIES[i].light, label=f"{name}-norm")
    axes.plot([], [], **marked("diverged"), label="diverged")
    unigram_line(axes, evidence)
    axes.set_ylim(top=highest * 1.6)
    log_perplexity(axes)
    axes.set_xticks(range(len(slices)), [slice_.replace(", ", "\n") for slice_ in slices])
    axes.set(ylabel="validation perplexity\nafter 2 epochs (log scale)", xlim=(-0.5, len(slices) - 0.5))
    legend_below(figure, axes, 3)
    return figure


@plot
def uptraining(evidence: Evidence) -> Figure:
    """Test perplexity by the added steps, a line a merge; GQA above MQA, on scales of their own."""
    direct, trained = evidence.sweep("uptrain_direct"), evidence.sweep("uptrain")
    figure, found = panels(2, 2.8)
    original = mean(trained, "test/ppl", "MHA")
    for axes, kind in zip(found, ("GQA-2", "MQA"), strict=True):
        steps = _added(trained, kind)
        for i, (how, marker) in enumerate(zip(("mean", "first", "random"), "osD", strict=True)):
            columns = [(direct, f"{kind}, {how}"), *((trained, f"{kind}, {how}, {n}") for n in steps)]
            by_seed = [list(numbers(results, "test/ppl", row)[row].values()) for results, row in columns]
            x, look = [0, *steps], stroke(i)
            axes.plot(x, [float(np.mean(seeds)) for seeds in by_seed], marker=marker, label=how, markersize=5, **look)
            lowest, highest = list(map(min, by_seed)), list(map(max, by_seed))
            axes.fill_between(x, lowest, highest, color=look["color"], alpha=0.15, linewidth=0)
        from_scratch = mean(trained, "test/ppl", f"{kind} from scratch")
        axes.axhline(original, color=QUIET, linewidth=1, label="MHA, the source")
        axes.axhline(from_scratch, color=QUIET, linewidth=1, linestyle=":", label="from scratch")
        axes.set_title(kind.replace("GQA-2", "GQA, 2 KV heads"), loc="left")
        axes.set(ylabel="test perplexity\n(log scale)", xticks=[0, *steps])
        log_perplexity(axes)
    found[-1].set_xlabel("steps after merging")
    legend_below(figure, found[0], 3)
    return figure


def _added(results: Results, kind: str) -> list[int]:
    """The numbers of added steps that the table has rows for, least first."""
    prefix = f"{kind}, mean, "
    return sorted(int(row.removeprefix(prefix)) for row in results.rows if row.startswith(prefix))


@plot
def stability(evidence: Evidence) -> Figure:
    """Training loss of both recipes under stress, a line a seed; a run that diverged ends in a cross."""
    results = evidence.sweep("stability")
    figure, (axes,) = panels(1, 3.2)
    for i, row in enumerate(results.rows):
        for seed in seeds_of(results, row):
            points = [(x, y) for x, y in curve(results, row, seed, "train/loss") if math.isfinite(y)]
            if not points:
                continue
            axes.plot(*zip(*points, strict=True), marker=".", alpha=0.85, gid="seeds", **stroke(i))
            if is_diverged(results, row, seed):
                axes.plot(*points[-1], **marked("diverged"))
        axes.plot([], [], marker=".", label=row, **stroke(i))
    axes.plot([], [], **marked("diverged"), label="diverged")
    unigram_line(axes, evidence, as_nats=True)
    axes.set(xlabel="step", ylabel="training loss, nats a token")
    legend_below(figure, axes, 3)
    return figure
