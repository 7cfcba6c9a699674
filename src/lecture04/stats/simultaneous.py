"""The multivariate t of a family of contrasts: how large must |t| be for all of them to hold together?

Every contrast is a difference of two row means, standardised by the same s. Given s, the rows are independent, so the
probability that all contrasts stay inside a box needs no Monte Carlo: it is one integral for a star and a chain of
integrals for a path. Independent blocks multiply, which makes a grid (one star a slice) no harder.

Shapes: C = points on the grid of box half-widths c, U = points on the grid of a standard normal.

References: Dunnett, JASA 50 (1955) 1096, for the star; Genz & Bretz, Computation of Multivariate Normal and t
Probabilities (2009), for the general case, which `scipy.stats.multivariate_t` integrates by quasi-Monte Carlo.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from lecture04.stats.distributions import FloatArray, chi_range, normal_cdf, root, spline, t_quantile, t_tail

# Beyond 8.5 standard deviations a normal has less than 1e-16 left. These steps keep a probability's error near 1e-6.
_REACH = 8.5
_U = np.linspace(-_REACH, _REACH, 341)
_H = 2 * _REACH / 340
_C = np.linspace(0, 9, 181)
_PHI_U = np.exp(-0.5 * _U**2) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Block:
    """Contrasts that share rows. `n` holds the seeds of each row, >= 1.

    star:  row 0 is the reference, the contrasts are rows 1, 2, ... minus row 0;
           rho_ij = sqrt(n_i / (n_i + n_0)) sqrt(n_j / (n_j + n_0)), .5 for equal n.
    chain: the contrasts are each row minus the one before it; two neighbours that share row j, with i before and k
           after, have rho = -sqrt(n_i / (n_i + n_j)) sqrt(n_k / (n_j + n_k)), -.5 for equal n; all others 0.
    """

    kind: Literal["star", "chain"]
    n: tuple[int, ...]

    @property
    def k(self) -> int:
        """How many contrasts."""
        return len(self.n) - 1

    def correlation(self) -> FloatArray:
        """The contrasts' correlation matrix, (k, k)."""
        a = np.zeros((self.k, self.k + 1))
        for i in range(self.k):
            a[i, i + 1], a[i, 0 if self.kind == "star" else i] = 1, -1
        cov = (a / np.asarray(self.n)) @ a.T
        sd = np.sqrt(np.diag(cov))
        return cov / np.outer(sd, sd)


@dataclass(frozen=True)
class Family:
    """The joint distribution of a family's t statistics: blocks independent of each other but for the shared s."""

    blocks: tuple[Block, ...]

    @property
    def k(self) -> int:
        """How many contrasts."""
        return sum(block.k for block in self.blocks)

    def cdf(self, q: float, df: int) -> float:
        """P(|T_i| <= q for every contrast i) = E[ G(q S) ], S^2 ~ chi^2_df / df.

        G(c) is the probability that k correlated standard normals all lie within +-c. The error is under 1e-6, from
        q = 2.5 on near 1e-7 (rows within a factor of ten in seeds); no randomness. One contrast is Student's t.
        """
        if self.k == 1:
            return 1.0 - t_tail(q, df)
        weight, s = chi_nodes(df)
        inside = float(weight @ _box(self)(np.minimum(abs(q) * s, _C[-1])))
        return min(max(inside, 0.0), 1.0)  # a spline may overshoot by its error

    def quantile(self, alpha: float, df: int) -> float:
        """The q with cdf(q, df) = 1 - alpha, to 1e-7 in alpha; NaN where there is no contrast or no df.

        It lies between Student's quantile at alpha (one contrast) and at alpha / k (Bonferroni).
        """
        if self.k == 0 or df < 1:
            return math.nan
        if self.k == 1:
            return t_quantile(alpha, df)
        return _quantile(self, alpha, df)


@lru_cache(maxsize=1024)
def _quantile(family: Family, alpha: float, df: int) -> float:
    low, high = 0.999 * t_quantile(alpha, df), 1.001 * t_quantile(alpha / family.k, df)
    return root(lambda q: family.cdf(q, df) - (1 - alpha), low, high)


