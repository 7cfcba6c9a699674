"""Tables as plain text, for the terminal and for table.txt."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lecture04.report.model import Cell, Note, Table
from lecture04.terminal import width_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

COLOURS = {"better": "green", "worse": "red", "equivalent": "cyan", "unconfirmed": "yellow", "diverged": "magenta"}
GAP = 3  # between two columns
SHORT = 7  # a heading of so many signs is not broken


def terminal(tables: Sequence[Table], width: int | None = None, *, colour: bool = False) -> str:
    """Text, aligned, at most `width` columns wide (None: the terminal's, or 160 in a pipe).

    `colour`: with bold titles and coloured verdicts, in a terminal's codes.
    """
    from rich.text import Text

    width = width or terminal_width()
    blocks = []
    for table in tables:
        console = _console(width, colour=colour)
        console.print(Text(table.title, style="bold"))
        for columns in fitting(table, width):
            console.print("", _grid(table, columns), "", sep="\n")
        _print_notes(console, table.legend, width)
        blocks.append(_printed(console))
    return "\n\n".join(blocks)


def one_block(table: Table, lead: str, width: int | None = None, *, colour: bool = False) -> str:
    """A table that is never folded, below its title and a leading sentence, its notes at its foot.

    Columns whose `block` is a number give way in that order, the highest first, until the others fit; at last the
    rows' names are broken.
    """
    from rich.text import Text

    width = width or terminal_width()
    columns = side_by_side(table, width)
    console = _console(width, colour=colour)
    console.print(Text(table.title, style="bold"))
    for line in _wrapped(lead, width, indent=""):
        console.print(Text(line))
    console.print("", _grid(table, columns), "", sep="\n")
    _print_notes(console, table.legend, width)
    return _printed(console)


def linked(file: Path) -> str:
    """A file's path; in a terminal that takes them, as a link that opens it."""
    if not wants_colour():
        return str(file)
    return f"\x1b]8;;{file.absolute().as_uri()}\x1b\\{file}\x1b]8;;\x1b\\"


def terminal_width() -> int:
    """The columns of stdout, or 160 in a pipe."""
    return width_of(sys.stdout) or 160


def _console(width: int, *, colour: bool) -> Console:
    from rich.console import Console

    colours = "standard" if colour else None
    # In a notebook rich would show what is printed here instead of writing it down.
    return Console(file=io.StringIO(), width=width, force_terminal=colour, force_jupyter=False, color_system=colours)


def _printed(console: Console) -> str:
    """What was printed, without blanks at the lines' ends."""
    text = cast(io.StringIO, console.file).getvalue()
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def _grid(table: Table, columns: Mapping[int, int]) -> Grid:
    """Some columns side by side, {column: its width}."""
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for i, column_width in columns.items():
        column = table.columns[i]
        side = "left" if column.is_words else "right"
        whole = column.kind == "verdict" and column_width >= len(column.heading)
        grid.add_column(Text(column.heading), justify=side, width=column_width, overflow="fold", no_wrap=whole)
    for n, row in enumerate(table.rows):
        if n in table.breaks:
            grid.add_section()
        grid.add_row(*(Text(str(row[i]), style=_style(row[i], table.columns[i].kind)) for i in columns))
    return grid


def _print_notes(console: Console, notes: Sequence[Note], width: int) -> None:
    from rich.text import Text

    for note in notes:
        first, *rest = _wrapped(str(note), width)
        line = Text(first)
        line.stylize("bold", 0, len(note.term))
        console.print(line, *map(Text, rest), sep="\n")


def wants_colour() -> bool:
    """Whether stdout is a terminal that wants colours."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and console.color_system is not None and not console.no_color


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    """Lines of a paragraph, those after the first indented.

    A number keeps its percent sign beside it, and a path or a command without blanks stays whole, however long.
    """
    lines = textwrap.wrap(
        text.replace(" %", "\xa0%"),
        width,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\xa0", " ") for line in lines]


def _style(cell: Cell, kind: str) -> str:
    if kind != "verdict" or cell.verdict is None:
        return ""
    return COLOURS.get(cell.verdict.verdict.split()[0], "")


def fitting(table: Table, width: int) -> list[dict[int, int]]:
    """The columns in groups that fit side by side, as {column: its width}, each group with the rows' names in front.

    Where whole headings do not fit they are broken at their spaces; figures never are. Columns of one block stay in
    one group, if that is wide enough for them. Words that are too long for the terminal beside a row's name go on in
    the next line, so that the name need not.
    """
    whole, broken = _widths(table)
    widths = whole if sum(whole) + GAP * len(whole) <= width else broken
    groups: list[dict[int, int]] = [{0: widths[0]}]

    def fits(columns: Sequence[int], group: dict[int, int]) -> bool:
        taken = [*group.values(), *(widths[i] for i in columns)]
        return sum(taken) + GAP * (len(taken) - 1) <= width

    for block in _blocks(table):
        if not fits(block, groups[-1]) and len(groups[-1]) > 1 and fits(block, {0: widths[0]}):
            groups.append({0: widths[0]})
        for i in block:
            if not fits([i], groups[-1]) and len(groups[-1]) > 1:
                groups.append({0: widths[0]})
            left = width - widths[0] - GAP
            groups[-1][i] = min(widths[i], left) if table.columns[i].is_words and left > LEAST_NAME else widths[i]
    return groups


def _widths(table: Table) -> tuple[list[int], list[int]]:
    """The columns' widths with their headings in one line, and with them broken at their spaces."""
    figures = [max((len(str(row[i])) for row in table.rows), default=0) for i in range(len(table.columns))]
    whole = [max(len(heading), n) for heading, n in zip(table.headings, figures, strict=True)]
    broken = [
        max(len(heading) if len(heading) <= SHORT else max(map(len, heading.split())), n)
        for heading, n in zip(table.headings, figures, strict=True)
    ]
    return whole, broken


LEAST_NAME = 8
"""Signs of a row's name that stand in one line, however narrow the terminal."""


def side_by_side(table: Table, width: int) -> dict[int, int]:
    """{column: its width} of those that fit beside each other."""
    whole, broken = _widths(table)
    left = list(range(len(table.columns)))

    def taken(widths: Sequence[int], name: int) -> int:
        return name + sum(widths[i] for i in left[1:]) + GAP * (len(left) - 1)

    giving_way = sorted({c.block for c in table.columns if c.block.isdigit()}, key=int, reverse=True)
    for block in ("", *giving_way):
        left = [i for i in left if table.columns[i].block != block or not block]
        for widths in (whole, broken):
            if taken(widths, widths[0]) <= width:
                return {i: widths[i] for i in left}
    name = max(LEAST_NAME, width - taken(broken, 0))
    return {i: broken[i] if i else min(name, broken[0]) for i in left}


def _blocks(table: Table) -> list[list[int]]:
    """Neighbouring columns of the same block; one without a block is by itself."""
    blocks: list[list[int]] = []
    for i, column in enumerate(table.columns[1:], 1):
        if blocks and column.block and column.block == table.columns[i - 1].block:
            blocks[-1].append(i)
        else:
            blocks.append([i])
    return blocks
