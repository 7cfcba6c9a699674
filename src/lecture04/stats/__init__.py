"""Which differences of a comparison table are larger than its seed noise: pure functions over plain numbers."""

from lecture04.stats.band import Contrast, band
from lecture04.stats.noise import Diverged, NoisePool, diverged_rows, noise_pool
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
from lecture04.stats.welch import Welch, welch

__all__ = [
    "Accuracy",
    "Contrast",
    "Diverged",
    "Identity",
    "NoisePool",
    "Perplexity",
    "Scale",
    "Values",
    "Welch",
    "band",
    "diverged_rows",
    "judged_values",
    "noise_pool",
    "percent",
    "scale_of",
    "welch",
]
