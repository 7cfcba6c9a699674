"""The scale on which a metric is judged, and how a difference on it is shown.

A noise band needs noise of the same size in every row. Perplexities and accuracies do not have that, so they are judged
on the log scale (a perplexity's logarithm is the NLL) and as log odds; everything else is judged as it is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Protocol

Values = Mapping[str, Mapping[int, float]]
"""{row: {seed: value}} in the table's order; NaN marks a diverged seed."""


def percent(difference: float) -> float:
    """A difference of natural logs as a change in percent: 100 (exp(d) - 1), infinite where that overflows."""
    return math.inf if difference >= 700 else 100 * math.expm1(difference)


CALLED_ITEMS = 2
"""A difference of at most this many test items is never called."""

ROUNDING = 2.0**-20
"""The step of a figure that float32 arithmetic gave, as a share of it: eight of float32's own. What a test item is to a
count, this step is to every other metric: a row's noise is at least a step / sqrt(12), and a difference of two steps is
never called."""


class Scale(Protocol):
    """How one metric is judged.

    unit    of a shown difference; empty for the metric's own unit
    digits  of a shown difference, after the point
    """

    unit: ClassVar[str]
    digits: ClassVar[int]

    def judged(self, raw: float) -> float:
        """A raw value on the judged scale; NaN and infinities (diverged runs) become NaN."""
        ...

    def raw(self, judged: float) -> float:
        """The inverse of `judged`."""
        ...

    def difference(self, judged: float) -> float:
        """A difference of judged values in the unit that the table shows."""
        ...

    def floor(self, values: Values) -> float:
        """The least standard deviation that judged values can resolve: `floor` of `noise_pool`."""
        ...

    def too_close(self, row: Sequence[float], reference: Sequence[float]) -> bool:
        """Whether two rows' judged values differ by too little to be called, whatever their noise."""
        ...

    def is_still(self, values: Values) -> bool:
        """Whether the seeds change nothing: every row of several seeds has the same value for each of them."""
        ...


def _are_still(values: Values, step: float) -> bool:
    """Whether some row has several seeds, and none of those rows has two values a step apart."""
    several = [finite for row in values.values() if len(finite := [v for v in row.values() if math.isfinite(v)]) > 1]
    return bool(several) and all(max(row) - min(row) <= step for row in several)


def _apart(row: Sequence[float], reference: Sequence[float]) -> float:
    """How far the means of two rows lie apart; infinite where one has no value."""
    if not (row and reference):
        return math.inf
    return abs(math.fsum(row) / len(row) - math.fsum(reference) / len(reference))


@dataclass(frozen=True)
class Identity:
    """NLL (nats per token) and everything else: judged and shown as it is."""

    unit: ClassVar[str] = ""
    digits: ClassVar[int] = 4

    def judged(self, raw: float) -> float:
        return raw if math.isfinite(raw) else math.nan

    def raw(self, judged: float) -> float:
        return judged

    def difference(self, judged: float) -> float:
        return judged

    def floor(self, values: Values) -> float:
        return _step([v for row in values.values() for v in row.values()]) / math.sqrt(12)

    def too_close(self, row: Sequence[float], reference: Sequence[float]) -> bool:
        return _apart(row, reference) <= 2 * _step([*row, *reference])

    def is_still(self, values: Values) -> bool:
        return _are_still(values, _step([v for row in values.values() for v in row.values()]))


def _step(values: Sequence[float]) -> float:
    """The step of rounding of values of about this size."""
    return ROUNDING * median(abs(v) for v in values if math.isfinite(v)) if any(map(math.isfinite, values)) else 0.0


@dataclass(frozen=True)
class Log:
    """A positive metric judged as its natural logarithm, shown as a change in percent; a perplexity's is the NLL."""

    unit: ClassVar[str] = "%"
    digits: ClassVar[int] = 2

    def judged(self, raw: float) -> float:
        if raw <= 0:
            raise ValueError(f"on the log scale a value is positive, got {raw}")
        return math.log(raw) if math.isfinite(raw) else math.nan

    def raw(self, judged: float) -> float:
        return math.exp(judged) if judged < 700 else math.inf

    def difference(self, judged: float) -> float:
        return percent(judged)

    def floor(self, values: Values) -> float:
        return ROUNDING / math.sqrt(12)

    def too_close(self, row: Sequence[float], reference: Sequence[float]) -> bool:
        return _apart(row, reference) <= 2 * ROUNDING

    def is_still(self, values: Values) -> bool:
        return _are_still(values, ROUNDING)


@dataclass(frozen=True)
class Logit:
    """A share of `n_items` test items, judged as the empirical logit ln((c + .5) / (N - c + .5)), c = share * N.

    The half items keep 0 and N of N finite (Haldane 1956; Anscombe 1956).
    """

    n_items: int
    unit: ClassVar[str] = "log odds"
    digits: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.n_items < 1:
            raise ValueError(f"n_items: expected at least 1, got {self.n_items}")

    def judged(self, raw: float) -> float:
        if not math.isfinite(raw):
            return math.nan
        if not 0 <= raw <= 1:
            raise ValueError(f"an accuracy lies between 0 and 1, got {raw}")
        count = raw * self.n_items
        return math.log((count + 0.5) / (self.n_items - count + 0.5))

    def raw(self, judged: float) -> float:
        return self.items(judged) / self.n_items

    def items(self, judged: float) -> float:
        """The count c behind a judged value (of a mean of judged values: a typical count, not whole)."""
        return (self.n_items + 1) * (1 + math.tanh(judged / 2)) / 2 - 0.5

    def difference(self, judged: float) -> float:
        return judged

    def floor(self, values: Values) -> float:
        """One item over sqrt(12), the standard deviation of rounding to whole items, carried to the logit.

        An item is a step in c, so by the delta method the floor is (1 / (c + .5) + 1 / (N - c + .5)) / sqrt(12). c is
        the median count of the table: the mean would let one saturated row, where an item weighs about N / 2 times as
        much as at one half, widen every other row's band.
        """
        finite = [value for row in values.values() for value in row.values() if math.isfinite(value)]
        if not finite:
            return 0.0
        count = self.items(median(finite))
        return (1 / (count + 0.5) + 1 / (self.n_items - count + 0.5)) / math.sqrt(12)

    def too_close(self, row: Sequence[float], reference: Sequence[float]) -> bool:
        """Whether the rows' mean counts differ by at most CALLED_ITEMS items."""
        if not (row and reference):
            return False
        counts = [math.fsum(map(self.items, values)) / len(values) for values in (row, reference)]
        return abs(counts[0] - counts[1]) <= CALLED_ITEMS + 1e-6

    def is_still(self, values: Values) -> bool:
        """Never: whole counts are often equal by chance, so equal ones do not show that seeds change nothing."""
        return False


def least_called(scale: Scale, values: Values) -> float:
    """The judged difference that `too_close` allows for, at the table's typical value: no smaller one is called.

    It is two of the steps whose rounding has the standard deviation `floor`.
    """
    return CALLED_ITEMS * math.sqrt(12) * scale.floor(values)


def judged_values(raw: Values, scale: Scale) -> dict[str, dict[int, float]]:
    """A table of raw values on the judged scale, rows and seeds in the same order."""
    return {row: {seed: scale.judged(value) for seed, value in seeds.items()} for row, seeds in raw.items()}
