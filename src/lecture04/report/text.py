"""Tables as plain text, for the terminal and for table.txt."""

import io
import textwrap
from collections.abc import Sequence

from lecture04.report.model import Cell, Table

COLOURS = {"better": "green", "worse": "red", "equivalent": "cyan", "unconfirmed": "yellow", "diverged": "magenta"}
GAP = 3  # between two columns
SHORT = 7  # a heading of so many signs is not broken


def terminal(tables: Sequence[Table], width: int | None = None, *, colour: bool = False) -> str:
    """Text, aligned, at most `width` columns wide (None: the terminal's, or 160 in a pipe).

    `colour`: with bold titles and coloured verdicts, in a terminal's codes.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    known = Console()
    width = width or (known.width if known.is_terminal else 160)
    blocks = []
    for table in tables:
        out = io.StringIO()
        console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
        console.print(Text(table.title, style="bold"))
        for columns in fitting(table, width):
            grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
            for i, column_width in columns.items():
                column = table.columns[i]
                grid.add_column(
                    Text(column.heading), justify="left" if column.is_words else "right", width=column_width
                )
            for n, row in enumerate(table.rows):
                if n in table.breaks:
                    grid.add_section()
                grid.add_row(*(Text(str(row[i]), style=_style(row[i], table.columns[i].kind)) for i in columns))
            console.print("", grid, "", sep="\n")
        for note in table.legend:
            first, *rest = _wrapped(str(note), width)
            line = Text(first)
            line.stylize("bold", 0, len(note.term))
            console.print(line, *map(Text, rest), sep="\n")
        blocks.append("\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines()))
    return "\n\n".join(blocks)


def wants_colour() -> bool:
    """Whether stdout is a terminal that wants colours."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and console.color_system is not None and not console.no_color


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a paragraph, those after the first indented; a number keeps its percent sign beside it."""
    lines = textwrap.wrap(text.replace(" %", "\xa0%"), width, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _style(cell: Cell, kind: str) -> str:
    if kind != "verdict" or cell.verdict is None:
        return ""
    return COLOURS.get(cell.verdict.verdict.split()[0], "")


def fitting(table: Table, width: int) -> list[dict[int, int]]:
    """The columns in groups that fit side by side, as {column: its width}, each group with the rows' names in front.

    Where whole headings do not fit they are broken at their spaces; figures never are. Columns of one block stay in
    one group, if that is wide enough for them.
    """
    figures = [max((len(str(row[i])) for row in table.rows), default=0) for i in range(len(table.columns))]
    whole = [max(len(heading), n) for heading, n in zip(table.headings, figures, strict=True)]
    broken = [
        max(len(heading) if len(heading) <= SHORT else max(map(len, heading.split())), n)
        for heading, n in zip(table.headings, figures, strict=True)
    ]
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
            groups[-1][i] = widths[i]
    return groups


def _blocks(table: Table) -> list[list[int]]:
    """Neighbouring columns of the same block; one without a block is by itself."""
    blocks: list[list[int]] = []
    for i, column in enumerate(table.columns[1:], 1):
        if blocks and column.block and column.block == table.columns[i - 1].block:
            blocks[-1].append(i)
        else:
            blocks.append([i])
    return blocks
