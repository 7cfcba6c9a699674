"""The sentence of a table: it names what was called, says how much of it, and what could be found at all."""

import math
from dataclasses import replace

import pytest

from lecture04.report.answer import answer
from lecture04.report.comparison import judge_all, judge_primary
from tests.report.examples import PPL, RECIPE

NAN = math.nan


def said(results):
    return answer(results, judge_primary(results))


def test_a_path_says_its_steps_and_what_it_comes_to_in_all(make_results):
    assert said(make_results(RECIPE, design="path")) == (
        "RoPE (-1.30 %) is better than the row before; pre-norm (+1.02 %) is worse; the other four are within the "
        "noise; this table finds a true difference of 1.00 % four times in five. "
        "From 2017 to the last row in all: -0.64 %, within the noise."
    )


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        (PPL, {}, "swiglu (-0.79 %) is better than base; rmsnorm is within the noise; this table finds"),
        (
            PPL | {"same": (3.821, 3.818, 3.826), "a": PPL["swiglu"]},
            {},
            "swiglu (-0.79 %) and a (-0.79 %) are better than base; the other two are within the noise",
        ),
        ({k: PPL[k] for k in ("base", "rmsnorm")}, {}, "rmsnorm differs from base by no more than the noise"),
        (
            {k: PPL[k] for k in ("base", "rmsnorm")} | {"c": (3.826, 3.815, 3.824)},
            {},
            "Neither row differs from base by more than the noise",
        ),
        (PPL, {"delta": 0.5}, "rmsnorm (+0.08 %) and swiglu (-0.79 %) are equivalent to base; this table"),
        ({"a": (3.8,), "b": (3.9,)}, {}, "One seed a row, which tells no difference from the noise: add seeds"),
        (PPL | {"one": (3.7, None, None)}, {}, "one: one seed, which tells"),
        (PPL | {"bad": (3.7, NAN, NAN)}, {}, "bad diverged in 2 of 3 seeds"),
        ({"base": (NAN, 3.8), "b": (3.8, 3.9)}, {}, "base diverged, so nothing can be compared with it"),
        (PPL | {"gone": (None,) * 3}, {}, "Not complete: 9 of 12 runs are there. swiglu"),
        (PPL | {"gone": (None,) * 3}, {}, "gone has no result yet"),
        ({"a": (3.8, 3.8), "b": (3.9, 3.9)}, {}, "The seeds change nothing here, so there is no noise to judge by."),
        ({"a": (3.8, 3.9)}, {}, "a: test ppl 3.850, the mean of 2 seeds (from 3.800 to 3.900); there is no other row"),
        ({"a": (3.8,)}, {}, "a: test ppl 3.800, of one seed; there is no other row to compare it with."),
        ({"a": (3.8, NAN)}, {}, "a diverged in 1 of 2 seeds."),
        ({"a": (None, None), "b": (None, None)}, {}, "No run has ended yet."),
    ],
)
def test_every_verdict_has_its_clause(values, settings, expected, make_results):
    assert expected in said(make_results(values, **settings))


def test_an_unconfirmed_row_asks_for_seeds(make_results):
    values = {k: RECIPE[k] for k in ("2017", "+ pre-norm", "+ RMSNorm", "+ SwiGLU")}
    results = make_results(values)
    judged = judge_primary(results)
    verdicts = [replace(v, verdict="unconfirmed") if v.row == "+ SwiGLU" else v for v in judged.verdicts]
    assert "+ SwiGLU (+0.81 %) is unconfirmed, so add seeds" in answer(results, replace(judged, verdicts=verdicts))


def test_of_many_rows_the_first_are_named_and_the_rest_counted(make_results):
    values = {"base": PPL["base"]} | {f"r{i}": tuple(x - 0.1 - i / 1000 for x in PPL["base"]) for i in range(7)}
    assert said(make_results(values)).startswith("r0 (-2.62 %), r1 (-2.64 %), r2 (-2.67 %) and 4 more are better")


def test_every_call_of_a_grid_names_its_slice(make_results):
    values = {f"lr {lr}: {row}": seeds for lr in (1, 2) for row, seeds in PPL.items()}
    slices = {row: row.partition(":")[0] for row in values}
    text = said(make_results(values, slices, design="grid"))
    assert "lr 1: swiglu (-0.79 %) and lr 2: swiglu (-0.79 %) are better than the first row of the slice" in text


def test_the_smallest_effect_is_that_of_the_statistics(make_results):
    results = make_results(PPL)
    v = judge_all(results)[0].verdicts[0]
    effect = f"{100 * math.expm1(v.smallest_effect):.2f} %"
    assert f"this table finds a true difference of {effect} four times in five" in said(results)


def test_a_row_keeps_its_name(make_results):
    results = make_results({"rope": PPL["base"], "none": PPL["rmsnorm"]}, columns=["test/ppl"])
    assert said(results).startswith("none differs from rope by no more than the noise")
