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

from lecture04.config import Root
from lecture04.registry import PACKAGE, registrations
from lecture04.source import statements

# What makes the parameters, and what reads them.
RUN_CODE = ("nn/*.py", "data/*.py", "train/*.py")
EVALUATION_CODE = ("train/evaluate.py",)
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
    return Fingerprint(
        config=_digest([content, version("torch")], 10), code=code_hash(PACKAGE, RUN_CODE, chosen_parts(cfg))
    )


def evaluation_key(cfg: Root) -> str:
    """The key of a run's evaluation: the eval config and the evaluation's code."""
    return _digest([as_dict(cfg)["eval"], code_hash(PACKAGE, EVALUATION_CODE, frozenset())], 10)


@cache
def code_hash(package: Path, patterns: tuple[str, ...], chosen: frozenset[tuple[str, str]]) -> str:
    """A hash of the statements in these files, less docstrings, comments and the registered parts that nobody uses.

    A part that was chosen brings along the registered ones that it names (its base class, say).
    """
    skip = {path for pattern in EVALUATION_CODE if patterns is not EVALUATION_CODE for path in package.glob(pattern)}
    files = sorted({path for pattern in patterns for path in package.glob(pattern)} - skip)
    nodes = [node for file in files for node in statements(file)]
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


def run_name(cfg: Root) -> str:
    """The name of a settled config's folder: its parts, its seed and its fingerprint; looked up by the last alone."""
    parts = (cfg.placement, cfg.norm, cfg.ffn, cfg.attention, cfg.posenc)
    return "-".join([*(part.name for part in parts), f"s{cfg.seed}", str(fingerprint(cfg))])
