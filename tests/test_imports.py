"""Imports point one way, and a command that trains nothing imports nothing heavy."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import lecture04

PACKAGE = Path(lecture04.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# A room -> the rooms that its files may import from, however deep in a function the import stands. cli may import all.
ROOMS = {
    "config": set(),
    "nn": {"config"},
    "data": {"config"},
    "records": {"config"},
    "stats": set(),
    "huggingface": {"config", "nn", "data", "records"},
    "training": {"config", "nn", "data", "records", "huggingface"},
    "report": {"config", "records", "stats"},
    "sweep": {"config", "records", "stats", "report", "training"},
    "lecture": {"config", "nn", "data", "records", "stats", "training", "report", "sweep", "cli"},
    "cli": {"config", "nn", "data", "records", "training", "huggingface", "report", "sweep"},
}
# A room -> what else its files may not import, at their top or anywhere.
OUTSIDE = {
    "config": {"torch", "numpy", "pandas", "wandb"},
    "nn": {"hydra", "wandb", "pandas"},
    "data": {"hydra", "wandb", "pandas"},
    "records": {"torch", "numpy", "pandas", "hydra"},
    "stats": {"torch", "pandas", "hydra", "omegaconf"},
    "huggingface": {"hydra", "wandb", "pandas", "transformers"},
    "training": {"hydra", "wandb", "pandas"},
    "report": {"torch", "hydra"},
    "sweep": {"torch"},
    "lecture": {"wandb"},
    "cli": set(),
}


def room_of(path: Path) -> str:
    """The folder that a file of the package lies in; empty for the package's own __init__."""
    return path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else ""


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree, but for what type checkers alone read."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from statements(child)


def imported(source: str, package: str) -> set[str]:
    """Every module that a source names in an import statement, as `a.b.c`, each with the packages that it lies in."""
    found: set[str] = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *base.split(".")])
            # `from lecture04 import config` names a module by its alias.
            found |= {base.rstrip("."), *(f"{base.rstrip('.')}.{alias.name}" for alias in node.names)}
    return {".".join(name.split(".")[:n]) for name in found for n in range(1, name.count(".") + 2)}


def modules() -> dict[str, Path]:
    """{dotted name: file} of the package."""
    names = {".".join(("lecture04", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in FILES}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


@cache
def imports_of(path: Path) -> set[str]:
    package = ".".join(["lecture04", *path.relative_to(PACKAGE).parent.parts])
    return imported(path.read_text(), package)


def test_every_room_has_its_rules():
    assert {room_of(path) for path in FILES} - {""} == ROOMS.keys() == OUTSIDE.keys()
    assert all(allowed <= ROOMS.keys() for allowed in ROOMS.values())


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room):
    forbidden = OUTSIDE[room] | {f"lecture04.{other}" for other in ROOMS.keys() - ROOMS[room] - {room}}
    for path in (PACKAGE / room).rglob("*.py"):
        wrong = imports_of(path) & forbidden
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_the_lecture_is_a_client():
    """Nothing imports it; the command's dispatcher knows its commands by their names alone."""
    users = {str(path.relative_to(PACKAGE)) for path in FILES if "lecture04.lecture" in imports_of(path)}
    assert users
    assert all(user.startswith("lecture/") for user in users)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of nodes that reach each other."""
    reached = {node: {node} for node in graph}
    changed = True
    while changed:
        changed = False
        for node, following in graph.items():
            more = set[str]().union(*(reached[other] for other in following)) - reached[node]
            reached[node] |= more
            changed |= bool(more)
    together = {
        frozenset(other for other in graph if other in reached[node] and node in reached[other]) for node in graph
    }
    return [set(group) for group in together if len(group) > 1]


def test_circles_are_seen():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert circles(graph) == [{"b", "c"}]
    assert circles(graph | {"d": {"a"}}) == [{"a", "b", "c", "d"}]
    assert circles(graph | {"c": {"d"}}) == []


def test_no_two_files_import_each_other():
    """However far apart, and however deep in a function. A package's __init__ hands on what its files have."""
    known = modules()
    graph = {
        name: {other for other in imports_of(path) & known.keys() if known[other].name != "__init__.py"} - {name}
        for name, path in known.items()
        if path.name != "__init__.py"
    }
    assert not circles(graph)


def test_no_two_rooms_import_each_other():
    graph: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in FILES:
        if path.parent != PACKAGE:
            room = room_of(path)
            graph[room] |= {other for other in ROOMS if f"lecture04.{other}" in imports_of(path)} - {room}
    assert not circles(graph)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch.nn.functional as F", "torch"),
        ("from lecture04 import nn", "lecture04.nn"),
        ("from lecture04.nn.model import X", "lecture04.nn"),
        ("from ..nn import model", "lecture04.nn"),
        ("from .. import nn", "lecture04.nn"),
        ("def f():\n    from torch import nn", "torch"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    pass\nimport torch", "torch"),
    ],
)
def test_every_form_of_an_import_is_seen(source, expected):
    assert expected in imported(source, "lecture04.data")


def in_a_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


HEAVY = ("torch", "numpy", "pandas", "scipy", "wandb", "joblib", "rich", "safetensors")
CHECK = f"import sys; bad = set({HEAVY!r}) & set(sys.modules); assert not bad, bad"


def test_a_command_line_and_a_composed_config_import_nothing_heavy():
    """What stands between TAB, --cfg or a config error and the answer; Hydra's plugin scan is on that way."""
    in_a_process(
        "from hydra import compose, initialize_config_dir\n"
        "from lecture04.cli import train as cli\n"
        "from lecture04.config.places import CONF\n"
        "with initialize_config_dir(str(CONF), version_base='1.3'):\n"
        "    cfg = compose('config', overrides=['recipe=llama'])\n"
        "assert cli.resolved(cfg).run.ffn.name == 'swiglu'\n" + CHECK
    )


@pytest.mark.parametrize("module", ["lecture04.records.record", "lecture04.sweep.command", "lecture04.records.metrics"])
def test_looking_up_runs_and_planning_import_nothing_heavy(module):
    in_a_process(f"import {module}; {CHECK}")


def test_reports_and_statistics_do_without_torch():
    in_a_process(
        "import sys, lecture04.stats, lecture04.report.results, lecture04.report.table, lecture04.report.text\n"
        "assert 'torch' not in sys.modules"
    )
