"""Every table that a page can show: each metric against each baseline, judged by the protocol when the page is made.

The page's script switches between these. It computes nothing, so that what it shows is what `judge` says.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lecture04.records.metrics import METRICS
from lecture04.report.comparison import Judged, judge_primary, shown_metrics
from lecture04.report.figures import data
from lecture04.report.figures.style import LOOKS, kind
from lecture04.report.results import Results
from lecture04.report.table import judged_table

MOST_CONTRASTS = 12_000
"""Contrasts in one page; a hundred bytes each."""
MOST_POWER = 300
"""Contrasts for which the seeds needed are worked out, some 15 ms each."""
FIRST = {"row": 0, "difference": 1, "verdict": 1, "mean": 2}
AGAINST = {"star": "{first}", "step": "the row before", "total": "{first}", "grid": "the slice's first row"}


def choose(results: Results, metric: str, baseline: str) -> Results:
    """The same sweep, had it declared this metric as its primary and this row as its first."""
    manifest = results.manifest
    if baseline != results.rows[0]:
        manifest = replace(manifest, rows={baseline: manifest.rows[baseline], **manifest.rows})
    if metric != shown_metrics(manifest)[0]:  # a margin is declared for the primary metric, on its scale
        manifest = replace(manifest, primary=metric, delta=None)
    return results.under(manifest)


def choices(results: Results) -> tuple[list[str], list[str]]:
    """The metrics and the baselines that can be chosen; of a path and of a grid the baseline is given."""
    shown, others = shown_metrics(results.manifest)
    noisy = [name for name in others if name in METRICS and METRICS[name].noisy]
    metrics = [shown, *(name for name in noisy if any(results.values(name).values()))]
    return metrics, results.rows if results.manifest.design == "star" else results.rows[:1]


def combinations(results: Results) -> Iterator[tuple[str, str]]:
    """Every (metric, baseline) of a page.

    In a table of very many rows, other baselines than its own are there for the primary metric alone, or not at all.
    """
    metrics, baselines = choices(results)
    each = len(results.rows) * len(baselines)
    for metric in metrics:
        all_fit = each * (len(metrics) if metric != metrics[0] else 1) <= MOST_CONTRASTS
        yield from ((metric, baseline) for baseline in (baselines if all_fit else baselines[:1]))


def views(results: Results) -> dict[str, dict[str, Any]]:
    """{"metric|number of the baseline's row": what the page shows of it}."""
    wanted = list(combinations(results))
    all_powers = len(wanted) * len(results.rows) <= MOST_POWER
    order = {row: i for i, row in enumerate(results.rows)}
    found = {}
    for metric, baseline in wanted:
        chosen = choose(results, metric, baseline)
        judged = judge_primary(chosen)
        powers = all_powers or baseline == results.rows[0]
        found[f"{metric}|{order[baseline]}"] = _view(results, chosen, judged, powers=powers)
    return found


def _view(results: Results, chosen: Results, judged: Judged, *, powers: bool) -> dict[str, Any]:
    table = judged_table(chosen, judged, seeds_needed=powers)
    # First what a phone has room for.
    columns = sorted(enumerate(table.columns), key=lambda place: FIRST.get(place[1].kind, len(FIRST)))
    place = {row: i for i, row in enumerate(chosen.rows)}
    notes = [[note.term, note.text] for note in table.legend]
    if judged.metric != shown_metrics(results.manifest)[0]:
        text = "chosen on this page; the table's verdicts are those of its primary metric. Uncorrected across metrics"
        notes.insert(0, [judged.about.label, text])
    if not powers:
        notes.append(["", "Seeds needed are worked out against the table's own baseline alone."])
    against = {family: AGAINST[family].format(first=chosen.rows[0]) for family in judged.families}
    said = count_verdicts(judged)
    return {
        "caption": _caption(results, judged, chosen.rows[0]),
        "summary": " ".join(f"Against {against[family]}: {in_words(of_family)}." for family, of_family in said.items()),
        "against": against,
        "breaks": table.breaks,
        "columns": [[column.id, column.heading] for _, column in columns],
        "cells": [[str(table.rows[place[row]][i]) for i, _ in columns] for row in results.rows],
        "notes": notes,
        "forest": {family: _forest(results, judged, family) for family in judged.families},
        "margins": rounded(data.margins(judged)),
        "heading": judged.about.label,
        "unit": judged.unit,
    }


def _caption(results: Results, judged: Judged, first: str) -> str:
    design = results.manifest.design
    against = {"star": f"each row against {first}", "path": "each row against the one before, and against the first"}
    how = against.get(design, "each row against its slice's first")
    return f"{judged.about.label}, {how}; n is the number of seeds"


def in_words(verdicts: Mapping[str, int]) -> str:
    """`1 better, 4 within noise`."""
    return ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())


def count_verdicts(judged: Judged) -> dict[str, dict[str, int]]:
    """{family: {verdict, without its own counts: how many}}, in the order of `LOOKS`."""
    return {
        family: {word: n for word in LOOKS if (n := sum(kind(v.verdict) == word for v in judged.of_family(family)))}
        for family in judged.families
    }


def _forest(results: Results, judged: Judged, family: str) -> list[list[Any]]:
    """[row, reference, value, low, high, noise_low, noise_high, verdict] of each contrast, rows by their number."""
    place = {row: i for i, row in enumerate(results.rows)}
    return [
        [
            place[v.row],
            place[v.reference],
            *rounded([judged.shown(x) for x in (v.delta, v.lower, v.upper, -v.half_width, v.half_width)]),
            v.verdict,
        ]
        for v in judged.of_family(family)
    ]


def metric_data(results: Results, metric: str) -> dict[str, Any]:
    """What the plots show of a metric, whatever the baseline: its seeds, and a path's waterfall."""
    judged = judge_primary(choose(results, metric, results.rows[0]))
    raw = results.values(metric)
    return {
        "heading": judged.about.label,
        "unit": judged.unit,
        "seeds": [[[seed, *rounded([value])] for seed, value in sorted(raw[row].items())] for row in results.rows],
        "waterfall": [[*rounded([s.start, s.end, s.low, s.high]), s.verdict] for s in data.waterfall(judged)],
    }


def rounded(values: list[float]) -> list[float | None]:
    """Six digits, enough to draw; None for what JSON has no word for."""
    return [float(f"{x:.6g}") if math.isfinite(x) else None for x in values]
