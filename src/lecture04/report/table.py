"""One model of a comparison table; terminal, Markdown, LaTeX and HTML are its faces.

Each row is compared with its reference by the whole protocol of docs/statistics.md. The primary metric carries the
verdicts; the other judged metrics show their bands.
"""

import math
from collections.abc import Sequence

from lecture04.config import resolve as settle
from lecture04.records.metrics import METRICS
from lecture04.records.record import Status
from lecture04.report.comparison import Judged, judge_all, shown_metrics
from lecture04.report.legend import legend, others_legend
from lecture04.report.model import Cell, Column, Kind, Note, Table
from lecture04.report.results import Results
from lecture04.stats import Verdict

__all__ = ["Cell", "Column", "Note", "Table", "build"]

AGAINST = {"star": "vs {first}", "step": "vs row before", "total": "vs {first}", "grid": "vs slice's first"}
NOISY, MISMATCHED = "~", "!"
SMALLEST_P = 1e-4


def build(results: Results, judged: Sequence[Judged] | None = None) -> list[Table]:
    """The table with the verdicts and, where other judged columns are asked for, that of their differences.

    `judged`: `judge_all` of the results, where it is known already.
    """
    primary, *others = judge_all(results) if judged is None else judged
    _, shown = shown_metrics(results.manifest)
    columns = [
        Column("row", "row"),
        Column(f"{primary.about.heading} (n)", "mean", primary.metric, block="verdict"),
        *(column for family in primary.families for column in _verdict_columns(results, primary, family)),
        *(column for family in primary.families for column in _detail_columns(results, primary, family)),
        *(Column(METRICS[name].heading, "metric", name, block=name) for name in shown),
        *(Column(f"seed {seed}", "seed", primary.metric, seed=seed, block="seeds") for seed in results.seeds),
    ]
    rows = [[_cell(results, primary, row, column) for column in columns] for row in results.rows]
    main = Table(
        results.manifest["title"], columns, rows, legend(results, primary), _breaks(results), results.manifest["name"]
    )
    second = _other_differences(results, others)
    return [main, second] if second else [main]


def _verdict_columns(results: Results, judged: Judged, family: str) -> list[Column]:
    """What answers the question: the difference and the verdict, side by side however narrow the page."""
    block = "total" if family == "total" else "verdict"
    return [
        Column(_against(results, judged, family), "difference", judged.metric, family, block=block),
        Column(_in_family("verdict", family), "verdict", judged.metric, family, block=block),
    ]


def _detail_columns(results: Results, judged: Judged, family: str) -> list[Column]:
    kinds: list[tuple[Kind, str]] = [("p_table", "p table"), ("p_own", "p own"), ("agree", "seeds agree")]
    if results.manifest["delta"] is not None:
        kinds.append(("margin_seeds", "seeds for margin"))
    kinds.append(("seeds_needed", "seeds needed"))
    block = f"{family} details"
    return [Column(_in_family(text, family), kind, judged.metric, family, block=block) for kind, text in kinds]


def _in_family(heading: str, family: str) -> str:
    """A heading, with the family where the table has two."""
    return f"{family}: {heading}" if family in ("step", "total") else heading


def _against(results: Results, judged: Judged, family: str) -> str:
    """The heading of a column of differences, with their unit."""
    text = _in_family(AGAINST[family].format(first=results.rows[0]), family)
    return f"{text}, {judged.unit}" if judged.unit else text


def _breaks(results: Results) -> tuple[int, ...]:
    slices = results.slices
    if slices is None:
        return ()
    return tuple(i for i in range(1, len(results.rows)) if slices[results.rows[i]] != slices[results.rows[i - 1]])


def _cell(results: Results, judged: Judged, row: str, column: Column) -> Cell:
    if column.kind == "row":
        noisy = any(row in v.set_aside for v in judged.verdicts)
        return Cell(row, mark=NOISY if noisy else "")
    if column.kind == "mean":
        return _primary_mean(results, judged, row)
    if column.kind == "metric":
        return _mean(results, row, column.metric)
    if column.kind == "seed":
        assert column.seed is not None
        return _one(results, row, column.seed, column.metric)
    verdict = judged.of(row, column.family)
    if verdict is None:
        return Cell(_reference(results, row, column.family) if column.kind == "verdict" else "")
    return _said(judged, verdict, column.kind)


