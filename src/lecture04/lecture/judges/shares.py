"""How often a recipe collapses: the share of its runs over the ten seeds of sweep collapse.

The lecture has one run a cell. That one collapsed there and the others did not may be so for every run, or for most: a
tendency. It is one where more than half of the cell's runs collapse, and where their share is told apart from that of
each other cell by Fisher's exact test (one-sided, at 5 % for all of the comparisons together).
"""

from dataclasses import dataclass

from scipy.stats import hypergeom

from lecture04.lecture.evidence import Evidence, NotYetError, n_diverged, seeds_of
from lecture04.lecture.finding import Check
from lecture04.lecture.judges.compare import ALPHA
from lecture04.report.results import Results
from lecture04.stats.distributions import binomial_interval

TABLE = "collapse"
COLLAPSING = "post-norm (2017)"  # its row of post-norm at the high rate without warm-up
EVERY, MOST = "every run", "a tendency"


@dataclass(frozen=True)
class Share:
    """m of n runs of a row that collapsed."""

    row: str
    m: int
    n: int

    def written(self) -> str:
        """`7 of 10 (95 %: 35 to 93 %)`, by Clopper and Pearson's exact interval."""
        low, high = binomial_interval(self.m, self.n)
        return f"{self.m} of {self.n} (95 %: {100 * low:.0f} to {100 * high:.0f} %)"

    def p_above(self, other: "Share") -> float:
        """Fisher's one-sided p: of a share at least so far above the other's, were both the same."""
        return float(hypergeom.sf(self.m - 1, self.n + other.n, self.m + other.m, self.n))


def share(results: Results, row: str) -> Share:
    """A row's share. Raises NotYetError where a run has no outcome."""
    return Share(row, n_diverged(results, row), len(seeds_of(results, row)))


@dataclass(frozen=True)
class Collapses:
    """What is known of a cell's collapses: the sentence on its ten seeds, and the check of each reading."""

    said: str
    every: Check
    most: Check


def collapses(evidence: Evidence, few: Share, *others: str) -> Collapses:
    """Whether a cell collapses in every run, and in most of them; `few` is its share in the table of few seeds.

    `others` are the rows of sweep collapse that its share is held against. Without that table some of few runs show no
    tendency yet, all of them do, and none does not.
    """
    every = (few.m == few.n, f"{few.m} of {few.n} runs collapse")
    try:
        results = evidence.sweep(TABLE)
    except NotYetError as e:
        seen = f"{few.m} of {few.n} runs collapse"
        if few.m in (0, few.n):
            return Collapses("", every, (few.m > 0, seen))
        return Collapses("", every, (None, f"{seen}, and whether that is a tendency takes ten seeds: {e}"))
    many, rest = share(results, COLLAPSING), [share(results, row) for row in others]
    p = {other.row: many.p_above(other) for other in rest}
    shares = ", ".join(f"{s.row} {s.written()}" for s in (many, *rest))
    apart = 2 * many.m > many.n and max(p.values()) < ALPHA / len(rest)
    tests = ", ".join(f"p = {value:.2g} against {row}" for row, value in p.items())
    return Collapses(
        f"; of {many.n} seeds {shares}; Fisher's {tests}",
        (few.m == few.n and many.m == many.n, f"{few.m} of {few.n} and {many.m} of {many.n} runs collapse"),
        (apart, f"its share of collapses, {many.written()}, is not above a half and above the others' ({tests})"),
    )
