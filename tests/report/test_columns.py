"""Metrics and columns of a file outside the package: one declaration each, shown by every renderer and by the page."""

import importlib.util
import json
import math
import re
import sys
from pathlib import Path

import pytest

from lecture04.records import metrics
from lecture04.records.metrics import METRICS, Metric
from lecture04.report import columns, write
from lecture04.report.comparison import judge_all, judge_metric
from lecture04.report.html.page import page
from lecture04.report.latex import latex
from lecture04.report.markdown import markdown
from lecture04.report.results import collect
from lecture04.report.table import build
from lecture04.stats import Identity, Log, Logit, judge, judged_values

PPL = {"base": (3.822, 3.815, 3.824), "swiglu": (3.790, 3.785, 3.795), "gone": (None, None, None)}

PAGE = (Path(__file__).parents[2] / "docs" / "add-a-column.md").read_text()
(COLUMN,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
OUTSIDE = '''
"""A file outside the package."""
from lecture04.records.metrics import Metric, declare
from lecture04.report import columns

declare(Metric("mine/loss", "my loss", ".3f", unit="bits", scale="log", noisy=True, about="what I measure"))

columns.column("first", "is first")(lambda results, row: "yes" if row == results.rows[0] else "no")
'''


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The declarations of OUTSIDE and of docs/add-a-column.md, taken back at the end."""
    monkeypatch.setattr(METRICS, "_declared", dict(METRICS._declared))
    before = dict(columns.DECLARED)
    (tmp_path / "outside.py").write_text(OUTSIDE + COLUMN)
    spec = importlib.util.spec_from_file_location("outside", tmp_path / "outside.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "outside", module)
    spec.loader.exec_module(module)
    yield module
    columns.DECLARED.clear()
    columns.DECLARED.update(before)


ASKED = ["test/ppl", "mine/loss", "spread", "first"]


@pytest.fixture
def folder(table_folder, outside):
    """A table that asks for what OUTSIDE declares; the metric is in its runs' evaluations."""
    folder = table_folder(PPL, columns=ASKED)
    for path in folder.parents[1].glob("runs/*/evals/key.json"):
        content = json.loads(path.read_text())
        content["metrics"]["mine/loss"] = content["metrics"]["test/ppl"] ** 2
        path.write_text(json.dumps(content))
    return folder


def test_a_declared_column_stands_in_the_table_as_its_function_says(folder, cell, words):
    table, *_ = build(collect(folder))
    assert cell(table, "base", "spread of ppl").text == f"{3.824 - 3.815:.4f}"
    assert cell(table, "base", "spread of ppl").value == pytest.approx(3.824 - 3.815)
    assert cell(table, "gone", "spread of ppl").text == "-"
    assert [cell(table, row, "is first").text for row in PPL] == ["yes", "no", "no"]
    assert "spread of ppl: the largest perplexity of a row less its smallest" in words(table)


def test_a_declared_metric_is_judged_on_its_own_scale_and_explained(folder, cell, words):
    results = collect(folder)
    main, others = build(results)
    raw = {row: {i: x**2 for i, x in enumerate(seeds) if x} for row, seeds in PPL.items()}
    v = judge(judged_values(raw, Log()))[0]
    assert cell(others, "swiglu", "my loss vs base, %").value == pytest.approx(100 * math.expm1(v.delta))
    assert cell(main, "swiglu", "my loss").text == f"{sum(raw['swiglu'].values()) / 3:.3f}"
    assert "my loss: what I measure" in words(main)
    assert judge_metric(results, "mine/loss").judged_unit == "bits"


def test_every_renderer_and_the_page_show_both(folder):
    results = collect(folder)
    write(folder, results, judge_all(results))
    shown = [
        markdown(build(results)),
        latex(build(results)).replace("\\\\", " "),
        (folder / "table.txt").read_text(),
        page(results),
    ]
    for text in shown:
        for word in ("spread", "0.0090", "yes", "my", f"{sum(x**2 for x in PPL['base']) / 3:.3f}"):
            assert word in text
    assert "mine/loss" in (folder / "contrasts.csv").read_text()
    choice = page(results).partition('id="metric"')[2].partition("</select>")[0]
    assert "my loss" in choice, "the page lets its reader choose it"
    assert "spread" not in choice, "a column is not judged"


def test_the_names_that_a_sweep_may_give_are_both_kinds(outside):
    assert {"mine/loss", "spread", "first", "test/nll"} <= set(columns.known())
    assert columns.is_known("test/nll@64-127")
    assert not columns.is_known("spred")


def test_names_are_taken_once(outside):
    with pytest.raises(ValueError, match="a metric has this name"):
        columns.column("possessive/accuracy", "x")(lambda results, row: 1.0)
    with pytest.raises(ValueError, match="declared already, by outside"):
        columns.column("spread", "x")(lambda results, row: 1.0)
    for name in ("test/nll", "test/nll@0-63", "possessive/n"):
        with pytest.raises(ValueError, match="declared already"):
            metrics.declare(Metric(name, "another", ".1f"))
    assert metrics.declare(METRICS["test/nll"]) == METRICS["test/nll"], "saying the same again is no error"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": "cubic"}, "none of identity, log, logit"),
        ({"scale": "logit"}, "items"),
        ({"items": "pronouns/n"}, "items"),
        ({"format": "z.q"}, "format='z.q'"),
    ],
)
def test_a_malformed_metric_is_refused_where_it_is_declared(settings, message):
    with pytest.raises(ValueError, match=message):
        Metric(**{"name": "mine", "label": "mine", "format": ".1f", **settings})


def test_every_metric_has_the_scale_that_its_kind_needs(make_results):
    results = make_results({"a": (3.8, 3.9), "b": (3.7, 3.6)})
    scales = {name: judge_metric(results, name).scale for name in ("test/nll", "test/ppl", "pronouns/accuracy")}
    assert scales == {"test/nll": Identity(), "test/ppl": Log(), "pronouns/accuracy": Logit(500)}
    for name, metric in METRICS.items():
        is_share = name.endswith(("/accuracy", "/exact", "/grammatical"))
        assert metric.scale == ("logit" if is_share else "log" if name.endswith(("/ppl", "/bpb")) else "identity"), name


def test_an_earlier_name_in_the_manifest_and_in_the_records_is_todays_everywhere(table_folder, cell):
    settings = {"primary": "possessive/accuracy", "columns": ["possessive/accuracy", "possessive/n", "test/ppl"]}
    folder = table_folder(PPL, **settings)
    for path in folder.parents[1].glob("runs/*/evals/key.json"):
        path.write_text(path.read_text().replace("pronouns/", "possessive/"))
    results = collect(folder)
    assert (results.manifest.primary, results.manifest.columns[:2]) == (
        "pronouns/accuracy",
        ("pronouns/accuracy", "pronouns/n"),
    )
    assert results.of_row("base", "pronouns/n") == {0: 500, 1: 500, 2: 500}
    assert not any(results.values("possessive/accuracy").values())
    table, *_ = build(results)
    assert cell(table, "base", "pronouns, n").text == "500"
    assert "possessive" not in page(results)
