"""What the figures show, as plain numbers: one source for the page's charts and for the PNG, SVG and PDF of papers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lecture04.records.record import Status
from lecture04.report.comparison import Judged
from lecture04.report.results import Results
from lecture04.stats import Verdict

MOST_POINTS = 100
"""Points of a curve; more would be wider than a page and make its file large."""
CURVES = {"val/nll": "validation NLL, nats per token", "train/loss": "training loss, nats per token"}


def margins(judged: Judged) -> list[float]:
    """Where the dotted lines of a declared margin stand, in shown units; none where no margin was declared."""
    delta = judged.verdicts[0].margin if judged.verdicts else None
    return [] if delta is None else [judged.shown(sign * delta) for sign in (-1, 1)]


@dataclass(frozen=True)
class Step:
    """A bar of the waterfall: from the row before to this one, with this step's interval; in the metric's own unit."""

    row: str
    start: float
    end: float
    low: float
    high: float
    of: Verdict | None

    @property
    def verdict(self) -> str:
        """What is said of the step; nothing of the first row."""
        return self.of.verdict if self.of else ""


def waterfall(judged: Judged) -> list[Step]:
    """A path's steps, the first row's bar being its mean alone (start is NaN); empty for other designs.

    Means are taken on the judged scale and carried back, so a perplexity's is the geometric one.
    """
    steps = judged.by_row("step")
    bars = list[Step]()
    for row in judged.values if steps else ():
        v = steps.get(row)
        before = _mean(judged, v.reference) if v else math.nan
        ends = (before + v.lower, before + v.upper) if v else (math.nan, math.nan)
        start, end, low, high = (_carried(judged, x) for x in (before, _mean(judged, row), *ends))
        bars.append(Step(row, start, end, low, high, v))
    return bars


def _mean(judged: Judged, row: str) -> float:
    """A row's mean on the judged scale; NaN where a run of it diverged or none is there."""
    seeds = list(judged.values[row].values())
    return math.fsum(seeds) / len(seeds) if seeds else math.nan


def _carried(judged: Judged, value: float) -> float:
    """A judged value as the metric measures it."""
    return math.nan if math.isnan(value) else judged.scale.raw(value)


@dataclass(frozen=True)
class Seed:
    """One run of a strip plot; a value of NaN where it diverged."""

    row: str
    seed: int
    value: float


def strip(results: Results, judged: Judged) -> list[Seed]:
    """Every run that has ended, row by row."""
    raw = results.values(judged.metric)
    return [Seed(row, seed, value) for row, seeds in raw.items() for seed, value in sorted(seeds.items())]


@dataclass(frozen=True)
class Curve:
    """A row's mean over its seeds at each x, with the lowest and the highest of them."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    n: int


def y_range(curves: Iterable[Curve], floor: float | None = None) -> tuple[float, float]:
    """What the y axis shows: the first steps tower over all that is of interest, so it ends at what a tenth reached."""
    curves = list(curves)
    later = [y for c in curves for x, y in zip(c.x, c.high, strict=True) if x >= c.x[-1] / 10]
    low, high = min(min(c.low) for c in curves), max(later)
    space = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (low - space if floor is None else floor), high + space


def learning(results: Results, name: str) -> dict[str, Curve]:
    """{row: curve} of a quantity of metrics.jsonl by step.

    Runs that diverged are left out of a row in which others finished, since their last values would hide the rest.
    """
    found = {}
    for row, runs in results.records.items():
        ended = [(record, results.status(row, seed)) for seed, record in runs.items()]
        finished = [record for record, status in ended if status.ended_well]
        shown = finished or [record for record, status in ended if status is Status.diverged]
        if curve := _curve([record.logged(name) for record in shown]):
            found[row] = curve
    return found


def positions(results: Results, name: str = "excess") -> dict[str, Curve]:
    """{row: curve} of the test loss by position in the block, for the runs that were evaluated so; else empty.

    Each point is the mean over a range of positions, in the middle of it.
    """
    found = {}
    for row, runs in results.records.items():
        key = results.manifest.rows[row].evaluation
        by_run = [
            _by_part(curves["position"], curves[name])
            for seed, record in runs.items()
            if results.status(row, seed).ended_well and (curves := record.evaluation(key).get("curves", {})).get(name)
        ]
        if curve := _curve(by_run):
            found[row] = curve
    return found


def _by_part(position: Sequence[float], values: Sequence[float | None]) -> dict[float, float]:
    parts = max(1, min(32, len(position)))
    y = np.array([math.nan if value is None else value for value in values], float)
    means = zip(np.array_split(np.array(position, float), parts), np.array_split(y, parts), strict=True)
    return {float(x.mean()): float(part.mean()) for x, part in means if np.isfinite(part).all()}


def _curve(runs: Sequence[dict[float, float]]) -> Curve | None:
    """The curve of these runs, at the xs that all of them have."""
    runs = [run for run in runs if run]
    if not runs:
        return None
    xs = sorted(set.intersection(*(set(run) for run in runs)))
    if len(xs) > MOST_POINTS:
        xs = [xs[i] for i in np.unique(np.linspace(0, len(xs) - 1, MOST_POINTS).round().astype(int))]
    y = np.array([[run[x] for x in xs] for run in runs]).reshape(len(runs), len(xs))
    return Curve(xs, y.mean(0).tolist(), y.min(0).tolist(), y.max(0).tolist(), len(runs)) if xs else None
