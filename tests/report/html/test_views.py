"""What a page shows of each metric and baseline is what the protocol says of it."""

import math
import re
from collections import Counter

import pytest

from lecture04.report.figures import data
from lecture04.report.html.views import MOST_CONTRASTS, NO_VERDICTS, choices, combinations, metric_data
from lecture04.report.html.views import shown as as_shown
from lecture04.report.html.views import views as judged_views
from lecture04.report.results import collect
from lecture04.stats import Identity, Log, Logit, judge, judged_values


def views(results):
    """{choice: what the page shows of it}."""
    return {key: as_shown(view) for key, view in judged_views(results).items()}


def ids(view):
    """The columns' names."""
    return [id for id, *_ in view["columns"]]


def column(view, name):
    """{row's number: text} of a column."""
    place = ids(view).index(name)
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
            differences = column(view, "difference:star")
            for v in verdicts:
                if not math.isnan(v.delta):
                    text = differences[results.rows.index(v.row)]
                    assert "±" not in text
                    found = [float(x) for x in re.findall(r"[-+]?\d+\.\d+", text)]
                    ends = [x for x in (v.lower, v.upper) if not math.isnan(x)]
                    expected = [scale.difference(x) for x in (v.delta, *ends)]
                    assert found == pytest.approx(expected, abs=0.006)
            if metric != "test/ppl":
                assert not [name for name in ids(view) if name.startswith(("verdict", "p_", "seeds_needed"))]
                assert {entry[7] for entry in view["forest"]["star"]} == {""}
                assert view["remark"].startswith(NO_VERDICTS)
                assert not [term for term, _ in view["notes"] if term in ("better", "worse", "within noise")]
                continue
            said = column(view, "verdict:star")
            assert said[number] == "baseline"
            assert {results.rows.index(v.row): v.verdict for v in verdicts} == {
                row: word for row, word in said.items() if row != number
            }
            assert bool(view["remark"]) == bool(number), "another baseline is one more look"


def test_seeds_needed_and_p_are_those_of_the_tables_own_choice(star):
    """They take some ten milliseconds each, of each contrast of each view."""
    shown = views(collect(star))
    details = {"p_adjusted:star", "p_welch:star", "seeds_needed:star", "margin_seeds:star"}
    assert {key for key, view in shown.items() if details & {*ids(view)}} == {"test/ppl|0"}
    assert details <= {*ids(shown["test/ppl|0"])}


def test_the_excess_stands_beside_the_mean(star):
    shown = views(collect(star))
    assert ids(shown["test/ppl|0"])[:3] == ["row", "mean", "excess"]
    assert "excess" in ids(shown["train/nll|0"])
    assert "excess" not in ids(shown["pronouns/accuracy|0"])


def test_what_the_forest_draws_is_the_verdicts_interval(star):
    results = collect(star)
    view = views(results)["test/ppl|1"]
    scale, verdicts = independent(results, "test/ppl", results.rows[1], delta=0.03)
    assert view["margins"] == pytest.approx([scale.difference(-0.03), scale.difference(0.03)], rel=1e-4)
    for v, (row, reference, value, low, high, noise_low, noise_high, said, dots) in zip(
        verdicts, view["forest"]["star"], strict=True
    ):
        assert (results.rows[row], results.rows[reference], said) == (v.row, v.reference, v.verdict)
        drawn = [math.nan if x is None else x for x in (value, low, high, noise_low, noise_high)]
        judged = (v.delta, v.lower, v.upper, -v.half_width, v.half_width)
        assert drawn == pytest.approx(
            [math.nan if math.isnan(x) else scale.difference(x) for x in judged], rel=1e-4, nan_ok=True
        )
        own, other = (results.values("test/ppl")[name] for name in (v.row, v.reference))
        paired = {seed: 100 * (own[seed] / other[seed] - 1) for seed in own} if not math.isnan(v.delta) else {}
        assert dict(dots) == pytest.approx(paired, rel=1e-3)


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


def test_a_table_of_very_many_rows_keeps_its_own_baseline(hundred, make_sweep):
    """Every baseline of the primary metric where they fit; then those of the other metrics go first."""
    sixty = make_sweep({f"row {i}": (3.8, 3.9) for i in range(60)}, name="sixty")
    for folder, expected in ((hundred, 1), (sixty, 60)):
        results = collect(folder)
        found = Counter(metric for metric, _ in combinations(results))
        assert found["test/ppl"] == expected
        assert {found[metric] for metric in found if metric != "test/ppl"} == {1}
        assert sum(found.values()) * len(results.rows) <= MOST_CONTRASTS


def test_a_grids_lines_end_at_the_means_of_the_last_slice(recall):
    results = collect(recall)
    for view in judged_views(results).values():
        grid = metric_data(view)["grid"]
        values = results.values(view.judged.metric)
        low, high = grid["range"]
        assert all(low < x < high for seeds in values.values() for x in seeds.values() if math.isfinite(x))
        assert set(grid["ends"]) == {"width 128", "width 64", "width 32"}
        for name, (mean, place) in grid["ends"].items():
            seeds = values[f"16 pairs: {name}"].values()
            assert mean == pytest.approx(sum(seeds) / len(seeds), rel=1e-4)
            assert low <= place <= high


@pytest.mark.parametrize(
    ("labels", "is_one"),
    [
        (["4 pairs", "8 pairs", "16 pairs"], True),
        (["lr 1e-2", "lr 1e-3"], True),
        (["4 pairs", "16 pairs", "8 pairs"], False),
        (["4 pairs", "4.0 pairs"], False),
        (["copy", "sort"], False),
        (["copy 1", "sort 2"], False),
        (["lr 1e-3, 0 steps", "lr 1e-3, 200 steps"], False),
    ],
)
def test_a_line_joins_slices_that_are_one_quantity(labels, is_one):
    assert data.is_one_quantity(labels) == is_one
