"""From records to tidy rows: one line a run and metric. Reads a table's folder and the runs it names, nothing else."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lecture04.config.messages import UserError
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record, Status, read_json


@dataclass(frozen=True)
class Results:
    """A sweep's manifest and what its runs reached.

    `runs` is tidy: row, seed, metric, value, status, run (the folder's name). A diverged run's metrics are all NaN but
    the facts of its configuration and its costs; a run that failed or is not there has one line with an empty metric.
    """

    folder: Path
    manifest: dict[str, Any]
    runs: pd.DataFrame

    @property
    def rows(self) -> list[str]:
        """The rows' names, in the table's order."""
        return list(self.manifest["rows"])

    @property
    def slices(self) -> dict[str, str] | None:
        """Each row's slice, where the design is a grid."""
        rows = self.manifest["rows"].items()
        return {row: about["slice"] for row, about in rows} if self.manifest["design"] == "grid" else None

    @property
    def records(self) -> dict[str, dict[int, Record]]:
        """{row: {seed: its run}}, those that are not there yet among them."""
        return _records(self.folder, self.manifest)

    @property
    def seeds(self) -> list[int]:
        """The seeds that were asked for."""
        return sorted({int(seed) for row in self.manifest["rows"].values() for seed in row["runs"]})

    def values(self, metric: str) -> dict[str, dict[int, float]]:
        """{row: {seed: value}} of one metric; a diverged run is NaN, a run that is not there is left out."""
        found: dict[str, dict[int, float]] = {row: {} for row in self.rows}
        lines = self.runs[self.runs.metric == metric]
        for row, seed, value in zip(lines.row, lines.seed, lines.value, strict=True):
            found[row][int(seed)] = float(value)
        return found

    def status(self, row: str, seed: int) -> Status:
        """How far one run has come; missing where the row does not ask for that seed."""
        found = self.runs[(self.runs.row == row) & (self.runs.seed == seed)].status
        return Status(found.iloc[0]) if len(found) else Status.missing


# What a manifest and each of its rows must say; `Plan.manifest` writes it.
KEYS = ("name", "title", "design", "primary", "columns", "delta", "looks", "command", "rows")
ROW_KEYS = ("evaluation", "mismatch", "runs", "other_code")


def collect(folder: Path) -> Results:
    """The results of the table that lies in a folder. Raises UserError where none does, or one of an older format."""
    manifest = read_json(folder / "sweep.json")
    if manifest is None:
        there = sorted(path.parent.name for path in folder.parent.glob("*/sweep.json"))
        raise UserError(f"{folder}: no table lies there. Choices: {', '.join(there) or 'none yet'}.")
    if lacks := _lacking(manifest):
        command = manifest.get("command", f"python train.py -m sweeps={folder.name}")
        raise UserError(f"{folder}/sweep.json: says nothing of {', '.join(lacks)}; `{command}` writes it again.")
    return gather(folder, manifest)


def _lacking(manifest: dict[str, Any]) -> list[str]:
    row_keys = (*ROW_KEYS, *(["slice"] if manifest.get("design") == "grid" else []))
    of_rows = [key for about in manifest.get("rows", {}).values() for key in row_keys if key not in about]
    return [key for key in KEYS if key not in manifest] + list(dict.fromkeys(of_rows))


def gather(folder: Path, manifest: dict[str, Any]) -> Results:
    """What the runs of a manifest have reached, whether or not it lies in its folder yet."""
    lines = []
    for row, records in _records(folder, manifest).items():
        key = manifest["rows"][row]["evaluation"]
        for seed, record in records.items():
            status = record.status() if record.is_complete(key) else _unfinished(record, key)
            common = {"row": row, "seed": seed, "status": status.value, "run": record.folder.name}
            metrics = record.metrics(key) if status.is_result else {}
            lines += [common | {"metric": m, "value": _value(m, v, status)} for m, v in metrics.items()]
            if not metrics:
                lines.append(common | {"metric": "", "value": math.nan})
    columns = ["row", "seed", "metric", "value", "status", "run"]
    return Results(folder, manifest, pd.DataFrame(lines, columns=columns))


def _records(folder: Path, manifest: dict[str, Any]) -> dict[str, dict[int, Record]]:
    runs = folder.parent.parent / "runs"
    return {
        row: {int(seed): Record(runs / name) for seed, name in about["runs"].items()}
        for row, about in manifest["rows"].items()
    }


def _unfinished(record: Record, key: str) -> Status:
    return Status.failed if record.error(key) else Status.missing


def _value(metric: str, value: float, status: Status) -> float:
    """A diverged run has no place on a quality scale, whatever its parameters happen to reach."""
    judged = metric in METRICS and METRICS[metric].judged
    return math.nan if judged and status is Status.diverged else float(value)
