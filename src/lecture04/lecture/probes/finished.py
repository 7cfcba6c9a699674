"""Finished runs on disk, for probes that read trained models.

No torch is imported here, so that an error about a missing run comes without delay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lecture04.config import Run, UserError
from lecture04.config.errors import nearest
from lecture04.config.overrides import command_line
from lecture04.config.places import SWEEPS
from lecture04.config.typed import understood
from lecture04.records.config_file import read_run
from lecture04.records.identity import identity
from lecture04.records.record import Record
from lecture04.records.store import runs_in, tables_in
from lecture04.records.stored import read_json
from lecture04.report.manifest import Manifest


@dataclass(frozen=True)
class Finished:
    """A trained run: its row in the table, its config and its folder.

    `again` is the command that trains it, `evaluation` the key of its evaluation in the table.
    """

    row: str
    seed: int
    run: Run
    record: Record
    again: str
    evaluation: str = ""


def sweep_command(outputs: str, name: str) -> str:
    """The command that makes a table of sweeps/ with its results under `outputs`."""
    elsewhere = [] if outputs == "outputs" else [understood(f"paths.outputs={outputs}")]
    return command_line("train.py", ["-m", f"sweeps={name}", *elsewhere])


def manifest(outputs: str, name: str) -> Manifest:
    """A table's manifest. Raises UserError with the command that makes the table where there is none."""
    tables = Path(outputs) / "sweeps"
    file = tables / name / "sweep.json"
    if found := read_json(file):
        return Manifest.from_json(found, file=file, name=name)
    files = {path.stem for path in SWEEPS.glob("*.yaml")}
    if name not in files:
        there = {table.name for table in tables_in(tables)}
        raise UserError(f"probe.sweep={name}: there is no such table." + nearest(name, sorted(files | there)))
    raise UserError(f"probe.sweep={name}: no such table lies in {outputs}; make it: {sweep_command(outputs, name)}")


def of_table(outputs: str, name: str) -> list[Finished]:
    """Every run of a table under `outputs`, in the table's order, diverged ones included.

    Raises UserError with the command that makes it where the table or one of its runs is missing.
    """
    table = manifest(outputs, name)
    runs = Path(outputs) / "runs"
    wanted = [
        (row, seed, Record(runs / folder), about.evaluation)
        for row, about in table.rows.items()
        for seed, folder in about.runs.items()
    ]
    if missing := [f"{row} seed {seed}" for row, seed, record, _ in wanted if not record.status().is_result]:
        raise UserError(
            f"probe.sweep={name}: {len(missing)} of its {len(wanted)} runs not there ({missing[0]}"
            f"{', ...' * (len(missing) > 1)}); train them: {table.command}"
        )
    return [
        Finished(row, seed, read_run(record.folder), record, table.command, key) for row, seed, record, key in wanted
    ]


def of_config(run: Run, outputs: str) -> list[Finished]:
    """The finished runs of a run's config, with any seed, in the order of seeds.

    Runs are found by the config and what computes. Where several differ in code only, the one of today's code is taken,
    or else the one written last.
    """
    found: dict[int, Record] = {}
    for record in _finished(Path(outputs) / "runs"):
        summary = record.summary()
        ours = identity(run.with_seed(summary["seed"]))
        kept = found.get(summary["seed"])
        if summary["config"] == ours.config and (kept is None or not kept.folder.name.endswith(str(ours))):
            found[summary["seed"]] = record
    return [
        Finished("", seed, run.with_seed(seed), record, record.summary()["command"])
        for seed, record in sorted(found.items())
    ]


def _finished(runs: Path) -> Iterator[Record]:
    """The finished runs of a folder, in the order in which they were written."""
    records = [record for record in runs_in(runs.parent) if record.status().ended_well]
    return iter(sorted(records, key=lambda record: (record.folder / "summary.json").stat().st_mtime))
