"""The protocol's error rates, by running `judge` on simulated tables: `python tools/error_rates.py [TABLES]`.

Each table is a baseline and six variants whose values are normal with standard deviation 1. The rates in
docs/statistics.md are this program's output.
"""

import sys
from dataclasses import dataclass

import numpy as np

from lecture04.stats.verdict import judge

CALLS = {"better", "worse"}


@dataclass(frozen=True)
class Scenario:
    """One kind of table.

    n        seeds a row
    effect   how far the first variant lies below the baseline, in standard deviations of one run; the rest lie at 0
    noisy    factor on the noise of one row: the baseline (row 0) or the last variant (row -1)
    shared   share of a run's variance that all rows of a seed have in common
    matched  as in `judge`: whether the seeds may be paired
    """

    n: int
    effect: float = 0.0
    noisy: float = 1.0
    noisy_row: int = -1
    shared: float = 0.0
    matched: bool = False
    variants: int = 6

    def table(self, rng: np.random.Generator) -> dict[str, dict[int, float]]:
        """Values of one table, lower better."""
        own = rng.normal(size=(self.variants + 1, self.n)) * np.sqrt(1 - self.shared)
        own[self.noisy_row] *= self.noisy
        own += rng.normal(size=self.n) * np.sqrt(self.shared)
        own[1] -= self.effect
        return {f"row {i}": dict(enumerate(map(float, run))) for i, run in enumerate(own)}


@dataclass(frozen=True)
class Rates:
    """Shares of tables.

    false        any false call: on a variant without an effect, or in the wrong direction
    found        the first variant, which has the effect, is called better
    unconfirmed  its difference lies outside the band, but its own test does not agree
    """

    false: float
    found: float
    unconfirmed: float


def rates(scenario: Scenario, tables: int, rng: np.random.Generator) -> Rates:
    """The rates over so many simulated tables; their standard error is sqrt(p (1 - p) / tables)."""
    false = found = unconfirmed = 0
    for _ in range(tables):
        first, *rest = judge(scenario.table(rng), matched=scenario.matched)
        hit = bool(scenario.effect) and first.verdict == "better"
        found += hit
        false += any(v.verdict in CALLS for v in rest) or (first.verdict in CALLS and not hit)
        unconfirmed += first.verdict == "unconfirmed"
    return Rates(false / tables, found / tables, unconfirmed / tables)


def main(tables: int) -> None:
    """Print the table of docs/statistics.md."""
    print(f"{tables} tables a cell; false calls and power in percent\n")
    print("| seeds | paired | all alike | one row 3x | one row 8x | baseline 3x | baseline 8x | found at 2 SD | 4 SD |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n in (2, 3, 5):
        for matched in (False, True):
            rng = np.random.default_rng(2024)
            noises = [(1.0, -1), (3.0, -1), (8.0, -1), (3.0, 0), (8.0, 0)]
            nulls = [Scenario(n, noisy=f, noisy_row=row, matched=matched) for f, row in noises]
            effects = [Scenario(n, effect=e, matched=matched) for e in (2.0, 4.0)]
            cells = [f"{100 * rates(s, tables, rng).false:.1f}" for s in nulls]
            cells += [f"{100 * rates(s, tables, rng).found:.0f}" for s in effects]
            print(f"| {n} | {'yes' if matched else 'no'} | {' | '.join(cells)} |", flush=True)
    print("\nSeeds that share half of the variance, 3 a row, effect of 2 SD:")
    for matched in (False, True):
        scenario = Scenario(3, effect=2.0, shared=0.5, matched=matched)
        found = rates(scenario, tables, np.random.default_rng(2024)).found
        print(f"{'paired' if matched else 'not paired'}: found in {100 * found:.0f} %", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
