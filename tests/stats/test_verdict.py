"""The verdict: its words in their order, every edge case of the rules, and its invariances."""

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from lecture04.stats import Identity, Log, Logit, judge, noise_pool
from lecture04.stats.simultaneous import Block, Family

WORDS = re.compile(r"no verdict|diverged \d+/\d+|no noise|single run|equivalent|better|worse|unconfirmed|within noise")


def table(rows):
    return {f"row{i}": dict(enumerate(map(float, run))) for i, run in enumerate(rows)}


def noise(g, n, seed=0):
    return np.random.default_rng(seed).normal(size=(g, n))


def words(values, **arguments):
    return [v.verdict for v in judge(values, **arguments)]


def evenly(mean, spread, n=3):
    """n values with exactly this mean and standard deviation."""
    x = np.linspace(-1, 1, n)
    return dict(enumerate((mean + spread * x / x.std(ddof=1)).tolist()))


# The words, one by one


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_outside_both_keys_is_a_call_and_its_direction_follows_the_metric(lower_is_better):
    x = {"base": evenly(0, 1), "down": evenly(-20, 1), "up": evenly(20, 1), "near": evenly(0.5, 1)}
    called = ["better", "worse"] if lower_is_better else ["worse", "better"]
    assert words(x, lower_is_better=lower_is_better, matched=False) == [*called, "within noise"]


def test_outside_the_band_without_welchs_test_is_unconfirmed():
    """Quiet rows make s small; the two rows of this contrast are noisier, though not enough to be excluded."""
    rows = {"base": evenly(0, 2), "row": evenly(3.2, 2), **{f"quiet{i}": evenly(0, 0.8, 4) for i in range(2)}}
    first = judge(rows, matched=False)[0]
    assert not first.excluded
    assert abs(first.delta) > first.half_width
    assert first.p_welch > 0.05
    assert first.verdict == "unconfirmed"


def test_an_excluded_row_is_judged_by_welch_at_alpha_over_k():
    quiet = {f"row{i}": evenly(i % 2, 1, 5) for i in range(6)}
    for shift in (60, 120, 240):
        verdict = judge({**quiet, "wild": evenly(shift, 60, 5)}, matched=False)[-1]
        own = stats.ttest_ind(list(evenly(shift, 60, 5).values()), list(quiet["row0"].values()), equal_var=False)
        assert verdict.excluded == ("wild",)
        assert (verdict.verdict == "worse") == (own.pvalue < 0.05 / 6)
        assert verdict.verdict in {"worse", "within noise"}
    assert verdict.verdict == "worse"


def test_equivalent_when_the_whole_interval_lies_inside_the_margin():
    x = {"base": evenly(0, 1, 5), "row": evenly(0.1, 1, 5)}
    (plain,) = judge(x, matched=False)
    edge = max(abs(plain.lower), abs(plain.upper))
    assert plain.verdict == "within noise"
    assert words(x, matched=False, delta=edge * 1.001) == ["equivalent"]
    assert words(x, matched=False, delta=edge * 0.999) == ["within noise"]


def test_equivalent_comes_before_better_and_worse():
    x = {"base": evenly(0, 0.001, 5), "row": evenly(0.1, 0.001, 5)}
    assert words(x) == ["worse"]
    assert words(x, delta=0.2) == ["equivalent"]


def test_diverged_rows_are_named_and_never_better():
    x = table(noise(6, 3))
    x["row1"] = {0: -1e6, 1: math.nan, 2: -1e6}
    x["row2"] = {seed: math.inf for seed in range(3)}
    verdicts = judge(x, delta=1e9)
    assert [v.verdict for v in verdicts[:2]] == ["diverged 1/3", "diverged 3/3"]
    interval = stats.binomtest(1, 3).proportion_ci(0.95, "exact")
    assert verdicts[0].diverged == pytest.approx((1, 3, interval.low, interval.high))
    others = {row: seeds for row, seeds in x.items() if row not in {"row1", "row2"}}
    assert verdicts[2:] == judge(others, delta=1e9), "diverged rows change nothing for the rest"


def test_a_diverged_baseline_leaves_no_verdict():
    x = table(noise(6, 3))
    x["row0"][2] = math.nan
    x["row3"][1] = math.nan
    assert set(words(x)) == {"no verdict"}
    assert judge(x)[2].diverged[:2] == (1, 3), "what is known of the row itself is still said"


def test_a_diverged_row_of_a_path_says_so_once_and_its_successor_has_no_step():
    x = table(noise(5, 4, seed=1))
    x["row2"][0] = math.nan
    said = {(v.family, v.row): v.verdict for v in judge(x, design="path")}
    assert said["step", "row2"] == said["total", "row2"] == "diverged 1/4"
    assert said["step", "row3"] == "no verdict"
    assert said["total", "row3"] == "within noise"


