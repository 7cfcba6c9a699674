"""When two runs are the same run: what goes into the parameters, hashed. No torch is imported.

A run's identity covers its config, all of it, torch's and numpy's versions, and the code that the run executes:
comments, docstrings and parts that were not chosen do not count. An evaluation has a key of its own, so that a new
metric retrains nothing.
"""

import ast
import hashlib
import json
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from lecture04.config import Architecture, Evaluation, Run, Uptrain
from lecture04.config.code import statements
from lecture04.config.registry import PACKAGE, registrations
from lecture04.config.schema import PARTS

# Where a run begins; the files of its parts and whatever these import belong to it too. A file that nobody imports, of
# parts that were not chosen, does not.
RUN_CODE = ("nn/init.py", "training/loop.py")
RUN_FOLDERS = ("nn", "data", "training")
# What reads the parameters and changes none.
EVALUATION_CODE = ("training/evaluate.py", "training/activity.py")


class Identity(NamedTuple):
    """What makes a run the run that it is: its config (with the versions of what computes), and the code it executes."""

    config: str
    code: str

    def __str__(self) -> str:
        return f"{self.config}-{self.code}"


def plain(value: Any) -> Any:
    """Dataclasses and enums as what JSON and YAML can hold."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.name if isinstance(value, Enum) else value


def digest(content: object, length: int) -> str:
    """The first digits of a hash of what JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:length]


def chosen_parts(run: Architecture) -> frozenset[tuple[str, str]]:
    """(family, name) of every part that a run, or a model, has chosen."""
    parts = {family: getattr(run, family) for family in PARTS if hasattr(run, family)}
    return frozenset((family, part.name) for family, part in parts.items())


def versions() -> dict[str, str]:
    """Of what computes."""
    return {name: version(name) for name in ("torch", "numpy")}


def identified(run: Run) -> dict[str, Any]:
    """The config of a run as its identity has it: what it starts from stands there by its own identity."""
    content = plain(run)
    if isinstance(run.init, Uptrain):
        start = run.init.start
        content["init"] = {"name": run.init.name, "merge": run.init.merge.name}
        if isinstance(start, Run):
            content["init"]["run"] = str(identity(start))
        else:  # what the folder holds, wherever it lies
            content["init"]["folder"] = run.init.digest
    return content


def identity(run: Run) -> Identity:
    """The identity of a run."""
    return Identity(digest([identified(run), versions()], 10), run_code(run))


def run_code(run: Run) -> str:
    """A hash of the code that a run executes."""
    return code_hash(PACKAGE, RUN_CODE, chosen_parts(run))


def evaluation_key(run: Run, evaluation: Evaluation) -> str:
    """The key of a run's evaluation: how it is evaluated, and the evaluation's code."""
    code = [ast.unparse(node) for name in EVALUATION_CODE for node in statements(PACKAGE / name)]
    return digest([plain(evaluation), code], 10)


@cache
def code_hash(package: Path, roots: tuple[str, ...], chosen: frozenset[tuple[str, str]]) -> str:
    """A hash of the statements that a run executes, less docstrings, comments and the registered parts nobody uses.

    `roots` are the files where it begins. A part that was chosen brings along the registered ones that it names (its
    base class, say).
    """
    nodes = [node for file in _executed(package, roots, chosen) for node in statements(file)]
    parts: dict[str, ast.ClassDef | ast.FunctionDef] = {
        node.name: node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef) and registrations(node)
    }
    waiting = [node for node in parts.values() if any((r.family, r.name) in chosen for r in registrations(node))]
    used: set[str] = set()
    while waiting:
        node = waiting.pop()
        used.add(node.name)
        named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        waiting += [parts[name] for name in named & parts.keys() - used]
    kept = [n for n in nodes if getattr(n, "name", None) not in parts or getattr(n, "name", None) in used]
    return digest([ast.unparse(node) for node in kept], 6)


def _executed(package: Path, roots: tuple[str, ...], chosen: frozenset[tuple[str, str]]) -> list[Path]:
    """The files that a run executes: its roots, those that define its parts, and what these import, sorted."""
    files = {path for folder in RUN_FOLDERS for path in (package / folder).glob("*.py")}
    of_parts = {
        file
        for file in files
        if any((r.family, r.name) in chosen for node in statements(file) for r in registrations(node))
    }
    evaluation = {package / name for name in EVALUATION_CODE}
    waiting = [*(package / root for root in roots if (package / root).exists()), *of_parts]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found and file not in evaluation:
            found.add(file)
            waiting += [imported for imported in _imports(package, file) if imported in files]
    return sorted(found)


def _imports(package: Path, file: Path) -> list[Path]:
    """The package's own files that a file imports, anywhere in it."""
    names: list[str] = []
    for node in (inner for statement in statements(file) for inner in ast.walk(statement)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    ours = [name.split(".")[1:] for name in names if name.startswith("lecture04.")]
    return [package.joinpath(*parts).with_suffix(".py") for parts in ours]


def run_name(run: Run) -> str:
    """The name of a run's folder: its parts, its seed and its identity; it is looked up by the last alone."""
    parts = (run.placement, run.norm, run.ffn, run.attention, run.posenc)
    return "-".join([*(part.name for part in parts), f"s{run.seed}", str(identity(run))])
