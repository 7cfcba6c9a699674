"""The band: how far apart two rows must be before a table may speak of a difference (rule 3 of the protocol).

    half-width = q s sqrt(1/n + 1/n0)

s is the pooled noise of one run, q the quantile of the multivariate t at which all contrasts of a family hold together.
"""

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lecture04.stats.noise import NoisePool, noise_pool
from lecture04.stats.scales import Values
from lecture04.stats.simultaneous import Block, Family
from lecture04.stats.welch import welch

Design = Literal["star", "path", "grid"]
FamilyName = Literal["star", "step", "total", "grid"]
Slices = Mapping[str, Hashable]
"""{row: the slice it lies in}, such as its learning rate."""


@dataclass(frozen=True)
class Contrast:
    """One difference of a table, row - reference, on the judged scale.

    family       star; a path's step (against the row before) or total (against the start); grid
    delta        difference of the two means; NaN where either row diverged or has no seed
    half_width   of the simultaneous band; NaN without degrees of freedom; Welch's own where `set_aside` is not empty
    lower/upper  delta -+ half_width
    s, df        the table's pooled noise of one run; NaN, 0 where no row has two seeds
    q            the family's quantile, the same for all its contrasts
    blocked      seed means were subtracted
    set_aside    which of this contrast's two rows are set aside as noisy
    n            seeds with a finite value, of row and of reference
    p_table      adjusted for the family: under alpha exactly where |delta| > half_width
    p_own        by Welch's t on the two rows alone; NaN where either has a single seed
    """

    row: str
    reference: str
    family: FamilyName
    delta: float
    half_width: float
    lower: float
    upper: float
    s: float
    df: int
    q: float
    blocked: bool
    set_aside: tuple[str, ...]
    n: int
    n_reference: int
    p_table: float
    p_own: float


@dataclass(frozen=True)
class Tied:
    """Rows whose contrasts share rows: a star (the reference first) or a chain (each against the one before)."""

    kind: Literal["star", "chain"]
    rows: tuple[str, ...]

    def pairs(self) -> list[tuple[str, str]]:
        """The contrasts, as (row, reference)."""
        references = self.rows[:1] * (len(self.rows) - 1) if self.kind == "star" else self.rows[:-1]
        return list(zip(self.rows[1:], references, strict=True))

    def blocks(self, pool: NoisePool) -> list[Block]:
        """What can be compared, in seeds: rows without a mean leave a star and cut a chain in two."""
        runs: list[list[int]] = [[]]
        for row in self.rows:
            if not math.isnan(pool.mean[row]):
                runs[-1].append(pool.n[row])
            elif self.kind == "chain":
                runs.append([])
            elif row == self.rows[0]:
                return []
        return [Block(self.kind, tuple(run)) for run in runs if len(run) > 1]


def band(
    values: Values,
    *,
    design: Design,
    baseline: str | None = None,
    slices: Slices | None = None,
    alpha: float = 0.05,
    floor: float = 0.0,
    matched: bool = True,
) -> list[Contrast]:
    """The contrasts of a table, each with the band that holds for its whole family at 1 - alpha.

    values    {row: {seed: judged value}} in the table's order, NaN for a diverged seed
    design    star: every row against the baseline, one family. path: every row against the one before, one family; then
              every row against the first, another; each family at alpha. grid: a star in each slice, all one family.
    baseline  a star's reference, the first row unless named; a path starts at its first row, a slice at its own
    slices    a grid's {row: slice}, for every row
    floor, matched  as in `noise_pool`

    Raises ValueError as `families` does, and for an alpha outside [1e-6, 1), below which the quadrature's own error
    shows.
    """
    ties = families(tuple(values), design=design, baseline=baseline, slices=slices)
    pool = noise_pool(values, floor=floor, matched=matched)
    return [c for family, tied in ties.items() for c in family_band(pool, tied, family=family, alpha=alpha)]


