"""When two runs are the same run: what goes into the parameters, hashed. No torch is imported.

A run's identity covers its config, all of it, the versions of what computes, and the definitions that the run executes
(see config/code.py): comments, docstrings, messages and parts that were not chosen do not count. An evaluation has a
key of its own, so that a new metric retrains nothing.

The processor is no part of it: bits differ from one type to another, results do not. It is written down (`recorded`).
"""

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from inspect import getfile
from pathlib import Path
from typing import Any, NamedTuple

from lecture04.config import Architecture, Evaluation, Run, Uptrain
from lecture04.config.closure import INSTALLED
from lecture04.config.code import Code, code
from lecture04.config.code import Root as Start
from lecture04.config.registry import PACKAGE, entry, outside
from lecture04.config.schema import PARTS
from lecture04.records.metrics import MEASURES

# Where a run begins; its parts and the classes of its settings are added.
RUN = (
    ("lecture04.training.run", "run"),
    ("lecture04.training.loop", "train"),
    ("lecture04.nn.init", "build"),
    ("lecture04.config.resolve", "mismatch"),  # a metric that is computed before the run
)
EVALUATION = (("lecture04.training.evaluate", "evaluate"), ("lecture04.training.activity", "activity"))
# What a run calls and what changes none of its parameters, metrics and states: it keeps, watches and evaluates them.
HASHING = "lecture04.config.code"
BESIDE_A_RUN = (
    "lecture04.records",
    "lecture04.training.evaluate:evaluate",
    "lecture04.training.memory",
    "lecture04.training.resume",
    "lecture04.interrupts",
    HASHING,
)
# What reads the parameters that a run from a Hugging Face folder starts with; no other run executes it.
FOLDERS = "lecture04.huggingface"
COMPUTING = ("torch", "numpy")


class Identity(NamedTuple):
    """What makes a run the run that it is: its config (with the versions of what computes), and its code."""

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
    return {name: _version(name) for name in COMPUTING}


@cache
def _version(name: str) -> str:
    return version(name)  # reads a package's description each time


def identified(run: Run) -> dict[str, Any]:
    """The config of a run as its identity has it: what it starts from stands there by its own identity."""
    content = plain(run) | {"data": plain(run.data.identified())}
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
    return Identity(digest([identified(run), versions()], 10), run_code(run).digest)


def of_seeds(run: Run, seeds: Iterable[int]) -> dict[int, Identity]:
    """The identities of a run with other seeds; what the seed does not change is looked at once."""
    if isinstance(run.init, Uptrain) and isinstance(run.init.start, Run):  # it has the seed too
        return {seed: identity(run.with_seed(seed)) for seed in seeds}
    content, code, computing = identified(run), run_code(run).digest, versions()
    return {seed: Identity(digest([content | {"seed": seed}, computing], 10), code) for seed in seeds}


def run_code(run: Run) -> Code:
    """The code that a run executes, less that which keeps, watches and evaluates it."""
    roots, stops = begins(run)
    return code(PACKAGE, roots, own_folders(), stops)


def begins(run: Run) -> tuple[list[Start], tuple[str, ...]]:
    """Where following a run's code begins, and where it ends."""
    parts = [_part(family, name) for family, name in sorted(chosen_parts(run)) if family != "logger"]
    reads_folder = isinstance(run.init, Uptrain) and not isinstance(run.init.start, Run)
    return [*RUN, *parts, *_classes(run)], BESIDE_A_RUN if reads_folder else (*BESIDE_A_RUN, FOLDERS)


def evaluation_code(run: Run, evaluation: Evaluation) -> Code:
    """The code that an evaluation of a run executes: what its source of data measures comes with the source."""
    outside_measures = [(Path(getfile(made)), made.__qualname__) for made in MEASURES.values()]
    roots = [*EVALUATION, _part("data", run.data.name), *_classes(evaluation), *outside_measures]
    return code(PACKAGE, roots, own_folders(), ("lecture04.records", HASHING), measures=True)


def evaluation_key(run: Run, evaluation: Evaluation) -> str:
    """The key of a run's evaluation: how it is evaluated, and the evaluation's code."""
    return digest([plain(evaluation), evaluation_code(run, evaluation).digest], 10)


def _part(family: str, name: str) -> Start:
    part = entry(family, name)
    return part.module if part.ours else part.file, part.attribute


def _classes(settings: object) -> Iterator[Start]:
    """The classes of all settings in a tree of dataclasses, enums too, as (module, name)."""
    if is_dataclass(settings) or isinstance(settings, Enum):
        yield type(settings).__module__, type(settings).__qualname__
    for f in fields(settings) if is_dataclass(settings) else ():
        yield from _classes(getattr(settings, f.name))


def own_folders() -> tuple[Path, ...]:
    """The folders of the parts from outside, whose helpers are followed with them.

    Of a package among the installed ones its own folder alone, of a file there the file itself.
    """
    found = list[Path]()
    for module, file in outside().items():
        depth = module.count(".") + (file.name == "__init__.py")
        folder = file.parents[depth]
        inside = file.parents[depth - 1] if depth else file
        found.append(inside if INSTALLED & set(folder.parts) else folder)
    return tuple(dict.fromkeys(found))


def machine() -> dict[str, str]:
    """The processor, and the instructions that torch's kernels use where it is loaded."""
    found = {"architecture": platform.machine(), "processor": _processor()}
    if "torch" in sys.modules:
        found["kernels"] = sys.modules["torch"].backends.cpu.get_cpu_capability()
    return found


def _processor() -> str:
    """The model's name, as Linux has it, or else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = list[str]()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def recorded(run: Run) -> dict[str, Any]:
    """What identity.json holds beside a run: all that its identity covers, and the machine, which is no part of it."""
    return {
        "config": dict(_flat(identified(run))),
        "code": dict(run_code(run).definitions),
        "versions": versions(),
        "machine": machine(),
    }


def _flat(content: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def run_name(run: Run, own: Identity | None = None) -> str:
    """The name of a run's folder: its parts, its seed and its identity; it is looked up by the last alone."""
    parts = (run.placement, run.norm, run.ffn, run.attention, run.posenc)
    return "-".join([*(part.name for part in parts), f"s{run.seed}", str(own or identity(run))])
