"""The multivariate t: against Dunnett's printed table, scipy's quasi-Monte Carlo, and limits that are known exactly."""

import math

import numpy as np
import pytest
from scipy import stats

from lecture04.stats import simultaneous
from lecture04.stats.simultaneous import Block, Family

# Dunnett, Biometrics 20 (1964) 482: two-sided 5 % points for k = 1 ... 9 treatments against a control.
PRINTED = {
    5: [2.57, 3.03, 3.29, 3.48, 3.62, 3.73, 3.82, 3.90, 3.97],
    6: [2.45, 2.86, 3.10, 3.26, 3.39, 3.49, 3.57, 3.64, 3.71],
    10: [2.23, 2.57, 2.76, 2.89, 2.99, 3.07, 3.14, 3.19, 3.24],
    12: [2.18, 2.50, 2.68, 2.81, 2.90, 2.98, 3.04, 3.09, 3.14],
    20: [2.09, 2.38, 2.54, 2.65, 2.73, 2.80, 2.86, 2.90, 2.95],
    60: [2.00, 2.27, 2.41, 2.51, 2.58, 2.64, 2.69, 2.73, 2.77],
}


def one(kind, *n):
    return Family((Block(kind, n),))


@pytest.mark.parametrize("df", PRINTED)
def test_star_quantiles_are_dunnetts(df):
    ours = [one("star", *[3] * (k + 1)).quantile(0.05, df) for k in range(1, 10)]
    np.testing.assert_allclose(ours, PRINTED[df], atol=0.0051)


@pytest.mark.parametrize("kind", ["star", "chain"])
@pytest.mark.parametrize(
    ("n", "df"),
    [((3,) * 4, 6), ((3,) * 7, 12), ((2, 5, 3, 9), 4), ((1, 6, 1), 2), ((5, 5, 5), 1), ((3, 4, 5, 6, 7), 200)],
)
def test_quantiles_agree_with_scipy(kind, n, df):
    family = one(kind, *n)
    q = family.quantile(0.05, df)
    inside = stats.multivariate_t.cdf(
        np.full(family.k, q),
        shape=family.blocks[0].correlation(),
        df=df,
        lower_limit=np.full(family.k, -q),
        maxpts=200_000,
        random_state=np.random.default_rng(0),
    )
    assert inside == pytest.approx(0.95, abs=5e-5)
    assert family.cdf(q, df) == pytest.approx(0.95, abs=1e-8)


def test_correlations_are_those_of_simulated_contrasts():
    n = (2, 8, 3, 5)
    means = np.random.default_rng(0).normal(size=(400_000, 4)) / np.sqrt(n)
    np.testing.assert_allclose(
        Block("star", n).correlation(), np.corrcoef(means[:, 1:] - means[:, :1], rowvar=False), atol=0.006
    )
    np.testing.assert_allclose(
        Block("chain", n).correlation(), np.corrcoef(np.diff(means, axis=1), rowvar=False), atol=0.006
    )


def test_correlations_of_equal_n_are_a_half():
    np.testing.assert_allclose(Block("star", (3,) * 4).correlation(), 0.5 * np.eye(3) + 0.5)
    np.testing.assert_allclose(
        Block("chain", (3,) * 4).correlation(), [[1, -0.5, 0], [-0.5, 1, -0.5], [0, -0.5, 1]], atol=1e-12
    )


@pytest.mark.parametrize("kind", ["star", "chain"])
@pytest.mark.parametrize("df", [1, 4, 30])
def test_one_contrast_is_students_t_exactly(kind, df):
    assert one(kind, 3, 5).quantile(0.05, df) == pytest.approx(stats.t.isf(0.025, df), rel=1e-12)
    assert one(kind, 3, 5).cdf(2.0, df) == pytest.approx(1 - 2 * stats.t.sf(2.0, df), rel=1e-12)


def test_independent_blocks_with_many_df_are_sidaks():
    """With s known, m independent contrasts hold together when each holds at (1 - alpha)^(1/m)."""
    grid = Family((Block("star", (3, 3)), Block("chain", (5, 2)), Block("star", (4, 4))))
    assert grid.quantile(0.05, 10**7) == pytest.approx(stats.norm.isf((1 - 0.95 ** (1 / 3)) / 2), abs=1e-4)


def test_a_grid_agrees_with_scipy():
    grid = Family((Block("star", (3, 3, 3)), Block("star", (3, 3, 3))))
    shape = np.kron(np.eye(2), [[1, 0.5], [0.5, 1]])
    q = grid.quantile(0.05, 8)
    inside = stats.multivariate_t.cdf(
        [q] * 4, shape=shape, df=8, lower_limit=[-q] * 4, maxpts=100_000, random_state=np.random.default_rng(0)
    )
    assert inside == pytest.approx(0.95, abs=5e-5)


@pytest.mark.parametrize("kind", ["star", "chain"])
@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("df", [1, 2, 50])
def test_quantiles_lie_between_student_and_bonferroni(kind, alpha, df):
    q = one(kind, 2, 3, 4, 3).quantile(alpha, df)
    low, high = stats.t.isf(alpha / 2, df), stats.t.isf(alpha / 6, df)
    assert 0.998 * low <= q <= 1.002 * high


def test_the_answer_is_the_same_every_time():
    family = one("chain", 3, 3, 4, 5)
    first = family.quantile(0.05, 7)
    simultaneous._box.cache_clear()
    simultaneous._quantile.cache_clear()
    assert family.quantile(0.05, 7) == first


def test_no_contrast_or_no_df_has_no_quantile():
    assert math.isnan(Family(()).quantile(0.05, 5))
    assert math.isnan(one("star", 3, 3).quantile(0.05, 0))
    assert one("star", 3, 3, 3).cdf(math.inf, 3) == pytest.approx(1)
