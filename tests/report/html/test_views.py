"""What a page shows of each metric and baseline is what the protocol says of it."""

import math
import re
from collections import Counter

import pytest

from lecture04.report.figures.style import kind
from lecture04.report.html.views import MOST_CONTRASTS, choices, combinations, views
from lecture04.report.results import collect
from lecture04.stats import Identity, Log, Logit, judge, judged_values


def column(view, name):
    """{row's number: text} of a column."""
    place = [id for id, _ in view["columns"]].index(name)
    return {i: cells[place] for i, cells in enumerate(view["cells"])}


def independent(results, metric, baseline, **settings):
    """The verdicts on a metric, from its raw values and `judge` alone."""
    accuracy = metric.endswith("accuracy")
    scale = Logit(500) if accuracy else Log() if metric.endswith("ppl") else Identity()
    values = judged_values(results.values(metric), scale)
    return scale, judge(values, baseline=baseline, lower_is_better=not accuracy, scale=scale, **settings)


def test_every_choice_of_a_star_is_judged_by_the_protocol(star):
    results = collect(star)
    shown = views(results)
    metrics = ["test/ppl", "pronouns/accuracy", "train/nll"]
    assert shown.keys() == {f"{metric}|{i}" for metric in metrics for i in range(len(results.rows))}
    for metric in metrics:
        for number, baseline in enumerate(results.rows):
            view = shown[f"{metric}|{number}"]
            delta = 0.03 if metric == "test/ppl" else None  # declared for the primary metric
            scale, verdicts = independent(results, metric, baseline, delta=delta)
            said, differences = column(view, "verdict:star"), column(view, "difference:star")
            assert said[number] == "baseline"
            for v in verdicts:
                row = results.rows.index(v.row)
                assert said[row] == v.verdict
                if not math.isnan(v.delta):
                    found = [float(x) for x in re.findall(r"[-+]?\d+\.\d+", differences[row])]
                    assert found[0] == pytest.approx(scale.difference(v.delta), abs=0.006)
            assert Counter(re.findall(r"\d+ ([a-z ]+)", view["summary"].partition(": ")[2])) == Counter(
                {kind(v.verdict) for v in verdicts}
            )


def test_what_the_forest_draws_is_the_verdicts_interval(star):
    results = collect(star)
    view = views(results)["test/ppl|1"]
    scale, verdicts = independent(results, "test/ppl", results.rows[1], delta=0.03)
    assert view["margins"] == pytest.approx([scale.difference(-0.03), scale.difference(0.03)], rel=1e-4)
    for v, (row, reference, value, low, high, noise_low, noise_high, said) in zip(
        verdicts, view["forest"]["star"], strict=True
    ):
        assert (results.rows[row], results.rows[reference], said) == (v.row, v.reference, v.verdict)
        drawn = [math.nan if x is None else x for x in (value, low, high, noise_low, noise_high)]
        judged = (v.delta, v.lower, v.upper, -v.half_width, v.half_width)
        assert drawn == pytest.approx(
            [math.nan if math.isnan(x) else scale.difference(x) for x in judged], rel=1e-4, nan_ok=True
        )


def test_the_views_differ_between_baselines(star):
    shown = views(collect(star))
    assert column(shown["test/ppl|0"], "verdict:star")[1] == "better"
    assert column(shown["test/ppl|1"], "verdict:star")[0] == "worse"


def test_a_path_and_a_grid_have_their_own_baselines(path, grid):
    for folder, families in ((path, {"step", "total"}), (grid, {"grid"})):
        results = collect(folder)
        metrics, baselines = choices(results)
        assert baselines == results.rows[:1]
        shown = views(results)
        assert shown.keys() == {f"{metric}|0" for metric in metrics}
        design = results.manifest.design
        _, verdicts = independent(results, "test/ppl", None, design=design, slices=results.slices)
        for family in families:
            said = column(shown["test/ppl|0"], f"verdict:{family}")
            of_family = {v.row: v.verdict for v in verdicts if v.family == family}
            assert of_family
            assert all(said[results.rows.index(row)] == word for row, word in of_family.items())


def test_a_table_of_very_many_rows_keeps_every_baseline_for_its_primary_metric(hundred):
    results = collect(hundred)
    found = Counter(metric for metric, _ in combinations(results))
    assert found["test/ppl"] == 100
    assert set(found.values()) == {100, 1}
    assert sum(found.values()) * 99 <= MOST_CONTRASTS