def test_a_single_run_has_a_screening_band_and_no_call():
    x = {**table(noise(3, 4)), "once": {0: 1000.0}}
    once = judge(x, delta=1e9)[-1]
    assert once.verdict == "single run"
    assert once.half_width == pytest.approx(once.q * once.s * math.sqrt(1 + 1 / 4))
    assert math.isnan(once.p_welch)


def test_a_single_baseline_run_makes_every_row_a_single_run():
    x = {"once": {0: 0.0}, **table(noise(3, 4) + 50)}
    assert words(x) == ["single run"] * 3


def test_two_items_are_never_called():
    """Without noise but for the floor, three items in 100 000 at the edge are far outside; two are never called."""

    def shares(*counts):
        return table([[Logit(100_000).judged(count / 100_000)] * 9 for count in counts])

    few, many = judge(shares(99_990, 99_992, 99_993), lower_is_better=False, scale=Logit(100_000))
    assert abs(few.delta) > few.half_width
    assert few.p_welch < 0.05
    assert (few.verdict, many.verdict) == ("within noise", "better")
    assert words(shares(99_990, 99_988, 99_987), lower_is_better=False, scale=Logit(100_000)) == [
        "within noise",
        "worse",
    ]


def test_equal_accuracies_get_the_floor_and_other_metrics_do_not():
    x = {row: {seed: Logit(200).judged(0.9) for seed in range(3)} for row in "abcd"}
    assert {v.s for v in judge(x, scale=Logit(200))} == {Logit(200).floor(x)}
    assert all(math.isnan(v.s) for v in judge(x))


@pytest.mark.parametrize("scale", [Identity(), Log()])
def test_where_the_seeds_change_nothing_nothing_is_judged(scale):
    x = {"a": {0: 7.0, 1: 7.0}, "b": {0: 8.0, 1: 8.0}, "c": dict.fromkeys(range(5), 7.0)}
    assert words(x, scale=scale) == ["no noise"] * 2


@pytest.mark.parametrize("scale", [Identity(), Log()])
def test_a_difference_of_rounding_is_never_called(scale):
    """The same function under two names: the noise left is that of rounding, and all of it points one way."""
    reference = {0: 1.31, 1: 1.325, 2: 1.30}
    x = {
        "silu": reference,
        "swish": {seed: value + 1e-8 * (1 + 0.1 * seed) for seed, value in reference.items()},
        "more heads": {seed: value - 1e-8 for seed, value in reference.items()},
        "another": {seed: value + 1e-3 * (1 + 0.01 * seed) for seed, value in reference.items()},
    }
    assert words(x, scale=scale) == ["within noise", "within noise", "worse"]


@pytest.mark.parametrize(("scale", "share"), [(Identity(), 4.39), (Log(), 4.39), (Logit(1000), 0.99)])
def test_nothing_is_said_to_be_found_that_is_too_small_to_be_called(scale, share):
    x = {row: dict.fromkeys(range(3), scale.judged(share)) for row in "abcd"}
    x["a"][0] = scale.judged(share * (1 + 3e-6))
    for v in judge(x, scale=scale):
        assert v.smallest_effect >= 2 * np.sqrt(12) * scale.floor(x) > 0
        assert v.seeds_needed.n == math.inf


def test_one_runs_own_noise_holds_the_part_that_seeds_share():
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=40), rng.normal(size=(6, 40))
    x = {f"row{i}": dict(enumerate((3 * shared + row).tolist())) for i, row in enumerate(own)}
    blocked, unpaired = judge(x)[0], judge(x, matched=False)[0]
    assert blocked.blocked
    assert blocked.run_sd == unpaired.run_sd == pytest.approx(unpaired.s)
    assert blocked.run_sd == pytest.approx(np.sqrt(np.var([list(r.values()) for r in x.values()], 1, ddof=1).mean()))
    assert blocked.run_sd > 2 * blocked.s


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"a": {0: 1.0, 1: 2.0}}, []),
        ({"a": {}, "b": {}}, ["no verdict"]),
        ({"a": {0: 1.0, 1: 2.0}, "b": {}}, ["no verdict"]),
        ({"a": {}, "b": {0: math.nan}}, ["diverged 1/1"]),
        ({"a": {0: 1.0}, "b": {0: 2.0}, "c": {0: 3.0}}, ["single run"] * 2),
        ({"a": {0: 1.0, 1: 2.0}, "b": {0: 1.5, 1: 2.6}}, ["within noise"]),
        ({"a": {0: 1.0, 1: 1.1}, "b": {5: 99.0, 6: 99.1, 7: 98.9}}, ["worse"]),
    ],
)
def test_small_tables_have_a_stated_answer(values, expected):
    assert words(values) == expected


