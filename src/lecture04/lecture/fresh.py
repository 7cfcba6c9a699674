"""Whether an item's result is there and is what its command would give today, asked without torch.

A sweep is asked by its plan: its table is there when the manifest is the plan's. Beside the result of a probe or a test
lies a key: its command, the settings and the package's statements, the versions of what computes, the runs that it
reads, and a hash of the result itself, so that the same probe asked by hand with other settings does not pass for ours.
"""

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode

from lecture04.cli import train as cli
from lecture04.config.code import statements
from lecture04.config.errors import UserError
from lecture04.config.places import CONF, ROOT
from lecture04.config.registry import PACKAGE
from lecture04.files import write_whole
from lecture04.lecture.items import Item, Kind
from lecture04.records.identity import digest, versions
from lecture04.records.stored import read_json
from lecture04.report.manifest import Manifest
from lecture04.sweep import command
from lecture04.sweep.plan import Plan

KEY = "lecture.json"
DIGITS = 16
RESULT = {Kind.probe: "table.csv", Kind.test: "junit.xml", Kind.sweep: "sweep.json"}


@contextmanager
def composing() -> Iterator[None]:
    """Hydra, ready to compose; plans are made inside of it."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


@cache
def planned(overrides: tuple[str, ...]) -> Plan:
    """The plan of a table, as `python train.py -m OVERRIDES` would make it. Raises as that command does.

    Made once: composing takes a tenth of a second a row. What is there of a plan's runs is asked of the disk each time.
    """
    loader, asked = GlobalHydra.instance().config_loader(), list(overrides)
    cfg = loader.load_configuration("config", overrides=asked, run_mode=RunMode.MULTIRUN)
    return command.plan(
        cli.settings_of(cfg).sweep,
        OverridesParser.create(config_loader=loader).parse_overrides(asked),
        is_group=lambda key: bool(loader.get_group_options(key)),
        compose=lambda lines: cli.resolved(loader.load_sweep_config(cfg, list(lines))),
    )


def plan_of(item: Item) -> Plan:
    """The plan of a sweep of sweeps/. Raises as `planned` does."""
    return planned((f"sweeps={item.name}",))


def has_result(item: Item) -> bool:
    """Whether a result lies there, of today's code and settings. Raises as `plan_of` does."""
    if item.kind is not Kind.sweep:
        return read_json(item.folder / KEY) == _stamp(item)
    plan, file = plan_of(item), plan_of(item).folder / "sweep.json"
    try:
        there = Manifest.from_json(read_json(file) or {}, file=file, name=item.name)
    except UserError:
        return False
    # The command can be typed in more than one way.
    return replace(there, command="", environment=None) == plan.manifest("")


def is_done(item: Item) -> bool:
    """Whether nothing is left to run; a table can be there while runs of it have failed. Raises as `plan_of`."""
    return has_result(item) and (item.kind is not Kind.sweep or all(job.is_complete for job in plan_of(item).jobs))


def stamp(item: Item) -> None:
    """Keep the key beside a result that has just been made."""
    if item.kind is not Kind.sweep:
        write_whole(item.folder / KEY, json.dumps(_stamp(item)) + "\n")


def _stamp(item: Item) -> dict[str, str | None]:
    result = item.folder / RESULT[item.kind]
    return {"key": key(item), "result": digest(result.read_text(encoding="utf-8"), DIGITS) if result.exists() else None}


def key(item: Item) -> str:
    """What a probe's or test's result depends on, as a hash."""
    tests = [(ROOT / file).read_text(encoding="utf-8") for file in item.files]
    runs = [(read_json(needed.folder / "sweep.json") or {}).get("rows") for needed in item.needs]
    return digest([item.arguments, tests, runs, project(), versions()], DIGITS)


@cache
def project() -> str:
    """The settings, the probes' data and the package's statements, less the rest of lecture/, which makes no result."""
    probes = PACKAGE / "lecture" / "probes"
    code = [p for p in sorted(PACKAGE.rglob("*.py")) if probes in p.parents or probes.parent not in p.parents]
    data = [*sorted(CONF.rglob("*.yaml")), *sorted(probes.glob("*.yaml"))]
    return digest(
        [
            [[path.relative_to(PACKAGE).as_posix(), *map(ast.dump, statements(path))] for path in code],
            [[path.name, path.read_text(encoding="utf-8")] for path in data],
        ],
        DIGITS,
    )
