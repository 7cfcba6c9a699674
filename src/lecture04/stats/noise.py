"""The noise pool: how much a row moves when only the seed changes, estimated from the rows that share it.

Letters: g usable rows, G of them left in the pool, n seeds a row; arrays of one row are (n,), in ascending seeds.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lecture04.stats.distributions import FloatArray, binomial_interval, f_tail
from lecture04.stats.scales import Values

MIN_BLOCKED_DF = 6
MIN_ROWS_TO_EXCLUDE = 4
MAX_EXCLUDED = 2
EXCLUSION_LEVEL = 0.05


class Diverged(NamedTuple):
    """m of n seeds diverged; [low, high] is the exact 95 % interval of the share that does."""

    m: int
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class NoisePool:
    """What a table's seeds say about its noise.

    s          pooled standard deviation of one run, on the judged scale, of what is left of it when blocked: the
               seeds' shared part is off; NaN where df = 0
    run_sd     the same with the seeds' shared part in it: s itself where nothing is blocked
    df         its degrees of freedom: (G - 1)(n - 1) blocked, else the sum of n_i - 1 over the rows left
    blocked    each seed's mean over the rows left was subtracted
    excluded   rows of high variance, noisier than the rest, the noisiest first; not in s, judged by their own variance
    diverged   rows with a diverged seed; not in s, and never compared
    centred    {row: values, minus their seed's mean when blocked}, every usable row, excluded or not
    variance   {row: own variance of one run}, every usable row; NaN for a single seed
    mean       {row: mean of its values}; NaN for a row that diverged or has no seed
    n          {row: seeds with a finite value}
    """

    s: float
    run_sd: float
    df: int
    blocked: bool
    excluded: tuple[str, ...]
    diverged: Mapping[str, Diverged]
    centred: Mapping[str, FloatArray]
    variance: Mapping[str, float]
    mean: Mapping[str, float]
    n: Mapping[str, int]


def diverged_rows(values: Values) -> dict[str, Diverged]:
    """The rows with a NaN or infinite seed, with the exact binomial (Clopper & Pearson) 95 % interval of the share."""
    found: dict[str, Diverged] = {}
    for row, seeds in values.items():
        m, n = sum(not math.isfinite(value) for value in seeds.values()), len(seeds)
        if m:
            found[row] = Diverged(m, n, *binomial_interval(m, n))
    return found


def blocks_by_seed(seeds: Sequence[frozenset[int]]) -> bool:
    """Whether to subtract seed means, from the seeds of the usable rows alone: never from their values.

    Yes when every row ran the same n seeds and (g - 1)(n - 1) >= 6: with fewer degrees of freedom the wider quantile
    costs more than the shared noise that blocking removes.
    """
    return len(set(seeds)) == 1 and (len(seeds) - 1) * (len(seeds[0]) - 1) >= MIN_BLOCKED_DF


def noise_pool(values: Values, *, floor: float = 0.0, matched: bool = True) -> NoisePool:
    """Pool the seeds' noise over the rows of a table (rules 0 to 2 of the protocol).

    s^2 = sum of squared residuals / df, a residual being a value less its row's mean and, blocked, its seed's mean.
    Rows with a diverged seed and rows without seeds take no part. A row with one seed adds no residual.

    values   {row: {seed: judged value}}
    floor    the least s, on the judged scale (`Scale.floor`); also the least own standard deviation of a row
    matched  False where a seed does not mean the same thing in every row; then nothing is blocked

    Raises ValueError for a negative, NaN or infinite floor.
    """
    if not (math.isfinite(floor) and floor >= 0):
        raise ValueError(f"floor: expected a finite number >= 0, got {floor}")
    diverged = diverged_rows(values)
    runs = {row: np.array([seeds[k] for k in sorted(seeds)], float) for row, seeds in values.items()}
    usable = {row: run for row, run in runs.items() if row not in diverged and run.size}
    blocked = matched and blocks_by_seed([frozenset(values[row]) for row in usable])
    # Values that agree to their last bits leave residuals of rounding alone: those count as none.
    rounding = 16 * sys.float_info.epsilon * max((float(np.abs(run).max()) for run in usable.values()), default=0.0)
    excluded = _high_variance(usable, blocked=blocked, floor=floor, rounding=rounding)
    left = [row for row in usable if row not in excluded]

    seed_mean = np.mean([usable[row] for row in left], axis=0) if blocked else 0.0
    centred = {row: run - seed_mean for row, run in usable.items()}
    plain = {row: _variance(run, rounding) for row, run in centred.items()}
    squares = sum(plain[row] * (usable[row].size - 1) for row in left if usable[row].size > 1)
    # A row left in the pool is part of the seed means, which takes 1 / G off its variance; an excluded one is not.
    share = (len(left) - 1) / len(left) if blocked else 1.0
    free = sum(usable[row].size - 1 for row in left)
    df = round(share * free)
    whole = sum(_variance(usable[row], rounding) * (usable[row].size - 1) for row in left if usable[row].size > 1)
    return NoisePool(
        s=max(math.sqrt(squares / df), floor) if df else math.nan,
        run_sd=max(math.sqrt(whole / free), floor) if free else math.nan,
        df=df,
        blocked=blocked,
        excluded=excluded,
        diverged=diverged,
        centred=centred,
        # np.maximum keeps the NaN of a single seed
        variance={row: float(np.maximum(v / share if row in left else v, floor**2)) for row, v in plain.items()},
        mean={row: float(usable[row].mean()) if row in usable else math.nan for row in values},
        n={row: int(np.isfinite(run).sum()) for row, run in runs.items()},
    )


def _variance(run: FloatArray, rounding: float) -> float:
    """The unbiased variance of a row's values; NaN for one value, exactly 0 where only rounding is left."""
    if run.size < 2:
        return math.nan
    variance = float(run.var(ddof=1))
    return variance if variance > rounding**2 else 0.0


def _high_variance(
    usable: Mapping[str, FloatArray], *, blocked: bool, floor: float, rounding: float
) -> tuple[str, ...]:
    """The rows noisier than the rest, at most 2, the noisiest first.

    One at a time: the row with the smallest p leaves when p times the rows tested is under .05, then the others are
    tested again without it, so that one very noisy row cannot hide a second. Each test needs 4 rows. Rows with a single
    seed have no variance and are neither tested nor counted.
    """
    left = {row: run for row, run in usable.items() if run.size > 1}
    found: list[str] = []
    while len(found) < MAX_EXCLUDED and len(left) >= MIN_ROWS_TO_EXCLUDE:
        tails = _leave_one_out(left, blocked=blocked, floor=floor, rounding=rounding)
        noisiest = min(tails, key=lambda row: tails[row])
        if tails[noisiest] * len(left) >= EXCLUSION_LEVEL:
            break
        found.append(noisiest)
        del left[noisiest]
    return tuple(found)


def _leave_one_out(rows: Mapping[str, FloatArray], *, blocked: bool, floor: float, rounding: float) -> dict[str, float]:
    """{row: P(F >= s_i^2 / s_rest^2)}, F with (n_i - 1, df_rest) degrees of freedom, s_rest over all other rows.

    Blocked, the seeds' medians are subtracted first: a mean would spread the noisy row's noise over the others. As for
    any blocked row, s_i^2 is then g / (g - 1) times the plain variance, and df_rest = (g - 2)(n - 1).
    """
    centre = np.median(list(rows.values()), axis=0) if blocked else 0.0
    variance = {row: _variance(run - centre, rounding) for row, run in rows.items()}
    g = len(rows)
    tails: dict[str, float] = {}
    for row, run in rows.items():
        others = [other for other in rows if other != row]
        squares = sum(variance[other] * (rows[other].size - 1) for other in others)
        df_rest = sum(rows[other].size - 1 for other in others)
        own = variance[row]
        if blocked:
            df_rest, own = df_rest * (g - 2) // (g - 1), own * g / (g - 1)
        rest = max(squares / df_rest, floor**2)
        tails[row] = f_tail(own / rest, run.size - 1, df_rest) if rest else float(own == 0)
    return tails