# Paths, grids, looks, seeds in favour


def test_a_path_has_its_steps_and_then_its_totals():
    verdicts = judge(table(noise(4, 3)), design="path")
    assert [v.family for v in verdicts] == ["step"] * 3 + ["total"] * 3
    assert [v.reference for v in verdicts] == ["row0", "row1", "row2", "row0", "row0", "row0"]


def test_a_grid_is_a_star_in_each_slice_and_one_family():
    x = table(noise(6, 3))
    slices = {"row0": 1e-3, "row1": 3e-3, "row2": 1e-3, "row3": 3e-3, "row4": 1e-3, "row5": "alone"}
    verdicts = judge(x, design="grid", slices=slices)
    assert [(v.row, v.reference) for v in verdicts] == [("row2", "row0"), ("row4", "row0"), ("row3", "row1")]
    assert {v.family for v in verdicts} == {"grid"}
    pool = noise_pool(x)
    assert {(v.s, v.df) for v in verdicts} == {(pool.s, pool.df)}
    together = Family((Block("star", (3, 3, 3)), Block("star", (3, 3))))
    assert {v.q for v in verdicts} == {together.quantile(0.05, pool.df)}


def test_a_grid_of_one_slice_is_a_star():
    x = table(noise(5, 3))
    grid = judge(x, design="grid", slices=dict.fromkeys(x, "all"))
    assert [dataclasses.replace(v, family="star") for v in grid] == judge(x)


def test_a_diverged_reference_silences_its_own_slice_alone():
    x = table(noise(6, 3))
    x["row0"][0] = math.nan
    said = words(x, design="grid", slices={row: int(row[-1]) // 3 for row in x})
    assert said[:2] == ["no verdict"] * 2
    assert "no verdict" not in said[2:]


def test_looks_divide_alpha():
    x = table(noise(6, 3))
    for a, b in zip(judge(x, looks=5), judge(x, alpha=0.01), strict=True):
        assert a == b
    x = {"base": evenly(0, 1, 6), "row": evenly(1.6, 1, 6)}
    assert words(x, matched=False) == ["worse"]
    assert words(x, matched=False, looks=4) == ["within noise"]


def test_seeds_in_favour_are_those_that_point_as_the_means_do():
    x = {"base": {0: 1.0, 1: 1.0, 2: 1.0, 9: 1.0}, "row": {0: 0.0, 1: 0.5, 2: 1.1, 7: 0.2}, "tie": {0: 1.0, 1: 3.0}}
    row, tie = judge(x)
    assert (row.favour, row.pairs) == (2, 3)
    assert (tie.favour, tie.pairs) == (1, 2), "a tie points nowhere"
    assert {(v.favour, v.pairs) for v in judge(x, matched=False)} == {(0, 0)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "ring"}, "star, path, grid"),
        ({"baseline": "nobody"}, "nobody"),
        ({"design": "path", "baseline": "row1"}, "first row"),
        ({"design": "grid"}, "slices"),
        ({"slices": {"row0": 1, "row1": 1, "row2": 1}}, "slices"),
        ({"design": "grid", "slices": {"row0": 1, "row1": 1}}, "row2"),
        ({"design": "grid", "slices": dict.fromkeys(["row0", "row1", "row2", "row9"], 1)}, "row9"),
        ({"design": "grid", "slices": dict.fromkeys(["row0", "row1", "row2"], 1), "baseline": "row0"}, "baseline"),
        ({"alpha": 0.0}, "alpha"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"delta": math.inf}, "delta"),
        ({"looks": 0}, "looks"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        judge(table(noise(3, 3)), **arguments)


# Invariances

VALUE = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, math.nan, math.inf]))
RAGGED = st.lists(st.dictionaries(st.integers(0, 5), VALUE, max_size=6), max_size=8)
SHAPES = st.tuples(st.integers(2, 7), st.integers(2, 5))
COMPLETE = st.tuples(SHAPES, st.integers(0, 10**6)).map(
    lambda drawn: (
        np.random.default_rng(drawn[1]).normal(size=drawn[0]).round(3)
        * np.random.default_rng(drawn[1] + 1).choice([1, 1, 1, 30], size=(drawn[0][0], 1))
    )
)
DESIGNS = st.sampled_from(["star", "path", "grid"])
PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)


