"""Finished runs on disk, for probes that read trained models.

No torch is imported here, so that an error about a missing run comes without delay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lecture04.config import Root
from lecture04.config.messages import UserError, nearest
from lecture04.config.overrides import command_line
from lecture04.config.places import SWEEPS
from lecture04.records.config_file import read_config
from lecture04.records.identity import fingerprint
from lecture04.records.record import Record, Status, read_json


@dataclass(frozen=True)
class Run:
    """A trained run: its row in the table, its resolved config and its folder.

    `cfg.paths` is where the run lies now, which may not be where it was trained; `again` is the command that trains it,
    `evaluation` the key of its evaluation in the table.
    """

    row: str
    seed: int
    cfg: Root
    record: Record
    again: str
    evaluation: str = ""


def sweep_command(outputs: Path, name: str) -> str:
    """The command that makes a table of sweeps/ with its results under `outputs`."""
    elsewhere = [] if outputs == Path("outputs") else [f"paths.outputs={outputs}"]
    return command_line("train.py", ["-m", f"sweeps={name}", *elsewhere])


def manifest(cfg: Root, name: str) -> dict[str, Any]:
    """A table's sweep.json. Raises UserError with the command that makes the table where there is none."""
    outputs = Path(cfg.paths.outputs)
    if found := read_json(outputs / "sweeps" / name / "sweep.json"):
        return found
    files = {path.stem for path in SWEEPS.glob("*.yaml")}
    if name not in files:
        there = {path.parent.name for path in (outputs / "sweeps").glob("*/sweep.json")}
        raise UserError(f"probe.sweep={name}: there is no such table." + nearest(name, sorted(files | there)))
    raise UserError(f"probe.sweep={name}: no such table lies in {outputs}; make it: {sweep_command(outputs, name)}")


def of_table(cfg: Root, name: str) -> list[Run]:
    """Every run of a table under cfg.paths.outputs, in the table's order, diverged ones included.

    Raises UserError with the command that makes it where the table or one of its runs is missing.
    """
    table = manifest(cfg, name)
    folder = Path(cfg.paths.outputs) / "runs"
    runs = [
        Run(row, int(seed), cfg, Record(folder / name_of), table["command"], about.get("evaluation", ""))
        for row, about in table["rows"].items()
        for seed, name_of in about["runs"].items()
    ]
    if missing := [f"{run.row} seed {run.seed}" for run in runs if not run.record.status().is_result]:
        raise UserError(
            f"probe.sweep={name}: {len(missing)} of its {len(runs)} runs not there ({missing[0]}"
            f"{', ...' * (len(missing) > 1)}); train them: {table['command']}"
        )
    return [replace(run, cfg=replace(read_config(run.record.folder), paths=cfg.paths)) for run in runs]


def of_config(cfg: Root) -> list[Run]:
    """The finished runs of a resolved config, with any seed, in the order of seeds.

    Runs are found by the config and torch's version. Where several differ in code only, the one of today's code is
    taken, or else the one written last.
    """
    run = as_run(cfg)
    found: dict[int, Record] = {}
    for record in _finished(Path(cfg.paths.outputs) / "runs"):
        summary = record.summary()
        ours = fingerprint(replace(run, seed=summary["seed"]))
        kept = found.get(summary["seed"])
        is_ours = summary["fingerprint"] == ours.config
        if is_ours and (kept is None or not kept.folder.name.endswith(str(ours))):
            found[summary["seed"]] = record
    return [
        Run("", seed, replace(run, seed=seed), record, record.summary()["command"])
        for seed, record in sorted(found.items())
    ]


def _finished(runs: Path) -> Iterator[Record]:
    """The finished runs of a folder, in the order in which they were written."""
    records = [Record(path.parent) for path in sorted(runs.glob("*/summary.json"), key=lambda p: p.stat().st_mtime)]
    return (record for record in records if record.status() is Status.finished)


def as_run(cfg: Root) -> Root:
    """The config of the run that has the same settings as this probe."""
    return Root(**{f.name: getattr(cfg, f.name) for f in fields(Root)})
