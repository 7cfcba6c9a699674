"""The band: its invariances, scipy's Dunnett, and every table that must not crash it."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lecture04.stats import Identity, judge, noise_pool
from lecture04.stats.simultaneous import Block, Family


def table(rows):
    return {f"row{i}": dict(enumerate(map(float, run))) for i, run in enumerate(rows)}


class Floored(Identity):
    """Judged as it is, with a floor of s of .1."""

    def floor(self, values):
        return 0.1


def noise(g, n, seed=0):
    return np.random.default_rng(seed).normal(size=(g, n))


def test_agrees_with_scipys_dunnett():
    runs = [noise(1, n, seed=n)[0] + shift for n, shift in [(4, 0), (6, 1), (3, -0.5), (5, 2)]]
    contrasts = judge(table(runs), design="star")
    assert not any(c.excluded for c in contrasts)
    rng = np.random.default_rng(0)
    result = stats.dunnett(*runs[1:], control=runs[0], rng=rng)
    interval = result.confidence_interval(0.95)
    np.testing.assert_allclose([c.lower for c in contrasts], interval.low, atol=1e-2)
    np.testing.assert_allclose([c.upper for c in contrasts], interval.high, atol=1e-2)
    np.testing.assert_allclose([c.p_adjusted for c in contrasts], result.pvalue, atol=1e-3)


@pytest.mark.parametrize("design", ["star", "path"])
def test_a_constant_added_to_one_seed_changes_nothing_when_blocked(design):
    x = noise(6, 3)
    x[4] *= 30
    before, after = judge(table(x), design=design), judge(table(x + np.array([0, 5.0, -70])), design=design)
    assert before[0].blocked
    for a, b in zip(before, after, strict=True):
        assert (b.delta, b.half_width, b.p_welch) == pytest.approx((a.delta, a.half_width, a.p_welch))
        assert b.excluded == a.excluded


@pytest.mark.parametrize("factor", [-1.0, 1e-9, 1e9])
@pytest.mark.parametrize("design", ["star", "path"])
def test_scaling_scales(design, factor):
    x = noise(6, 3)
    for a, b in zip(judge(table(x), design=design), judge(table(x * factor), design=design), strict=True):
        assert (b.delta, b.half_width) == pytest.approx((a.delta * factor, a.half_width * abs(factor)), rel=1e-6)
        assert (b.p_adjusted, b.p_welch) == pytest.approx((a.p_adjusted, a.p_welch), rel=1e-6)


def test_names_and_the_order_of_a_stars_rows_do_not_matter():
    x = table(noise(6, 3))
    x["row4"] = {seed: 30 * value for seed, value in x["row4"].items()}
    shuffled = {row: x[row] for row in ("row5", "row0", "row3", "row4", "row1", "row2")}
    a = {c.row: c for c in judge(x, design="star", baseline="row0")}
    b = {c.row: c for c in judge(shuffled, design="star", baseline="row0")}
    assert a.keys() == b.keys()
    for row, c in a.items():
        assert b[row].half_width == pytest.approx(c.half_width)
        assert b[row].excluded == c.excluded
    renamed = judge({f"z{row}": seeds for row, seeds in x.items()}, design="star")
    assert [c.half_width for c in renamed] == [c.half_width for c in a.values()]


def test_any_row_can_be_the_baseline():
    contrasts = judge(table(noise(4, 3)), design="star", baseline="row2")
    assert [(c.row, c.reference) for c in contrasts] == [("row0", "row2"), ("row1", "row2"), ("row3", "row2")]


@pytest.mark.parametrize("design", ["star", "path"])
def test_p_of_the_table_is_alpha_at_the_edge_of_the_judge(design):
    x = noise(5, 4)
    for c in judge(table(x), design=design, alpha=0.02):
        family = Family((Block("chain" if c.family == "step" else "star", (4,) * 5),))
        assert 1 - family.cdf(c.half_width / (c.s * math.sqrt(1 / 2)), c.df) == pytest.approx(0.02, abs=1e-8)
        assert (c.p_adjusted < 0.02) == (abs(c.delta) > c.half_width)


def test_single_runs_are_judged_by_the_others_noise():
    values = {**table(noise(3, 4)), "once": {0: 3.0}}
    once = judge(values, design="star")[-1]
    assert once.half_width == pytest.approx(once.q * once.s * math.sqrt(1 + 1 / 4))
    assert math.isnan(once.p_welch)
    assert all(math.isnan(c.half_width) for c in judge({"a": {0: 1.0}, "b": {0: 2.0}}, design="star"))


def test_a_noisy_baseline_is_judged_by_welch_throughout():
    x = noise(6, 4)
    x[0] *= 50
    contrasts = judge(table(x), design="star")
    pool = noise_pool(table(x))
    n = 4
    for c in contrasts:
        assert c.excluded == ("row0",)
        kept = x - x[1:].mean(0)
        v, v0 = kept[int(c.row[-1])].var(ddof=1) * 5 / 4 / n, kept[0].var(ddof=1) / n
        df = (v + v0) ** 2 / ((v**2 + v0**2) / (n - 1))
        assert c.half_width == pytest.approx(stats.t.isf(0.05 / 5 / 2, df) * math.sqrt(v + v0))
        assert c.p_adjusted == pytest.approx(min(1, 5 * c.p_welch))
        assert c.s == pool.s


def test_unblocked_p_welch_is_scipys_welch():
    runs = [noise(1, n, seed=n)[0] for n in (3, 6, 4)]
    for c, run in zip(judge(table(runs), design="star"), runs[1:], strict=True):
        assert c.p_welch == pytest.approx(stats.ttest_ind(run, runs[0], equal_var=False).pvalue)


def test_a_diverged_row_has_no_band_and_leaves_the_family():
    x = table(noise(5, 3))
    with_bad = {"row0": x["row0"], "bad": {0: 1.0, 1: math.nan, 2: 1.0}, **x}
    contrasts = {c.row: c for c in judge(with_bad, design="star")}
    assert math.isnan(contrasts["bad"].delta)
    assert math.isnan(contrasts["bad"].half_width)
    for c in judge(x, design="star"):
        assert contrasts[c.row] == c
    assert all(math.isnan(c.delta) for c in judge(with_bad, design="star", baseline="bad"))


def test_a_diverged_row_cuts_a_path():
    x = table(noise(6, 4))
    x["row2"][1] = math.nan
    contrasts = judge(x, design="path")
    dead = [(c.family, c.row) for c in contrasts if math.isnan(c.half_width)]
    assert dead == [("step", "row2"), ("step", "row3"), ("total", "row2")]
    cut = Family((Block("chain", (4, 4)), Block("chain", (4, 4, 4))))
    assert contrasts[0].q == cut.quantile(0.05, contrasts[0].df)


def test_where_seeds_change_nothing_there_is_no_band():
    contrasts = judge({"a": {0: 7.0, 1: 7.0}, "b": {0: 8.0, 1: 8.0}, "c": {0: 7.0, 1: 7.0}}, design="star")
    assert [c.delta for c in contrasts] == [1, 0]
    for c in contrasts:
        assert all(map(math.isnan, (c.half_width, c.p_adjusted, c.p_welch, c.s, c.seeds_needed.n, c.smallest_effect)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "ring"}, "star, path"),
        ({"design": "star", "baseline": "nobody"}, "nobody"),
        ({"design": "path", "baseline": "row1"}, "first row"),
        ({"design": "star", "alpha": 0.0}, "alpha"),
        ({"design": "star", "alpha": math.nan}, "alpha"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        judge(table(noise(3, 3)), **arguments)


SEEDS = st.dictionaries(
    st.integers(0, 5), st.one_of(st.floats(-1e9, 1e9), st.sampled_from([0.0, 1.0, math.nan, math.inf])), max_size=6
)
TABLES = st.one_of(
    st.lists(SEEDS, max_size=8),
    st.tuples(st.integers(1, 8), st.integers(1, 6)).flatmap(
        lambda shape: st.lists(
            st.lists(st.floats(-10, 10), min_size=shape[1], max_size=shape[1]).map(lambda run: dict(enumerate(run))),
            min_size=shape[0],
            max_size=shape[0],
        )
    ),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    rows=TABLES,
    design=st.sampled_from(["star", "path"]),
    scale=st.sampled_from([Identity(), Floored()]),
    matched=st.booleans(),
)
def test_no_table_crashes(rows, design, scale, matched):
    values = {f"row{i}": seeds for i, seeds in enumerate(rows)}
    contrasts = judge(values, design=design, scale=scale, matched=matched)
    steps = max(len(rows) - 1, 0)
    assert len(contrasts) == (steps if design == "star" else 2 * steps)
    for c in contrasts:
        usable = all(values[name] and all(map(math.isfinite, values[name].values())) for name in (c.row, c.reference))
        assert math.isfinite(c.delta) == usable
        if usable and c.df and (not c.excluded or min(c.n, c.n_reference) > 1):
            assert c.half_width >= 0
            assert c.lower <= c.delta <= c.upper
            assert 0 <= c.p_adjusted <= 1
        else:
            assert math.isnan(c.half_width)
        assert c.s >= scale.floor(values) or math.isnan(c.s)
        assert len(c.excluded) <= 2


@pytest.mark.parametrize("design", ["star", "path"])
@pytest.mark.parametrize(("rows", "seconds"), [(7, 0.2), (100, 2)])
def test_it_is_fast(design, rows, seconds):
    values = table(noise(rows, 3, seed=rows))
    start = time.process_time()
    judge(values, design=design, alpha=0.0499)
    assert time.process_time() - start < seconds
