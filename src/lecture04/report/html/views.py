"""Every table that a page can show: each metric against each baseline, judged by the protocol when the page is made.

The page's script switches between these. It computes nothing, so that what it shows is what `judge` says. The table's
own metric and baseline carry the verdicts. Against another baseline a word of caution stands beside them, since each is
one more look at the same seeds; another metric shows intervals alone.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from lecture04.records.metrics import METRICS
from lecture04.report.comparison import Judged, excess_of, judge_metric, judge_primary, judged_beside, shown_metrics
from lecture04.report.figures import data
from lecture04.report.legend import legend, others_legend
from lecture04.report.model import Column, Note, Table
from lecture04.report.results import Results
from lecture04.report.table import columns_of_seeds, columns_of_verdicts, mean_cell

MOST_CONTRASTS = 5_000
"""Contrasts in one page; two hundred bytes each."""
AGAINST = {"star": "{first}", "step": "the row before", "total": "{first}", "grid": "the slice's first row"}
NO_VERDICTS = "Uncorrected across metrics: no verdicts."


@dataclass(frozen=True)
class View:
    """One choice: the sweep, had it this metric alone and this row as its first, and what is said of it then."""

    results: Results
    judged: Judged
    baseline: str

    @property
    def is_own(self) -> bool:
        """Whether it is what the table declares."""
        return self.judged.primary and self.baseline == self.results.rows[0]

    @cached_property
    def chosen(self) -> Results:
        """The same runs, with the baseline as the first row."""
        return under(self.results, self.baseline)


def under(results: Results, baseline: str) -> Results:
    """The same sweep, had it declared this row as its first."""
    manifest = results.manifest
    if baseline == results.rows[0]:
        return results
    return results.under(replace(manifest, rows={baseline: manifest.rows[baseline], **manifest.rows}))


def choices(results: Results) -> tuple[list[str], list[str]]:
    """The metrics and the baselines that can be chosen; of a path and of a grid the baseline is given."""
    primary, _ = shown_metrics(results.manifest)
    others = [name for name in judged_beside(results.manifest) if any(results.values(name).values())]
    metrics = [primary, *others]
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


def views(results: Results) -> dict[str, View]:
    """{"metric|number of the baseline's row": that view}, the table's own first."""
    order = {row: i for i, row in enumerate(results.rows)}
    primary, _ = shown_metrics(results.manifest)
    found = {}
    for metric, baseline in combinations(results):
        chosen = under(results, baseline)
        judged = judge_primary(chosen) if metric == primary else judge_metric(chosen, metric)
        found[f"{metric}|{order[baseline]}"] = View(results, judged, baseline)
    return found


def shown(view: View) -> dict[str, Any]:
    """What the page shows of a view."""
    results, judged = view.results, view.judged
    table = Table.of("", list(_columns(view)), view.chosen.rows)
    place = {row: i for i, row in enumerate(view.chosen.rows)}
    against = {family: AGAINST[family].format(first=view.baseline) for family in judged.families}
    return {
        "caption": _caption(view),
        "remark": _remark(view),
        "against": against,
        "breaks": results.breaks,
        "columns": [[column.id, column.heading, _css_class(column)] for column in table.columns],
        "cells": [[str(cell) for cell in table.rows[place[row]]] for row in results.rows],
        "notes": [(note.term, note.text) for note in _notes(view)],
        "forest": {family: _forest(results, judged, family) for family in judged.families},
        "dots": {family: data.dots_in_words(judged, family, against[family]) for family in judged.families},
        "margins": rounded(data.margins(judged)),
        "heading": judged.about.label,
        "unit": judged.unit,
        "better": data.side_of_better(judged.about),
    }


def _columns(view: View) -> Iterator[Column[str]]:
    """As on the first screen; the details, whose figures take some ten milliseconds each, in the table's own view."""
    excess = excess_of(view.results, view.judged.metric)
    for column in columns_of_verdicts(view.chosen, view.judged, details=view.is_own):
        yield column
        if column.kind == "mean" and excess:
            yield Column("excess, nats", partial(mean_cell, view.results, excess), "excess")
    if view.baseline == view.results.rows[0]:  # the same for every other
        yield from columns_of_seeds(view.chosen, view.judged)


