"""The tables of a sweep or a probe, none wider than a page: wide ones are split, and legends are left to the index."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lecture04.lecture.items import Item
from lecture04.lecture.pages.model import Folded
from lecture04.report.comparison import Judged, judge_all
from lecture04.report.legend import legend
from lecture04.report.markdown import markdown
from lecture04.report.model import Column, Table
from lecture04.report.results import Results
from lecture04.report.table import asked_columns, columns_of_seeds, columns_of_verdicts, other_differences

FIGURES, DIFFERENCES, SEEDS = 5, 4, 5
"""Columns beside the rows' names that are no wider than a page: of figures, of differences with their intervals, of
single seeds."""
OF_FAMILY = {"step": "each row against the row before", "total": "each row against the first"}


def of_sweep(results: Results) -> list[Folded]:
    """The verdicts, a table a family, the other figures, and every seed."""
    primary, *others = judge_all(results)
    columns = list(columns_of_verdicts(results, primary, details=False))
    found = list(_verdicts(results, primary, columns))
    for title, figures, most in (
        ("Means of the other figures", list(asked_columns(results)), FIGURES),
        ("Every seed", list(columns_of_seeds(results, primary)), SEEDS),
    ):
        found += _split(results, title, columns[0], figures, most)
    if rest := other_differences(results, others):
        found += _split(results, "Differences of the other figures", columns[0], rest.columns[1:], DIFFERENCES)
    return [folded(table) for table in found]


def notes(results: Results) -> list[str]:
    """What is to be known of single rows of a sweep; what all tables have in common is not said here."""
    primary = judge_all(results)[0]
    own = {*results.rows, "!"}
    return [str(note) for note in legend(results, primary) if note.term in own or note.term.endswith(" ~")]


def _verdicts(results: Results, judged: Judged, columns: Sequence[Column[str]]) -> Iterator[Table]:
    """A table for each family of differences."""
    own = [column for column in columns if column.of not in judged.families]
    for family in judged.families:
        of_it = [_short(column, family) for column in columns if column.of == family]
        more = f": {OF_FAMILY[family]}" if family in OF_FAMILY else ""
        yield Table.of(f"{results.manifest.title}{more}", [*own, *of_it], results.rows)
    if not judged.families:
        yield Table.of(results.manifest.title, own, results.rows)


def _short(column: Column[str], family: str) -> Column[str]:
    """Without the family's name, which the table's title has."""
    return replace(column, heading=column.heading.removeprefix(f"{family}: "))


def _split(
    results: Results, title: str, names: Column[str], figures: Sequence[Column[str]], most: int
) -> Iterator[Table]:
    """Tables of at most so many columns beside the rows' names, all about equally wide."""
    n = -(-len(figures) // most)
    for i in range(n):
        part = figures[len(figures) * i // n : len(figures) * (i + 1) // n]
        which = f" ({i + 1} of {n})" if n > 1 else ""
        yield Table.of(f"{title}{which}", [names, *part], results.rows)


def folded(table: Table) -> Folded:
    """A table as its title and its Markdown, without a legend."""
    return parts(markdown([replace(table, legend=())]))[0]


def of_probe(item: Item) -> tuple[list[Folded], str]:
    """A probe's tables, and the sentence below them. Raises OSError where they do not lie there."""
    # Without its title and the line that says what made it.
    text = (item.folder / "table.md").read_text(encoding="utf-8").split("\n", 1)[1].rpartition("Made by")[0]
    text, _, sentence = text.rstrip().rpartition("\n\n- ")
    return parts(text), unescaped(sentence)


def unescaped(text: str) -> str:
    """A text as it was before it was made Markdown; whoever writes it makes it so again."""
    return re.sub(r"\\([\\`*_{}\[\]()#+.!|<>~-])", r"\1", text)


def parts(text: str) -> list[Folded]:
    """Each `## title` of a Markdown text with what is below it."""
    chunks = [chunk.partition("\n") for chunk in f"\n{text}".split("\n## ")[1:]]
    return [Folded(title.strip(), content.strip()) for title, _, content in chunks]
