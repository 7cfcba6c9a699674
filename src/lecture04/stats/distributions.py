"""The few functions of scipy that the band needs, typed: the only file of this package that imports scipy.

`scipy.special` rather than `scipy.stats`: the same tail areas without the argument checking that makes a single call
cost a tenth of a millisecond.
"""
# scipy ships no type stubs; the signatures below are what the rest of the package is checked against.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

FloatArray = npt.NDArray[np.float64]


def t_tail(t: float, df: float) -> float:
    """P(|T| >= |t|) for Student's t with `df` > 0 degrees of freedom (not necessarily whole)."""
    return 2.0 * float(special.stdtr(df, -abs(t)))


def t_quantile(alpha: float, df: float) -> float:
    """The q with P(|T| > q) = alpha for Student's t; 0 < alpha < 1."""
    return -float(special.stdtrit(df, alpha / 2))


def f_tail(ratio: float, df1: float, df2: float) -> float:
    """P(F >= ratio) for the F distribution with (df1, df2) degrees of freedom; an infinite ratio has tail 0."""
    return 0.0 if math.isinf(ratio) else float(special.fdtrc(df1, df2, ratio))


def binomial_interval(m: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """The exact (Clopper & Pearson 1934) 1 - alpha interval of a proportion of which m of n >= 1 were seen.

    The ends solve P(X >= m | low) = alpha / 2 and P(X <= m | high) = alpha / 2; they are 0 at m = 0 and 1 at m = n.
    """
    if not 0 <= m <= n or n < 1:
        raise ValueError(f"m of n: expected 0 <= m <= n and n >= 1, got m={m}, n={n}")
    low = float(special.betaincinv(m, n - m + 1, alpha / 2)) if m > 0 else 0.0
    high = float(special.betaincinv(m + 1, n - m, 1 - alpha / 2)) if m < n else 1.0
    return low, high


def t_quantiles(alpha: float, df: FloatArray) -> FloatArray:
    """`t_quantile`, element by element."""
    return -special.stdtrit(df, alpha / 2)


def beta_quantiles(p: FloatArray, a: float, b: float) -> FloatArray:
    """The p-quantiles of Beta(a, b), element by element."""
    return special.betaincinv(a, b, p)


def normal_cdf(x: FloatArray) -> FloatArray:
    """Phi(x) of a standard normal, element by element."""
    return special.ndtr(x)


def chi_range(df: int, tail: float = 1e-15) -> tuple[float, float]:
    """The (tail, 1 - tail) quantiles of S = sqrt(chi^2_df / df)."""
    half = df / 2
    low, high = float(special.gammaincinv(half, tail)), float(special.gammainccinv(half, tail))
    return math.sqrt(low / half), math.sqrt(high / half)


def spline(x: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The cubic spline through (x, y), both (X,); error O(step^4)."""
    return cast(Callable[[FloatArray], FloatArray], CubicSpline(x, y))


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f, of opposite signs at `low` and `high`, is zero (Brent's method)."""
    return cast(float, brentq(f, low, high, xtol=1e-10))
