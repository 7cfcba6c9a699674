"""The model of a table, of which text, Markdown, LaTeX and HTML are faces: cells with what stands behind their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from lecture04.stats import Verdict

Kind = Literal[
    "row",
    "mean",
    "difference",
    "verdict",
    "p_table",
    "p_own",
    "agree",
    "margin_seeds",
    "seeds_needed",
    "metric",
    "seed",
    "text",
]


@dataclass(frozen=True)
class Cell:
    """One cell.

    text     what every face prints, before the mark
    value    the number behind the text, in the unit that the heading names; None where there is none
    verdict  of the contrast that the cell speaks of, with every figure behind it; None where it speaks of no contrast
    mark     a sign that the legend explains: `~` a noisy row, `!` a mismatch of parameters
    """

    text: str = ""
    value: float | None = None
    verdict: Verdict | None = None
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.mark}" if self.mark else self.text


@dataclass(frozen=True)
class Column:
    """A column. `family`: of the contrasts that it shows. `metric`, `seed`: what its figures are of.

    Neighbours of the same `block` stay side by side where a table is folded.
    """

    heading: str
    kind: Kind = "text"
    metric: str = ""
    family: str = ""
    seed: int | None = None
    block: str = ""

    @property
    def is_text(self) -> bool:
        """Whether words stand in it, which are set from the left."""
        return self.kind in ("row", "verdict")


class Note(NamedTuple):
    """One entry of a legend: what is explained, and how. Without a term, a sentence of its own."""

    term: str
    text: str

    def __str__(self) -> str:
        return f"{self.term}: {self.text}" if self.term else self.text


@dataclass(frozen=True)
class Table:
    """A table: a cell for each row and column, and the legend that says how to read them.

    The first column names the rows. `breaks` are the rows before which a new slice begins; `name` tells the tables of
    one report apart.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    legend: Sequence[Note] = ()
    breaks: tuple[int, ...] = ()
    name: str = ""

    @classmethod
    def of_text(cls, title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
        """A table of plain texts, the first column the rows' names."""
        columns = [Column(heading, "text" if i else "row") for i, heading in enumerate(headings)]
        return cls(title, columns, [[Cell(text) for text in row] for row in rows])

    @property
    def headings(self) -> list[str]:
        """The columns' headings."""
        return [column.heading for column in self.columns]
