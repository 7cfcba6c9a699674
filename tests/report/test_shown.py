"""`lecture04.table(...)` and `lecture04.judge(...)`: comparisons that show themselves."""

import math
import re
import subprocess
import sys

import pytest

import lecture04 as l4
from lecture04 import stats
from lecture04.config.errors import UserError
from lecture04.report.comparison import judge_all
from lecture04.report.contrasts import contrasts
from lecture04.report.html.page import page
from lecture04.report.results import collect
from lecture04.report.screen import screen

ROWS = {"base": [3.82, 3.81, 3.83], "better": [3.70, 3.71, 3.69], "noisy": [3.9, 3.6, 3.8], "<b>": [3.85, 3.84, 3.86]}
FIGURES = ["row", "reference", "family", "verdict", "delta", "half_width", "p_adjusted", "p_welch", "seeds_paired"]


def by_seed(rows):
    return {row: dict(enumerate(values)) for row, values in rows.items()}


def table_of(html):
    """The comparison's own element, blanks aside."""
    (found,) = re.findall(r'<table id="verdicts".*?</table>', html, flags=re.S)
    return "\n".join(filter(None, map(str.strip, found.splitlines())))


@pytest.fixture
def folder(table_folder):
    return table_folder(ROWS)


def test_a_table_is_found_by_its_name_and_by_its_folder(folder):
    by_name = l4.table("mine", folder.parent.parent)
    assert by_name.verdicts.equals(l4.table(folder).verdicts)
    with pytest.raises(UserError, match="no table lies there. Choices: mine"):
        l4.table("nope", folder.parent.parent)


def test_a_table_says_what_the_report_says(folder):
    found, results = l4.table(folder), collect(folder)
    judged = judge_all(results)
    assert str(found) == repr(found) == screen(results, judged[0])
    assert found.verdicts.equals(contrasts(judged))


def test_a_notebook_gets_the_pages_own_table_with_its_style(folder):
    html = l4.table(folder)._repr_html_()
    assert table_of(html) == table_of(page(collect(folder)))
    assert "span.verdict" in html
    assert "--better:" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<script" not in html


def test_its_style_reaches_nothing_else_of_the_notebook(browser, folder):
    tab = browser.new_page()
    try:
        tab.set_content(f"<table id=other><tr><td>x</td></tr></table>{l4.table(folder)._repr_html_()}")
        style = "e => [getComputedStyle(e).borderBottomWidth, getComputedStyle(e).textAlign]"
        other = tab.eval_on_selector("#other td", style)
        ours = tab.eval_on_selector("#verdicts td", style)
        assert other == ["0px", "start"]
        assert ours == ["1px", "right"]
        assert not tab.is_visible("#verdicts .p_welch")
        badge = tab.eval_on_selector("#verdicts span.verdict", "e => getComputedStyle(e).display")
        assert badge == "inline-block"
    finally:
        tab.close()


def test_a_plot_is_a_figure_of_the_report(folder):
    found = l4.table(folder)
    assert "difference to base" in found.plot().axes[0].get_xlabel()
    assert found.plot("strip").axes[0].get_xlabel().startswith("test")
    with pytest.raises(UserError, match=r"plot\('strips'\): this table has no such figure. Did you mean strip"):
        found.plot("strips")


def test_numbers_are_judged_as_the_same_numbers_of_a_table(make_results):
    of_table = contrasts(judge_all(make_results(ROWS, columns=["test/ppl"])))
    own = l4.judge(by_seed(ROWS), scale="log").verdicts
    assert own[FIGURES].equals(of_table[FIGURES])
    assert own.shown.equals(of_table.shown)


def test_in_a_notebook_the_text_is_a_text(monkeypatch):
    """rich would show it itself there, and leave nothing of it."""
    text = str(l4.judge(ROWS))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(l4.judge(ROWS)) == text


@pytest.mark.parametrize("design", ["star", "path"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("paired", [True, False])
def test_numbers_are_judged_as_by_stats(design, lower, paired):
    """A list's numbers are of no seed, so nothing is blocked and no seeds are counted together."""
    judged = stats.judge(by_seed(ROWS), design=design, lower_is_better=lower, matched=paired, delta=0.02)
    own = l4.judge(by_seed(ROWS) if paired else ROWS, design=design, lower_is_better=lower, delta=0.02).verdicts
    assert [tuple(x) for x in own[["row", "verdict", "delta", "half_width", "blocked", "seeds_paired"]].values] == [
        (v.row, v.verdict, v.delta, v.half_width, v.blocked, v.pairs) for v in judged
    ]
    assert {v.blocked for v in judged} == {paired}


def test_an_accuracy_is_judged_by_its_items():
    values = {"a": {0: 0.91, 1: 0.92, 2: 0.93}, "b": {0: 0.96, 1: 0.97, 2: 0.98}}
    scale = stats.Logit(500)
    (expected,) = stats.judge(stats.judged_values(values, scale), scale=scale, lower_is_better=False)
    found = l4.judge(values, scale="logit", n_items=500, lower_is_better=False).verdicts.iloc[0]
    assert (found.verdict, found.delta, found.half_width) == ("better", expected.delta, expected.half_width)


def test_a_run_that_diverged_is_said():
    found = l4.judge({"a": [1.0, 1.1], "b": [1.0, math.nan]})
    assert list(found.verdicts.verdict) == ["diverged 1/2"]
    assert "b diverged in 1 of 2 seeds" in str(found)
    assert "diverged 1/2" in found._repr_html_()


def test_numbers_show_themselves_and_are_drawn():
    found = l4.judge(ROWS)
    assert "4 rows of numbers" in str(found)
    assert table_of(found._repr_html_()).count("<tr") == 5
    assert "difference to base" in found.plot().axes[0].get_xlabel()


@pytest.mark.parametrize(
    ("values", "settings", "said"),
    [
        ({}, {}, "values={}: must be"),
        ([1, 2], {}, "must be {row: {seed: value}} or {row: "),
        ({"a": 3}, {}, "row 'a' is 3; must be"),
        ({"a": ["x"]}, {}, "row 'a' is .* must be"),
        ({"a": [1.0], "b": {0: 1.0}}, {}, "row 'a' is a list and others name their seeds"),
        ({"a": [1.0]}, {"design": "grid"}, "design='grid': .* Choices: star, path"),
        ({"a": [1.0]}, {"scale": "logs"}, "scale='logs': .* Did you mean log"),
        ({"a": [1.0]}, {"scale": "logit"}, "n_items=None"),
        ({"a": [1.0]}, {"n_items": 5}, "n_items=5"),
        ({"a": [-1.0]}, {"scale": "log"}, "on the log scale a value is positive"),
        ({"a": [1.0], "b": [1.0]}, {"delta": -1.0}, "delta: expected a margin > 0"),
    ],
)
def test_what_cannot_be_judged_is_told_at_once(values, settings, said):
    with pytest.raises(ValueError, match=said):
        l4.judge(values, **settings)


def test_a_comparison_imports_no_torch():
    code = (
        "import sys, lecture04 as l4\n"
        "found = l4.judge({'a': [1.0, 1.1], 'b': [2.0, 2.1]})\n"
        "str(found), found._repr_html_(), found.plot(), found.verdicts, l4.table, l4.runs, l4.load\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