def _css_class(column: Column[str]) -> str:
    """What the cells of a column are called in the page: their kind, and `total` for what a narrow one leaves out."""
    return f"{column.kind} total" if column.of == "total" else column.kind


def _notes(view: View) -> list[Note]:
    if view.judged.primary:
        return legend(view.chosen, view.judged)
    return others_legend([view.judged])


def _remark(view: View) -> str:
    """What must be known of a choice that the table did not declare; empty for its own."""
    own = view.results.rows[0]
    if not view.judged.primary:
        primary = METRICS[shown_metrics(view.results.manifest)[0]].label
        text = f"{NO_VERDICTS} Those of this table are of its primary metric, {primary}."
        return text if view.baseline == own else f"{text} The table's own baseline is {own}."
    if view.baseline == own:
        return ""
    return (
        f"Chosen on this page: the table declares {own} as its baseline, and its verdicts are those against {own}. To "
        "look under one more baseline is one more look at the same seeds, and each look makes a false call likelier."
    )


def _caption(view: View) -> str:
    against = {
        "star": f", each row against {view.baseline}",
        "path": ", each row against the one before, and against the first",
        "grid": ", each row against its slice's first",
    }
    how = against[view.results.manifest.design] if view.judged.verdicts else ""
    return f"{data.with_direction(view.judged.about)}{how}; n is the number of seeds"


def _forest(results: Results, judged: Judged, family: str) -> list[list[Any]]:
    """[row, reference, value, low, high, noise_low, noise_high, verdict, [[seed, its difference], ...]] a contrast.

    Rows by their number; the verdict is empty where the metric carries none.
    """
    place = {row: i for i, row in enumerate(results.rows)}
    return [
        [
            place[v.row],
            place[v.reference],
            *rounded([judged.shown(x) for x in (v.delta, v.lower, v.upper, -v.half_width, v.half_width)]),
            v.verdict if judged.primary else "",
            [[seed, *rounded([value])] for seed, value in data.seed_differences(judged, v).items()],
        ]
        for v in judged.of_family(family)
    ]


def metric_data(view: View) -> dict[str, Any]:
    """What the plots show of a metric, whatever the baseline: its seeds, a path's waterfall, a grid's line ends."""
    results, judged = view.results, view.judged
    raw = results.values(judged.metric)
    return {
        "heading": data.with_direction(judged.about),
        "seeds": [[[seed, *rounded([value])] for seed, value in sorted(raw[row].items())] for row in results.rows],
        "waterfall": [
            [*rounded([s.start, s.end, s.low, s.high]), s.verdict if judged.primary else ""]
            for s in data.waterfall(judged)
        ],
        "grid": _grid_ends(results, judged),
    }


def _grid_ends(results: Results, judged: Judged) -> dict[str, Any]:
    """What the y axis of a grid's lines shows, and {name of a line: where it ends and its label's place}."""
    by_row = data.grid(results, judged)
    values = [x for by_slice in by_row.values() for runs in by_slice.values() for x in runs if math.isfinite(x)]
    if not values:
        return {}
    low, high = min(values), max(values)
    space = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = low - space, high + space
    last = list(dict.fromkeys((results.slices or {}).values()))[-1]
    ends = {row: sum(runs) / len(runs) for row, by_slice in by_row.items() if (runs := by_slice.get(last))}
    ends = {row: mean for row, mean in ends.items() if math.isfinite(mean)}
    places = data.label_places(list(ends.values()), low, high)
    found = {row: rounded([mean, place]) for (row, mean), place in zip(ends.items(), places, strict=True)}
    return {"range": rounded([low, high]), "ends": found}


def rounded(values: list[float]) -> list[float | None]:
    """Five digits, enough to draw; None for what JSON has no word for."""
    return [float(f"{x:.5g}") if math.isfinite(x) else None for x in values]
