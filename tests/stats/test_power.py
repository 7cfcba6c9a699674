"""Power: against Monte Carlo of the two keys, textbook sample sizes, and the limits."""

import math

import numpy as np
import pytest
from scipy import special, stats

from lecture04.stats import judge, seeds_needed, smallest_effect
from lecture04.stats.power import MOST_SEEDS, Plan, chance, star
from lecture04.stats.simultaneous import Block, Family


def monte_carlo(effect, n, n0, *, alpha, q=0.0, df=0, sd0=1.0, tables=200_000):
    """Both keys on simulated rows with standard deviations 1 and sd0, by their definitions."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(tables, n)) + effect, rng.normal(size=(tables, n0)) * sd0
    d = x.mean(1) - y.mean(1)
    v, v0 = x.var(1, ddof=1), y.var(1, ddof=1)
    se = np.sqrt(v / n + v0 / n0)
    nu = se**4 / ((v / n) ** 2 / (n - 1) + (v0 / n0) ** 2 / (n0 - 1))
    found = d > -special.stdtrit(nu, alpha / 2) * se
    if q:
        others = df - (n + n0 - 2)
        squares = v * (n - 1) + v0 * (n0 - 1) + (rng.chisquare(others, tables) if others else 0)
        found &= d > q * np.sqrt(squares / df * (1 / n + 1 / n0))
    return found.mean()


@pytest.mark.parametrize(
    ("effect", "n", "n0", "q", "df", "alpha"),
    [
        (2, 3, 3, 2.9, 14, 0.05),
        (4, 3, 3, 2.776, 4, 0.05),
        (4, 2, 2, 3.4, 7, 0.05),
        (2, 3, 8, 2.6, 20, 0.05),
        (3, 2, 5, 3.0, 8, 0.01),
        (1, 12, 12, 2.3, 40, 0.05),
    ],
)
def test_the_integral_agrees_with_simulated_keys(effect, n, n0, q, df, alpha):
    ours = chance(effect, n, n0, alpha=alpha, q=q, df=df)
    assert ours == pytest.approx(monte_carlo(effect, n, n0, alpha=alpha, q=q, df=df), abs=0.004)


@pytest.mark.parametrize(("n", "sd0"), [(3, 1 / 8), (3, 3.0), (6, 8.0)])
def test_welch_alone_agrees_with_simulation_for_unequal_noise(n, sd0):
    one_run = math.sqrt((1 + sd0**2) / 2)
    ours = chance(3 / one_run, n, n, alpha=0.02, share=1 / (1 + sd0**2))
    assert ours == pytest.approx(monte_carlo(3, n, n, alpha=0.02, sd0=sd0), abs=0.004)


@pytest.mark.parametrize("n", [15, 30, 123])
@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_one_contrast_is_the_t_tests_textbook_power(n, effect):
    """With many seeds Welch's key turns with the band's; scipy's noncentral t still works for effects this small."""
    df = 2 * (n - 1)
    q = stats.t.isf(0.025, df)
    ours = chance(effect, n, n, alpha=0.05, q=q, df=df)
    assert ours == pytest.approx(stats.nct.sf(q, df, effect * math.sqrt(n / 2)), abs=2e-3)


@pytest.mark.parametrize("n", [8, 20])
def test_two_blocked_rows_have_the_power_of_a_paired_t_test(n):
    """Their residuals mirror each other, so Welch's variances bring no degrees of freedom of their own."""
    q = stats.t.isf(0.025, n - 1)
    ours = chance(1.2, n, n, alpha=0.05, q=q, df=n - 1)
    assert ours == pytest.approx(stats.nct.sf(q, n - 1, 1.2 * math.sqrt(n / 2)), abs=2e-3)


