"""The comparison tables of a sweep. A column is one declaration here; text, Markdown, LaTeX and HTML render all alike.

Each row is compared with its reference by the whole protocol of docs/statistics.md. The primary metric carries the
verdicts; the other judged metrics show their bands.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lecture04.config.resolve import MISMATCH_WARNING
from lecture04.records.metrics import METRICS
from lecture04.records.record import Status
from lecture04.report.columns import DECLARED, DeclaredColumn
from lecture04.report.comparison import Judged, judge_all, shown_metrics
from lecture04.report.legend import legend, others_legend
from lecture04.report.model import Cell, Column, Table
from lecture04.report.results import Results
from lecture04.stats import Verdict

AGAINST = {"star": "vs {first}", "step": "vs row before", "total": "vs {first}", "grid": "vs slice's first"}
HIGH_VARIANCE, MISMATCHED = "~", "!"
SMALLEST_P = 1e-4


def build(results: Results, judged: Sequence[Judged] | None = None) -> list[Table]:
    """The table with the verdicts and, where other judged columns are asked for, that of their differences.

    `judged`: `judge_all` of the results, where it is known already.
    """
    primary, *others = judge_all(results) if judged is None else judged
    manifest = results.manifest
    notes = legend(results, primary)
    columns = [*columns_of_verdicts(results, primary), *asked_columns(results), *columns_of_seeds(results, primary)]
    main = Table.of(manifest.title, columns, results.rows, notes, results.breaks, manifest.name)
    second = other_differences(results, others)
    return [main, second] if second else [main]


def columns_of_verdicts(results: Results, judged: Judged, *, details: bool = True) -> Iterator[Column[str]]:
    """The rows' names and means, and all that is said of their differences; the items are the rows' names.

    `details`: False for the differences and the verdicts alone.
    """
    excluded = {row for v in judged.verdicts for row in v.excluded}
    label = judged.about.label
    yield Column("row", lambda row: Cell(row, mark=HIGH_VARIANCE if row in excluded else ""), "row")
    yield Column(f"{label} (n)", partial(_primary_mean, results, judged), "mean", block="verdict")
    said = [VERDICT] if judged.primary else []
    for family in judged.families:
        block = "total" if family == "total" else "verdict"
        yield from of_family(judged, family, [_difference_to(results, judged, family), *said], block)
    if not details:
        return
    for family in judged.families:
        shown = [detail for detail in DETAILS if detail is not SEEDS_FOR_MARGIN or results.manifest.delta is not None]
        yield from of_family(judged, family, [*shown, SEEDS_NEEDED], f"{family} details")


def asked_columns(results: Results) -> Iterator[Column[str]]:
    """The columns that `sweep.columns` names: metrics' means, and declared columns."""
    for name in shown_metrics(results.manifest)[1]:
        if name in DECLARED:
            label, cell = DECLARED[name].label, partial(_declared, results, DECLARED[name])
        else:
            label, cell = METRICS[name].label, partial(mean_cell, results, name)
        yield Column(label, cell, "metric", name, block=name)


def columns_of_seeds(results: Results, judged: Judged) -> Iterator[Column[str]]:
    """Each run's value."""
    for seed in results.seeds:
        cell = partial(_one, results, judged.metric, seed)
        yield Column(f"seed {seed}", cell, "seed", str(seed), block="seeds")


@dataclass(frozen=True)
class OfVerdict:
    """A figure of a verdict, which has a column in each family. `reference`: of the rows that have no verdict."""

    kind: str
    heading: str
    cell: Callable[[Judged, Verdict], Cell]
    reference: Callable[[str], str] = lambda family: ""


def difference_cell(judged: Judged, v: Verdict) -> Cell:
    """A difference with its band, marked where one of its two rows is excluded for its high variance."""
    value = None if math.isnan(v.delta) else judged.shown(v.delta)
    return Cell(judged.difference(v), value, v, HIGH_VARIANCE if v.excluded and value is not None else "")


def verdict_cell(judged: Judged, v: Verdict) -> Cell:
    """What is said of a difference, in words."""
    return Cell(v.verdict, verdict=v)


def seeds_for_margin_cell(judged: Judged, v: Verdict) -> Cell:
    """Seeds a row to find a difference as large as the margin."""
    return Cell(seeds_text(v.seeds_for_margin), _known(v.seeds_for_margin), v)


def seeds_needed_cell(judged: Judged, v: Verdict) -> Cell:
    """Seeds a row to find the difference seen, and the far and the near end of its interval."""
    n, least, most = v.seeds_needed
    if math.isnan(n):
        return Cell(verdict=v)
    if n == least == most:
        return Cell(seeds_text(n), _known(n), v)
    ends = f"from {seeds_text(least)}" if most > MOST_SEEDS else f"{seeds_text(least)} to {seeds_text(most)}"
    return Cell(f"{seeds_text(n)} ({ends})" if least <= MOST_SEEDS else seeds_text(n), _known(n), v)


