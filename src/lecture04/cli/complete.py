"""What TAB offers: what can be chosen, and nothing internal. Hydra's completion makes the list; it is trimmed here."""

import io
import os
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from enum import Enum
from typing import Any, get_origin

from lecture04.config.flags import OFFERED
from lecture04.config.schema import PARTS
from lecture04.config.settings import INTERNAL, settings

HYDRAS = ("hydra/launcher=", "hydra.launcher.", "hydra.run.", "hydra.verbose=")
"""What is offered of Hydra's own settings, once somebody has typed `hydra`."""
FIXED = tuple(f"hydra.launcher.{name}=" for name in ("backend", "prefer", "require"))
"""What has one choice only."""
OF_PROBES, OF_TABLES = ("probe", "probe."), ("sweeps", "sweep.")


def is_query(arguments: Sequence[str]) -> bool:
    """Whether a shell asks for what may follow (`-sc query=bash`)."""
    return bool({"-sc", "--shell-completion"} & set(arguments)) and any(word[:6] == "query=" for word in arguments)


def answer(hydras: Callable[[], object], arguments: Sequence[str], *, is_probe: bool = False) -> None:
    """Print what may follow; `hydras` prints what Hydra would offer."""
    word = os.environ.get("COMP_LINE", "").rpartition(" ")[2]
    if word.startswith("-"):
        found = [option for option in OFFERED if option.startswith(word)]
    elif values := [f"{word.partition('=')[0]}={value}" for value in _values(word)]:
        found = [value for value in values if value.startswith(word)]
    else:
        with redirect_stdout(io.StringIO()) as out:
            hydras()
        found = list(_trimmed(out.getvalue().split(), word, OF_TABLES if is_probe else OF_PROBES))
    print(("\n" if "query=fish" in arguments else " ").join(found))


def _values(word: str) -> list[str]:
    """The values of a setting that has a few: of an enum or a bool."""
    key, equals, _ = word.partition("=")
    kind = settings().get(key) if equals else None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.name for member in kind]
    return ["true", "false"] if kind is bool else []


def _trimmed(words: Sequence[str], typed: str, elsewhere: tuple[str, str]) -> Iterator[str]:
    known = settings()
    for word in words:
        key = word.rstrip(".=/")
        is_internal = any(key == name or key.startswith(f"{name}.") for name in INTERNAL) or word.startswith("schema/")
        is_name = key.endswith(".name") and key[:-5] in (*PARTS, "probe")
        if is_internal or is_name or key == elsewhere[0] or word.startswith(elsewhere[1]):
            continue
        if key.partition(".")[0].partition("/")[0] == "hydra":
            yield from _of_hydra(word, typed)
        elif word.endswith(".") and _is_list(known.get(key)):
            yield f"{key}=["
        else:
            yield word


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list


def _of_hydra(word: str, typed: str) -> Iterator[str]:
    if not typed.startswith("h") or "._" in word or word in FIXED:
        return
    if word in ("hydra", "hydra."):
        yield "hydra/" if word == "hydra" else word
    elif word.startswith(HYDRAS) or any(offered.startswith(word) for offered in HYDRAS):
        yield word


def of_parser(parser: ArgumentParser, line: str) -> list[str]:
    """What may follow a command that is argparse's own: its subcommands, or its options."""
    *before, word = re.split(r"\s+", line) or [""]
    for action in parser._actions:
        if isinstance(action.choices, dict):
            if not before:
                return [name for name in action.choices if name.startswith(word)]
            parser = action.choices.get(before[0], parser)
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    return [option for option in options if option.startswith(word)]
