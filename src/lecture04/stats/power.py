"""How many seeds a difference takes, and how large a difference a table can find (rule 7 of the protocol).

A difference counts as found when both tests call it in its direction: it leaves the band, and Welch's t on its own two
rows agrees. Divided by its true standard error, the estimated difference is normal around

    lambda = effect / sqrt(1/n + 1/n0)                  effect in standard deviations of one run

and both call it when it exceeds q S and t(nu) W at once. S is the pooled noise over the true one, W Welch's standard
error over the true one; both are built from three independent parts: the two rows' own sum of squares, the share of it
that the first row has (which decides nu), and the other rows' sum of squares. The power is the integral over the three.

Not done: the power to find all of several differences at once; every figure here is for one contrast.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from lecture04.stats.distributions import FloatArray, beta_quantiles, normal_cdf, root, t_quantiles
from lecture04.stats.noise import MIN_BLOCKED_DF
from lecture04.stats.simultaneous import Block, Family, chi_nodes

MOST_SEEDS = 100_000
"""Beyond this many seeds a row the answer is "infinitely many"."""

HALF_A_PERCENT = 0.005
"""Powers are compared to the nearest percent: s is seldom known well enough for more, and it is the reading under which
both worked values of the protocol (31 and 123 seeds) come out; with 80.0 % exactly the second would be 124."""

_SHARES = (np.arange(32) + 0.5) / 32


def chance(
    effect: float, n: int, n0: int, *, alpha: float, q: float = 0.0, df: int = 0, share: float | None = None
) -> float:
    """The probability that one difference is found by both tests; its error is under .001.

    effect   the true difference over the standard deviation of one run, >= 0 (the root of the mean of the two rows'
             variances, weighted by 1/n and 1/n0, where they differ)
    n, n0    seeds of the two rows, >= 2
    alpha    level of the own test
    q, df    the band's quantile and the degrees of freedom of s; q = 0: the own test alone (an excluded row)
    share    of the difference's true variance, what the first row brings: n0 / (n + n0) for rows of equal noise
    """
    theta = n0 / (n + n0) if share is None else share
    own = n + n0 - 2
    inner = min(own, df) if df else own  # two blocked rows mirror each other: they share n - 1 degrees of freedom
    first = beta_quantiles(_SHARES, (n - 1) / 2, (n0 - 1) / 2)
    v, v0 = theta * first * own / (n - 1), (1 - theta) * (1 - first) * own / (n0 - 1)
    nu = 1 / ((v / (v + v0)) ** 2 / (n - 1) + (v0 / (v + v0)) ** 2 / (n0 - 1))
    own_key = t_quantiles(alpha, nu) * np.sqrt(v + v0)  # times the root of the two rows' pooled sum of squares
    weight_T, root_T = chi_nodes(inner, 41, 1e-7)
    weight_R, root_R = chi_nodes(df - inner, 41, 1e-7) if df > inner else (np.ones(1), np.zeros(1))
    pooled_TR = np.sqrt((inner * root_T[:, None] ** 2 + (df - inner) * root_R**2) / df) if df else np.zeros((41, 1))
    critical: FloatArray = np.maximum(q * pooled_TR, own_key[:, None, None] * root_T[:, None])
    found = normal_cdf(effect / math.sqrt(1 / n + 1 / n0) - critical)
    return float((weight_T @ found @ weight_R).mean())


@cache  # the contrasts of a table differ in little that enters here
def effect_found(
    power: float, n: int, n0: int, *, alpha: float, q: float = 0.0, df: int = 0, share: float | None = None
) -> float:
    """The effect at which `chance` is `power`, .5 <= power < 1; infinite where a row has a single seed."""
    _check(power)
    if min(n, n0) < 2:
        return math.inf

    def missing(effect: float) -> float:
        return chance(effect, n, n0, alpha=alpha, q=q, df=df, share=share) - power

    high = 1.0
    while missing(high) < 0:
        high *= 2
    return root(missing, 0.0, high)


def _check(power: float) -> None:
    if not 0.5 <= power < 1:
        raise ValueError(f"power: expected .5 <= power < 1, got {power}")


@dataclass(frozen=True)
class Plan:
    """A contrast in a table whose rows all have n seeds, for any n.

    family    how the table's contrasts are tied
    pooled    degrees of freedom of s for each seed after the first: G rows, or G - 1 when blocked
    alpha     level of the family
    own_only  the contrast touches an excluded row: Welch alone at alpha / k
    share     as in `chance`
    """

    family: Family
    pooled: int
    alpha: float
    own_only: bool = False
    share: float = 0.5

    def power(self, effect: float, n: int) -> float:
        """The probability that the difference is found with n >= 2 seeds a row."""
        if self.own_only:
            return chance(effect, n, n, alpha=self.alpha / self.family.k, share=self.share)
        df = self.pooled * (n - 1)
        return chance(effect, n, n, alpha=self.alpha, q=self.family.quantile(self.alpha, df), df=df)

    def seeds_needed(self, effect: float, power: float = 0.8) -> int | float:
        """The least n with that power, to the nearest percent; infinite beyond MOST_SEEDS, NaN for a NaN effect."""
        _check(power)
        if effect == 0 or math.isnan(effect):
            return math.inf if effect == 0 else math.nan
        effect, enough = abs(effect), power - HALF_A_PERCENT
        low, high = 1, 2
        while self.power(effect, high) < enough:
            low, high = high, 2 * high
            if low > MOST_SEEDS:
                return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(effect, middle) >= enough else (middle, high)
        return high


def star(n_contrasts: int) -> Family:
    """A star's family in a table whose rows all have the same number of seeds, whatever that is."""
    if n_contrasts < 1:
        raise ValueError(f"n_contrasts: expected at least 1, got {n_contrasts}")
    return Family((Block("star", (1,) * (n_contrasts + 1)),))


def seeds_needed(
    effect_in_s: float, n_contrasts: int = 1, power: float = 0.8, *, blocked: bool = False, alpha: float = 0.05
) -> int | float:
    """The least number of seeds a row with which a star finds a difference of that size (rule 7).

    The table has n_contrasts + 1 rows of equal noise and n seeds each. All that depends on n moves with it: the
    standard error, the degrees of freedom of s, (n_contrasts + 1)(n - 1) or blocked n_contrasts (n - 1), and the
    quantiles of both tests.
    The power is that of one contrast, in its own direction, to the nearest percent.

    effect_in_s  the difference over s, the noise of one run; its sign is ignored
    blocked      s is what blocking left, as in a table that blocks

    Infinite where MOST_SEEDS are not enough, so for an effect of 0.

    Raises ValueError for n_contrasts < 1 and a power outside [.5, 1).
    """
    return Plan(star(n_contrasts), n_contrasts + (not blocked), alpha).seeds_needed(effect_in_s, power)


def smallest_effect(
    n: int, n_contrasts: int = 1, *, df: int | None = None, alpha: float = 0.05, power: float = 0.8
) -> float:
    """The smallest difference, in units of s, that a star with n seeds a row finds with that power.

    For a table that is only planned: its rows and seeds are enough, since df, left out, is what rule 1 gives for
    n_contrasts + 1 rows that share their seeds. Infinite with a single seed.

    Raises ValueError for n_contrasts < 1 and a power outside [.5, 1).
    """
    if df is None:
        by_seed = n_contrasts * (n - 1)
        df = by_seed if by_seed >= MIN_BLOCKED_DF else by_seed + n - 1
    return effect_found(power, n, n, alpha=alpha, q=star(n_contrasts).quantile(alpha, df), df=df)
