"""Tables as text: nothing is lost, and nothing sticks out."""

import math
import re

import pytest

from lecture04.report.markdown import markdown
from lecture04.report.model import Cell, Column, Note, Table
from lecture04.report.table import build
from lecture04.report.text import fitting, terminal

PPL = {"base": (3.822, 3.815, 3.824), "rmsnorm": (3.825, 3.816, 3.829), "swiglu": (3.790, 3.785, 3.795)}
ODD = {**PPL, "nope": (3.871, 3.860, 3.874), "bad": (3.9, math.nan, 3.8), "half": (3.8, None, "failed")}
NAMES = {"a|b": (3.8, 3.9), "<c> *d* _e_": (3.7, 3.8), "[f](g) `h`": (3.6, 3.65), "i\\j & k~l": (3.6, 3.7)}
WIDTHS = (60, 80, 100, 120, 160)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("design", ["star", "path"])
@pytest.mark.parametrize("values", [PPL, ODD, NAMES], ids=["plain", "odd", "names"])
def test_the_terminals_text_keeps_every_figure_and_the_width(values, design, width, make_results):
    tables = build(make_results(values, design=design, delta=0.01))
    text = terminal(tables, width)
    assert all(len(line) <= width for line in text.splitlines())
    for row in tables[0].rows:
        for figure in row:
            assert str(figure) in text
    flat = re.sub(r"\s+", " ", text)
    for note in tables[0].legend:
        assert re.sub(r"\s+", " ", str(note)) in flat


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_first_lines_answer_the_question_however_narrow(width, make_results):
    for design in ("star", "path"):
        table, *_ = build(make_results(ODD, design=design))
        first = [table.columns[i].kind for i in fitting(table, width)[0]]
        assert first[:4] == ["row", "mean", "difference", "verdict"]


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_of_a_block_stay_side_by_side_where_they_fit(width, make_results):
    table, *_ = build(make_results(PPL, design="path"))
    groups = fitting(table, width)
    assert sorted(i for group in groups for i in list(group)[1:]) == list(range(1, len(table.columns)))
    for kinds in ([table.columns[i].kind for i in group] for group in groups):
        # A difference without its verdict would be half an answer.
        assert kinds.count("difference") == kinds.count("verdict")


def test_a_figure_wider_than_the_page_stands_alone():
    table = Table.of_text("wide", ["row", "a", "b"], [["r", "1" * 30, "2"]])
    assert [list(group) for group in fitting(table, 20)] == [[0, 1], [0, 2]]


def test_slices_are_set_apart():
    table = Table("t", [Column("row", Cell, "row")], [[Cell("a")], [Cell("b")], [Cell("c")]], breaks=(2,))
    lines = terminal([table], 40).splitlines()
    assert lines.index("c") - lines.index("b") == 2
    assert lines.index("b") - lines.index("a") == 1


def test_colours_are_given_only_where_they_are_asked_for(make_results):
    tables = build(make_results(PPL))
    assert "\x1b" not in terminal(tables, 120)
    coloured = terminal(tables, 120, colour=True)
    assert "\x1b[32mbetter" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == terminal(tables, 120).splitlines()


def test_a_percent_sign_stays_beside_its_number():
    table = Table("t", [Column("row", Cell, "row")], [], [Note("word", "at 95 % of all tables")])
    for width in range(8, 30):
        assert not any(line.strip().startswith("%") for line in terminal([table], width).splitlines())


@pytest.mark.parametrize("values", [PPL, ODD, NAMES], ids=["plain", "odd", "names"])
def test_markdown_has_a_cell_for_each_row_and_column(values, make_results):
    tables = build(make_results(values))
    parts = markdown(tables).split("## ")[1:]
    assert len(parts) == len(tables)
    for part, table in zip(parts, tables, strict=True):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 1}


def test_names_with_marks_do_not_become_markdown(make_results):
    text = markdown(build(make_results(NAMES)))
    assert "a\\|b" in text
    assert "&lt;c&gt; \\*d\\* \\_e\\_" in text
    assert "\\[f\\](g) \\`h\\`" in text
    assert "i\\\\j &amp; k\\~l" in text


def test_markdown_sets_calls_in_bold_and_nothing_else(make_results):
    text = markdown(build(make_results(PPL))[:1])
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert re.findall(r"\*\*(.+?)\*\*", table) == ["better"]


def test_words_that_are_too_long_go_on_below_and_leave_the_rows_name_whole():
    columns = [Column("model", lambda row: Cell(row[0]), "row"), Column("source", lambda row: Cell(row[1]), "words")]
    rows = [("Transformer", "Vaswani et al. 2017, " * 6 + "arXiv:1706.03762"), ("GPT-2", "Radford")]
    printed = terminal([Table.of("Sources", columns, rows)], 60)
    assert max(map(len, printed.splitlines())) <= 60
    assert "\nTransformer   Vaswani" in printed
    assert "arXiv:1706.03762" in printed
