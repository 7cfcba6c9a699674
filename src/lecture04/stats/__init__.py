"""Which differences of a comparison table are larger than its seed noise: pure functions over plain numbers.

`judge` is the door: a table's values in, one verdict a contrast out. `docs/statistics.md` says what it means.
"""

from lecture04.stats.band import Contrast, band
from lecture04.stats.noise import Diverged, NoisePool, diverged_rows, noise_pool
from lecture04.stats.power import seeds_needed, smallest_effect
from lecture04.stats.scales import (
    Accuracy,
    Identity,
    Perplexity,
    Scale,
    Values,
    judged_values,
    percent,
    scale_of,
)
from lecture04.stats.verdict import Seeds, Verdict, judge
from lecture04.stats.welch import Welch, welch

__all__ = [
    "Accuracy",
    "Contrast",
    "Diverged",
    "Identity",
    "NoisePool",
    "Perplexity",
    "Scale",
    "Seeds",
    "Values",
    "Verdict",
    "Welch",
    "band",
    "diverged_rows",
    "judge",
    "judged_values",
    "noise_pool",
    "percent",
    "scale_of",
    "seeds_needed",
    "smallest_effect",
    "welch",
]
