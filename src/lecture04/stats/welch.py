"""Welch's t for one contrast, from its own two rows alone."""

import math
from dataclasses import dataclass

from lecture04.stats.distributions import t_quantile, t_tail
from lecture04.stats.noise import NoisePool


@dataclass(frozen=True)
class Welch:
    """se = sqrt(v / n + v0 / n0) and the Welch & Satterthwaite df = se^4 / ((v/n)^2 / (n-1) + (v0/n0)^2 / (n0-1)).

    Both NaN where either row has fewer than two seeds. References: Welch, Biometrika 34 (1947) 28; Satterthwaite,
    Biometrics Bulletin 2 (1946) 110.
    """

    se: float
    df: float

    def half_width(self, alpha: float) -> float:
        """Half the two-sided 1 - alpha interval of the difference."""
        return t_quantile(alpha, self.df) * self.se

    def p(self, delta: float) -> float:
        """The two-sided p of a difference; without any noise 0, or 1 for no difference."""
        if self.se == 0:
            return float(delta == 0)
        return t_tail(delta / self.se, self.df)


def welch(pool: NoisePool, row: str, reference: str) -> Welch:
    """The contrast row - reference by its own rows' variances, seed-centred when the pool is blocked.

    Blocked, a row left in the pool has G / (G - 1) times the variance of its centred values, because the row is part of
    the seed means; an excluded row is not part of them, and its variance stays as it is.
    """
    n, n0 = pool.n[row], pool.n[reference]
    if n < 2 or n0 < 2 or row not in pool.variance or reference not in pool.variance:
        return Welch(math.nan, math.nan)
    v, v0 = pool.variance[row] / n, pool.variance[reference] / n0
    if v + v0 == 0:
        return Welch(0.0, float(n + n0 - 2))
    # shares of the variance, not variances: their fourth powers could underflow
    a = v / (v + v0)
    return Welch(math.sqrt(v + v0), 1 / (a**2 / (n - 1) + (1 - a) ** 2 / (n0 - 1)))
