"""Which differences of a comparison table are larger than its seed noise: pure functions over plain numbers.

`judge` takes a table's values and returns one verdict a contrast. docs/statistics.md says what it means.
"""

from lecture04.stats.design import Design, FamilyName
from lecture04.stats.noise import Diverged, NoisePool, diverged_rows, noise_pool
from lecture04.stats.power import seeds_needed, smallest_effect
from lecture04.stats.scales import Identity, Log, Logit, Scale, Values, judged_values, percent
from lecture04.stats.verdict import Seeds, Verdict, judge
from lecture04.stats.welch import Welch, welch

__all__ = [
    "Design",
    "Diverged",
    "FamilyName",
    "Identity",
    "Log",
    "Logit",
    "NoisePool",
    "Scale",
    "Seeds",
    "Values",
    "Verdict",
    "Welch",
    "diverged_rows",
    "judge",
    "judged_values",
    "noise_pool",
    "percent",
    "seeds_needed",
    "smallest_effect",
    "welch",
]
