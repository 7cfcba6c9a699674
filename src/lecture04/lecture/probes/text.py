"""A probe's frames and its sentence as terminal text and Markdown; figures by their size, five digits of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from lecture04.report import markdown as github
from lecture04.report import text
from lecture04.report.model import Cell, Column, Note, Table

Frames = dict[str, pd.DataFrame]
TINY = 1e-4  # of what is smaller, two digits are enough: most often it is rounding


def labelled(table: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """A tidy table with each quantity's identifier replaced by its label. Raises KeyError for one without a label."""
    return table.assign(quantity=[labels[quantity] for quantity in table.quantity])


def number(value: float, digits: int = 2) -> str:
    """So many digits, as in 0.25, 43 and 2.4e-6; what is above one is never rounded to tens."""
    size, value = abs(value), value or 0.0  # no -0
    if size < 1e15 and (float(value).is_integer() or size >= 10**digits):
        return f"{value:,.0f}"
    mantissa, _, exponent = f"{value:.{2 if size < TINY else digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def cell(value: object) -> str:
    """A value as text: whole numbers in full, others to five digits, nothing for what is missing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None or value is pd.NA else str(value)
    return "" if math.isnan(value) else number(value, 5)


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return f" {last} ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def times(n: float) -> str:
    """`4 times` or `1.5 times`."""
    return f"{number(n)} times"


def counted(n: int, noun: str) -> str:
    """`1 layer`, `2 layers`."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def tables(frames: Frames, sentence: str) -> list[Table]:
    """Frames as the tables that reports are made of; the sentence stands below the last."""
    *others, last = [_table(title, frame) for title, frame in frames.items()]
    return [*others, replace(last, legend=[Note("", sentence)])]


def _table(title: str, frame: pd.DataFrame) -> Table:
    """Columns of words are set from the left, those of figures from the right."""

    def written(i: int, row: Sequence[object]) -> Cell:
        return Cell(cell(row[i]))

    columns = [
        Column(
            str(heading), partial(written, i), "row" if not i else "words" if _is_words(frame.iloc[:, i]) else "text"
        )
        for i, heading in enumerate(frame.columns)
    ]
    return Table.of(title, columns, frame.to_numpy(object).tolist())


def _is_words(column: Iterable[object]) -> bool:
    """Whether texts with letters stand in it, and no number."""
    found = [value for value in column if cell(value)]
    texts = [value for value in found if isinstance(value, str)]
    return len(texts) == len(found) and any(sign.isalpha() for text in texts for sign in text)


def terminal(frames: Frames, sentence: str) -> str:
    """Plain text, aligned."""
    return text.terminal(tables(frames, sentence))


def markdown(frames: Frames, sentence: str) -> str:
    """Markdown tables, each under its title."""
    return github.markdown(tables(frames, sentence))