def _reference(results: Results, row: str, family: str) -> str:
    """What a row is that nothing is said of: the one that others are compared with."""
    return "start" if family in ("step", "total") else "baseline"


def _said(judged: Judged, v: Verdict, kind: Kind) -> Cell:
    """One figure of a verdict."""
    if kind == "difference":
        return difference_cell(judged, v)
    if kind == "verdict":
        return Cell(v.verdict, verdict=v)
    if kind == "agree":
        return Cell(f"{v.favour} of {v.pairs}", v.favour, v) if v.pairs else Cell(verdict=v)
    if kind in ("p_table", "p_own"):
        p = v.p_table if kind == "p_table" else v.p_own
        return Cell(_p(p), _known(p), v)
    if kind == "margin_seeds":
        return Cell(seeds_text(v.seeds_for_margin), _known(v.seeds_for_margin), v)
    assert kind == "seeds_needed", kind
    n, least, most = v.seeds_needed
    ends = f" ({seeds_text(least)} to {seeds_text(most)})" if not math.isnan(n) else ""
    return Cell(seeds_text(n) + ends, _known(n), v)


def difference_cell(judged: Judged, v: Verdict) -> Cell:
    """A difference with its band, marked where one of its two rows is set aside as noisy."""
    value = None if math.isnan(v.delta) else judged.shown(v.delta)
    return Cell(judged.difference(v), value, v, NOISY if v.set_aside and value is not None else "")


def seeds_text(n: float) -> str:
    """A number of seeds; nothing where none can be said."""
    return "" if math.isnan(n) else "∞" if math.isinf(n) else f"{n:,}"


def _p(p: float) -> str:
    return "" if math.isnan(p) else f"<{SMALLEST_P:.4f}" if p < SMALLEST_P else f"{p:.4f}"


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _primary_mean(results: Results, judged: Judged, row: str) -> Cell:
    """The mean with the number of its seeds, and of those asked for where some are not there."""
    cell = _mean(results, row, judged.metric)
    there, asked = len(judged.values[row]), len(results.manifest["rows"][row]["runs"])
    if there == asked:
        return cell if cell.value is None else Cell(f"{cell.text} ({there})", cell.value)
    return Cell(f"{cell.text} ({there} of {asked})", cell.value)


def _mean(results: Results, row: str, metric: str) -> Cell:
    values = list(results.values(metric)[row].values())
    if not values:
        return Cell("-")
    if diverged := sum(map(math.isnan, values)):
        return Cell(f"diverged {diverged}/{len(values)}")
    mean = math.fsum(values) / len(values)
    text = format(mean, METRICS[metric].format)
    if metric == "d_ff":
        off = results.manifest["rows"][row]["mismatch"]
        if abs(off) > settle.MISMATCH_WARNING:
            return Cell(f"{text} ({off:+.1%})", mean, mark=MISMATCHED)
    return Cell(text, mean)


def _one(results: Results, row: str, seed: int, metric: str) -> Cell:
    status = results.status(row, seed)
    value = results.values(metric)[row].get(seed)
    if status is Status.finished and value is not None:
        return Cell(format(value, METRICS[metric].format), value)
    return Cell("-" if status in (Status.finished, Status.missing) else status.value)


def _other_differences(results: Results, others: Sequence[Judged]) -> Table | None:
    """Differences and bands of the other judged columns."""
    sides = [
        (judged, family)
        for judged in others
        for family in judged.families
        if any(not math.isnan(v.delta) for v in judged.verdicts if v.family == family)
    ]
    if not sides:
        return None
    columns = [Column("row", "row")] + [
        Column(
            f"{judged.about.heading} {_against(results, judged, family)}",
            "difference",
            judged.metric,
            family,
            block=judged.metric,
        )
        for judged, family in sides
    ]
    rows = [
        [
            Cell(row),
            *(difference_cell(judged, v) if (v := judged.of(row, family)) else Cell() for judged, family in sides),
        ]
        for row in results.rows
    ]
    title = "The other metrics' differences, uncorrected across metrics"
    name = f"{results.manifest['name']}-others"
    return Table(title, columns, rows, others_legend(others), _breaks(results), name)
