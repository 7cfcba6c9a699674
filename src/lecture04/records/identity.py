"""When two runs are the same run: what goes into the parameters, hashed. No torch is imported.

A run's fingerprint covers the settled config (less what cannot change the parameters), the versions of what computes,
and the definitions that the run executes (see config/code.py): comments, docstrings, messages and parts that were not
chosen do not count. An evaluation has a key of its own, so that a new metric retrains nothing.

The processor is no part of it: bits differ from one type to another, results do not. It is written down (`written`).
"""

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lecture04.config import Root, Uptrain, source_of, start_of
from lecture04.config.code import Code, code
from lecture04.config.code import Root as Start
from lecture04.config.registry import PACKAGE, entry

# Where a run begins; its parts and the classes of its settings are added.
RUN = (("lecture04.training.run", "run"), ("lecture04.training.loop", "train"), ("lecture04.nn.init", "build"))
EVALUATION = (("lecture04.training.evaluate", "evaluate"), ("lecture04.training.activity", "activity"))
# What a run calls and what changes none of its parameters, metrics and states: how it is kept, watched and evaluated.
BESIDE_A_RUN = ("lecture04.records", "lecture04.training.evaluate:evaluate", "lecture04.training.memory")
# What reads the parameters that a run from a Hugging Face folder starts with; no other run executes it.
FOLDERS = "lecture04.huggingface"
COMPUTING = ("torch", "numpy")
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


def content(cfg: Root) -> dict[str, Any]:
    """The config as far as it decides what comes out."""
    found = {k: v for k, v in as_dict(cfg).items() if k not in NOT_PART_OF_A_RUN}
    for family, key in SETTLED_AWAY:
        del found[family][key]
    if source := source_of(cfg):
        found["init"] = {"name": cfg.init.name, "merge": found["init"]["merge"], "run": str(fingerprint(source))}
    if isinstance(cfg.init, Uptrain) and cfg.init.folder:  # what it holds, wherever it lies
        found["init"] = {"name": cfg.init.name, "merge": found["init"]["merge"], "folder": cfg.init.digest}
    return found


def fingerprint(cfg: Root) -> Fingerprint:
    """The fingerprint of a settled config's run."""
    return Fingerprint(config=_digest([content(cfg), versions()], 10), code=run_code(cfg).digest)


def run_code(cfg: Root) -> Code:
    """The code that a settled config's run executes, less that which keeps, watches and evaluates it."""
    roots, stops = begins(cfg)
    return code(PACKAGE, roots, stops=stops)


def begins(cfg: Root) -> tuple[list[Start], tuple[str, ...]]:
    """Where following a run's code begins, and where it ends."""
    parts = [_part(family, name) for family, name in sorted(chosen_parts(cfg))]
    is_folder = isinstance(cfg.init, Uptrain) and bool(cfg.init.folder)
    stops = BESIDE_A_RUN if is_folder else (*BESIDE_A_RUN, FOLDERS)
    return [*RUN, *parts, *_classes(cfg, NOT_PART_OF_A_RUN)], stops


def evaluation_code(cfg: Root) -> Code:
    """The code that a settled config's evaluation executes."""
    return code(PACKAGE, [*EVALUATION, *_classes(cfg.eval)], stops=BESIDE_A_RUN[:1])


def evaluation_key(cfg: Root) -> str:
    """The key of a run's evaluation: the eval config and the evaluation's code."""
    return _digest([as_dict(cfg)["eval"], evaluation_code(cfg).digest], 10)


def _part(family: str, name: str) -> Start:
    part = entry(family, name)
    return part.module, part.attribute


def _classes(settings: object, leave_out: tuple[str, ...] = ()) -> Iterator[Start]:
    """The classes of all settings in a tree of dataclasses, enums too, as (module, name)."""
    if is_dataclass(settings) or isinstance(settings, Enum):
        yield type(settings).__module__, type(settings).__qualname__
    for f in fields(settings) if is_dataclass(settings) else ():
        if f.name not in leave_out:
            yield from _classes(getattr(settings, f.name))


def versions() -> dict[str, str]:
    """The versions of the packages that compute."""
    return {name: version(name) for name in COMPUTING}


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


def written(cfg: Root) -> dict[str, Any]:
    """What identity.json holds beside a run: all that its identity covers, and the machine, which is no part of it."""
    return {
        "config": dict(_flat(content(cfg))),
        "code": dict(run_code(cfg).definitions),
        "versions": versions(),
        "machine": machine(),
    }


def _flat(content: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def run_name(cfg: Root) -> str:
    """The name of a settled config's folder: its parts, its seed and its fingerprint; looked up by the last alone."""
    parts = (cfg.placement, cfg.norm, cfg.ffn, cfg.attention, cfg.posenc)
    return "-".join([*(part.name for part in parts), f"s{cfg.seed}", str(fingerprint(cfg))])
