"""From records to tidy lines, one a run and metric. Reads a table's folder and the runs it names, nothing else."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from lecture04.config.messages import UserError
from lecture04.config.registry import load
from lecture04.config.resolve import MISMATCH_WARNING
from lecture04.files import not_a_folder
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record, Status
from lecture04.records.store import tables_in
from lecture04.records.stored import read_json
from lecture04.report.columns import is_known
from lecture04.report.manifest import Manifest

COLUMNS = ("row", "seed", "metric", "value", "status", "run")


@dataclass(frozen=True)
class Lookup:
    """Results by what is asked for: {metric: {row: {seed: value}}} and {(row, seed): status}."""

    values: dict[str, dict[str, dict[int, float]]]
    statuses: dict[tuple[str, int], Status]


@dataclass(frozen=True)
class Results:
    """A sweep's manifest and what its runs reached.

    `runs` is tidy, with COLUMNS: a line a run and metric; `run` is the folder's name. A diverged run's metrics are all
    NaN but the facts of its configuration and its costs; a run that failed or is not there has one line with an empty
    metric.
    """

    folder: Path
    manifest: Manifest
    runs: pd.DataFrame

    @property
    def rows(self) -> list[str]:
        """The rows' names, in the table's order."""
        return list(self.manifest.rows)

    @property
    def slices(self) -> dict[str, str] | None:
        """Each row's slice, where the design is a grid."""
        if self.manifest.design != "grid":
            return None
        return {row: about.slice or "" for row, about in self.manifest.rows.items()}

    @property
    def breaks(self) -> tuple[int, ...]:
        """The places of the rows before which a new slice begins."""
        if (slices := self.slices) is None:
            return ()
        places = range(1, len(self.rows))
        return tuple(i for i in places if slices[self.rows[i]] != slices[self.rows[i - 1]])

    @property
    def mismatched(self) -> list[str]:
        """The rows whose number of parameters is clearly another than the matched one."""
        return [row for row, about in self.manifest.rows.items() if abs(about.mismatch) > MISMATCH_WARNING]

    @cached_property
    def other_tokens(self) -> list[str]:
        """The rows whose tokens are others than the first row's, so that no metric of tokens compares them."""
        tokens = {row: about.tokens for row, about in self.manifest.rows.items()}
        return [row for row in tokens if tokens[row] != tokens[self.rows[0]]]

    @cached_property
    def records(self) -> dict[str, dict[int, Record]]:
        """{row: {seed: its run}}, those that are not there yet among them."""
        return _records(self.folder, self.manifest)

    @property
    def seeds(self) -> list[int]:
        """The seeds that were asked for."""
        return self.manifest.seeds

    @cached_property
    def _lookup(self) -> Lookup:
        """All lines, read once."""
        lookup = Lookup({}, {})
        columns = (self.runs[name].tolist() for name in ("row", "seed", "metric", "value", "status"))
        for row, seed, metric, value, status in zip(*columns, strict=True):
            lookup.statuses.setdefault((row, seed), Status(status))
            if metric:
                lookup.values.setdefault(metric, {}).setdefault(row, {})[seed] = float(value)
        return lookup

    def values(self, metric: str) -> dict[str, dict[int, float]]:
        """{row: {seed: value}} of one metric; a diverged run is NaN; a run that is not there is left out, and a row
        whose tokens are others than the first row's in a metric of tokens."""
        return {row: self.of_row(row, metric) for row in self.manifest.rows}

    def of_row(self, row: str, metric: str) -> dict[int, float]:
        """One row of `values`: {seed: value}; nothing where the metric does not compare the row with the first."""
        if metric in METRICS and METRICS[metric].per_token and row in self.other_tokens:
            return {}
        return self._lookup.values.get(metric, {}).get(row, {})

    def status(self, row: str, seed: int) -> Status:
        """How far one run has come; missing where the row does not ask for that seed."""
        return self._lookup.statuses.get((row, seed), Status.missing)

    def seeds_of(self, row: str, status: Status) -> list[int]:
        """The seeds of a row whose run has this status."""
        return [seed for seed in self.manifest.rows[row].runs if self.status(row, seed) is status]

    def under(self, manifest: Manifest) -> "Results":
        """The same runs, had the table declared something else: another primary metric, or another first row."""
        other = replace(self, manifest=manifest)
        vars(other)["_lookup"] = self._lookup  # of the same runs, so it need not be made again
        return other


def collect(folder: Path) -> Results:
    """The results of the table that lies in a folder. Raises UserError where none does, or an incomplete one."""
    return gather(folder, read_manifest(folder))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the table that lies in a folder. Raises UserError as `collect`."""
    if why := not_a_folder(folder):
        raise UserError(f"{folder}: {why}.")
    content = read_json(folder / "sweep.json")
    if content is None:
        there = [table.name for table in tables_in(folder.parent)]
        raise UserError(f"{folder}: no table lies there. Choices: {', '.join(there) or 'none yet'}.")
    manifest = Manifest.from_json(content, file=folder / "sweep.json", name=folder.name)
    _know(manifest)
    return manifest


def _know(manifest: Manifest) -> None:
    """Load the files from outside whose metrics or columns a table shows. Raises UserError where one is not there."""
    unknown = [name for name in (manifest.primary, *manifest.columns) if not is_known(name)]
    if unknown:
        load(manifest.parts)
    if unknown := [name for name in unknown if not is_known(name)]:
        raise UserError(f"{manifest.name}: nothing here declares {unknown[0]}, which this table shows.")


def gather(folder: Path, manifest: Manifest) -> Results:
    """What the runs of a manifest have reached, whether or not it lies in its folder yet."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row, records in _records(folder, manifest).items():
        key = manifest.rows[row].evaluation
        for seed, record in records.items():
            status = record.status() if record.is_complete(key) else _unfinished(record, key)
            # How far d_ff is off depends on what it was matched to, which is the table's affair and no run's.
            metrics = record.metrics(key) | {"mismatch": manifest.rows[row].mismatch} if status.is_result else {}
            found = {name: _value(name, value, status) for name, value in metrics.items()} or {"": math.nan}
            columns["metric"] += found
            columns["value"] += found.values()
            for name, same in (("row", row), ("seed", seed), ("status", status.value), ("run", record.folder.name)):
                columns[name] += [same] * len(found)
    return Results(folder, manifest, pd.DataFrame(columns, columns=list(COLUMNS)))


def _records(folder: Path, manifest: Manifest) -> dict[str, dict[int, Record]]:
    runs = folder.parent.parent / "runs"
    return {
        row: {seed: Record(runs / name) for seed, name in about.runs.items()} for row, about in manifest.rows.items()
    }


def _unfinished(record: Record, key: str) -> Status:
    return Status.failed if record.error(key) else Status.missing


def _value(metric: str, value: float, status: Status) -> float:
    """A diverged run has no place on a quality scale, whatever its parameters happen to reach."""
    noisy = metric in METRICS and METRICS[metric].noisy
    return math.nan if noisy and status is Status.diverged else float(value)
