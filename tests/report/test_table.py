"""The model of a table: what its cells say is what the results and the statistics say."""

import math
import re
from dataclasses import replace

import pytest

from lecture04.records.metrics import METRICS
from lecture04.report.comparison import judge_all
from lecture04.report.table import build
from lecture04.stats import Logit, judge, judged_values
from tests.report.examples import PPL, RECIPE

NOPE = {"nope": (3.871, 3.860, 3.874)}
LLAMA = {"llama": (3.848, 3.872, 3.799)}
GRID = {f"lr {lr}: {row}": seeds for lr in (1, 2) for row, seeds in PPL.items()}
SLICES = {row: row.partition(":")[0] for row in GRID}

DESIGNS = {
    "star": (PPL, {"design": "star"}),
    "path": (PPL | NOPE, {"design": "path"}),
    "grid": (GRID, {"design": "grid", "slices": SLICES}),
}
FIGURES = ("verdict", "family-adjusted p", "Welch p", "seeds agree", "seeds needed")
HEADINGS = {
    "star": ("vs base, %", *FIGURES),
    "step": tuple(f"step: {h}" for h in ("vs row before, %", *FIGURES)),
    "total": tuple(f"total: {h}" for h in ("vs base, %", *FIGURES)),
    "grid": ("vs slice's first, %", *FIGURES),
}


def changed(results, row, **about):
    """The same results, their manifest saying something else of a row."""
    rows = dict(results.manifest.rows) | {row: replace(results.manifest.rows[row], **about)}
    return results.under(replace(results.manifest, rows=rows))


def logs(values):
    return {row: {i: math.log(x) for i, x in enumerate(seeds) if x is not None} for row, seeds in values.items()}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_row_says_what_the_statistics_say(design, make_results, cell):
    values, settings = DESIGNS[design]
    table, *_ = build(make_results(values, **settings))
    verdicts = judge(logs(values), design=design, slices=settings.get("slices"))
    assert verdicts
    for v in verdicts:
        difference, verdict, p_adjusted, p_welch, agree, needed = (cell(table, v.row, h) for h in HEADINGS[v.family])
        # The interval is symmetric in logs; the table shows both of its ends in percent.
        shown = [float(x) for x in re.findall(r"[-+]?\d+\.\d+", difference.text)]
        assert shown == pytest.approx([100 * math.expm1(x) for x in (v.delta, v.lower, v.upper)], abs=0.006)
        assert difference.value == pytest.approx(100 * math.expm1(v.delta))
        assert verdict.text == v.verdict
        assert verdict.verdict.row == v.row
        assert p_adjusted.value == pytest.approx(v.p_adjusted)
        assert p_welch.value == pytest.approx(v.p_welch)
        assert p_welch.text == (f"{v.p_welch:.4f}" if v.p_welch >= 1e-4 else "<0.0001")
        assert agree.text == f"{v.favour} of {v.pairs}"
        assert needed.value == v.seeds_needed.n
        assert needed.text.startswith("more than 100" if v.seeds_needed.n > 100 else str(v.seeds_needed.n))
        if v.lower <= 0 <= v.upper:
            assert f"(from {v.seeds_needed.least}" in needed.text


@pytest.mark.parametrize("design", DESIGNS)
def test_the_references_are_compared_with_nothing(design, make_results):
    values, settings = DESIGNS[design]
    table, *_ = build(make_results(values, **settings))
    silent = [row for row in table.rows if row[2].text == ""]
    assert len(silent) == (2 if design == "grid" else 1)
    word = "start" if design == "path" else "baseline"
    for row in silent:
        said = [cell for cell, column in zip(row, table.columns, strict=True) if column.kind == "verdict"]
        assert {cell.text for cell in said} == {word}
        assert all(cell.verdict is None for cell in said)


def test_a_path_has_two_families_and_the_legend_says_what_that_means(make_results, words):
    table, *_ = build(make_results(PPL | NOPE, design="path"))
    assert "all 3 steps" in words(table)
    assert "all 3 totals (each row against base)" in words(table)
    assert "up to 5 % of tables, and the two together in up to 10 %" in words(table)


def test_a_grids_slices_are_set_apart_and_are_one_family(make_results, words):
    table, *_ = build(make_results(GRID, SLICES, design="grid"))
    assert table.breaks == (3,)
    assert "all 4 comparisons of all slices at once" in words(table)


def test_every_seeds_value_stands_in_its_row(make_results, cell):
    table, *_ = build(make_results(PPL))
    for row, values in PPL.items():
        assert [cell(table, row, f"seed {seed}").text for seed in range(3)] == [f"{value:.3f}" for value in values]
        assert cell(table, row, "test ppl (n)").text == f"{sum(values) / 3:.3f} (3)"
        assert cell(table, row, "test ppl (n)").value == pytest.approx(sum(values) / 3)


