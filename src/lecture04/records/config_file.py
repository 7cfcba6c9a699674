"""A run's config in its folder: written with nothing open, and read back. Without torch."""

from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import yaml

from lecture04.config import Architecture, Evaluation, Run, Uptrain, UserError
from lecture04.config.errors import nearest
from lecture04.config.fields import hints
from lecture04.config.registry import entry, load, names, options_of
from lecture04.config.schema import PARTS
from lecture04.records.identity import chosen_parts, plain


class _UnfitError(Exception):
    """What is wrong in the file; its text goes behind the file's name."""


def written(run: Run, evaluation: Evaluation) -> dict[str, Any]:
    """What config.yaml holds: the run, how it was evaluated first, and the files of its parts from outside."""
    files = {entry(family, name).file for family, name in chosen_parts(run) if not entry(family, name).ours}
    own = {"parts": sorted(map(_from_here, files))} if files else {}
    return plain(run) | {"eval": plain(evaluation)} | own


def _from_here(file: Path) -> str:
    """A path from the folder that the command was typed in, where the file lies below it."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def read_run(folder: Path) -> Run:
    """The run that a folder holds. Raises UserError as `read_config`."""
    return read_config(folder)[0]


def read_config(folder: Path) -> tuple[Run, Evaluation]:
    """The run that a folder holds, and how it was evaluated first.

    A part's options class is found by its family and name; parts from outside are loaded from where they lay.

    Raises:
        UserError: there is no such file, it is no YAML, or it has a key too many, one too few or a value that cannot be
            (as a run of older code may); the sentence names the file and the key.
    """
    path, content = Path(folder) / "config.yaml", read_plain(folder)
    try:
        parts, chosen = content.pop("parts", []), content.items()
        if any(isinstance(part, dict) and part.get("name") not in names(f) for f, part in chosen if f in PARTS):
            load(parts)
        if "eval" not in content:
            raise _UnfitError("eval: the setting is missing.")
        evaluation = _settings(Evaluation, content.pop("eval"), "eval")
        run = _settings(Run, content, "")
    except _UnfitError as e:
        raise UserError(f"{path}: {e}") from e
    assert isinstance(run, Run)
    assert isinstance(evaluation, Evaluation)
    return run, evaluation


def read_plain(folder: Path) -> dict[str, Any]:
    """What a run's config.yaml says, as it stands there. Raises UserError where there is none, or it is no YAML."""
    path = Path(folder) / "config.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise UserError(f"{path}: there is no such file, so no run lies there.") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: not a YAML file: {' '.join(str(e).split())}") from e
    if not isinstance(content, dict):
        raise UserError(f"{path}: the file: must be settings below keys, not {content!r}.")
    return content


def _settings(cls: Any, content: object, where: str) -> object:
    """A dataclass of these settings; every field must be there, and nothing else."""
    if not isinstance(content, dict):
        raise _UnfitError(f"{where or 'the file'}: must be settings below keys, not {content!r}.")
    kinds = hints(cls)
    prefix = f"{where}." if where else ""
    names_of = [f.name for f in fields(cls)]
    if unknown := [key for key in content if key not in names_of]:
        raise _UnfitError(f"{prefix}{unknown[0]}: no such setting." + nearest(unknown[0], names_of))
    if missing := [name for name in names_of if name not in content]:
        raise _UnfitError(f"{prefix}{missing[0]}: the setting is missing.")
    found: dict[str, Any] = {name: _value(kinds[name], content[name], f"{prefix}{name}", name) for name in names_of}
    if cls is Uptrain and isinstance(start := found["start"], dict):
        found["start"] = _settings(Run if "seed" in start else Architecture, start, f"{prefix}start")
    return cls(**found)


def _value(hint: Any, raw: object, where: str, family: str = "") -> object:
    """A value as its annotation has it. `family` is the field's name, by which a part's options class is found."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:  # what a run starts from: a run or an architecture, told apart by whoever knows
        return raw
    if origin in (Union, UnionType):
        return _one_of(arguments, raw, where, family)
    if is_dataclass(hint):
        return _settings(_options(hint, raw, family), raw, where)
    if origin in (list, tuple) and isinstance(raw, list):
        return origin(_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(raw))
    if isinstance(hint, type) and issubclass(hint, Enum):
        if raw not in hint.__members__:
            raise _UnfitError(f"{where}={raw}: there is no such choice." + nearest(raw, hint.__members__))
        return hint[str(raw)]
    if hint is float and type(raw) is int:
        return float(raw)
    # A bool is an int to isinstance, and never stands for a number.
    if isinstance(hint, type) and isinstance(raw, hint) and (hint is bool) == isinstance(raw, bool):
        return raw
    raise _UnfitError(f"{where}={raw!r}: must be {getattr(hint, '__name__', hint)}.")


def _one_of(hints: tuple[Any, ...], raw: object, where: str, family: str) -> object:
    """A value of the first kind that it fits; what is said of one that fits none is the last kind's."""
    if raw is None and NoneType in hints:
        return None
    *others, last = [hint for hint in hints if hint is not NoneType]
    for hint in others:
        try:
            return _value(hint, raw, where, family)
        except _UnfitError:
            continue
    return _value(last, raw, where, family)


def _options(base: Any, content: object, family: str) -> Any:
    """The options class of the part that is named in its settings; `base` where the field is no family's."""
    name = content.get("name") if isinstance(content, dict) else None
    if family not in PARTS or not isinstance(name, str):
        return base
    if name not in names(family):
        raise _UnfitError(f"{family}={name}: no such {family} is registered." + nearest(name, names(family)))
    return options_of(family, name, base)