def judged(x, design, **arguments):
    values = x if isinstance(x, dict) else table(x)
    if design == "grid":
        arguments["slices"] = {row: i % 2 for i, row in enumerate(values)}
    return judge(values, design=design, **arguments)


def said(verdicts):
    return [(v.verdict, v.favour, v.pairs, v.excluded) for v in verdicts]


@PROPERTY
@given(rows=RAGGED, design=DESIGNS, margin=st.sampled_from([None, 0.5]), matched=st.booleans())
def test_no_table_crashes(rows, design, margin, matched):
    values = {f"row{i}": seeds for i, seeds in enumerate(rows)}
    for v in judged(values, design, delta=margin, matched=matched):
        assert WORDS.fullmatch(v.verdict)
        bad = [name for name in (v.row, v.reference) if not all(map(math.isfinite, values[name].values()))]
        assert v.verdict.startswith(("no", "diverged")) == bool(bad or not values[v.row] or not values[v.reference])
        if v.verdict in {"better", "worse", "equivalent", "unconfirmed", "within noise"}:
            assert math.isfinite(v.half_width)
            assert min(v.n, v.n_reference) > 1
        assert 0 <= v.favour <= v.pairs
        needed = v.seeds_needed
        assert math.isnan(needed.n) == math.isnan(v.half_width)
        assert math.isnan(needed.n) or 2 <= needed.least <= needed.n <= needed.most
        assert math.isnan(v.smallest_effect) or v.smallest_effect >= 0


@PROPERTY
@given(counts=st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=2, max_size=6))
def test_a_call_on_accuracies_is_more_than_two_items(counts):
    values = table([[Logit(50).judged(c / 50) for c in run] for run in counts])
    for v in judge(values, scale=Logit(50), lower_is_better=False):
        apart = np.mean(counts[int(v.row[3:])]) - np.mean(counts[0])
        if v.verdict in {"better", "worse", "unconfirmed"}:
            assert abs(apart) > 2
            assert (v.delta > 0) == (v.verdict == "better") or v.verdict == "unconfirmed"


@PROPERTY
@given(x=COMPLETE, design=DESIGNS)
def test_renaming_rows_and_seeds_changes_nothing(x, design):
    renamed = {f"z{i}": {(7 * seed + 3) % 11: v for seed, v in enumerate(run.tolist())} for i, run in enumerate(x)}
    for a, b in zip(judged(x, design), judged(renamed, design), strict=True):
        assert said([a]) == [(b.verdict, b.favour, b.pairs, tuple(name.replace("z", "row") for name in b.excluded))]
        assert b.half_width == pytest.approx(a.half_width)


@PROPERTY
@given(x=COMPLETE, design=DESIGNS, shift=st.integers(-1000, 1000))
def test_a_constant_added_to_all_changes_nothing(x, design, shift):
    assert said(judged(x, design)) == said(judged(x + shift, design))


@PROPERTY
@given(x=COMPLETE, design=DESIGNS, factor=st.sampled_from([2.0**-20, 0.25, 1024.0]))
def test_scaling_with_its_margin_changes_no_verdict(x, design, factor):
    before, after = judged(x, design, delta=0.5), judged(x * factor, design, delta=0.5 * factor)
    assert said(before) == said(after)
    for a, b in zip(before, after, strict=True):
        assert b.seeds_needed == a.seeds_needed
        assert b.smallest_effect == pytest.approx(a.smallest_effect * factor)


@PROPERTY
@given(x=COMPLETE, design=DESIGNS)
def test_the_other_direction_swaps_better_and_worse(x, design):
    swap = {"better": "worse", "worse": "better"}
    x[-1] -= 20
    lower, higher = judged(x, design), judged(x, design, lower_is_better=False)
    assert [swap.get(v.verdict, v.verdict) for v in lower] == [v.verdict for v in higher]
    assert said(judged(-x, design)) == said(higher)


@PROPERTY
@given(x=COMPLETE, design=DESIGNS, shifts=st.lists(st.integers(-500, 500), min_size=5, max_size=5))
def test_a_constant_added_to_one_seed_changes_nothing_when_blocked(x, design, shifts):
    before = judged(x, design)
    assume(before and before[0].blocked)
    assert said(before) == said(judged(x + np.array(shifts)[: x.shape[1]], design))


@PROPERTY
@given(x=COMPLETE, design=DESIGNS, delta=st.floats(0.01, 5))
def test_a_margin_changes_nothing_but_to_equivalent(x, design, delta):
    for a, b in zip(judged(x, design), judged(x, design, delta=delta), strict=True):
        assert b.verdict == ("equivalent" if -delta < a.lower and a.upper < delta else a.verdict)