@lru_cache(maxsize=1024)
def chi_nodes(df: int, count: int = 601, tail: float = 1e-15) -> tuple[FloatArray, FloatArray]:
    """Weights and nodes of S = sqrt(chi^2_df / df), by the trapezoid rule in log S, where both tails die fast."""
    low, high = chi_range(df, tail)
    log_s = np.linspace(math.log(low), math.log(high), count)
    weight = np.exp(df * (log_s - np.expm1(2 * log_s) / 2))
    return weight / weight.sum(), np.exp(log_s)


@lru_cache(maxsize=256)
def _box(family: Family) -> Callable[[FloatArray], FloatArray]:
    """G(c) of the whole family as a spline through the grid of c: a root search then costs next to nothing."""
    boxes = [_star_box(block.n) if block.kind == "star" else _chain_box(block.n) for block in family.blocks]
    return spline(_C, np.prod(boxes, axis=0))


def _star_box(n: Sequence[int]) -> FloatArray:
    """G(c) of a star, (C,): int phi(u) prod_i [ Phi((c - l_i u) / r_i) - Phi((-c - l_i u) / r_i) ] du.

    u is the reference's noise, l_i = sqrt(n_i / (n_i + n_0)) its loading on contrast i, r_i = sqrt(1 - l_i^2).
    """
    inside = np.ones((_C.size, _U.size))
    for n_i in set(n[1:]):  # rows with the same n share a factor
        loading, rest = math.sqrt(n_i / (n_i + n[0])), math.sqrt(n[0] / (n_i + n[0]))
        centre, reach = loading * _U[None, :] / rest, _C[:, None] / rest
        inside *= (normal_cdf(reach - centre) - normal_cdf(-reach - centre)) ** n[1:].count(n_i)
    return inside @ _PHI_U * _H


def _chain_box(n: Sequence[int]) -> FloatArray:
    """G(c) of a chain, (C,), row by row.

    m_j(u) = P(every step up to row j lies inside | row j = u / sqrt(n_j)); m_0 = 1, and m_{j+1}(u) is the integral of
    phi m_j over the window of row j that step j + 1 allows: (u / sqrt(n_{j+1}) +- c sqrt(1/n_j + 1/n_{j+1})) sqrt(n_j).
    """
    m_CU = np.ones((_C.size, _U.size))
    for n_i, n_j in zip(n, n[1:], strict=False):
        centre, reach = _U[None, :] * math.sqrt(n_i / n_j), _C[:, None] * math.sqrt(1 + n_i / n_j)
        below = _integral_below(_PHI_U * m_CU)
        m_CU = below(centre + reach) - below(centre - reach)
    return m_CU @ _PHI_U * _H


def _integral_below(f_CU: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """For f given on the grid of u, the function y_CU -> int_{-inf}^{y} f du, row by row; error O(h^4).

    f has died out at both ends. Cells are summed by the cubic rule h/24 (-f_-1 + 13 f_0 + 13 f_1 - f_2); inside a cell
    the cubic Hermite interpolant uses that the integral's derivative is f itself.
    """
    padded = np.pad(f_CU, ((0, 0), (1, 1)))
    cells = _H / 24 * (13 * (f_CU[:, :-1] + f_CU[:, 1:]) - padded[:, :-3] - padded[:, 3:])
    total_CU = np.pad(np.cumsum(cells, axis=1), ((0, 0), (1, 0)))

    def at(y_CU: FloatArray) -> FloatArray:
        place = (np.clip(y_CU, -_REACH, _REACH) + _REACH) / _H
        left = np.minimum(place.astype(np.intp), _U.size - 2)
        x = place - left
        f0, f1 = (np.take_along_axis(f_CU, left + i, axis=1) * _H for i in (0, 1))
        t0, t1 = (np.take_along_axis(total_CU, left + i, axis=1) for i in (0, 1))
        return t0 + (t1 - t0) * x * x * (3 - 2 * x) + x * (1 - x) * (f0 * (1 - x) - f1 * x)

    return at
