"""Every table that a page can show: each metric against each baseline, judged by the protocol when the page is made.

The page's script switches between these. It computes nothing, so that what it shows is what `judge` says.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from lecture04.records.metrics import METRICS
from lecture04.records.record import Status
from lecture04.report.comparison import Judged, judge_primary, shown_metrics
from lecture04.report.figures import data
from lecture04.report.figures.style import LOOKS, kind
from lecture04.report.model import Column, Kind, Table
from lecture04.report.results import Results
from lecture04.report.table import build
from lecture04.stats.verdict import Seeds

MOST_CONTRASTS = 12_000
"""Contrasts in one page; a hundred bytes each."""
MOST_POWER = 300
"""Contrasts for which the seeds needed are worked out, some 15 ms each."""
OWN_KINDS = set(get_args(Kind)) - {"metric", "text"}
"""What stands in the table of the chosen metric; its other columns do not depend on the choice."""
FIRST = {"row": 0, "difference": 1, "verdict": 1, "mean": 2}
AGAINST = {"star": "{first}", "step": "the row before", "total": "{first}", "grid": "the slice's first row"}


@dataclass(frozen=True)
class Remembered(Results):
    """Results that look each metric up once: a page asks for the same few thousands of times."""

    known: Mapping[str, Mapping[str, dict[int, float]]]
    statuses: Mapping[tuple[str, int], Status]

    @classmethod
    def of(cls, results: Results) -> "Remembered":
        """The same results."""
        known = {str(metric): results.values(str(metric)) for metric in results.runs.metric.unique() if metric}
        runs = results.runs
        statuses = {(row, seed): Status(status) for row, seed, status in zip(runs.row, runs.seed, runs.status)}  # noqa: B905
        return cls(results.folder, results.manifest, results.runs, known, statuses)

    def values(self, metric: str) -> dict[str, dict[int, float]]:
        """As `Results.values`."""
        of_metric = self.known.get(metric, {})
        return {row: of_metric.get(row, {}) for row in self.rows}

    def status(self, row: str, seed: int) -> Status:
        """As `Results.status`."""
        return self.statuses.get((row, seed), Status.missing)

    def chosen(self, metric: str, baseline: str) -> "Remembered":
        """The same sweep, had it declared this metric as its primary and this row as its first."""
        primary = metric == shown_metrics(self.manifest)[0]
        rows = self.manifest["rows"]
        first = {baseline: rows[baseline]}
        chosen = {"rows": first | rows} if baseline != self.rows[0] else {}
        if not primary:  # a margin is declared for the primary metric, on its scale
            chosen |= {"primary": metric, "delta": None}
        return replace(self, manifest=self.manifest | chosen)


def choices(results: Results) -> tuple[list[str], list[str]]:
    """The metrics and the baselines that can be chosen; of a path and of a grid the baseline is given."""
    shown, others = shown_metrics(results.manifest)
    measured = set(results.runs.metric)
    metrics = [shown, *(name for name in others if METRICS[name].judged and name in measured)]
    return metrics, results.rows if results.manifest["design"] == "star" else results.rows[:1]


def combinations(results: Results) -> Iterator[tuple[str, str]]:
    """Every (metric, baseline) of a page.

    In a table of very many rows, other baselines than its own are there for the primary metric alone, or not at all.
    """
    metrics, baselines = choices(results)
    each = len(results.rows) * len(baselines)
    for metric in metrics:
        all_fit = each * (len(metrics) if metric != metrics[0] else 1) <= MOST_CONTRASTS
        yield from ((metric, baseline) for baseline in (baselines if all_fit else baselines[:1]))


def views(results: Remembered) -> dict[str, dict[str, Any]]:
    """{"metric|number of the baseline's row": what the page shows of it}."""
    wanted = list(combinations(results))
    all_powers = len(wanted) * len(results.rows) <= MOST_POWER
    order = {row: i for i, row in enumerate(results.rows)}
    found = {}
    for metric, baseline in wanted:
        chosen = results.chosen(metric, baseline)
        judged = judge_primary(chosen)
        powers = all_powers or baseline == results.rows[0]
        if not powers:
            for v in judged.verdicts:  # where a cached property keeps what it has worked out
                vars(v)["seeds_needed"] = Seeds(math.nan, math.nan, math.nan)
        found[f"{metric}|{order[baseline]}"] = _view(results, chosen, judged, powers=powers)
    return found


def _view(results: Remembered, chosen: Remembered, judged: Judged, *, powers: bool) -> dict[str, Any]:
    table = build(chosen, [judged])[0]
    columns = own_columns(table)
    place = {row: i for i, row in enumerate(chosen.rows)}
    notes = [[note.term, note.text] for note in table.legend]
    if judged.metric != shown_metrics(results.manifest)[0]:
        text = "chosen on this page; the table's verdicts are those of its primary metric. Uncorrected across metrics"
        notes.insert(0, [judged.about.heading, text])
    if not powers:
        notes.append(["", "Seeds needed are worked out against the table's own baseline alone."])
    against = {family: AGAINST[family].format(first=chosen.rows[0]) for family in judged.families}
    said = counts(judged)
    return {
        "caption": _caption(results, judged, chosen.rows[0]),
        "summary": " ".join(f"Against {against[family]}: {in_words(of_family)}." for family, of_family in said.items()),
        "against": against,
        "breaks": table.breaks,
        "columns": [[column_id(column), column.heading] for _, column in columns],
        "cells": [[str(table.rows[place[row]][i]) for i, _ in columns] for row in results.rows],
        "notes": notes,
        "forest": {family: _forest(results, judged, family) for family in judged.families},
        "margins": rounded(data.margins(judged)),
        "heading": judged.about.heading,
        "unit": judged.unit,
    }


def _caption(results: Results, judged: Judged, first: str) -> str:
    design = results.manifest["design"]
    against = {"star": f"each row against {first}", "path": "each row against the one before, and against the first"}
    how = against.get(design, "each row against its slice's first")
    return f"{judged.about.heading}, {how}; n is the number of seeds"


def in_words(verdicts: Mapping[str, int]) -> str:
    """`1 better, 4 within noise`."""
    return ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())


def own_columns(table: Table) -> list[tuple[int, Column]]:
    """The columns that depend on the choice, each with its place in the table; first what a phone has room for."""
    own = [(i, column) for i, column in enumerate(table.columns) if column.kind in OWN_KINDS]
    return sorted(own, key=lambda place: FIRST.get(place[1].kind, len(FIRST)))


def column_id(column: Column) -> str:
    """What tells a column from the others, whatever is chosen."""
    return ":".join(filter(None, [column.kind, column.family, "" if column.seed is None else str(column.seed)]))


def counts(judged: Judged) -> dict[str, dict[str, int]]:
    """{family: {verdict, without its own counts: how many}}, in the order of `LOOKS`."""
    return {
        family: {
            word: n
            for word in LOOKS
            if (n := sum(kind(v.verdict) == word for v in judged.verdicts if v.family == family))
        }
        for family in judged.families
    }


def _forest(results: Results, judged: Judged, family: str) -> list[list[Any]]:
    """[row, reference, value, low, high, noise_low, noise_high, verdict] of each contrast, rows by their number."""
    place = {row: i for i, row in enumerate(results.rows)}
    return [
        [place[i.row], place[i.reference], *rounded([i.value, i.low, i.high, i.noise_low, i.noise_high]), i.verdict]
        for i in data.forest(judged, family)
    ]


def metric_data(results: Remembered, metric: str) -> dict[str, Any]:
    """What the plots show of a metric, whatever the baseline: its seeds, and a path's waterfall."""
    judged = judge_primary(results.chosen(metric, results.rows[0]))
    raw = results.values(metric)
    return {
        "heading": judged.about.heading,
        "unit": judged.unit,
        "seeds": [[[seed, *rounded([value])] for seed, value in sorted(raw[row].items())] for row in results.rows],
        "waterfall": [[*rounded([s.start, s.end, s.low, s.high]), s.verdict] for s in data.waterfall(judged)],
    }


def rounded(values: list[float]) -> list[float | None]:
    """Six digits, enough to draw; None for what JSON has no word for."""
    return [float(f"{x:.6g}") if math.isfinite(x) else None for x in values]
