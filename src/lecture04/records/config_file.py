"""A run's settled config, read back from its folder: the inverse of what `Record.start` writes. Without torch."""

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml

from lecture04.config import SCHEMAS, Root
from lecture04.config.messages import UserError, nearest
from lecture04.config.registry import names

LEFT_OUT = ("sweep", "origin")
"""What a run's config.yaml does not hold, since it is no part of the run; these have their defaults here."""
LATER = {"folder": "init", "digest": "init"}
"""Settings that came when runs were there already, and where they stand; without them a run is as by default."""
WHOLE = {"model", "ffn", "seed"}
"""Keys by which a config is known where its place says nothing of its type."""


class _UnfitError(Exception):
    """What is wrong in the file; its text goes behind the file's name."""


def read_config(folder: Path) -> Root:
    """The settled config that a run's folder holds: `as_recorded` of it is what its config.yaml says.

    A part's dataclass is the one that SCHEMAS names for its family and name; `sweep` and `origin` have their defaults,
    here and in the config of the run that it starts from.

    Raises:
        UserError: there is no such file, it is no YAML, or it has a key too many, one too few or a value that cannot be
            (as a run of older code may); the sentence names the file and the key.
    """
    path = Path(folder) / "config.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        root = _settings(Root, content, "")
    except FileNotFoundError as e:
        raise UserError(f"{path}: there is no such file, so no run lies there.") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: not a YAML file: {' '.join(str(e).split())}") from e
    except _UnfitError as e:
        raise UserError(f"{path}: {e}") from e
    assert isinstance(root, Root)
    return root


def _settings(cls: Any, content: object, where: str) -> object:
    """A dataclass of these settings; every field must be there, and nothing else."""
    if not isinstance(content, dict):
        raise _UnfitError(f"{where or 'the file'}: must be settings below keys, not {content!r}.")
    hints = get_type_hints(cls)
    prefix = f"{where}." if where else ""
    if unknown := [key for key in content if key not in hints]:
        raise _UnfitError(f"{prefix}{unknown[0]}: no such setting." + nearest(unknown[0], hints))
    found: dict[str, object] = {}
    for f in fields(cls):
        if f.name in content:
            found[f.name] = _value(hints[f.name], content[f.name], f"{prefix}{f.name}", f.name)
        elif not (_has_default(f.name, where) and (f.default, f.default_factory) != (MISSING, MISSING)):
            raise _UnfitError(f"{prefix}{f.name}: the setting is missing.")
    return cls(**found)


def _has_default(name: str, where: str) -> bool:
    """Whether a setting may be left out of the file."""
    return name in LEFT_OUT or LATER.get(name) == where.rpartition(".")[2]


def _value(hint: Any, raw: object, where: str, family: str = "") -> object:
    """A value as its annotation has it. `family` is the field's name, by which a part's own dataclass is found."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:  # OmegaConf has no type for a config inside a config: that of the run which another starts from
        return _settings(Root, raw, where) if isinstance(raw, dict) and raw.keys() >= WHOLE else raw
    if origin in (Union, UnionType):
        return _one_of(arguments, raw, where, family)
    if is_dataclass(hint):
        return _settings(_schema(hint, raw, family), raw, where)
    if origin is list and isinstance(raw, list):
        return [_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(raw)]
    if (origin or hint) is dict and isinstance(raw, dict):
        of_values = arguments[1] if arguments else Any
        return {key: _value(of_values, item, f"{where}.{key}") for key, item in raw.items()}
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


def _schema(base: Any, content: object, family: str) -> Any:
    """The dataclass of the part that is named in its settings; `base` where it has none of its own."""
    name = content.get("name") if isinstance(content, dict) else None
    if isinstance(name, str) and names(family) and name not in names(family):
        raise _UnfitError(f"{family}={name}: no such {family} is registered." + nearest(name, names(family)))
    cls = SCHEMAS.get((family, str(name)), base)
    return cls if issubclass(cls, base) else base
