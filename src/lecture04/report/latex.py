"""Tables as LaTeX: booktabs, with the legend as threeparttable's notes."""

import re
from collections.abc import Sequence

from lecture04.report.model import Column, Table
from lecture04.report.text import fitting

PREAMBLE = r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{booktabs,threeparttable}"
WIDTH = 100
"""Signs that a line of \\footnotesize holds, about; a wider table is folded, as in a terminal."""

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after \\ or \item a bracket would open an optional argument
    "]": "{]}",
    "±": r"$\pm$",
    "∞": r"$\infty$",
}


def latex(tables: Sequence[Table]) -> str:
    """A table environment for each table, to be \\input."""
    return PREAMBLE + "\n\n" + "\n\n".join(map(_table, tables)) + "\n"


def _table(table: Table) -> str:
    tabulars = "\n\n\\medskip\n".join(_tabular(table, list(group)) for group in fitting(table, WIDTH))
    notes = "\n".join(_note(note.term, note.text) for note in table.legend)
    notes = f"\\begin{{tablenotes}}[flushleft]\n{notes}\n\\end{{tablenotes}}\n" if notes else ""
    return (
        "\\begin{table}[htbp]\n\\centering\n\\begin{threeparttable}\n"
        f"\\caption{{{escaped(table.title)}}}\n\\label{{tab:{_label(table.name)}}}\n"
        f"\\footnotesize\n{tabulars}\n{notes}"
        "\\end{threeparttable}\n\\end{table}"
    )


def _tabular(table: Table, group: Sequence[int]) -> str:
    columns = [table.columns[i] for i in group]
    lines = [f"\\begin{{tabular}}{{{''.join('l' if column.is_words else 'r' for column in columns)}}}", "\\toprule"]
    lines += [" & ".join(map(_heading, columns)) + r" \\", "\\midrule"]
    for n, row in enumerate(table.rows):
        if n in table.breaks:
            lines.append("\\addlinespace")
        lines.append(" & ".join(_figure(str(row[i])) for i in group) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _heading(column: Column) -> str:
    """A heading of two lines where it is long."""
    words = column.heading.split(" ")
    if len(column.heading) <= 12 or len(words) == 1:
        return escaped(column.heading)
    half = min(range(1, len(words)), key=lambda i: max(len(" ".join(words[:i])), len(" ".join(words[i:]))))
    side = "l" if column.is_words else "r"
    lines = r"\\".join(escaped(" ".join(part)) for part in (words[:half], words[half:]))
    return f"\\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{lines}\\end{{tabular}}"


def _note(term: str, text: str) -> str:
    return f"\\item \\textbf{{{escaped(term)}}}: {escaped(text)}" if term else f"\\item {escaped(text)}"


def _figure(text: str) -> str:
    """A cell; the hyphen before a number is a minus sign."""
    return re.sub(r"^-(?=\d)", r"$-$", escaped(text))


def escaped(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(SPECIAL.get(sign, sign) for sign in text)


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", name)
