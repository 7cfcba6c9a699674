"""Columns that a table may be asked for beside metrics: `sweep.columns` names either.

A file outside the package adds one with a function:

    @column("slowest", "slowest seed, s", ".0f")
    def slowest(results, row):
        return max(results.of_row(row, "wall_seconds").values(), default=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lecture04.records.metrics import METRICS, canonical

Value = Callable[[Any, str], "float | str | None"]
"""(report.results.Results, a row's name) -> what stands in the row: a number, words, or None for nothing."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A column that is no metric: its name in `sweep.columns`, its heading, and what stands in a row."""

    name: str
    label: str
    value: Value
    format: str = ""
    about: str = ""


DECLARED: dict[str, DeclaredColumn] = {}


def column(name: str, label: str, format: str = "", about: str = "") -> Callable[[Value], Value]:
    """Make a column known, so that a sweep may name it.

    name    as `sweep.columns` gives it
    label   the heading
    format  Python's format of a number
    about   one sentence for the legend

    >>> import lecture04 as l4
    >>> @l4.column("slowest", "slowest seed, s", ".0f")
    ... def slowest(results, row):
    ...     return max(results.of_row(row, "wall_seconds").values(), default=None)
    >>> l4.table("mine").results.of_row("SwiGLU", "wall_seconds").keys()  # what such a function reads
    dict_keys([0, 1])

    The function is called with (results, row) and gives a number, words, or None. Raises ValueError for a name that a
    metric has or another column; the same file read again replaces its own.
    """
    if canonical(name) in METRICS:
        raise ValueError(f"column {name!r}: a metric has this name")

    def add(value: Value) -> Value:
        if name in DECLARED and DECLARED[name].value.__module__ != value.__module__:
            raise ValueError(f"column {name!r} is declared already, by {DECLARED[name].value.__module__}")
        DECLARED[name] = DeclaredColumn(name, label, value, format, about)
        return value

    return add


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
