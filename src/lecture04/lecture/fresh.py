"""Whether an item's result is there and still what its command would give, asked without torch and without running it.

A sweep's answer is its plan, made here as the sweeper makes it: the table is there when its manifest is the plan's and
every run is complete. A probe's or a test's is a key beside its result: its settled config, the package's statements
and torch's version, the runs that it reads, and a hash of the result itself, so that the same probe asked by hand with
other settings does not pass for ours.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode

from lecture04.cli import train as cli
from lecture04.config.code import statements
from lecture04.config.messages import UserError
from lecture04.config.registry import PACKAGE
from lecture04.lecture.items import Item, Kind
from lecture04.lecture.probes.command import settled
from lecture04.records.identity import as_dict
from lecture04.records.record import read_json, write_whole
from lecture04.report.manifest import Manifest
from lecture04.sweep import command
from lecture04.sweep.plan import Plan

KEY = "lecture.json"
RESULT = {Kind.probe: "table.csv", Kind.test: "junit.xml"}


@contextmanager
def composing() -> Iterator[None]:
    """Hydra, ready to compose; what is below works inside of it."""
    with initialize_config_dir(str(cli.ROOT / "conf"), version_base="1.3"):
        yield


@cache
def plan_of(item: Item) -> Plan:
    """The plan of a sweep, as `python train.py -m sweeps=NAME` would make it. Raises as that command does.

    Made once: composing takes a tenth of a second a row, and what is there of a plan's runs is asked of the disk.
    """
    loader, asked = GlobalHydra.instance().config_loader(), [f"sweeps={item.name}"]
    cfg = loader.load_configuration("config", overrides=asked, run_mode=RunMode.MULTIRUN)
    return command.plan(
        cli.to_root(cfg).sweep,
        OverridesParser.create(config_loader=loader).parse_overrides(asked),
        is_group=lambda key: bool(loader.get_group_options(key)),
        compose=lambda lines: cli.settled(loader.load_sweep_config(cfg, list(lines))),
    )


@dataclass(frozen=True)
class State:
    """What is there of an item. `done` of `total` runs are complete; a probe or a test counts as one."""

    is_fresh: bool
    done: int
    total: int
    plan: Plan | None = None


def state(item: Item) -> State:
    """What is there of an item. Raises as composing its config does."""
    if item.kind is Kind.sweep:
        plan = plan_of(item)
        done = sum(job.is_complete for job in plan.jobs)
        return State(done == len(plan.jobs) and has_table(plan), done, len(plan.jobs), plan)
    kept = read_json(item.folder / KEY) or {}
    fresh = bool(kept) and kept == {"key": key(item), "result": _result(item)}
    return State(fresh, int(fresh), 1)


def has_table(plan: Plan) -> bool:
    """Whether the table that lies there is that of this plan: the same rows, and the same runs of today's code."""
    file = plan.folder / "sweep.json"
    try:
        there = Manifest.from_json(read_json(file) or {}, file=file, name=plan.name)
    except UserError:
        return False
    # The command can be typed in more than one way.
    return replace(there, command="", environment=None) == plan.manifest("")


def stamp(item: Item) -> None:
    """Keep the key beside a result that has just been made."""
    if item.kind is not Kind.sweep:
        write_whole(item.folder / KEY, json.dumps({"key": key(item), "result": _result(item)}) + "\n")


def key(item: Item) -> str:
    """What a probe's or test's result depends on, as a hash."""
    config: object = item.arguments
    if item.kind is Kind.probe:
        content = as_dict(settled(compose("probe", overrides=_own(item))))
        config = {k: v for k, v in content.items() if k not in ("sweep", "origin", "logger")}
    elif item.path:
        config = [item.arguments, *(path.read_text(encoding="utf-8") for path in _test_files(item))]
    read = [_runs(needed) for needed in item.needs]
    return _digest([config, package(), version("torch"), read])


def _own(item: Item) -> list[str]:
    """A probe's overrides but those that say where its result lies."""
    return [line for line in item.overrides if not line.startswith("hydra.")]


def _test_files(item: Item) -> list[Path]:
    return [cli.ROOT / path for path in (item.path, *item.reads)]


def _runs(item: Item) -> object:
    """The runs, and their evaluations, that a sweep's table names."""
    rows = (read_json(item.folder / "sweep.json") or {}).get("rows", {})
    return {row: [about["runs"], about.get("evaluation")] for row, about in rows.items()}


def _result(item: Item) -> str | None:
    path = item.folder / RESULT[item.kind]
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


@cache
def package() -> str:
    """The package's statements and data files, without this part of it, on which no result depends."""
    code = [
        [path.relative_to(PACKAGE).as_posix(), *map(ast.dump, statements(path))]
        for path in sorted(PACKAGE.rglob("*.py"))
        if "lecture" not in path.relative_to(PACKAGE).parts
    ]
    data = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "probes").glob("*.yaml"))]
    return _digest([code, data])


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]
