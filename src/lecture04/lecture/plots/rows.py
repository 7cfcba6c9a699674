"""Rows of a sweep: each seed a dot, their mean by its verdict, and what the seeds alone could do to it in grey."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lecture04.lecture.claims import claim
from lecture04.lecture.evidence import Evidence, mean, numbers
from lecture04.lecture.judges.figures import lines
from lecture04.lecture.judges.shares import share
from lecture04.lecture.plots.common import BAND, QUIET, SEED, bars, beside, marked, note, plot, row_panels, values_by
from lecture04.report.comparison import Judged, judge_metric
from lecture04.report.figures.data import best_possible, with_direction
from lecture04.report.figures.style import LOOKS, kind
from lecture04.report.results import Results
from lecture04.stats.distributions import binomial_interval

LIFT = 0.13  # of a row: the mean stands above the middle, the seeds below


def rows_of(results: Results, metric: str, *, only: Sequence[str] | None = None) -> Figure:
    """The rows of a table, or some of them, by one metric. Raises NotYetError where a run is missing."""
    rows = list(only or results.rows)
    numbers(results, metric, *rows)
    figure, (axes,) = row_panels(rows)
    draw_rows(axes, results, judge_metric(results, metric), rows)
    return figure


def draw_rows(axes: Axes, results: Results, judged: Judged, rows: Sequence[str]) -> None:
    """Rows on axes that have a line for each."""
    family = judged.families[0] if judged.families else ""
    verdicts = judged.by_row(family) if family else {}
    raw = results.values(judged.metric)
    for y, row in enumerate(rows):
        seeds = [x for x in raw[row].values() if math.isfinite(x)]
        axes.plot(seeds, [y + 2 * LIFT] * len(seeds), ".", color=SEED, markersize=5, zorder=3, gid="seeds")
        v = verdicts.get(row)
        if v is None:
            mean = _mean(judged, row)
            axes.plot(mean, y - LIFT, "|", color=SEED, markersize=14, markeredgewidth=2, zorder=4, gid="mean")
            beside(axes, y, "start" if family == "step" else "baseline", QUIET)
            continue
        reference = _judged_mean(judged, v.reference)
        if math.isfinite(reference) and math.isfinite(v.half_width):
            low, high = (judged.scale.raw(reference + sign * v.half_width) for sign in (-1, 1))
            axes.barh(y, high - low, left=low, height=0.92, color=BAND, zorder=0, gid="noise")
        if math.isfinite(v.delta):
            axes.plot(_mean(judged, row), y - LIFT, **marked(v.verdict), zorder=4, gid="mean")
        change = "" if math.isnan(v.delta) else f"{judged.change(v)}\n"
        beside(axes, y, f"{change}{v.verdict}", LOOKS[kind(v.verdict)].colour.light)
    axes.set_xlabel(with_direction(judged.about))
    axes.margins(x=0.06)
    _stay_with(axes, [x for row in rows for x in raw[row].values() if math.isfinite(x)])


def _stay_with(axes: Axes, seeds: Sequence[float]) -> None:
    """The seeds and as much again on both sides: the band of a row much noisier than the rest would hide them."""
    if seeds and (wide := max(seeds) - min(seeds)) > 0:
        left, right = axes.get_xlim()
        axes.set_xlim(max(left, min(seeds) - wide), min(right, max(seeds) + wide))


def _judged_mean(judged: Judged, row: str) -> float:
    seeds = list(judged.values[row].values())
    return math.fsum(seeds) / len(seeds) if seeds else math.nan


def _mean(judged: Judged, row: str) -> float:
    """A row's mean on the judged scale, as the metric measures it."""
    mean = _judged_mean(judged, row)
    return mean if math.isnan(mean) else judged.scale.raw(mean)


def _rows_plot(name: str, sweep: str, metric: str, what: str, *, only: Sequence[str] | None = None) -> None:
    """Register the plot of a table's rows, or of some of them, by one metric; `what` says it where no picture is."""

    def draw(evidence: Evidence) -> Figure:
        return rows_of(evidence.sweep(sweep), metric, only=only)

    draw.__name__, draw.__doc__ = name, what
    plot(draw)


SCRATCH = ("MHA", "GQA-2 from scratch", "MQA from scratch")

_rows_plot("ffn", "ffn", "test/ppl", "Test perplexity of the feed-forward layers.")
_rows_plot("ffn_training", "ffn", "train/nll", "Training loss of the feed-forward layers.")
_rows_plot("norm", "norm", "test/ppl", "LayerNorm and RMSNorm.")
_rows_plot("recipe", "recipe", "test/ppl", "The path from 2017 to Llama, each row against the row before.")
_rows_plot("recipe_pronouns", "recipe", "pronouns/accuracy", "The same path by the far pronouns that are right.")
_rows_plot("worlds", "worlds", "test/ppl", "The recipe in three worlds, each a star of its own.")
_rows_plot("worlds_pronouns", "worlds", "pronouns/accuracy", "The same by the far pronouns that are right.")
_rows_plot("scratch", "uptrain", "test/ppl", "GQA and MQA trained from scratch, beside MHA.", only=SCRATCH)
_rows_plot("nope_by_document", "nope_by_document", "test/ppl", "Position encodings on whole documents, against none.")


