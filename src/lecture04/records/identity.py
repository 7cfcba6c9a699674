"""When two runs are the same run: what goes into the parameters, hashed. No torch is imported.

A run's fingerprint covers the settled config (less what cannot change the parameters), torch's version, and the code
that the run executes: comments, docstrings and parts that were not chosen do not count. An evaluation has a key of its
own, so that a new metric retrains nothing.
"""

import ast
import hashlib
import json
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lecture04.config import Root, Uptrain, source_of, start_of
from lecture04.config.code import statements
from lecture04.config.registry import PACKAGE, registrations

# Where a run begins; the files of its parts and whatever these import belong to it too. A file that nobody imports, of
# parts that were not chosen, does not.
RUN_CODE = ("nn/init.py", "training/loop.py")
RUN_FOLDERS = ("nn", "data", "training")
# What reads the parameters that a run from a Hugging Face folder starts with.
FOLDER_CODE = tuple(
    f"huggingface/{name}.py" for name in ("files", "folders", "mapping", "settings", "llama", "gpt", "deepseek")
)
# What reads the parameters and changes none.
EVALUATION_CODE = ("training/evaluate.py", "training/activity.py")
# Where and how a run is kept, watched and compared; none of it changes a parameter.
NOT_PART_OF_A_RUN = ("logger", "paths", "runs", "sweep", "origin", "eval")
# How d_ff was arrived at: a pinned and a matched 171 are the same model.
SETTLED_AWAY = (("ffn", "match"), ("model", "budget"))


@dataclass(frozen=True)
class Fingerprint:
    """A run's identity: of its config (with torch's version), and of the code that it executes."""

    config: str
    code: str

    def __str__(self) -> str:
        return f"{self.config}-{self.code}"


def plain(value: Any) -> Any:
    """Dataclasses and enums as what JSON and YAML can hold."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.name if isinstance(value, Enum) else value


def as_dict(cfg: Root) -> dict[str, Any]:
    """The config as nested plain dicts."""
    return plain(asdict(cfg))


def as_recorded(cfg: Root) -> dict[str, Any]:
    """The config as a run's folder keeps it: without which sweep asked for it, and with its source's beside it."""
    content = as_dict(cfg)
    del content["sweep"], content["origin"]
    if source := start_of(cfg):
        content["init"]["run"] = as_recorded(source)
    return content


def _digest(content: object, length: int) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:length]


def chosen_parts(cfg: Root) -> frozenset[tuple[str, str]]:
    """(family, name) of every part that the config chose."""
    return frozenset((family, part["name"]) for family, part in as_dict(cfg).items() if _is_part(family, part))


def _is_part(family: str, part: object) -> bool:
    return isinstance(part, dict) and "name" in part and family not in NOT_PART_OF_A_RUN


def fingerprint(cfg: Root) -> Fingerprint:
    """The fingerprint of a settled config's run."""
    content = {k: v for k, v in as_dict(cfg).items() if k not in NOT_PART_OF_A_RUN}
    for family, key in SETTLED_AWAY:
        del content[family][key]
    if source := source_of(cfg):
        content["init"] = {"name": cfg.init.name, "merge": content["init"]["merge"], "run": str(fingerprint(source))}
    code = code_hash(PACKAGE, RUN_CODE, chosen_parts(cfg))
    if isinstance(cfg.init, Uptrain) and cfg.init.folder:  # what it holds, wherever it lies, and how it is read
        content["init"] = {"name": cfg.init.name, "merge": content["init"]["merge"], "folder": cfg.init.digest}
        read_by = [ast.unparse(node) for name in FOLDER_CODE for node in statements(PACKAGE / name)]
        code = _digest([code, read_by], 6)
    return Fingerprint(config=_digest([content, version("torch")], 10), code=code)


def evaluation_key(cfg: Root) -> str:
    """The key of a run's evaluation: the eval config and the evaluation's code."""
    code = [ast.unparse(node) for name in EVALUATION_CODE for node in statements(PACKAGE / name)]
    return _digest([as_dict(cfg)["eval"], code], 10)


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
    waiting = [node for node in parts.values() if any((f, name) in chosen for f, name, _ in registrations(node))]
    used: set[str] = set()
    while waiting:
        node = waiting.pop()
        used.add(node.name)
        named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        waiting += [parts[name] for name in named & parts.keys() - used]
    kept = [n for n in nodes if getattr(n, "name", None) not in parts or getattr(n, "name", None) in used]
    return _digest([ast.unparse(node) for node in kept], 6)


def _executed(package: Path, roots: tuple[str, ...], chosen: frozenset[tuple[str, str]]) -> list[Path]:
    """The files that a run executes: its roots, those that define its parts, and what these import, sorted."""
    files = {path for folder in RUN_FOLDERS for path in (package / folder).glob("*.py")}
    of_parts = {
        file
        for file in files
        if any((family, name) in chosen for node in statements(file) for family, name, _ in registrations(node))
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


def run_name(cfg: Root) -> str:
    """The name of a settled config's folder: its parts, its seed and its fingerprint; looked up by the last alone."""
    parts = (cfg.placement, cfg.norm, cfg.ffn, cfg.attention, cfg.posenc)
    return "-".join([*(part.name for part in parts), f"s{cfg.seed}", str(fingerprint(cfg))])
