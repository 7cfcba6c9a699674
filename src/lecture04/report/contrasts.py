"""contrasts.csv: one line a contrast and metric, with every field of the verdict."""

from collections.abc import Callable, Sequence

import pandas as pd

from lecture04.report.comparison import Judged
from lecture04.stats import Verdict

FIELDS: dict[str, Callable[[Judged, Verdict], object]] = {
    "metric": lambda judged, v: judged.declared,
    "corrected": lambda judged, v: judged.primary,
    "family": lambda judged, v: v.family,
    "row": lambda judged, v: v.row,
    "reference": lambda judged, v: v.reference,
    "verdict": lambda judged, v: v.verdict if judged.primary else "",
    "n": lambda judged, v: v.n,
    "n_reference": lambda judged, v: v.n_reference,
    "delta": lambda judged, v: v.delta,
    "half_width": lambda judged, v: v.half_width,
    "lower": lambda judged, v: v.lower,
    "upper": lambda judged, v: v.upper,
    "unit": lambda judged, v: judged.judged_unit,
    "shown": lambda judged, v: judged.shown(v.delta),
    "shown_lower": lambda judged, v: judged.shown(v.lower),
    "shown_upper": lambda judged, v: judged.shown(v.upper),
    "shown_unit": lambda judged, v: judged.unit,
    "p_adjusted": lambda judged, v: v.p_adjusted,
    "p_welch": lambda judged, v: v.p_welch,
    "seeds_agree": lambda judged, v: v.favour,
    "seeds_paired": lambda judged, v: v.pairs,
    "seeds_needed": lambda judged, v: v.seeds_needed.n,
    "seeds_needed_least": lambda judged, v: v.seeds_needed.least,
    "seeds_needed_most": lambda judged, v: v.seeds_needed.most,
    "margin": lambda judged, v: v.margin,
    "seeds_for_margin": lambda judged, v: v.seeds_for_margin,
    "smallest_effect": lambda judged, v: v.smallest_effect,
    "s": lambda judged, v: v.s,
    "run_sd": lambda judged, v: v.run_sd,
    "df": lambda judged, v: v.df,
    "q": lambda judged, v: v.q,
    "alpha": lambda judged, v: v.alpha,
    "blocked": lambda judged, v: v.blocked,
    "excluded": lambda judged, v: "; ".join(v.excluded),
    "sd": lambda judged, v: v.sd,
    "sd_reference": lambda judged, v: v.sd_reference,
    "diverged": lambda judged, v: v.diverged.m if v.diverged else 0,
    "diverged_of": lambda judged, v: v.diverged.n if v.diverged else len(judged.values[v.row]),
    "diverged_share_low": lambda judged, v: v.diverged.low if v.diverged else None,
    "diverged_share_high": lambda judged, v: v.diverged.high if v.diverged else None,
}


def contrasts(judged: Sequence[Judged]) -> pd.DataFrame:
    """Every contrast of every judged metric; figures are on the judged scale but for `shown` and its two ends.

    `corrected` is True for the primary metric, which alone carries verdicts; the others are uncorrected across metrics.
    """
    lines = [[field(one, v) for field in FIELDS.values()] for one in judged for v in one.verdicts]
    return pd.DataFrame(lines, columns=list(FIELDS))
