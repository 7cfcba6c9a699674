"""The first screen: short, one block, and all of it what the statistics say."""

import math

import pytest

from lecture04.report.comparison import judge_all, judge_primary
from lecture04.report.screen import screen
from tests.report.examples import PPL, RECIPE

LONG = {f"attention=gqa, ffn=swiglu, optim.lr=0.00{i}": PPL["base"] for i in range(3)}
SEVERAL = {
    "path": (RECIPE, {"design": "path"}),
    "star": (PPL, {}),
    "odd": (PPL | {"bad": (3.7, math.nan, 3.7), "gone": (None, "failed", None), "noisy": (3.6, 3.9, 4.2)}, {}),
    "long names": (LONG, {}),
}


@pytest.mark.parametrize("case", SEVERAL)
@pytest.mark.parametrize("width", [64, 80, 120, 200])
def test_it_is_one_block_in_which_no_verdict_leaves_its_row(case, width, make_results):
    values, settings = SEVERAL[case]
    results = make_results(values, **settings)
    text = screen(results, judge_primary(results), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert sum("───" in line for line in text.splitlines()) == 1, "one table"
    for v in judge_primary(results).verdicts:
        if v.family != "total":
            begins = v.row.split()[0][:4]  # a long name is broken
            assert any(begins in line and v.verdict in line for line in text.splitlines())


def test_at_80_and_120_columns_the_recipe_fits_a_screen(make_results):
    results = make_results(RECIPE, design="path")
    for width in (80, 120):
        assert len(screen(results, judge_primary(results), width).splitlines()) <= 22  # and the way to the page: 25


@pytest.mark.parametrize("case", SEVERAL)
def test_there_are_three_notes_at_most_and_each_fits_a_line_of_120(case, make_results):
    values, settings = SEVERAL[case]
    results = make_results(values, **settings)
    notes = screen(results, judge_primary(results), 120).rpartition("\n\n")[2].splitlines()
    assert 1 <= len(notes) <= 3


def test_columns_give_way_to_the_verdict_in_their_order(make_results):
    results = make_results(RECIPE, design="path")
    wide, narrow = (screen(results, judge_primary(results), width) for width in (120, 70))
    assert "vs 2017, %" in wide
    assert "vs 2017, %" not in narrow
    star = make_results(PPL)
    assert "seeds needed" in screen(star, judge_primary(star), 120)
    assert "seeds needed" not in screen(star, judge_primary(star), 60)


def test_the_excess_stands_beside_the_perplexity_where_the_truth_is_known(make_results):
    results = make_results(PPL)
    assert "excess" not in screen(results, judge_primary(results), 120)
    lines = results.runs[results.runs.metric == "test/nll"].assign(metric="test/excess")
    lines["value"] -= math.log(3.626)
    import pandas as pd

    known = type(results)(results.folder, results.manifest, pd.concat([results.runs, lines]))
    text = screen(known, judge_primary(known), 120)
    assert "excess, nats" in text
    mean = sum(map(math.log, PPL["base"])) / 3 - math.log(3.626)
    assert f"{mean:.4f}" in next(line for line in text.splitlines() if line.startswith("base"))
    assert "0 is the best possible" in text


def test_odd_rows_are_said_in_the_last_note(make_results):
    values, _ = SEVERAL["odd"]
    results = make_results(values)
    last = screen(results, judge_all(results)[0], 200).splitlines()[-1]
    assert "~ much noisier, judged by its own seeds: noisy" in last
    assert "failed seeds (see train.log): gone" in last