VERDICTS = {
    "better": (PPL, "swiglu", {}),
    "worse": (PPL | NOPE, "nope", {}),
    "within noise": (PPL, "rmsnorm", {}),
    "unconfirmed": (RECIPE, "+ SwiGLU", {}),  # its own seeds: p = .06
    "equivalent": (PPL, "rmsnorm", {"delta": 0.01}),
    "single run": (PPL | {"one": (3.7, None, None)}, "one", {}),
    "no verdict": (PPL | {"none": (None, None, None)}, "none", {}),
    "diverged 1/3": (PPL | {"bad": (3.9, math.nan, 3.8)}, "bad", {}),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_is_said_and_explained(verdict, make_results, cell):
    values, row, settings = VERDICTS[verdict]
    table, *_ = build(make_results(values, **settings))
    assert cell(table, row, "verdict").text == verdict
    terms = {term for note in table.legend for term in note.term.split(" / ")}
    assert ("diverged m/n" if "diverged" in verdict else verdict) in terms
    explained = terms & {"better", "worse", "within noise", "unconfirmed", "equivalent", "single run", "no verdict"}
    said = {row[table.headings.index("verdict")].text for row in table.rows}
    assert explained <= said, "a word that does not occur is not explained"


def test_within_noise_is_not_called_equal(make_results, words):
    assert "does not mean that the rows are equal" in words(build(make_results(PPL))[0])


def test_an_accuracy_is_better_where_it_is_higher_and_judged_on_log_odds(make_results, cell, words):
    values = {"a": (3.8, 3.9, 4.0, 4.1), "b": (40.0, 40.4, 40.8, 40.6)}  # accuracies .99 and .90
    results = make_results(values, primary="pronouns/accuracy", columns=["pronouns/accuracy", "test/ppl"])
    table, *_ = build(results)
    assert cell(table, "b", "verdict").text == "worse"
    (v,) = judge(
        judged_values(results.values("pronouns/accuracy"), Logit(500)), lower_is_better=False, scale=Logit(500)
    )
    assert cell(table, "b", "vs a, log odds").value == pytest.approx(v.delta)
    assert "higher is better" in words(table)
    assert "N = 500 items" in words(table)
    two_apart = make_results(
        {"a": (4.0, 4.0, 4.0), "b": (5.6, 5.6, 5.6)}, primary="pronouns/accuracy", columns=["pronouns/accuracy"]
    )
    table, *_ = build(two_apart)
    assert cell(table, "b", "verdict").text == "within noise", "two items of 500"


def test_every_noisy_metric_says_which_way_is_better():
    assert not METRICS["pronouns/accuracy"].lower_is_better
    for name in ("test/nll", "test/ppl", "val/excess", "test/nll@64-127"):
        assert METRICS[name].noisy
        assert METRICS[name].lower_is_better


def test_a_declared_margin_has_its_column_and_its_note(make_results, cell, words):
    table, *_ = build(make_results(PPL, delta=0.01))
    v = next(v for v in judge(logs(PPL), delta=0.01) if v.row == "rmsnorm")
    assert cell(table, "rmsnorm", "seeds for margin").value == v.seeds_for_margin
    low, high = (f"{100 * math.expm1(sign * 0.01):.2f} % ({sign * 0.01:.4f} nats)" for sign in (-1, 1))
    assert f"from {low} to {high}, declared in sweep.delta" in words(table)
    assert table.headings.index("seeds for margin") < table.headings.index("seeds needed")
    without, *_ = build(make_results(PPL))
    assert "seeds for margin" not in without.headings
    assert "margin" not in {note.term for note in without.legend}


def test_looks_widen_the_band_and_are_said(make_results, cell, words):
    once, *_ = build(make_results(PPL))
    thrice, *_ = build(make_results(PPL, looks=3))
    assert cell(thrice, "swiglu", "verdict").verdict.half_width > cell(once, "swiglu", "verdict").verdict.half_width
    assert "judged 3 times in all" in words(thrice)
    assert "98.33 %" in words(thrice)
    assert "looks" not in {note.term for note in once.legend}


def test_the_other_metrics_have_a_band_and_no_verdict(make_results, words):
    main, others = build(make_results(PPL))
    assert "uncorrected across metrics" in others.title
    assert "uncorrected across metrics" in words(others)
    assert {column.kind for column in others.columns} == {"row", "difference"}
    assert {column.block for column in others.columns[1:]} == {"pronouns/accuracy", "train/nll"}
    assert all("[" in cell.text for cell in others.rows[1][1:])
    assert len(build(make_results(PPL, columns=["test/ppl", "params"]))) == 1


def test_a_margin_is_of_the_primary_metric_alone(make_results):
    primary, *others = judge_all(make_results(PPL, delta=0.5))
    assert {v.verdict for v in primary.verdicts} == {"equivalent"}
    assert all(v.margin is None for one in others for v in one.verdicts)
    assert primary.declared == "test/nll"
    assert primary.metric == "test/ppl"


def test_the_noise_the_pairing_and_the_smallest_effect_are_said(make_results, words):
    for values, blocked in ((PPL | NOPE, True), (PPL, False)):
        table, *_ = build(make_results(values))
        v = judge(logs(values))[0]
        assert v.blocked is blocked
        assert f"{v.df} degrees of freedom" in words(table)
        assert (f"varies by {100 * math.expm1(v.run_sd):.2f} % ({v.run_sd:.4f} nats)" in words(table)) is blocked
        assert ("mean over the rows taken off first" in words(table)) is blocked, "Welch's test too"
        assert ("not blocked" in words(table)) is not blocked
        assert f"q = {v.q:.2f}" in words(table)
        shown = f"{100 * math.expm1(v.smallest_effect):.2f} % ({v.smallest_effect:.4f} nats)"
        assert f"finds a true difference of {shown} 80 % of the time" in words(table)


def test_a_noisy_row_carries_its_mark_and_is_explained(make_results, cell, words):
    table, *_ = build(make_results(PPL | NOPE | LLAMA))
    marked = [row[0].text for row in table.rows if row[0].mark]
    assert marked == ["llama"]
    assert str(cell(table, "llama", "row")) == "llama ~"
    assert cell(table, "llama", "vs base, %").mark == "~"
    assert "llama ~: much noisier" in words(table)
    assert "at 1.25 % each" in words(table)


def test_a_noisy_baseline_leaves_the_table_its_smallest_effects(make_results, words):
    values = {"base": (3.7, 3.9, 4.1)} | {k: v for k, v in RECIPE.items() if k != "2017"}
    table, *_ = build(make_results(values))
    assert all(v.excluded for row in table.rows if (v := row[2].verdict))
    assert "base ~: much noisier" in words(table)
    assert "this table finds a true difference of" in words(table)


def test_a_diverged_row_says_so_with_its_interval_and_is_never_compared(make_results, cell, words):
    table, *_ = build(make_results({**PPL, "bad": (3.7, math.nan, 3.7)}))
    assert cell(table, "bad", "test ppl (n)").text == "diverged 1/3"
    assert cell(table, "bad", "vs base, %").text == ""
    assert cell(table, "bad", "seed 1").text == "diverged"
    assert cell(table, "bad", "params").text == "105,984"
    assert "1 of 3 seeds diverged: the share that does lies between 1% and 91%" in words(table)


def test_without_its_baseline_a_table_has_no_verdict(make_results):
    table, *_ = build(make_results({"base": (math.nan, 3.8, 3.8), **{k: PPL[k] for k in ("rmsnorm", "swiglu")}}))
    at = table.headings.index("verdict")
    assert [row[at].text for row in table.rows] == ["baseline", "no verdict", "no verdict"]


def test_a_row_says_how_many_of_its_seeds_are_there(make_results, cell, words):
    table, *_ = build(
        make_results({**PPL, "later": (None,) * 3, "half": (3.8, None, 3.9), "sick": (3.8, 3.81, "failed")})
    )
    assert cell(table, "later", "test ppl (n)").text == "- (0 of 3)"
    assert cell(table, "half", "test ppl (n)").text == "3.850 (2 of 3)"
    assert cell(table, "half", "seed 1").text == "-"
    assert cell(table, "sick", "seed 2").text == "failed"
    assert cell(table, "half", "seeds agree").text.endswith("of 2")
    assert "half: 2 of 3 seeds are there" in words(table)
    assert "sick: 2 of 3 seeds are there; seed 2 failed" in words(table)


@pytest.mark.parametrize(
    "values",
    [
        {"a": (3.8,), "b": (3.9,)},
        {"a": (None, None), "b": (None, None)},
        {"a": (3.8, 3.9, 3.85)},
        {"a": (3.8, 3.9), "b": ("failed", "failed")},
        {"a": (math.nan,), "b": (math.nan,)},
    ],
    ids=["one seed", "no run", "one row", "all failed", "all diverged"],
)
@pytest.mark.parametrize("design", ["star", "path"])
def test_a_poor_table_is_still_a_table(values, design, make_results, words):
    table, *_ = build(make_results(values, design=design))
    assert len(table.rows) == len(values)
    assert all(len(row) == len(table.columns) for row in table.rows)
    difference = [column.kind for column in table.columns].index("difference") if len(values) > 1 else None
    if difference:
        assert not any("[" in row[difference].text for row in table.rows)
        assert "better, worse" not in words(table)


def test_one_seed_gives_no_band_and_says_what_it_takes(make_results, cell, words):
    table, *_ = build(make_results({"a": (3.8,), "b": (3.9,)}))
    assert cell(table, "b", "vs a, %").text == "+2.63"
    assert cell(table, "b", "verdict").text == "single run"
    assert cell(table, "b", "seeds needed").text == ""
    assert "No band" in words(table)


def test_two_rows_are_one_comparison(make_results, words):
    table, *_ = build(make_results({k: PPL[k] for k in ("base", "swiglu")}))
    assert "one comparison" in words(table)


def test_a_mismatch_of_parameters_is_marked_and_explained(make_results, cell, words):
    results = changed(make_results(PPL), "swiglu", mismatch=0.031)
    table, *_ = build(results)
    assert str(cell(table, "swiglu", "d_ff")) == "256 (+3.1%) !"
    assert "!: over 2% more or fewer parameters than the matched number: swiglu" in words(table)


def test_runs_of_other_code_are_said(make_results, words):
    results = changed(make_results(PPL), "swiglu", other_code=(1,))
    assert "Runs of other code stand in (runs.reuse=config): swiglu" in words(build(results)[0])
