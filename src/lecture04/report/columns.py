"""Columns that a table may be asked for beside metrics: `sweep.columns` names either.

A file outside the package adds one with a function and a call:

    def slowest(results, row):
        return max(results.of_row(row, "wall_seconds").values(), default=None)

    columns.declare("slowest", "slowest seed, s", slowest, ".0f")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lecture04.records.metrics import METRICS, canonical

if TYPE_CHECKING:
    from lecture04.report.results import Results

Value = Callable[["Results", str], "float | str | None"]
"""(results, a row's name) -> what stands in the row: a number, words, or None for nothing."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A column that is no metric: its name in `sweep.columns`, its heading, and what stands in a row."""

    name: str
    label: str
    value: Value
    format: str = ""
    about: str = ""


DECLARED: dict[str, DeclaredColumn] = {}


def declare(name: str, label: str, value: Value, format: str = "", about: str = "") -> DeclaredColumn:
    """Make a column known, so that a sweep may name it.

    name    as `sweep.columns` gives it
    label   the heading
    value   (results, row) -> a number, words, or None
    format  Python's format of a number
    about   one sentence for the legend

    Raises ValueError for a name that a metric has or another column; the same file read again replaces its own.
    """
    if canonical(name) in METRICS:
        raise ValueError(f"column {name!r}: a metric has this name")
    if name in DECLARED and DECLARED[name].value.__module__ != value.__module__:
        raise ValueError(f"column {name!r} is declared already, by {DECLARED[name].value.__module__}")
    DECLARED[name] = DeclaredColumn(name, label, value, format, about)
    return DECLARED[name]


def known() -> list[str]:
    """Every name that `sweep.columns` may hold; metrics by position, `test/nll@64-127`, are allowed beside them."""
    return [*METRICS, *DECLARED]


def is_known(name: str) -> bool:
    """Whether `sweep.columns` may hold this name."""
    return name in METRICS or name in DECLARED


def label_and_about(name: str) -> tuple[str, str]:
    """The heading of a metric or of a declared column, and the sentence about it. Raises KeyError for neither."""
    found = DECLARED[name] if name in DECLARED else METRICS[name]
    return found.label, found.about