@plot
def recipe_cache(evidence: Evidence) -> Figure:
    """What the cache keeps for a token along the same path."""
    results = evidence.sweep("recipe")
    return bars(
        {row: mean(results, "kv_per_token", row) for row in results.rows},
        "numbers in the cache for a token (lower is better)",
    )


@plot
def seeds(evidence: Evidence) -> Figure:
    """The seeds of the standard model, and the lecture's two."""
    results = evidence.sweep("norm")
    row = results.rows[0]
    ours = sorted(numbers(results, "test/ppl", row)[row].values())
    theirs, apart = float(claim("standard_model").lecture), float(claim("seed_noise").lecture)
    figure, (axes,) = row_panels(["ours", "the lecture's"], more=1.0)
    axes.plot(ours, [0] * len(ours), "o", color=SEED, markersize=6, alpha=0.8, gid="seeds")
    axes.plot(sum(ours) / len(ours), 0, "|", color=SEED, markersize=22, markeredgewidth=2, gid="mean")
    beside(axes, 0, f"{ours[-1] - ours[0]:.3f} apart", QUIET)
    axes.plot([theirs - apart, theirs + apart], [1, 1], color=QUIET, linewidth=2)
    axes.plot(theirs, 1, "|", color=QUIET, markersize=22, markeredgewidth=2, gid="lecture")
    beside(axes, 1, f"± {apart}", QUIET)
    best = best_possible(results, "test/ppl")
    if best is not None:
        axes.axvline(best, color=QUIET, linewidth=1, linestyle=":")
        note(axes, f"best possible\n{best:.3f}", (best, 1), ("data", "axes fraction"))
    axes.set_xlabel("test perplexity (lower is better)")
    axes.margins(x=0.06)
    return figure


@plot
def dead_units(evidence: Evidence) -> Figure:
    """Units that are never active, at the standard rate and at high ones."""
    found: dict[str, list[float]] = {}
    d_ff = 0.0
    for probe in ("sparsity", "sparsity_high_lr"):
        table = evidence.probe(probe)
        found |= {row: n for (row,), n in values_by(lines(table, quantity="dead_units"), "row").items()}
        d_ff = max([d_ff, *table[table.quantity == "d_ff"].value])
    figure, (axes,) = row_panels(list(found))
    for y, values in enumerate(found.values()):
        for i, x in enumerate(sorted(values)):
            axes.plot(x, y + 0.5 * (i / max(1, len(values) - 1) - 0.5), ".", color=SEED, markersize=6, gid="seeds")
        beside(axes, y, f"at most {max(values):.0f}", QUIET)
    axes.set_xlabel("units that are active nowhere" + (f", of {d_ff:.0f} a layer or fewer" if d_ff else ""))
    axes.set_xlim(left=-0.5, right=max(5.0, *(max(v) for v in found.values())) * 1.05)
    return figure


@plot
def collapse(evidence: Evidence) -> Figure:
    """The share of each recipe's runs that collapse, over ten seeds."""
    results = evidence.sweep("collapse")
    figure, (axes,) = row_panels(results.rows)
    for y, row in enumerate(results.rows):
        found = share(results, row)
        low, high = binomial_interval(found.m, found.n)
        axes.plot([low, high], [y, y], color=QUIET, linewidth=1.5)
        axes.plot(found.m / found.n, y, **marked("diverged" if found.m else "within noise"), gid="share")
        beside(axes, y, f"{found.m} of {found.n}", SEED)
    axes.set(xlim=(-0.03, 1.03), xlabel="share of runs that diverged, with its exact 95 % interval")
    return figure


@plot
def zeros(evidence: Evidence) -> Figure:
    """The share of exact zeros, layer by layer."""
    table = lines(evidence.probe("sparsity"), quantity="zero_share")
    found = {f"{row}, layer {int(layer)}": shares for (row, layer), shares in values_by(table, "row", "layer").items()}
    figure, (axes,) = row_panels(list(found))
    for y, values in enumerate(found.values()):
        axes.plot(values, [y] * len(values), ".", color=SEED, markersize=8, gid="seeds")
        beside(axes, y, f"{sum(values) / len(values):.1%}", QUIET)
    axes.set(xlim=(-0.02, 1), xlabel="share of exact zeros in the hidden layer")
    return figure
