"""The LaTeX face, without a compiler: balanced, escaped, as many cells as columns."""

import math
import re

import pytest

from lecture04.report.latex import WIDTH, escaped, latex
from lecture04.report.table import build
from lecture04.report.text import fitting

PPL = {"base": (3.822, 3.815, 3.824), "rmsnorm": (3.825, 3.816, 3.829), "swiglu": (3.790, 3.785, 3.795)}
NASTY = 'a & b % c _ d # e $ f < g > h ~ i ^ j \\ k { l } m [n] " o | p'
TABLES = {
    "plain": (PPL, {}),
    "path": (PPL, {"design": "path"}),
    "grid": (
        {f"{i}: {row}": v for i in (1, 2) for row, v in PPL.items()},
        {"design": "grid", "slices": {f"{i}: {row}": str(i) for i in (1, 2) for row in PPL}, "delta": 0.01},
    ),
    "odd": ({**PPL, "bad": (3.9, math.nan, 3.8), "half": (3.8, None, "failed"), "none": (None,) * 3}, {}),
    "nasty": ({NASTY: (3.8, 3.9), "[b]": (3.7, 3.75)}, {"title": NASTY}),
    "empty": ({"a": (None,), "b": (None,)}, {}),
}


@pytest.fixture(params=TABLES)
def tables(request, make_results):
    values, settings = TABLES[request.param]
    return build(make_results(values, **settings))


def tabulars(text):
    """The outer tabulars' (column specification, lines of cells)."""
    text = re.sub(r"\\begin\{tabular\}\[b\].*?\\end\{tabular\}", "nested", text)
    for spec, body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        yield spec, [line for line in body.splitlines() if line.endswith(r"\\")]


def test_every_environment_and_every_brace_is_closed(tables):
    text = latex(tables)
    open_ones = []
    for word, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if word == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert not open_ones
    bare = re.sub(r"\\[{}\\]", "", text)
    depth = 0
    for sign in bare:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert text.count("$") - text.count(r"\$") == 2 * len(re.findall(r"(?<!\\)\$[^$]+(?<!\\)\$", text))


def test_every_line_has_a_cell_for_each_column(tables):
    found = list(tabulars(latex(tables)))
    groups = [list(group) for table in tables for group in fitting(table, WIDTH)]
    rows = [len(table.rows) for table in tables for _ in fitting(table, WIDTH)]
    assert [len(spec) for spec, _ in found] == list(map(len, groups))
    assert [len(lines) for _, lines in found] == [n + 1 for n in rows]
    for spec, lines in found:
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(spec) - 1


def test_the_legend_is_notes(tables):
    text = latex(tables)
    assert len(re.findall(r"^\\item ", text, re.MULTILINE)) == sum(len(table.legend) for table in tables)
    assert text.count(r"\begin{tablenotes}") == sum(bool(table.legend) for table in tables)


def test_it_is_booktabs(tables):
    text = latex(tables)
    n = len(list(tabulars(text)))
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == n
    assert r"\hline" not in text
    assert "booktabs" in text.splitlines()[0]
    assert text.splitlines()[0].startswith("%")


def test_names_with_latexs_own_signs_are_set_as_they_stand(make_results):
    text = latex(build(make_results({NASTY: (3.8, 3.9), "b": (3.7, 3.75)}, title=NASTY)))
    assert text.count(escaped(NASTY)) >= 3, "the caption and a line of each tabular"
    # Each special sign in the body is LaTeX's own or escaped: what is left of a name is letters.
    row = next(line for line in text.splitlines() if line.startswith("a "))
    name = row.split(" & ")[0] if r"\&" not in row else re.split(r"(?<!\\) & ", row)[0]
    left = re.sub(r"\\text[a-z]+\{\}|\\[&%_#${}]|\{[\[\]]\}", "", name)
    assert re.fullmatch(r"[a-p ]+", left), left


@pytest.mark.parametrize("sign", list('&%_#$<>~^\\{}|"[]±∞'))
def test_no_special_sign_comes_through_as_it_is(sign):
    assert escaped(sign) != sign
    assert escaped(f"a{sign}b").startswith("a")


def test_escaping_is_done_once():
    assert escaped("\\{") == r"\textbackslash{}\{"


def test_slices_are_set_apart_and_minus_signs_are_minus_signs(make_results):
    values, settings = TABLES["grid"]
    text = latex(build(make_results(values, **settings))[:1])
    assert text.count(r"\addlinespace") == len(list(tabulars(text)))
    assert "$-$0.79" in text
    assert "& -" not in text
