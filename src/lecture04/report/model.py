"""The model of a table, which the renderers write as text, Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from lecture04.stats import Verdict

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """One cell.

    text     what every renderer prints, before the mark
    value    the number behind the text, in the unit that the heading names; None where there is none
    verdict  of the contrast that the cell speaks of, with every figure behind it; None where it speaks of no contrast
    mark     a sign that the legend explains: `~` a row of high variance, `!` a mismatch of parameters
    """

    text: str = ""
    value: float | None = None
    verdict: Verdict | None = None
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.mark}" if self.mark else self.text


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column: all that a table knows of it is stated here.

    heading  above it
    cell     what it shows of one of the table's items: of a row's name, say, or of a verdict
    kind     what stands in it, such as "difference" or "seed"; also the class of its cells in the page
    of       what tells it from the others of its kind: a family, a seed, a metric
    block    neighbours of the same block stay side by side where a table is folded
    """

    heading: str
    cell: Callable[[T], Cell]
    kind: str = "text"
    of: str = ""
    block: str = ""

    @property
    def id(self) -> str:
        """What tells it from the other columns of its table, such as `difference:step`."""
        return f"{self.kind}:{self.of}" if self.of else self.kind

    @property
    def is_words(self) -> bool:
        """Whether words stand in it, which are set from the left."""
        return self.kind in ("row", "verdict", "words")


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
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]
    legend: Sequence[Note] = ()
    breaks: tuple[int, ...] = ()
    name: str = ""

    @classmethod
    def of(
        cls,
        title: str,
        columns: Sequence[Column[T]],
        items: Iterable[T],
        legend: Sequence[Note] = (),
        breaks: tuple[int, ...] = (),
        name: str = "",
    ) -> Table:
        """A table with a row for each item."""
        rows = [[column.cell(item) for column in columns] for item in items]
        return cls(title, columns, rows, legend, breaks, name)

    @classmethod
    def of_text(cls, title: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
        """A table of plain texts, the first column the rows' names."""

        def cell(i: int, row: Sequence[str]) -> Cell:
            return Cell(row[i])

        columns = [Column(heading, partial(cell, i), "text" if i else "row") for i, heading in enumerate(headings)]
        return cls.of(title, columns, rows)

    @property
    def headings(self) -> list[str]:
        """The columns' headings."""
        return [column.heading for column in self.columns]
