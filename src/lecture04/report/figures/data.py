"""What the figures show, as plain numbers: one source for the page's charts and for the PNG, SVG and PDF of papers."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lecture04.records.metrics import Metric
from lecture04.records.record import Status
from lecture04.report.comparison import Judged
from lecture04.report.results import Results
from lecture04.stats import Verdict

MOST_POINTS = 100
"""Points of a curve; more would be wider than a page and make its file large."""
CURVES = {
    "val/nll": "validation NLL, nats per token (lower is better)",
    "train/loss": "training loss, nats per token (lower is better)",
}
POSITIONS = "excess over the true NLL, nats per token (lower is better)"
PLOT_HEIGHT = 300
"""Pixels of the page's curves."""
LABEL = 13
"""Pixels from the label of a curve to the next one."""
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
SAME = 1e-6
"""Nats by which the true distribution's NLL may differ between runs that were measured on the same tokens."""


def with_direction(metric: Metric) -> str:
    """`test ppl (lower is better)`."""
    return f"{metric.label} ({'lower' if metric.lower_is_better else 'higher'} is better)"


def side_of_better(metric: Metric) -> str:
    """`left is better`: on which side of 0 the better differences stand."""
    return f"{'left' if metric.lower_is_better else 'right'} is better"


def floor(results: Results, split: str) -> float | None:
    """The true distribution's NLL on a split, in nats per token: no model can have less, in the mean.

    It is what the runs' NLL has over their excess, the same number for all runs that were measured on the same tokens;
    None where it is not known, or where it is not the same for all.
    """
    nll, excess = (results.values(f"{split}/{kind}") for kind in ("nll", "excess"))
    both = [(seeds[seed], over) for row, seeds in nll.items() for seed, over in excess[row].items() if seed in seeds]
    found = [value - over for value, over in both if math.isfinite(value - over)]
    return sum(found) / len(found) if found and max(found) - min(found) < SAME else None


def best_possible(results: Results, metric: str) -> float | None:
    """What the true distribution reaches of an NLL or a perplexity; None where that is not known."""
    split, _, kind = metric.partition("/")
    least = floor(results, split) if kind in ("nll", "ppl") else None
    return math.exp(least) if least is not None and kind == "ppl" else least


def seed_differences(judged: Judged, v: Verdict) -> dict[int, float]:
    """{seed: its difference}, in shown units: a verdict's dots, whose mean on the judged scale is its difference.

    Each run less the reference's run of the same seed; less the reference's mean, where the two rows have not got the
    same seeds (`are_paired`). Empty without a difference.
    """
    if math.isnan(v.delta):
        return {}
    row, reference = judged.values[v.row], judged.values[v.reference]
    mean = _mean(judged, v.reference)
    paired = are_paired(judged, v)
    return {seed: judged.shown(row[seed] - (reference[seed] if paired else mean)) for seed in sorted(row)}


def are_paired(judged: Judged, v: Verdict) -> bool:
    """Whether both rows of a contrast have the same seeds."""
    return judged.values[v.row].keys() == judged.values[v.reference].keys()


DOTS = "small dots: the single seeds, each less the same seed of {reference}"
UNPAIRED = " (less that row's mean, where the two have not the same seeds)"


def dots_in_words(judged: Judged, family: str, reference: str) -> str:
    """What the dots of a forest plot are."""
    paired = all(are_paired(judged, v) for v in judged.of_family(family) if not math.isnan(v.delta))
    return DOTS.format(reference=reference) + ("" if paired else UNPAIRED)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels that would like to stand at `wanted`: between `low` and `high`, at least `gap` apart.

    Labels that would be too near form a stretch, whose middle is the mean of what they want. Where there is no room for
    all, they stand as far apart as there is.
    """
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))

    def start(stretch: Sequence[int]) -> float:
        length = gap * (len(stretch) - 1)
        middle = sum(wanted[i] for i in stretch) / len(stretch)
        return min(max(middle - length / 2, low), high - length)

    stretches: list[list[int]] = []
    for i in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        stretches.append([i])
        while len(stretches) > 1 and start(stretches[-1]) < start(stretches[-2]) + gap * len(stretches[-2]):
            stretches[-2:] = [stretches[-2] + stretches[-1]]
    places = {i: start(stretch) + gap * n for stretch in stretches for n, i in enumerate(stretch)}
    return [places[i] for i in range(len(wanted))]


def label_places(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """`spread`, for the labels of the page's lines, whose y axis reaches from `low` to `high`."""
    return spread(wanted, LABEL * (high - low) / PLOT_HEIGHT, low, high)


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


def grid(results: Results, judged: Judged) -> dict[str, dict[str, list[float]]]:
    """{row: {slice: its runs' values, NaN where one diverged}}, without the slice in the row's name; else empty.

    Of one slice alone there is nothing that the strip does not show.
    """
    slices = results.slices or {}
    if len(set(slices.values())) < 2:
        return {}
    found = dict[str, dict[str, list[float]]]()
    for row, seeds in results.values(judged.metric).items():
        found.setdefault(within_slice(row, slices[row]), {})[slices[row]] = [
            value for _, value in sorted(seeds.items())
        ]
    return found


def within_slice(row: str, of_slice: str) -> str:
    """The name of a grid's row without that of its slice."""
    return row.removeprefix(f"{of_slice}: ")


def is_one_quantity(labels: Sequence[str]) -> bool:
    """Whether labels are a quantity that grows or falls, as `4 pairs`, `8 pairs`: one number each, the same words."""
    split = [NUMBER.split(label) for label in labels]
    if any(len(parts) != 3 for parts in split) or len({(before, after) for before, _, after in split}) != 1:
        return False
    values = [float(number) for _, number, _ in split]
    return values in (sorted(set(values)), sorted(set(values), reverse=True))


@dataclass(frozen=True)
class Curve:
    """A row's mean over its seeds at each x, with the lowest and the highest of them."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    n: int


def y_range(curves: Iterable[Curve], best: float | None = None) -> tuple[float, float]:
    """What the y axis shows: the first steps tower over all that is of interest, so it ends at what a fifth reached.

    `best`: the best that is possible, which stands on it too, with room for a word below.
    """
    curves = list(curves)
    later = [y for c in curves for x, y in zip(c.x, c.high, strict=True) if x >= c.x[-1] / 5]
    low, high = min([min(c.low) for c in curves] + ([] if best is None else [best])), max(later)
    space = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - space * (1 if best is None else 2), high + space


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