@pytest.mark.parametrize(("effect", "n"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_seeds_needed_are_cohens_table_but_for_the_rounding_of_the_power(effect, n):
    """Cohen, Statistical Power Analysis (1988), table 2.4.1: 80 % power, two-sided 5 %: 393, 64, 26 (exactly, 394)."""
    assert 0 <= n - seeds_needed(effect) <= 0.015 * n + 1


@pytest.mark.parametrize(("n_contrasts", "blocked"), [(1, False), (1, True), (6, False), (6, True)])
@pytest.mark.parametrize("effect", [0.3, 1.0, 3.5])
def test_seeds_needed_is_the_least_n(effect, n_contrasts, blocked):
    n = seeds_needed(effect, n_contrasts, blocked=blocked)
    plan = Plan(star(n_contrasts), n_contrasts + (not blocked), 0.05)
    assert plan.power(effect, n) >= 0.795
    assert n == 2 or plan.power(effect, n - 1) < 0.795


def test_more_contrasts_power_or_confidence_need_more_seeds_and_larger_effects_fewer():
    assert [seeds_needed(e) for e in (math.inf, 100, 0, -0.5, math.nan)] == [
        2,
        2,
        math.inf,
        seeds_needed(0.5),
        pytest.approx(math.nan, nan_ok=True),
    ]
    effects = [seeds_needed(e, 6) for e in (4, 2, 1, 0.5, 0.25)]
    assert effects == sorted(effects)
    contrasts = [seeds_needed(0.5, k) for k in (1, 2, 6, 12)]
    assert contrasts == sorted(contrasts)
    assert len(set(contrasts)) == 4
    assert seeds_needed(0.5) < seeds_needed(0.5, power=0.9) < seeds_needed(0.5, power=0.9, alpha=0.01)
    assert seeds_needed(2.8 * math.sqrt(2 / MOST_SEEDS) / 3) == math.inf


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize("n_contrasts", [1, 6])
def test_the_smallest_effect_is_found_80_percent_of_the_time(n, n_contrasts):
    effect = smallest_effect(n, n_contrasts)
    by_seed = n_contrasts * (n - 1)
    df = by_seed if by_seed >= 6 else by_seed + n - 1
    q = star(n_contrasts).quantile(0.05, df)
    assert chance(effect, n, n, alpha=0.05, q=q, df=df) == pytest.approx(0.8, abs=1e-6)
    assert seeds_needed(effect, n_contrasts, blocked=by_seed >= 6) in {n, n - 1}


def test_a_single_seed_finds_nothing():
    assert smallest_effect(1, 6) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seeds_needed(1.0, 0), "n_contrasts"),
        (lambda: smallest_effect(3, 0), "n_contrasts"),
        (lambda: seeds_needed(1.0, power=1.0), "power"),
        (lambda: smallest_effect(3, power=0.2), "power"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# On a table's records


def table(rows):
    return {f"row{i}": dict(enumerate(map(float, run))) for i, run in enumerate(rows)}


def noise(g, n, seed=0):
    return np.random.default_rng(seed).normal(size=(g, n))


@pytest.mark.parametrize("matched", [True, False])
def test_a_stars_records_say_what_the_functions_say(matched):
    verdicts = judge(table(noise(7, 3, seed=5)), matched=matched, delta=0.5)
    for v in verdicts:
        assert not v.excluded
        assert v.blocked is matched
        assert v.seeds_needed.n == seeds_needed(v.delta / v.s, 6, blocked=matched)
        assert v.seeds_for_margin == seeds_needed(0.5 / v.s, 6, blocked=matched)
        here = chance(2.0, 3, 3, alpha=0.05, q=v.q, df=v.df)
        assert v.plan.power(2.0, 3) == pytest.approx(here), "planned with the seeds it has, a table is itself"
        assert v.smallest_effect == pytest.approx(v.s * smallest_effect(3, 6, df=v.df))
        ends = sorted((abs(v.lower), abs(v.upper)))
        assert v.seeds_needed.least == seeds_needed(ends[1] / v.s, 6, blocked=matched)
        most = math.inf if v.lower < 0 < v.upper else seeds_needed(ends[0] / v.s, 6, blocked=matched)
        assert v.seeds_needed.most == most


def test_a_paths_steps_are_planned_with_the_paths_own_quantile():
    v = judge(table(noise(4, 3)), design="path")[0]
    chain = Family((Block("chain", (1,) * 4),))
    assert v.seeds_needed.n == Plan(chain, 3, 0.05).seeds_needed(v.delta / v.s)


def test_a_noisy_row_is_planned_by_its_own_noise():
    x = noise(7, 4)
    x[3] *= 40
    quiet, wild = (judge(table(x), delta=1.0)[i] for i in (0, 2))
    assert (wild.excluded, quiet.excluded) == (("row3",), ())
    assert wild.sd > 10 * quiet.sd
    assert wild.seeds_for_margin > 100 * quiet.seeds_for_margin
    share = wild.sd**2 / (wild.sd**2 + wild.sd_reference**2)
    one_run = math.sqrt((wild.sd**2 + wild.sd_reference**2) / 2)
    assert wild.seeds_for_margin == Plan(star(6), 5, 0.05, own_only=True, share=share).seeds_needed(1 / one_run)
    found = chance(wild.smallest_effect / one_run, 4, 4, alpha=0.05 / 6, share=share)
    assert found == pytest.approx(0.8, abs=1e-6)


def test_no_band_no_plan_and_a_single_run_finds_nothing():
    alone = judge({"a": {0: 1.0}, "b": {0: 2.0}}, delta=1.0)[0]
    assert all(map(math.isnan, (*alone.seeds_needed, alone.seeds_for_margin, alone.smallest_effect)))
    once = judge({**table(noise(3, 4)), "once": {0: 9.0}})[-1]
    assert once.smallest_effect == math.inf
    assert once.seeds_needed.n >= 2
    assert math.isnan(judge(table(noise(3, 4)))[0].seeds_for_margin)
