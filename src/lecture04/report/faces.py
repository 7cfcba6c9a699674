"""The faces of a table: terminal text and Markdown."""

import io

from lecture04.report.table import Table


def terminal(tables: list[Table], width: int | None = None) -> str:
    """Plain text, aligned, at most `width` columns wide (None: the terminal's, or 160 in a pipe)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    known = Console()
    width = width or (known.width if known.is_terminal else 160)
    blocks = []
    for table in tables:
        console = Console(file=io.StringIO(), width=width, color_system=None)
        console.print(Text(table.title))
        for columns in _fitting(table, width):
            grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
            for i, column_width in columns.items():
                grid.add_column(Text(table.headings[i]), justify="left" if i == 0 else "right", width=column_width)
            for row in table.rows:
                grid.add_row(*(Text(row[i]) for i in columns))
            console.print("", grid, "", sep="\n")
        for line in table.legend:
            console.print(Text(line))
        assert isinstance(console.file, io.StringIO)
        blocks.append("\n".join(line.rstrip() for line in console.file.getvalue().rstrip().splitlines()))
    return "\n\n".join(blocks)


def _fitting(table: Table, width: int) -> list[dict[int, int]]:
    """The columns in groups that fit side by side, as {column: its width}, each group with the rows' names in front.

    Where whole headings do not fit they are broken at their spaces; figures never are.
    """
    gap = 3
    figures = [max((len(row[i]) for row in table.rows), default=0) for i in range(len(table.headings))]
    whole = [max(len(heading), n) for heading, n in zip(table.headings, figures, strict=True)]
    broken = [max(*map(len, heading.split()), n) for heading, n in zip(table.headings, figures, strict=True)]
    widths = whole if sum(whole) + gap * len(whole) <= width else broken
    groups: list[dict[int, int]] = [{0: widths[0]}]
    for i in range(1, len(widths)):
        taken = sum(groups[-1].values()) + gap * len(groups[-1])
        if len(groups[-1]) > 1 and taken + widths[i] > width:
            groups.append({0: widths[0]})
        groups[-1][i] = widths[i]
    return groups


def markdown(tables: list[Table]) -> str:
    """GitHub's Markdown tables, each with its legend."""
    blocks = []
    for table in tables:
        lines = [
            _line([_escaped(heading) for heading in table.headings]),
            _line([":---", *["---:"] * (len(table.headings) - 1)]),
        ]
        lines += [_line([_escaped(cell) for cell in row]) for row in table.rows]
        legend = [f"- {_escaped(line)}" for line in table.legend]
        blocks.append("\n".join([f"## {_escaped(table.title)}", "", *lines, "", *legend]))
    return "\n\n".join(blocks) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("~", "\\~").replace("<", "&lt;")
