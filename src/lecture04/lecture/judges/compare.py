"""Reading differences and their verdicts out of a sweep, by the protocol of the tables (lecture04.stats)."""

import math
from dataclasses import dataclass

from lecture04.lecture.claims import claim
from lecture04.lecture.evidence import NotYetError, numbers
from lecture04.records.metrics import METRICS
from lecture04.report.comparison import judge_metric
from lecture04.report.results import Results
from lecture04.stats import Design, FamilyName, Scale

APART = ("better", "worse")
ALPHA = 0.05  # of every table, for all its differences together


def lecture_noise() -> float:
    """The share of a perplexity by which two of the lecture's seeds differ."""
    return float(claim("seed_noise").lecture) / float(claim("standard_model").lecture)


@dataclass(frozen=True)
class Difference:
    """One difference of a table, row - reference, on the judged scale, with the protocol's verdict."""

    row: str
    reference: str
    family: FamilyName
    delta: float
    half_width: float
    verdict: str
    scale: Scale

    @property
    def is_apart(self) -> bool:
        """Whether the two rows are told apart."""
        return self.verdict in APART

    @property
    def is_open(self) -> bool:
        """Whether more seeds are needed to decide."""
        return self.verdict in ("unconfirmed", "single run")

    def holds(self, *, above: bool) -> bool | None:
        """Whether the row is told apart as above (or below) its reference; None where more seeds are needed.

        A mean on the other side does not hold, nor does a row that diverged or whose reference did.
        """
        if self.verdict == "single run":
            return None
        if math.isnan(self.delta) or (self.delta > 0) != above:
            return False
        return None if self.is_open else self.is_apart

    def is_not(self, *, above: bool) -> bool | None:
        """Whether the row is not told apart as above (or below) its reference; None where more seeds are needed."""
        if self.verdict == "single run":
            return None
        if math.isnan(self.delta):
            return False
        if (self.delta > 0) != above:
            return True
        return None if self.is_open else not self.is_apart

    @property
    def is_within_noise(self) -> bool | None:
        """Whether the two are not told apart; None where more seeds are needed, False where one of them diverged."""
        if math.isnan(self.delta):
            return False
        return None if self.is_open else not self.is_apart

    def written(self) -> str:
        """`+1.02 [+0.35, +1.70] %`, the interval by its two ends on the shown scale."""
        if math.isnan(self.delta):
            return self.verdict
        digits, unit = (2, f" {self.scale.unit}") if self.scale.unit else (4, "")
        shown = [self.scale.difference(self.delta + sign * self.half_width) for sign in (-1, 1)]
        ends = "" if math.isnan(self.half_width) else f" [{shown[0]:+.{digits}f}, {shown[1]:+.{digits}f}]"
        return f"{self.scale.difference(self.delta):+.{digits}f}{ends}{unit}"

    def beside_the_lecture(self) -> str:
        """A difference of perplexities beside what two of the lecture's seeds differed by; empty without a figure."""
        if math.isnan(self.delta):
            return ""
        noise = lecture_noise()
        how = "more" if abs(self.delta) > noise else "less"
        return f"{how} than the {noise:.1%} by which two of the lecture's seeds differed"

    def described(self) -> str:
        """`RMSNorm against LayerNorm +1.02 [+0.35, +1.70] %`."""
        return f"{self.row} against {self.reference} {self.written()}"


def judged(
    results: Results, metric: str, design: Design, *, baseline: str | None = None, alpha: float = ALPHA
) -> list[Difference]:
    """A table's differences under a design, each with its verdict.

    An NLL is shown as a change of its perplexity, in percent. Raises NotYetError for an accuracy of unknown items.
    """
    as_ppl = metric.removesuffix("nll") + "ppl"
    if metric.endswith("/nll") and as_ppl in METRICS and any(results.values(as_ppl).values()):
        metric = as_ppl
    items = METRICS[metric].items
    if items and not any(results.values(items).values()):
        raise NotYetError(f"sweep {results.manifest.name} has no {items}")
    found = judge_metric(results, metric, design=design, baseline=baseline, alpha=alpha)
    return [
        Difference(v.row, v.reference, v.family, v.delta, v.half_width, v.verdict, found.scale) for v in found.verdicts
    ]


def family(results: Results, metric: str, name: FamilyName) -> list[Difference]:
    """The steps ("step") or the totals ("total") of a path. Raises NotYetError where a run is missing."""
    numbers(results, metric)
    return [d for d in judged(results, metric, "path") if d.family == name]


def difference(results: Results, metric: str, row: str, reference: str) -> Difference:
    """row - reference, by the table's own design where it has this contrast, else in a star round the reference.

    Raises NotYetError where a run of either is missing.
    """
    numbers(results, metric, row, reference)
    design = results.manifest.design
    own = judged(results, metric, design) if design != "path" else []
    for d in [*own, *judged(results, metric, "star", baseline=reference)]:
        if (d.row, d.reference) == (row, reference):
            return d
    raise NotYetError(f"sweep {results.manifest.name} does not compare {row!r} with {reference!r}")


def all_pairs(results: Results, metric: str, *rows: str) -> list[Difference]:
    """Every two of these rows, all together at 95 %: a star round each row but the last, each at an equal share of 5 %.

    Raises NotYetError where a run is missing.
    """
    numbers(results, metric, *rows)
    found: list[Difference] = []
    for i, reference in enumerate(rows[:-1]):
        star = judged(results, metric, "star", baseline=reference, alpha=ALPHA / (len(rows) - 1))
        found += [d for d in star if d.row in rows[i + 1 :]]
    return found
