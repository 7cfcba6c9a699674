"""What judges read. Where something is missing NotYetError is raised, and the claim is not yet judged."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lecture04.records.record import Status
from lecture04.report.results import Results


class NotYetError(Exception):
    """Why a claim cannot be judged yet."""


@dataclass(frozen=True)
class Evidence:
    """The results of the items.

    probes    {name: tidy table}
    sweeps    {name: results}
    tests     {name: {property: figure}} of tests that passed
    why       {source, as in probe:rope: why its result is missing}
    """

    probes: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sweeps: Mapping[str, Results] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)

    def probe(self, name: str, claim: str | None = None) -> pd.DataFrame:
        """A probe's table, or its rows for one claim. Raises NotYetError where there are none."""
        table = self._found(self.probes, f"probe:{name}")
        lines = table if claim is None else table[table["claim"] == claim]
        if lines.empty:
            raise NotYetError(f"probe {name} has no row for {claim}")
        return lines

    def sweep(self, name: str) -> Results:
        """A sweep's results. Raises NotYetError where there are none."""
        return self._found(self.sweeps, f"sweep:{name}")

    def test(self, name: str) -> Mapping[str, float]:
        """The figures that a test recorded. Raises NotYetError where it did not pass."""
        return self._found(self.tests, f"test:{name}")

    def _found(self, kept: Mapping[str, Any], source: str) -> Any:
        name = source.partition(":")[2]
        if name not in kept:
            raise NotYetError(self.why.get(source, f"{source.replace(':', ' ')} has not been run"))
        return kept[name]


def numbers(results: Results, metric: str, *rows: str) -> dict[str, dict[int, float]]:
    """{row: {seed: value}} of a metric, a diverged run's NaN among them. Raises NotYetError where a run is missing."""
    values = results.values(metric)
    found: dict[str, dict[int, float]] = {}
    for row in rows or results.rows:
        if row not in values:
            raise NotYetError(f"sweep {results.manifest.name} has no row {row!r}")
        absent = [seed for seed in seeds_of(results, row) if seed not in values[row]]
        if absent:
            status = results.status(row, absent[0])
            how = f"have no {metric}" if status.is_result else f"are {status.value}"
            raise NotYetError(
                f"{len(absent)} of {len(seeds_of(results, row))} runs of {row!r} in sweep {results.manifest.name} {how}"
            )
        found[row] = values[row]
    return found


def mean(results: Results, metric: str, row: str) -> float:
    """A row's mean over its seeds; NaN where one diverged. Raises NotYetError where a run is missing."""
    values = numbers(results, metric, row)[row].values()
    return sum(values) / len(values)


def seeds_of(results: Results, row: str) -> list[int]:
    """The seeds that were asked for of a row."""
    return sorted(results.records[row])


def n_diverged(results: Results, row: str) -> int:
    """How many of a row's runs diverged. Raises NotYetError where one has no outcome."""
    found = [results.status(row, seed) for seed in seeds_of(results, row)]
    if rest := [status for status in found if not status.is_result]:
        raise NotYetError(
            f"{len(rest)} of {len(found)} runs of {row!r} in sweep {results.manifest.name} are {rest[0].value}"
        )
    return sum(status is Status.diverged for status in found)


def is_diverged(results: Results, row: str, seed: int) -> bool:
    """Whether a run diverged."""
    return results.status(row, seed) is Status.diverged


def validation(results: Results, row: str, seed: int) -> list[float]:
    """A run's validation perplexity after each epoch; infinite for a run that diverged before the first."""
    try:
        return [value for _, value in curve(results, row, seed, "val/ppl")]
    except NotYetError:
        if is_diverged(results, row, seed):
            return [math.inf]
        raise


def curve(results: Results, row: str, seed: int, quantity: str) -> list[tuple[int, float]]:
    """(step, value) of a quantity in a run's metrics.jsonl. Raises NotYetError where there is none."""
    points = [(int(step), value) for step, value in results.records[row][seed].logged(quantity).items()]
    if not points:
        raise NotYetError(f"the run of {row!r}, seed {seed}, in sweep {results.manifest.name} has no {quantity}")
    return points