def families(
    rows: tuple[str, ...], *, design: Design, baseline: str | None = None, slices: Slices | None = None
) -> dict[FamilyName, list[Tied]]:
    """What a table compares, family by family: from the design alone, whatever the values.

    Raises ValueError for an unknown design or baseline, for a baseline other than the first row of a path or any in a
    grid, and for slices that are missing, do not cover the rows, name others, or belong to no grid.
    """
    if design not in get_args(Design):
        raise ValueError(f"design: expected one of {', '.join(get_args(Design))}, got {design!r}")
    if baseline is not None and baseline not in rows:
        raise ValueError(f"baseline: {baseline!r} is not a row; the rows are {', '.join(rows) or 'none'}")
    if (slices is not None) != (design == "grid"):
        raise ValueError(f"slices: a grid needs {{row: slice}}, another design has none; got {design} and {slices!r}")
    if slices is not None:
        if baseline is not None:
            raise ValueError(f"baseline: each slice of a grid starts at its own first row, got {baseline!r}")
        if odd := sorted(set(rows) ^ set(slices)):
            raise ValueError(f"slices: expected one for every row and no other, differs at {', '.join(odd)}")
        of_slice: dict[Hashable, list[str]] = {}
        for row in rows:
            of_slice.setdefault(slices[row], []).append(row)
        return {"grid": [Tied("star", tuple(tied)) for tied in of_slice.values()]}
    if not rows:
        return {}
    if design == "path":
        if baseline is not None and baseline != rows[0]:
            raise ValueError(f"baseline: a path starts at its first row, {rows[0]!r}, got {baseline!r}")
        return {"step": [Tied("chain", rows)], "total": [Tied("star", rows)]}
    first = baseline if baseline is not None else rows[0]
    return {"star": [Tied("star", (first, *(row for row in rows if row != first)))]}


def family_band(pool: NoisePool, ties: Sequence[Tied], *, family: FamilyName, alpha: float) -> list[Contrast]:
    """The contrasts of one family, which may be tied in several places (a grid: one star a slice).

    k, the size of the family, counts the contrasts that have an estimate, those with a noisy row included. A contrast
    that touches a row set aside gets the Welch interval at alpha / k, since s does not describe it.
    """
    if not 1e-6 <= alpha < 1:
        raise ValueError(f"alpha: expected 1e-6 <= alpha < 1, got {alpha}")
    joint = Family(tuple(block for tie in ties for block in tie.blocks(pool)))
    q = joint.quantile(alpha, pool.df)
    return [
        _contrast(pool, row, reference, family=family, joint=joint, q=q, alpha=alpha)
        for tie in ties
        for row, reference in tie.pairs()
    ]


def _contrast(
    pool: NoisePool, row: str, reference: str, *, family: FamilyName, joint: Family, q: float, alpha: float
) -> Contrast:
    delta = pool.mean[row] - pool.mean[reference]
    # Means of equal values over unequal numbers of seeds differ in their last bits, which a band of 0 would not cover.
    if abs(delta) <= 16 * sys.float_info.epsilon * abs(pool.mean[reference]):
        delta = 0.0
    noisy = tuple(name for name in pool.set_aside if name in (row, reference))
    n, n0 = pool.n[row], pool.n[reference]
    own = welch(pool, row, reference)
    half_width = p_table = p_own = math.nan
    if not math.isnan(delta):
        p_own = own.p(delta)
        if noisy:
            half_width, p_table = own.half_width(alpha / joint.k), float(np.minimum(joint.k * p_own, 1.0))
        elif pool.df:
            se = pool.s * math.sqrt(1 / n + 1 / n0)
            half_width = q * se
            p_table = 1 - joint.cdf(delta / se, pool.df) if se else float(delta == 0)
    return Contrast(
        row=row,
        reference=reference,
        family=family,
        delta=delta,
        half_width=half_width,
        lower=delta - half_width,
        upper=delta + half_width,
        s=pool.s,
        df=pool.df,
        q=q,
        blocked=pool.blocked,
        set_aside=noisy,
        n=n,
        n_reference=n0,
        p_table=p_table,
        p_own=p_own,
    )
