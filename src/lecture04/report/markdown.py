"""Tables as GitHub's Markdown."""

import re
from collections.abc import Sequence

from lecture04.report.model import Cell, Table


def markdown(tables: Sequence[Table]) -> str:
    """GitHub's Markdown tables, each with its legend."""
    blocks = []
    for table in tables:
        lines = [
            _line([escaped(heading) for heading in table.headings]),
            _line([":---" if column.is_words else "---:" for column in table.columns]),
        ]
        for row in table.rows:
            lines.append(_line([_marked(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)]))
        legend = [
            f"- **{escaped(n.term)}**: {escaped(n.text)}" if n.term else f"- {escaped(n.text)}" for n in table.legend
        ]
        blocks.append("\n".join([f"## {escaped(table.title)}", "", *lines, *([""] if legend else []), *legend]))
    return "\n\n".join(blocks) + "\n"


def _marked(cell: Cell, kind: str) -> str:
    """A cell, a verdict that calls a difference in bold."""
    text = escaped(str(cell))
    return f"**{text}**" if kind == "verdict" and cell.verdict and text in ("better", "worse", "equivalent") else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def escaped(text: str) -> str:
    """Text whose signs Markdown takes for nothing else."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|*~_`\[\]])", r"\\\1", text)
