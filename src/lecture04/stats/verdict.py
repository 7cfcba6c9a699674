"""The verdict: what a table says about each of its contrasts (rules 3 to 8 of the protocol).

A difference is called when two tests agree: it lies outside the band that holds for the whole family, and Welch's t on
its own two rows is significant. The first guards against many comparisons, the second against one noisy row, which
moves the pooled s of every contrast but not the own variances of two others.

    half-width of the band = q s sqrt(1/n + 1/n0)

s is the pooled noise of one run, q the quantile of the multivariate t at which all contrasts of a family hold together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lecture04.stats.design import Design, FamilyName, Slices, Tied, families
from lecture04.stats.noise import Diverged, NoisePool, noise_pool
from lecture04.stats.power import Plan, effect_found
from lecture04.stats.scales import Identity, Scale, Values, least_called
from lecture04.stats.simultaneous import Block, Family
from lecture04.stats.welch import welch

POWER = 0.8


class Seeds(NamedTuple):
    """Seeds a row: for the difference seen, and for the far and the near end of its interval.

    Each a whole number, infinite (the near end of an interval that holds 0), or NaN where nothing can be said.
    """

    n: int | float
    least: int | float
    most: int | float


@dataclass(frozen=True)
class Verdict:
    """One difference of a table, row - reference, on the judged scale, with what may be said about it.

    The one type for a difference: tables, figures, the page, contrasts.csv and W&B all read it.

    family       star; a path's step (against the row before) or total (against the start); grid
    verdict      the first that holds of
                 no verdict    the reference diverged, or one of the two rows has no seed yet
                 no noise      the seeds change nothing, so there is no noise to judge by
                 diverged m/n  m of the row's n seeds diverged (`diverged` has the interval of the share)
                 single run    one of the two rows has one seed: the band is a screen, no more
                 equivalent    the whole interval lies inside +-margin
                 better/worse  outside the band, and p_welch < alpha
                 unconfirmed   outside the band, but Welch's test does not agree: add seeds
                 within noise  inside the band, or at most two test items (or steps of rounding) apart; it never means
                               "the same"
    delta        difference of the two means; NaN where either row diverged or has no seed
    half_width   of the simultaneous band; NaN without degrees of freedom; Welch's own where `excluded` is not empty
    s, df        the table's pooled noise of one run, when blocked what is left of it without the seeds' shared part;
                 NaN, 0 where no row has two seeds, or the seeds change nothing
    run_sd       the same with the seeds' shared part in it
    q            the family's quantile, the same for all its contrasts
    blocked      seed means were subtracted
    excluded     which of the two rows are excluded from s for their high variance
    n            seeds with a finite value, of row and of reference
    p_adjusted   adjusted for the family: under alpha exactly where |delta| > half_width
    p_welch      by Welch's t on the two rows alone; NaN where either has a single seed
    favour       of the `pairs` seeds that both rows ran, how many point the way `delta` does; 0 of 0 where a seed does
                 not mean the same thing in both rows
    diverged     the row's own, with the exact 95 % interval of the share; None where no seed did
    margin       the declared equivalence margin, judge's `delta`
    alpha        of the family, already divided by the number of looks
    sd, sd_reference  standard deviation of one run, on the judged scale: s, or for a contrast with an excluded row the
                 two rows' own
    least        a difference of this size or less is never called (`Scale.too_close`)
    plan         the same contrast with other numbers of seeds; None where there is no band
    """

    row: str
    reference: str
    family: FamilyName
    verdict: str
    delta: float
    half_width: float
    s: float
    run_sd: float
    df: int
    q: float
    blocked: bool
    excluded: tuple[str, ...]
    n: int
    n_reference: int
    p_adjusted: float
    p_welch: float
    favour: int
    pairs: int
    diverged: Diverged | None
    margin: float | None
    alpha: float
    sd: float
    sd_reference: float
    least: float
    plan: Plan | None = field(repr=False)

    @property
    def lower(self) -> float:
        """The lower end of the interval, delta - half_width."""
        return self.delta - self.half_width

    @property
    def upper(self) -> float:
        """The upper end of the interval, delta + half_width."""
        return self.delta + self.half_width

    @cached_property
    def seeds_needed(self) -> Seeds:
        """Seeds a row for 80 % power in a table like this one, for the difference seen and its interval's two ends.

        "Like this one": the same contrasts, every row with n seeds, noise as it was estimated here, blocked or not as
        here. Worked out when asked for, which takes some ten milliseconds.
        """
        near, far = sorted((abs(self.lower), abs(self.upper)))
        most = 0.0 if self.lower <= 0 <= self.upper else near
        return Seeds(self._needed(self.delta), self._needed(far), self._needed(most))

    @cached_property
    def seeds_for_margin(self) -> int | float:
        """Seeds a row to find a true difference as large as the margin with 80 % power; NaN without a margin."""
        return math.nan if self.margin is None else self._needed(self.margin)

    @cached_property
    def smallest_effect(self) -> float:
        """The smallest true difference, on the judged scale, that this table finds 80 % of the time as it stands.

        Infinite with a single seed, NaN where there is no band.
        """
        if self.plan is None:
            return math.nan
        v, v0 = self.sd**2 / self.n, self.sd_reference**2 / self.n_reference
        if v + v0 == 0:
            return 0.0 if min(self.n, self.n_reference) > 1 else math.inf
        alpha, q, df = (self.alpha / self.plan.family.k, 0.0, 0) if self.excluded else (self.alpha, self.q, self.df)
        found = effect_found(POWER, self.n, self.n_reference, alpha=alpha, q=q, df=df, share=v / (v + v0))
        return max(found * math.sqrt((v + v0) / (1 / self.n + 1 / self.n_reference)), self.least)

    def _needed(self, difference: float) -> int | float:
        if self.plan is None or math.isnan(difference):
            return math.nan
        if abs(difference) <= self.least:
            return math.inf
        one_run = math.sqrt((self.sd**2 + self.sd_reference**2) / 2)
        if one_run == 0:
            return 2 if difference else math.inf
        return self.plan.seeds_needed(difference / one_run, POWER)


def judge(
    values: Values,
    *,
    design: Design = "star",
    baseline: str | None = None,
    slices: Slices | None = None,
    scale: Scale | None = None,
    lower_is_better: bool = True,
    matched: bool = True,
    alpha: float = 0.05,
    delta: float | None = None,
    looks: int = 1,
) -> list[Verdict]:
    """One verdict a contrast, family after family, in the table's order.

    values    {row: {seed: judged value}} in the table's order (`judged_values`), NaN for a diverged seed
    design    star: every row against the baseline, one family. path: every row against the one before, one family; then
              every row against the first, another. grid: a star in each slice, all one family.
    baseline  a star's reference, the first row unless named; a path starts at its first row, a slice at its own
    slices    a grid's {row: slice}, for every row
    scale     on which the values are judged: sets the floor of s and the two-item rule; None: `Identity`
    matched   False where a seed does not mean the same thing in every row
    alpha     how often a table of equal rows may call anything; a path's steps and totals have alpha each
    delta     equivalence margin on the judged scale, > 0, declared before the runs (in nats, ln 1.01 for 1 % of a
              perplexity); None: nothing is called equivalent
    looks     how often the seeds are judged, all looks together at alpha: each look has alpha / looks

    Raises ValueError as `families` does, for a row that is no mapping, a delta that is not positive and finite,
    looks < 1, and alpha / looks outside [1e-6, 1), below which the quadrature's own error shows.
    """
    # Types say so, and whoever calls this with lists of their own does not check them.
    lists = [row for row, seeds in values.items() if not isinstance(seeds, Mapping)]  # pyright: ignore[reportUnnecessaryIsInstance]
    if lists:
        raise ValueError(f"values: row {lists[0]!r} must be {{seed: value}}; of a list write dict(enumerate(...))")
    if delta is not None and not 0 < delta < math.inf:
        raise ValueError(f"delta: expected a margin > 0, got {delta}")
    if looks < 1:
        raise ValueError(f"looks: expected at least 1, got {looks}")
    if not 1e-6 <= alpha / looks < 1:
        raise ValueError(f"alpha: expected 1e-6 <= alpha / looks < 1, got {alpha} / {looks}")
    ties = families(tuple(values), design=design, baseline=baseline, slices=slices)
    scale = scale or Identity()
    sound = {row: seeds for row, seeds in values.items() if all(map(math.isfinite, seeds.values()))}
    pool = noise_pool(values, floor=scale.floor(sound), matched=matched)
    if is_still := scale.is_still(values):
        none = dict.fromkeys(pool.variance, math.nan)
        pool = replace(pool, s=math.nan, run_sd=math.nan, df=0, excluded=(), variance=none)
    return [
        verdict
        for name, tied in ties.items()
        for verdict in _judge_family(
            values,
            pool,
            tied,
            family=name,
            scale=scale,
            alpha=alpha / looks,
            margin=delta,
            lower_is_better=lower_is_better,
            matched=matched,
            is_still=is_still,
            least=least_called(scale, sound),
        )
    ]


def _judge_family(
    values: Values,
    pool: NoisePool,
    ties: Sequence[Tied],
    *,
    family: FamilyName,
    scale: Scale,
    alpha: float,
    margin: float | None,
    lower_is_better: bool,
    matched: bool,
    is_still: bool,
    least: float,
) -> list[Verdict]:
    """The verdicts of one family, which may be tied in several places (a grid: one star a slice).

    k, the size of the family, counts the contrasts that have an estimate, those with an excluded row included. A
    contrast that touches an excluded row gets the Welch interval at alpha / k, since s does not describe it.
    """
    blocks = [block for tie in ties for block in tie.blocks(pool)]
    joint = Family(tuple(blocks))
    q = joint.quantile(alpha, pool.df)
    # Rows of equally many seeds: their correlations do not depend on how many that is.
    equal = Family(tuple(Block(block.kind, (1,) * len(block.n)) for block in blocks))
    plan = Plan(equal, len(pool.centred) - len(pool.excluded) - pool.blocked, alpha)
    found: list[Verdict] = []
    for row, reference in (pair for tie in ties for pair in tie.pairs()):
        excluded = tuple(name for name in pool.excluded if name in (row, reference))
        delta, half_width, p_adjusted, p_welch = _interval(pool, row, reference, excluded, joint, q=q, alpha=alpha)
        pairs, favour = _favour(values, row, reference, delta) if matched else (0, 0)
        sd, sd_reference, own_plan = _one_run(pool, plan, row, reference, excluded)
        found.append(
            Verdict(
                row=row,
                reference=reference,
                family=family,
                verdict=_word(
                    pool,
                    row,
                    reference,
                    delta=delta,
                    half_width=half_width,
                    margin=margin,
                    too_close=scale.too_close(list(values[row].values()), list(values[reference].values())),
                    is_still=is_still,
                    confirmed=p_welch < alpha,
                    lower_is_better=lower_is_better,
                ),
                delta=delta,
                half_width=half_width,
                s=pool.s,
                run_sd=pool.run_sd,
                df=pool.df,
                q=q,
                blocked=pool.blocked,
                excluded=excluded,
                n=pool.n[row],
                n_reference=pool.n[reference],
                p_adjusted=p_adjusted,
                p_welch=p_welch,
                favour=favour,
                pairs=pairs,
                diverged=pool.diverged.get(row),
                margin=margin,
                alpha=alpha,
                sd=sd,
                least=least,
                sd_reference=sd_reference,
                plan=None if math.isnan(half_width) else own_plan,
            )
        )
    return found


def _interval(
    pool: NoisePool, row: str, reference: str, excluded: tuple[str, ...], joint: Family, *, q: float, alpha: float
) -> tuple[float, float, float, float]:
    """(delta, half-width of its band, family-adjusted p, Welch p) of row - reference."""
    delta = pool.mean[row] - pool.mean[reference]
    if math.isnan(delta):
        return delta, math.nan, math.nan, math.nan
    own = welch(pool, row, reference)
    p_welch = own.p(delta)
    if excluded:
        return delta, own.half_width(alpha / joint.k), float(np.minimum(joint.k * p_welch, 1.0)), p_welch
    if not pool.df:
        return delta, math.nan, math.nan, p_welch
    se = pool.s * math.sqrt(1 / pool.n[row] + 1 / pool.n[reference])
    return delta, q * se, 1 - joint.cdf(delta / se, pool.df) if se else float(delta == 0), p_welch


def _word(
    pool: NoisePool,
    row: str,
    reference: str,
    *,
    delta: float,
    half_width: float,
    margin: float | None,
    too_close: bool,
    is_still: bool,
    confirmed: bool,
    lower_is_better: bool,
) -> str:
    """Rule 5, in its order. A reference that diverged comes first: without it nothing is compared."""
    if reference in pool.diverged:
        return "no verdict"
    if row in pool.diverged:
        return f"diverged {pool.diverged[row].m}/{pool.diverged[row].n}"
    if not (pool.n[row] and pool.n[reference]):
        return "no verdict"
    if min(pool.n[row], pool.n[reference]) == 1:
        return "single run"
    if is_still:
        return "no noise"
    if margin is not None and -margin < delta - half_width and delta + half_width < margin:
        return "equivalent"
    if too_close or abs(delta) <= half_width:
        return "within noise"
    if not confirmed:  # never so with an excluded row: its band is Welch's own, at alpha / k
        return "unconfirmed"
    return "better" if (delta < 0) == lower_is_better else "worse"


def _favour(values: Values, row: str, reference: str, delta: float) -> tuple[int, int]:
    """How many seeds both rows ran, and how many of them point the way the means do."""
    if math.isnan(delta):
        return 0, 0
    both = values[row].keys() & values[reference].keys()
    return len(both), sum((values[row][seed] - values[reference][seed]) * delta > 0 for seed in both)


def _one_run(
    pool: NoisePool, plan: Plan, row: str, reference: str, excluded: tuple[str, ...]
) -> tuple[float, float, Plan]:
    """The standard deviation of one run of either row, and the plan that goes with them."""
    if not excluded:
        return pool.s, pool.s, plan
    sd, sd0 = (math.sqrt(pool.variance.get(name, math.nan)) for name in (row, reference))
    if min(pool.n[row], pool.n[reference]) > 1:
        plan = Plan(plan.family, plan.pooled, plan.alpha, own_only=True, share=sd**2 / (sd**2 + sd0**2))
    return sd, sd0, plan