def _agree_cell(judged: Judged, v: Verdict) -> Cell:
    return Cell(f"{v.favour} of {v.pairs}", v.favour, v) if v.pairs else Cell(verdict=v)


def _p_cell(p: float, v: Verdict) -> Cell:
    text = "" if math.isnan(p) else f"<{SMALLEST_P:.4f}" if p < SMALLEST_P else f"{p:.4f}"
    return Cell(text, _known(p), v)


VERDICT = OfVerdict(
    "verdict", "verdict", verdict_cell, lambda family: "start" if family in ("step", "total") else "baseline"
)
SEEDS_NEEDED = OfVerdict("seeds_needed", "seeds needed", seeds_needed_cell)
SEEDS_FOR_MARGIN = OfVerdict("margin_seeds", "seeds for margin", seeds_for_margin_cell)
DETAILS = (
    OfVerdict("p_adjusted", "family-adjusted p", lambda judged, v: _p_cell(v.p_adjusted, v)),
    OfVerdict("p_welch", "Welch p", lambda judged, v: _p_cell(v.p_welch, v)),
    OfVerdict("agree", "seeds agree", _agree_cell),
    SEEDS_FOR_MARGIN,
)


def _difference_to(results: Results, judged: Judged, family: str) -> OfVerdict:
    """The differences of a family; the heading names the reference and the unit."""
    text = AGAINST[family].format(first=results.rows[0])
    return OfVerdict("difference", f"{text}, {judged.unit}" if judged.unit else text, difference_cell)


def of_family(judged: Judged, family: str, figures: Sequence[OfVerdict], block: str) -> Iterator[Column[str]]:
    """A column for each figure of a family's verdicts."""
    by_row = judged.by_row(family)

    def cell(figure: OfVerdict, row: str) -> Cell:
        v = by_row.get(row)
        return figure.cell(judged, v) if v else Cell(figure.reference(family))

    for figure in figures:
        heading = _in_family(figure.heading, family)
        yield Column(heading, partial(cell, figure), figure.kind, family, block)


def _in_family(heading: str, family: str) -> str:
    """A heading, with the family where the table has two."""
    return f"{family}: {heading}" if family in ("step", "total") else heading


def _declared(results: Results, column: DeclaredColumn, row: str) -> Cell:
    value = column.value(results, row)
    if value is None or isinstance(value, str):
        return Cell(value or "-")
    return Cell("-") if math.isnan(value) else Cell(format(value, column.format), float(value))


MOST_SEEDS = 100
"""More than so many seeds a row nobody runs; how many more is not known well enough to be said."""


def seeds_text(n: float) -> str:
    """A number of seeds; nothing where none can be said."""
    return "" if math.isnan(n) else f"more than {MOST_SEEDS}" if n > MOST_SEEDS else f"{n}"


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _primary_mean(results: Results, judged: Judged, row: str) -> Cell:
    """The mean with the number of its seeds, and of those asked for where some are not there."""
    cell = mean_cell(results, judged.metric, row)
    there, asked = len(judged.values[row]), len(results.manifest.rows[row].runs)
    if there == asked:
        return cell if cell.value is None else Cell(f"{cell.text} ({there})", cell.value)
    return Cell(f"{cell.text} ({there} of {asked})", cell.value)


def mean_cell(results: Results, metric: str, row: str) -> Cell:
    """The mean of a metric over a row's seeds."""
    values = list(results.of_row(row, metric).values())
    if not values:
        return Cell("-")
    if diverged := sum(map(math.isnan, values)):
        return Cell(f"diverged {diverged}/{len(values)}")
    mean = math.fsum(values) / len(values)
    text = format(mean, METRICS[metric].format)
    if metric == "d_ff":
        off = results.manifest.rows[row].mismatch
        if abs(off) > MISMATCH_WARNING:
            return Cell(f"{text} ({off:+.1%})", mean, mark=MISMATCHED)
    return Cell(text, mean)


def _one(results: Results, metric: str, seed: int, row: str) -> Cell:
    """One run's value."""
    status = results.status(row, seed)
    value = results.of_row(row, metric).get(seed)
    if status.ended_well and value is not None:
        return Cell(format(value, METRICS[metric].format), value)
    return Cell("-" if status.ended_well or status is Status.missing else status.value)


def other_differences(results: Results, others: Sequence[Judged]) -> Table | None:
    """Differences and bands of the other judged columns."""
    columns: list[Column[str]] = [Column("row", Cell, "row")]
    for judged in others:
        for family in judged.families:
            if all(math.isnan(v.delta) for v in judged.of_family(family)):
                continue
            (column,) = of_family(judged, family, [_difference_to(results, judged, family)], judged.metric)
            heading = f"{judged.about.label} {column.heading}"
            columns.append(Column(heading, column.cell, column.kind, family, block=judged.metric))
    if len(columns) == 1:
        return None
    title = "The other metrics' differences, uncorrected across metrics"
    name = f"{results.manifest.name}-others"
    return Table.of(title, columns, results.rows, others_legend(others), results.breaks, name)
