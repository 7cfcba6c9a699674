"""The verdict: what a table says about each of its contrasts (rules 5 to 8 of the protocol).

A difference is called when two keys turn: it lies outside the band that holds for the whole family, and Welch's t on
its own two rows agrees. The first key guards against many comparisons, the second against one noisy row, which moves
the pooled s of every contrast but not the own variances of two others.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lecture04.stats.band import Contrast, Design, Slices, families, family_band
from lecture04.stats.noise import Diverged, NoisePool, noise_pool
from lecture04.stats.power import Plan, effect_found
from lecture04.stats.scales import Accuracy, Values
from lecture04.stats.simultaneous import Block, Family

POWER = 0.8
CALLED_ITEMS = 2
"""A difference of at most this many test items is never called."""


class Seeds(NamedTuple):
    """Seeds a row: for the difference seen, and for the far and the near end of its interval.

    Each a whole number, infinite (the near end of an interval that holds 0), or NaN where nothing can be said.
    """

    n: int | float
    least: int | float
    most: int | float


@dataclass(frozen=True)
class Verdict(Contrast):
    """A contrast with what may be said about it.

    verdict   the first that holds of
              no verdict    the reference diverged, or one of the two rows has no seed yet
              diverged m/n  m of the row's n seeds diverged (`diverged` has the interval of the share)
              single run    one of the two rows has one seed: the band is a screen, no more
              equivalent    the whole interval lies inside +-margin
              better/worse  outside the band, and p_own < alpha
              unconfirmed   outside the band, but the own test does not agree: add seeds
              within noise  inside the band, or at most two test items apart; it never means "the same"
    favour    of the `pairs` seeds that both rows ran, how many point the way `delta` does; 0 of 0 where a seed does not
              mean the same thing in both rows
    diverged  the row's own, with the exact 95 % interval of the share; None where no seed did
    margin    the declared equivalence margin, judge's `delta`
    alpha     of the family, already divided by the number of looks
    sd, sd_reference  standard deviation of one run, on the judged scale: s, or for a contrast with a row set aside the
              two rows' own
    plan      the same contrast with other numbers of seeds; None where there is no band
    """

    verdict: str
    favour: int
    pairs: int
    diverged: Diverged | None
    margin: float | None
    alpha: float
    sd: float
    sd_reference: float
    plan: Plan | None = field(repr=False)

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
        alpha, q, df = (self.alpha / self.plan.family.k, 0.0, 0) if self.set_aside else (self.alpha, self.q, self.df)
        found = effect_found(POWER, self.n, self.n_reference, alpha=alpha, q=q, df=df, share=v / (v + v0))
        return found * math.sqrt((v + v0) / (1 / self.n + 1 / self.n_reference))

    def _needed(self, difference: float) -> int | float:
        if self.plan is None or math.isnan(difference):
            return math.nan
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
    lower_is_better: bool = True,
    matched: bool = True,
    alpha: float = 0.05,
    delta: float | None = None,
    n_items: int | None = None,
    looks: int = 1,
) -> list[Verdict]:
    """One verdict a contrast, family after family, in the table's order.

    values    {row: {seed: judged value}} (`judged_values`), NaN for a diverged seed
    design, baseline, slices  as in `band`
    matched   False where a seed does not mean the same thing in every row
    alpha     how often a table of equal rows may call anything; a path's steps and totals have alpha each
    delta     equivalence margin on the judged scale, > 0, declared before the runs (in nats, ln 1.01 for 1 % of a
              perplexity); None: nothing is called equivalent
    n_items   test items of an accuracy (values are then empirical logits): sets the floor of s and the two-item rule
    looks     how often the seeds are judged, all looks together at alpha: each look has alpha / looks

    Raises ValueError as `band` does, and for a delta that is not positive and finite, or looks < 1.
    """
    if delta is not None and not 0 < delta < math.inf:
        raise ValueError(f"delta: expected a margin > 0, got {delta}")
    if looks < 1:
        raise ValueError(f"looks: expected at least 1, got {looks}")
    ties = families(tuple(values), design=design, baseline=baseline, slices=slices)
    scale = Accuracy(n_items) if n_items is not None else None
    pool = noise_pool(values, floor=scale.floor(values) if scale else 0.0, matched=matched)
    pooled = len(pool.centred) - len(pool.set_aside) - pool.blocked
    verdicts: list[Verdict] = []
    for name, tied in ties.items():
        # Blocks of equal rows: their correlations do not depend on how many seeds that is.
        blocks = (Block(block.kind, (1,) * len(block.n)) for tie in tied for block in tie.blocks(pool))
        plan = Plan(Family(tuple(blocks)), pooled, alpha / looks)
        for contrast in family_band(pool, tied, family=name, alpha=alpha / looks):
            few = scale is not None and _items_apart(scale, values, contrast) <= CALLED_ITEMS + 1e-6
            said = _verdict(contrast, pool, few=few, lower_is_better=lower_is_better, margin=delta, alpha=plan.alpha)
            pairs, favour = _favour(values, contrast) if matched else (0, 0)
            verdicts.append(_record(contrast, pool, plan, verdict=said, favour=favour, pairs=pairs, margin=delta))
    return verdicts


def _verdict(
    c: Contrast, pool: NoisePool, *, few: bool, lower_is_better: bool, margin: float | None, alpha: float
) -> str:
    """Rule 5, in its order. A reference that diverged comes first: without it nothing is compared."""
    if c.reference in pool.diverged:
        return "no verdict"
    if c.row in pool.diverged:
        return f"diverged {pool.diverged[c.row].m}/{pool.diverged[c.row].n}"
    if not (c.n and c.n_reference):
        return "no verdict"
    if min(c.n, c.n_reference) == 1:
        return "single run"
    if margin is not None and -margin < c.lower and c.upper < margin:
        return "equivalent"
    if few or abs(c.delta) <= c.half_width:
        return "within noise"
    if not c.p_own < alpha:  # never so with a row set aside: its band is Welch's own, at alpha / k
        return "unconfirmed"
    return "better" if (c.delta < 0) == lower_is_better else "worse"


def _items_apart(scale: Accuracy, values: Values, c: Contrast) -> float:
    """By how many test items the rows' mean counts differ; NaN where either has none."""
    means = [
        math.fsum(map(scale.items, values[name].values())) / len(values[name]) if values[name] else math.nan
        for name in (c.row, c.reference)
    ]
    return abs(means[0] - means[1])


def _favour(values: Values, c: Contrast) -> tuple[int, int]:
    """Seeds that both rows ran, and how many of them point the way the means do."""
    if math.isnan(c.delta):
        return 0, 0
    row, reference = values[c.row], values[c.reference]
    both = row.keys() & reference.keys()
    return len(both), sum((row[seed] - reference[seed]) * c.delta > 0 for seed in both)


def _record(
    c: Contrast, pool: NoisePool, plan: Plan, *, verdict: str, favour: int, pairs: int, margin: float | None
) -> Verdict:
    sd, sd0 = pool.s, pool.s
    known = plan
    if c.set_aside:
        sd, sd0 = (math.sqrt(pool.variance.get(name, math.nan)) for name in (c.row, c.reference))
        if c.n > 1 < c.n_reference:
            known = Plan(plan.family, plan.pooled, plan.alpha, own_only=True, share=sd**2 / (sd**2 + sd0**2))
    return Verdict(
        **vars(c),
        verdict=verdict,
        favour=favour,
        pairs=pairs,
        diverged=pool.diverged.get(c.row),
        margin=margin,
        alpha=plan.alpha,
        sd=sd,
        sd_reference=sd0,
        plan=None if math.isnan(c.half_width) else known,
    )
