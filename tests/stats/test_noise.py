"""The noise pool: against analysis of variance done another way, and every shape of table it must survive."""

import math

import numpy as np
import pytest
from scipy import stats

from lecture04.stats import diverged_rows, noise_pool


def table(array):
    return {f"row{i}": dict(enumerate(map(float, run))) for i, run in enumerate(array)}


def noise(g, n, seed=0):
    return np.random.default_rng(seed).normal(size=(g, n))


def test_unblocked_s_is_the_pooled_within_row_deviation():
    runs = [noise(1, n, seed=n)[0] for n in (2, 5, 3)]
    pool = noise_pool(table(runs))
    assert (pool.blocked, pool.df) == (False, 7)
    assert pool.s == pytest.approx(math.sqrt(sum(((r - r.mean()) ** 2).sum() for r in runs) / 7))
    assert pool.n == {"row0": 2, "row1": 5, "row2": 3}


def test_blocked_s_is_the_residual_of_a_two_way_least_squares_fit():
    x = noise(4, 3)
    pool = noise_pool(table(x))
    design = np.hstack([np.kron(np.eye(4), np.ones((3, 1))), np.kron(np.ones((4, 1)), np.eye(3))])
    _, _, rank, _ = np.linalg.lstsq(design, x.ravel(), rcond=None)
    residual = x.ravel() - design @ np.linalg.lstsq(design, x.ravel(), rcond=None)[0]
    assert (pool.blocked, pool.df) == (True, 12 - rank)
    assert pool.s == pytest.approx(math.sqrt((residual**2).sum() / (12 - rank)))


@pytest.mark.parametrize(
    ("g", "n", "blocked"),
    [(2, 3, False), (2, 7, True), (3, 3, False), (3, 4, True), (4, 3, True), (7, 2, True), (6, 2, False)],
)
def test_blocking_follows_from_the_design(g, n, blocked):
    assert noise_pool(table(noise(g, n))).blocked is blocked
    assert noise_pool(table(noise(g, n)), matched=False).blocked is False


def test_a_missing_or_a_different_seed_ends_blocking():
    values = table(noise(4, 3))
    assert not noise_pool({**values, "row3": {0: 0.1, 1: 0.2}}).blocked
    assert not noise_pool({**values, "row3": {0: 0.1, 1: 0.2, 7: 0.3}}).blocked
    assert noise_pool({**values, "row3": {2: 0.1, 0: 0.2, 1: 0.3}}).blocked, "the order of seeds does not matter"
    assert noise_pool({**values, "row4": {}}).blocked, "a row that has not begun takes no part"


def test_seeds_are_matched_by_name_not_by_place():
    values = table(noise(4, 3))
    assert noise_pool({row: dict(reversed(seeds.items())) for row, seeds in values.items()}).s == noise_pool(values).s


def test_a_constant_added_to_one_seed_changes_nothing_when_blocked():
    x = noise(5, 4)
    pool, shifted = noise_pool(table(x)), noise_pool(table(x + np.array([0, 3, -40, 0.5])))
    assert pool.blocked
    assert shifted.s == pytest.approx(pool.s)
    assert shifted.variance == pytest.approx(pool.variance)
    for row in pool.centred:
        np.testing.assert_allclose(shifted.centred[row], pool.centred[row], atol=1e-12)


def test_own_variance_of_a_blocked_row_is_unbiased():
    x = np.random.default_rng(1).normal(size=(2000, 4, 3)) + np.random.default_rng(2).normal(size=(2000, 1, 3)) * 5
    pools = [noise_pool(table(one)) for one in x]
    left = [pool.variance[row] for pool in pools for row in pool.variance if not pool.excluded]
    assert np.mean(left) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("matched", [True, False])
def test_noisy_rows_are_excluded_two_at_most_and_the_noisiest_first(matched):
    x = noise(9, 5)
    x[2] *= 1000
    x[5] *= 200
    x[7] *= 30
    pool = noise_pool(table(x), matched=matched)
    assert pool.excluded == ("row2", "row5")
    assert pool.df == (6 * 4 if matched else 7 * 4)


def test_a_very_noisy_row_does_not_hide_a_second():
    x = noise(8, 5)
    x[1] *= 1000
    x[2] *= 15
    assert noise_pool(table(x), matched=False).excluded == ("row1", "row2")


