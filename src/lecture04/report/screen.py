"""The first screen of a table: the answer, the columns that it stands on, and what one must know to read them.

Everything else is in table.md, in the page, and on the terminal with table.verbose=true.
"""

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import partial

from lecture04.records.record import Status
from lecture04.report.answer import answer, short
from lecture04.report.comparison import Judged, excess_of
from lecture04.report.model import Column, Note, Table
from lecture04.report.results import Results
from lecture04.report.table import (
    HIGH_VARIANCE,
    MISMATCHED,
    SEEDS_NEEDED,
    columns_of_verdicts,
    mean_cell,
    of_family,
)
from lecture04.report.text import one_block, side_by_side, terminal_width

LONG_NAME = 16
"""Signs of a row's name that a heading has room for."""


def screen(results: Results, judged: Judged, width: int | None = None, *, colour: bool = False) -> str:
    """The text, at most `width` wide (None: the terminal's)."""
    width = width or terminal_width()
    table = Table.of(results.manifest.title, list(_columns(results, judged)), results.rows, (), results.breaks)
    shown = {table.columns[i].of for i in side_by_side(table, width)}
    table = replace(table, legend=list(_notes(results, judged, shown)))
    return one_block(table, answer(results, judged), width, colour=colour)


def _columns(results: Results, judged: Judged) -> Iterator[Column[str]]:
    """The rows, their means, how far these are from the best possible, and the verdicts.

    Of those that give way in a narrow terminal, `block` is the place in that order, the last one first.
    """
    families = judged.families
    excess = excess_of(results, judged.metric)
    for column in columns_of_verdicts(results, judged, details=False):
        heading = column.heading.removeprefix(f"{column.of}: ")
        if len(results.rows[0]) > LONG_NAME:
            heading = heading.replace(results.rows[0], "the first")
        yield replace(column, heading=heading, block="2" if column.of == "total" else "")
        if column.kind == "mean" and excess:
            yield Column("excess, nats", partial(mean_cell, results, excess), "metric", excess, block="1")
    if len(families) == 1 and any(v.plan for v in judged.verdicts):
        yield from (replace(c, block="3") for c in of_family(judged, families[0], [SEEDS_NEEDED], ""))


def _notes(results: Results, judged: Judged, shown: Container[str]) -> Iterator[Note]:
    """At most three: what an interval is, what a verdict and the excess do not say, what is odd about single rows.

    `shown`: what the columns that there is room for are of.
    """
    if interval := _interval(judged):
        yield Note("[low, high]", interval)
    excess = excess_of(results, judged.metric)
    if words := list(_words(judged, has_excess=bool(excess) and excess in shown)):
        (term, text), *more = words
        yield Note(term, " ".join([text, *(f"{term}: {text}" for term, text in more)]))
    if odd := "; ".join(_odd(results, judged)):
        yield Note("note", f"{odd}.")


def _interval(judged: Judged) -> str:
    """Where the true differences of the first family lie; empty without an interval."""
    first = judged.of_family(judged.families[0]) if judged.families else []
    sure = [v for v in first if not math.isnan(v.half_width)]
    if not sure:
        return ""
    what = "steps" if sure[0].family == "step" else "differences"
    many = f"all {len(sure)}" if len(sure) > 2 else "both"
    together = f"for {many} {what} at once " if len(sure) > 1 else ""
    return f"the true difference lies in it, {together}in {100 * (1 - sure[0].alpha):.4g} % of such tables."


def _words(judged: Judged, *, has_excess: bool) -> Iterator[tuple[str, str]]:
    """What would be misread."""
    if any(v.verdict == "within noise" for v in judged.verdicts):
        yield "within noise", "the seeds alone can do this; it does not mean that the rows are equal."
    if has_excess:
        yield "excess", "0 is the best possible."


def _odd(results: Results, judged: Judged) -> Iterator[str]:
    """What is to be known of single rows, each in a few words."""
    if noisy := dict.fromkeys(row for v in judged.verdicts for row in v.excluded):
        yield f"{HIGH_VARIANCE} much noisier, judged by its own seeds: {_names(results, noisy)}"
    if off := results.mismatched:
        yield f"{MISMATCHED} another number of parameters: {_names(results, off)}"
    if others := results.other_tokens:
        yield f"other tokens than the first row's, so compared in bits a byte alone: {_names(results, others)}"
    if early := [row for row in results.rows if results.seeds_of(row, Status.undertrained)]:
        yield f"{Status.undertrained.in_words}: {_names(results, early)}"
    if failed := [row for row in results.rows if results.seeds_of(row, Status.failed)]:
        yield f"failed seeds (see train.log): {_names(results, failed)}"
    if results.manifest.earlier:
        yield results.manifest.looks_said()
    if other := [row for row in results.rows if results.manifest.rows[row].other_code]:
        yield f"runs of other code: {_names(results, other)}"


def _names(results: Results, rows: Iterable[str]) -> str:
    names = [short(results, row) for row in rows]
    return "all rows" if len(names) == len(results.rows) > 1 else ", ".join(names)
