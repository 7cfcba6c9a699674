"""A probe's frames as terminal text and Markdown: figures by their size, five digits of them."""

import math
from collections.abc import Mapping

import pandas as pd

from lecture04.report import markdown as github
from lecture04.report import text
from lecture04.report.model import Table

Frames = dict[str, pd.DataFrame]


def labelled(table: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """A tidy table with each quantity's identifier replaced by its label. Raises KeyError for one without a label."""
    return table.assign(quantity=[labels[quantity] for quantity in table.quantity])


def cell(value: object) -> str:
    """A value as text: whole numbers in full, others to five digits, nothing for what is missing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if math.isnan(value):
        return ""
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.5g}"


def tables(frames: Frames) -> list[Table]:
    """Frames as the tables that reports are made of."""
    return [
        Table.of_text(title, map(str, frame.columns), [[cell(v) for v in row] for row in frame.to_numpy(object)])
        for title, frame in frames.items()
    ]


def terminal(frames: Frames) -> str:
    """Plain text, aligned."""
    return text.terminal(tables(frames))


def markdown(frames: Frames) -> str:
    """Markdown tables, each under its title."""
    return github.markdown(tables(frames))
