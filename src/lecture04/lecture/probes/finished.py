"""Runs that are there already, for probes that ask something of trained models. No torch here, so that what is missing
is said at once.
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
    """A trained run: the row that asked for it, its settled config and its folder.

    `cfg.paths` is where the run lies now, whatever its own config says of the place where it was trained; `again` is
    the command that makes it, `evaluation` the key of its evaluation in the table.
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
    """A table's sweep.json. Raises UserError, which names the command that makes the table, where there is none."""
    outputs = Path(cfg.paths.outputs)
    if found := read_json(outputs / "sweeps" / name / "sweep.json"):
        return found
    files = {path.stem for path in SWEEPS.glob("*.yaml")}
    if name not in files:
        there = {path.parent.name for path in (outputs / "sweeps").glob("*/sweep.json")}
        raise UserError(f"probe.sweep={name}: there is no such table." + nearest(name, sorted(files | there)))
    raise UserError(f"probe.sweep={name}: no such table lies in {outputs}; make it: {sweep_command(outputs, name)}")


def of_table(cfg: Root, name: str) -> list[Run]:
    """Every run of a table under cfg.paths.outputs, in its order; those that diverged count.

    Raises UserError, which names the command to mend it, where the table or one of its runs is not there.
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
    """The finished runs of a settled config, whatever their seed and whoever asked for them, in the order of seeds.

    The config alone counts (with torch's version); where several runs differ in code only, it is the one of today's
    code, or else the one written last.
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
    """The finished ones of a folder of runs, the one written last at the end."""
    records = [Record(path.parent) for path in sorted(runs.glob("*/summary.json"), key=lambda p: p.stat().st_mtime)]
    return (record for record in records if record.status() is Status.finished)


def as_run(cfg: Root) -> Root:
    """A probe's config less the probe: that of the run with the same settings."""
    return Root(**{f.name: getattr(cfg, f.name) for f in fields(Root)})
