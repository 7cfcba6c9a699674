"""Why two runs are not the same one: `lecture04 runs explain A B`. No torch is imported."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

NAME = "identity.json"
MISSING = object()


def explain(a: Path, b: Path) -> list[str]:
    """Sentences on why two runs' folders do not hold the same run, field by field, file by file, version by version.

    "here" is the first one's, "there" the second one's. The processor is said where it differs, although it is no part
    of a run's identity. Raises ValueError where a folder does not say what its run is.
    """
    here, there = stated(a), stated(b)
    lines = differences(here, there)
    beside = [
        f"{line} (no part of the identity, but bits may differ)" for line in _fields(here["machine"], there["machine"])
    ]
    return [*(lines or ["They are the same run."]), *beside]


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """What makes two runs two, by what `identity.json` says of each."""
    lines = _fields(here["config"], there["config"])
    lines += _code(here["code"], there["code"], alone=not lines)
    return lines + [f"{line} (version)" for line in _fields(here["versions"], there["versions"])]


def stated(folder: Path) -> dict[str, dict[str, Any]]:
    """What `identity.json` says. Raises ValueError where there is none, or it is none."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file, so the code that this run executed is unknown.") from None
    except ValueError:
        content = None
    parts = ("config", "code", "versions", "machine")
    if not isinstance(content, dict) or any(not isinstance(content.get(part), dict) for part in parts):
        raise ValueError(f"{path}: it does not hold {', '.join(parts)}.")
    return content


def _fields(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """`ffn.d_ff: 256 here, 171 there` for each field of another value; what one of them lacks is said so."""
    return [
        f"{key}: {_said(one)} here, {_said(other)} there"
        for key in _in_order(here, there)
        if (one := here.get(key, MISSING)) != (other := there.get(key, MISSING))
    ]


def _in_order(here: Iterable[str], there: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*here, *there]))


def _said(value: object) -> str:
    if value is MISSING:
        return "not set"
    return value if isinstance(value, str) and value else json.dumps(value)


def _code(here: Mapping[str, str], there: Mapping[str, str], *, alone: bool) -> list[str]:
    """`nn/ffn.py: SwiGLU differs` for each file.

    With `alone` also what one of them executes alone; where settings differ, other parts are executed as a matter of
    course.
    """
    by_file: dict[str, list[str]] = {}
    for key in sorted({*here, *there}):
        if here.get(key) != there.get(key):
            by_file.setdefault(key.partition("::")[0], []).append(key)
    lines = list[str]()
    for file, keys in by_file.items():
        changed = [key for key in keys if key in here and key in there]
        if changed:
            lines.append(f"{file}: {_names(changed)} {'differs' if len(changed) == 1 else 'differ'}")
        for where, own in (
            ("here", [k for k in keys if k not in there]),
            ("there", [k for k in keys if k not in here]),
        ):
            if own and alone:
                lines.append(f"{file}: {_names(own)} {'is' if len(own) == 1 else 'are'} executed {where} alone")
    return lines


def _names(keys: Iterable[str]) -> str:
    return ", ".join(key.partition("::")[2] for key in keys)
