"""Figures of a probe's tidy table: reading and writing them."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from lecture04.lecture.evidence import NotYetError
from lecture04.lecture.probes.text import cell


def lines(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    """The rows with these values. Raises NotYetError where there are none."""
    found = table
    for column, wanted in where.items():
        found = found.loc[found[column] == wanted]
    if found.empty:
        raise NotYetError("the probe's table has no row with " + ", ".join(f"{k} {v}" for k, v in where.items()))
    return found


def values(table: pd.DataFrame, **where: object) -> list[float]:
    """The figures of the rows with these values, in the table's order."""
    return [float(value) for value in lines(table, **where)["value"]]


def value(table: pd.DataFrame, **where: object) -> float:
    """The one figure with these values. Raises NotYetError where there are more or none."""
    found = values(table, **where)
    if len(found) > 1:
        raise NotYetError(f"the probe's table has {len(found)} rows where one was expected: {where}")
    return found[0]


def within(x: float, bounds: Mapping[str, Any]) -> bool:
    """Whether a figure lies from `low` to `high` of a claim's bounds."""
    return bounds["low"] <= x <= bounds["high"]


def near(x: float, wanted: float, tolerance: float) -> bool:
    """Whether a figure lies no further than the tolerance from the wanted one."""
    return abs(x - wanted) <= tolerance


def text(xs: float | Iterable[float]) -> str:
    """A figure, or several, to five digits."""
    return cell(xs) if isinstance(xs, int | float) else ", ".join(map(cell, xs))


def spread(xs: Iterable[float], form: str) -> str:
    """The smallest and the largest, or the one figure where they read the same."""
    xs = list(xs)
    low, high = format(min(xs), form), format(max(xs), form)
    return low if low == high else f"{low} to {high}"
