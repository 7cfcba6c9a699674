"""Simulated tables without any difference: how often does a band that claims 95 % fail to hold?"""

import math

import numpy as np
import pytest
from scipy import stats

from lecture04.stats import judge

TABLES = 3000


def simulate(design, n, *, matched):
    """Shares of tables of seven equal rows with a contrast outside the band, and outside an uncorrected t interval."""
    rng = np.random.default_rng(4)
    outside = uncorrected = 0
    for _ in range(TABLES):
        x = rng.normal(size=(7, n)) + (rng.normal(size=n) * 3 if matched else 0)
        values = {f"row{i}": dict(enumerate(map(float, run))) for i, run in enumerate(x)}
        contrasts = [c for c in judge(values, design=design, matched=matched) if c.family != "total"]
        outside += any(abs(c.delta) > c.half_width for c in contrasts)
        single = stats.t.isf(0.025, contrasts[0].df) * contrasts[0].s * math.sqrt(2 / n)
        uncorrected += any(abs(c.delta) > single for c in contrasts)
    return outside / TABLES, uncorrected / TABLES


@pytest.mark.slow
@pytest.mark.parametrize(("design", "n", "matched"), [("star", 3, True), ("star", 5, False), ("path", 3, True)])
def test_all_contrasts_hold_together_at_95_percent(design, n, matched):
    """Three standard errors are 1.2 points. Excluding a row by its data may cost a little on top."""
    outside, uncorrected = simulate(design, n, matched=matched)
    assert 0.038 < outside < 0.067
    assert uncorrected > 0.15, "the simulation must be able to tell a band that does not hold together"