def test_fewer_than_four_rows_exclude_nothing():
    x = noise(4, 5)
    x[1] *= 1000
    x[2] *= 30
    assert noise_pool(table(x[:3])).excluded == ()
    assert noise_pool(table(x)).excluded == ("row1",), "three rows are left, too few to test again"


@pytest.mark.parametrize("matched", [True, False])
def test_rows_alike_are_seldom_excluded(matched):
    x = np.random.default_rng(3).normal(size=(1500, 7, 3))
    share = np.mean([bool(noise_pool(table(one), matched=matched).excluded) for one in x])
    assert 0.03 < share < 0.08  # nominally .05


def test_leave_one_out_f_by_hand_unblocked():
    x = noise(5, 4, seed=8)
    for factor in np.linspace(1, 8, 15):
        y = x * np.array([1, 1, 1, factor, 1])[:, None]
        ratio = y[3].var(ddof=1) / np.mean([y[i].var(ddof=1) for i in (0, 1, 2, 4)])
        noisy = stats.f.sf(ratio, 3, 12) * 5 < 0.05
        assert ("row3" in noise_pool(table(y), matched=False).excluded) == noisy


@pytest.mark.parametrize(("m", "n"), [(1, 3), (3, 3), (2, 5), (1, 1)])
def test_diverged_rows_carry_the_exact_binomial_interval(m, n):
    runs = {"a": {seed: math.nan if seed < m else 1.0 for seed in range(n)}, "b": {0: 1.0}}
    interval = stats.binomtest(m, n).proportion_ci(0.95, "exact")
    assert diverged_rows(runs) == {"a": pytest.approx((m, n, interval.low, interval.high))}


def test_a_diverged_row_leaves_the_pool():
    values = table(noise(5, 3))
    pool = noise_pool({**values, "bad": {0: 1e9, 1: math.inf, 2: 0.0}})
    assert (pool.s, pool.df, pool.blocked) == (noise_pool(values).s, 8, True)
    assert pool.diverged["bad"][:2] == (1, 3)
    assert math.isnan(pool.mean["bad"])
    assert "bad" not in pool.centred


@pytest.mark.parametrize(
    ("values", "df", "s"),
    [
        ({}, 0, math.nan),
        ({"a": {}}, 0, math.nan),
        ({"a": {0: 1.0}}, 0, math.nan),
        ({"a": {0: 1.0}, "b": {0: 2.0}}, 0, math.nan),
        ({"a": {0: 1.0, 1: 3.0}}, 1, math.sqrt(2)),
        ({"a": {0: 1.0, 1: 3.0}, "b": {5: 7.0}}, 1, math.sqrt(2)),
        ({"a": {0: math.nan}}, 0, math.nan),
    ],
)
def test_small_tables_have_a_stated_answer(values, df, s):
    pool = noise_pool(values)
    assert (pool.df, pool.blocked, pool.excluded) == (df, False, ())
    assert pool.s == pytest.approx(s, nan_ok=True)


@pytest.mark.parametrize("matched", [True, False])
def test_a_metric_without_noise_has_none(matched):
    """1/3 and .1 are not exact: what rounding leaves after centring must not count as noise, nor exclude a row."""
    x = np.outer([0.1, 1 / 3, 7.7, 0.2, 2.9], np.ones(3)) + (np.array([0, 0.3, 1e3]) if matched else 0)
    pool = noise_pool(table(x), matched=matched)
    assert (pool.s, pool.excluded, set(pool.variance.values())) == (0, (), {0})


def test_one_wobbling_row_among_rows_without_noise_is_excluded_unless_below_the_floor():
    x = np.zeros((5, 3))
    x[2] = [0, 0.01, 0.02]
    assert noise_pool(table(x)).excluded == ("row2",)
    pool = noise_pool(table(x), floor=0.05)
    assert (pool.excluded, pool.s) == ((), 0.05)
    assert min(pool.variance.values()) == pytest.approx(0.05**2)


@pytest.mark.parametrize("floor", [-1.0, math.nan, math.inf])
def test_a_floor_is_a_finite_number(floor):
    with pytest.raises(ValueError, match="floor"):
        noise_pool({}, floor=floor)
