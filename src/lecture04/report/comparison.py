"""A sweep's metrics as they are judged: the values on their scale, and what may be said of each difference."""

import math
from dataclasses import dataclass, replace

from lecture04.records.metrics import METRICS, Metric, shown_for
from lecture04.report.manifest import Manifest
from lecture04.report.results import Results
from lecture04.stats import Design, Identity, Log, Logit, Scale, Verdict, judge, judged_values

DECIDED = ("better", "worse", "equivalent")
"""Verdicts that more seeds are not needed for."""


@dataclass(frozen=True)
class Judged:
    """One metric of a sweep.

    metric    the metric whose values are shown, such as test/ppl
    declared  the one that the sweep names, such as test/nll: the same on the judged scale
    values    {row: {seed: judged value}}
    verdicts  one a contrast, family after family, in the table's order; their figures are on the judged scale
    primary   it carries the verdicts; the others are not corrected for their number
    """

    metric: str
    declared: str
    scale: Scale
    values: dict[str, dict[int, float]]
    verdicts: list[Verdict]
    primary: bool

    @property
    def about(self) -> Metric:
        """How the metric is called and written."""
        return METRICS[self.metric]

    @property
    def families(self) -> list[str]:
        """The families of its contrasts: star, or step and total, or grid."""
        return list(dict.fromkeys(v.family for v in self.verdicts))

    def of_family(self, family: str) -> list[Verdict]:
        """The verdicts of a family."""
        return [v for v in self.verdicts if v.family == family]

    def by_row(self, family: str) -> dict[str, Verdict]:
        """{row: its verdict} in a family; a reference has none, as it is compared with nothing."""
        return {v.row: v for v in self.of_family(family)}

    @property
    def unit(self) -> str:
        """What shown differences are measured in: % on the log scale, log odds on the logit's."""
        return self.scale.unit or self.about.unit

    @property
    def judged_unit(self) -> str:
        """What judged differences are measured in: nats for a perplexity."""
        return self.about.unit or self.scale.unit

    def shown(self, judged: float) -> float:
        """A difference on the judged scale, in the unit that is shown; NaN where there is none."""
        return self.scale.difference(judged)

    def difference(self, verdict: Verdict) -> str:
        """`-1.30 [-1.95, -0.64]`, without the unit; the bare difference without an interval, empty without one.

        The ends are those of the judged scale, carried to the one that is shown; there the difference is not the
        middle of them.
        """
        if math.isnan(verdict.delta):
            return ""
        text = self._signed(verdict.delta)
        if math.isnan(verdict.half_width):
            return text
        return f"{text} [{self._signed(verdict.lower)}, {self._signed(verdict.upper)}]"

    def change(self, verdict: Verdict) -> str:
        """`-1.30 %`: the difference alone, with its unit."""
        return f"{self._signed(verdict.delta)} {self.unit}".rstrip()

    def _signed(self, judged: float) -> str:
        shown = self.shown(judged)
        if math.isinf(shown):
            return f"{shown:+.0f}".replace("inf", "∞")
        return f"{round(shown, self.scale.digits) + 0.0:+,.{self.scale.digits}f}"  # no -0.00

    def amount(self, judged: float) -> str:
        """A size on the judged scale, with its unit: `0.89 % (0.0089 nats)`."""
        own = f"{_figure(judged)} {self.judged_unit}".rstrip()
        return f"{self.size(judged)} ({own})" if self.unit == "%" else own

    def size(self, judged: float) -> str:
        """A size on the judged scale in the unit that is shown: `0.89 %`."""
        return f"{_figure(self.shown(judged))} {self.unit}".rstrip()


def _figure(x: float) -> str:
    """Two or three digits that say something."""
    if math.isinf(x):
        return "∞"
    return (
        f"{x:,.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(x) >= 0.1 else f"{x:.2g}" if abs(x) < 0.001 else f"{x:.4f}"
    )


def shown_metrics(manifest: Manifest) -> tuple[str, list[str]]:
    """The metric that carries the verdicts, as it is shown, and the other columns by name."""
    shown = shown_for(manifest.primary, manifest.columns)
    return shown, [name for name in manifest.columns if name != shown]


def excess_of(results: Results, metric: str) -> str:
    """The metric that says how far an NLL or a perplexity is from the best possible; empty where that is not known."""
    split, _, kind = metric.partition("/")
    name = f"{split}/excess"
    return name if kind in ("nll", "ppl") and any(results.values(name).values()) else ""


def judged_beside(manifest: Manifest) -> list[str]:
    """The other columns that seeds move, so that they are judged too."""
    # An excess is its NLL less the same number in every row: the differences are the same ones.
    again = manifest.primary.removesuffix("/nll") + "/excess"
    _, others = shown_metrics(manifest)
    return [name for name in others if name in METRICS and METRICS[name].noisy and name != again]


def judge_all(results: Results) -> list[Judged]:
    """Every metric of a sweep that seeds move, the primary first."""
    return [judge_primary(results), *(judge_metric(results, name) for name in judged_beside(results.manifest))]


def judge_primary(results: Results) -> Judged:
    """The metric that carries the verdicts, by the whole protocol."""
    manifest = results.manifest
    shown, _ = shown_metrics(manifest)
    return replace(judge_metric(results, shown, delta=manifest.delta), declared=manifest.primary, primary=True)


def judge_metric(
    results: Results,
    metric: str,
    *,
    design: Design | None = None,
    baseline: str | None = None,
    alpha: float = 0.05,
    delta: float | None = None,
) -> Judged:
    """One metric, in the table's own design unless another is named; a grid's is its own alone."""
    design = design or results.manifest.design
    about = METRICS[metric]
    scale = scale_for(about, results)
    values = judged_values(results.values(metric), scale)
    verdicts = judge(
        values,
        design=design,
        baseline=baseline,
        slices=results.slices if design == "grid" else None,
        scale=scale,
        lower_is_better=about.lower_is_better,
        alpha=alpha,
        delta=delta,
        looks=results.manifest.all_looks,
    )
    return Judged(metric, metric, scale, values, verdicts, primary=False)


def scale_for(metric: Metric, results: Results) -> Scale:
    """The scale that a metric declares; a logit's number of items is the one that the runs counted."""
    if metric.items is not None:
        counted = (int(n) for seeds in results.values(metric.items).values() for n in seeds.values() if n > 0)
        return Logit(next(counted, 1))
    return Log() if metric.scale == "log" else Identity()
