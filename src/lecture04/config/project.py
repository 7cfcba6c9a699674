"""What a command brings from outside the package: files with parts, their YAMLs, and sweep files. No Hydra, no torch.

Three ways, which add up:

    parts=[mine.py] --config-dir DIR   typed
    parts: [mine.py]                   in a YAML of DIR that is for all settings (# @package _global_: a recipe, say)
    lecture04.yaml                     in the folder that the command is typed in, with `parts:`; conf/ and sweeps/
                                       beside it are this project's own
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lecture04.config.errors import UserError, nearest
from lecture04.config.places import yamls

FILE = "lecture04.yaml"
KEYS = ("parts",)


@dataclass(frozen=True)
class Outside:
    """Parts as they are named, and the folders of YAMLs and of sweep files, beside the package's own.

    `typed` is what has to be added to the command line for Hydra to see them.
    """

    parts: tuple[str, ...] = ()
    conf: tuple[Path, ...] = ()
    sweeps: tuple[Path, ...] = ()
    typed: tuple[str, ...] = ()


def outside(arguments: Sequence[str], folder: Path) -> Outside:
    """What a command line and the folder that it is typed in bring. Raises UserError for a wrong project file."""
    typed_conf = _config_dir(arguments)
    conf = [folder / typed_conf] if typed_conf else []
    sweeps, added = list[Path](), list[str]()
    parts = [part for line in arguments if (part_list := typed_parts(line)) for part in part_list]
    if project := _project(folder):
        own = [str(part) for part in project.get("parts") or []]
        if own and not any(line.startswith("parts=") for line in arguments):
            parts += own
            added.append(f"parts=[{','.join(own)}]")
        if not typed_conf and (folder / "conf").is_dir():
            conf.append(folder / "conf")
            added += ["--config-dir", str(folder / "conf")]
        sweeps += [folder / "sweeps"] * (folder / "sweeps").is_dir()
    sweeps += [there / "sweeps" for there in conf if (there / "sweeps").is_dir()]
    parts += [part for there in conf for path in yamls(there, "**/*.yaml") for part in _parts_of(path)]
    return Outside(tuple(dict.fromkeys(parts)), tuple(conf), tuple(sweeps), tuple(added))


def config_dir(arguments: Sequence[str]) -> list[str]:
    """The option with which a folder of YAMLs was typed, for a command that is printed; empty where none was."""
    folder = _config_dir(arguments)
    return ["--config-dir", folder] if folder else []


def _config_dir(arguments: Sequence[str]) -> str:
    for i, argument in enumerate(arguments):
        if argument in ("--config-dir", "-cd") and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith("--config-dir="):
            return argument.partition("=")[2]
    return ""


def typed_parts(line: str) -> list[str]:
    """The files and modules of `parts=[a.py, b]`, quoted or not."""
    if not (found := re.fullmatch(r"parts=\[?(.*?)\]?", line, flags=re.S)):
        return []
    return [part.strip().strip("'\"") for part in found[1].split(",") if part.strip()]


def _project(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    if not path.is_file():
        return {}
    content = _yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be settings below keys. Choices: {', '.join(KEYS)}.")
    if unknown := [key for key in content if key not in KEYS]:
        raise UserError(f"{path}: {unknown[0]}: no such setting." + nearest(unknown[0], KEYS))
    if not isinstance(content.get("parts") or [], list):
        raise UserError(f"{path}: parts: must be a list of files or modules.")
    return content


def _parts_of(path: Path) -> list[str]:
    """The parts that a YAML names at its top."""
    if not re.search(r"^parts:", path.read_text(encoding="utf-8"), flags=re.M):
        return []
    content = _yaml(path)
    found = content.get("parts") if isinstance(content, dict) else None
    return [str(part) for part in found] if isinstance(found, list) else []


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as e:
        raise UserError(f"{path}: not a YAML file: {' '.join(str(e).split())}") from e
