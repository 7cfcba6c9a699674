"""JSON files of a record: sealed with a checksum when they are written, looked at when they are read.

What is no JSON, says nonsense, was edited, or belongs to another run is set aside and said, and counts for nothing.
"""

import errno
import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from lecture04.files import rename_unreadable, write_whole

log = logging.getLogger(__name__)

SETTLED = 100_000_000
"""Nanoseconds behind its last change from which on a file or folder is known to have another time at the next one."""

NONSENSE = "it does not say what it should"

Content = dict[str, Any]
Fault = Callable[[Content], str]
"""Why a file's content does not count; empty where it does."""


class Status(StrEnum):
    """How far a run has come. Failed and missing ones are tried again, the others are results.

    `undertrained`: the training went well, and ended too early to beat the unigram model.
    """

    finished = "finished"
    undertrained = "undertrained"
    diverged = "diverged"
    failed = "failed"
    missing = "missing"

    @property
    def is_result(self) -> bool:
        """Whether nothing is left to train."""
        return self.ended_well or self is Status.diverged

    @property
    def ended_well(self) -> bool:
        """Whether its figures count: a run that diverged has no place on a quality scale."""
        return self in (Status.finished, Status.undertrained)

    @property
    def in_words(self) -> str:
        """As it is said to the user."""
        return "not trained enough to beat the unigram model" if self is Status.undertrained else self.value


_parsed: dict[Path, tuple[tuple[int, int, int], Content]] = {}


def read_json(path: Path, fault: Fault = lambda content: "") -> Content | None:
    """A JSON file's content, None where there is none.

    What is no JSON object, or has a fault, is renamed with a warning, and counts for nothing. So does what cannot be
    opened, which keeps its name: another user, or a disk that is back, may be able to. A file is parsed once as long as
    it stays the same one; nobody may change what is returned.
    """
    try:
        about = os.stat(path)
        same = about.st_mtime_ns, about.st_size, about.st_ino
        known = _parsed.get(path)
        if known and known[0] == same:
            return known[1]
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        if e.errno == errno.ELOOP:  # a link that leads to itself, here or above: nothing is there
            return None
        log.warning("%s could not be read (%s); it does not count.", path, e.strerror)
        return None
    except ValueError as e:
        rename_unreadable(path, e)
        return None
    why = fault(content) if isinstance(content, dict) else NONSENSE
    if why:
        rename_unreadable(path, why)
        return None
    if time.time_ns() - about.st_mtime_ns > SETTLED:
        _parsed[path] = same, content
    return content


def write_sealed(path: Path, content: Content) -> None:
    """Write a JSON file whole, with a checksum of what it says; NaN and infinities become None."""
    sound = finite(content)
    write_whole(path, json.dumps(sound | {SEAL: _seal(sound)}, indent=1) + "\n")


SEAL = "sha256"


def _seal(content: Content) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def summary_fault(content: Content) -> str:
    """What is wrong with a summary."""
    status = content.get("status")
    if not isinstance(status, str) or status not in set(Status):
        return NONSENSE
    texts = all(isinstance(content.get(name, ""), str | None) for name in ("error", "why", "code", "config", "ended"))
    has_metrics = are_metrics(content.get("metrics"))
    is_sound = texts and (has_metrics or ("metrics" not in content and not Status(status).is_result))
    return _broken_seal(content) if is_sound else NONSENSE


def evaluation_fault(content: Content) -> str:
    """What is wrong with an evaluation."""
    is_sound = are_metrics(content.get("metrics")) or isinstance(content.get("error"), str)
    return _broken_seal(content) if is_sound else NONSENSE


def _broken_seal(content: Content) -> str:
    """Whether it was edited; a file of an earlier version has no checksum."""
    own = {name: value for name, value in content.items() if name != SEAL}
    return "" if content.get(SEAL) in (None, _seal(own)) else "its checksum is another, so it was changed by hand"


def are_metrics(content: Any) -> bool:
    """Numbers by name; None stands for one that is not finite."""
    return isinstance(content, dict) and all(value is None or is_number(value) for value in content.values())


def is_number(value: Any) -> bool:
    """True and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def finite(value: Any) -> Any:
    """NaN and infinities as None: JSON has none of them."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def seals(folder: Path, names: Iterable[str]) -> Content:
    """{name: its size, time of change and checksum} of those files that are there."""
    sealed = Content()
    for name in names:
        if (path := folder / name).is_file():
            about = _about(path)
            sealed[name] = about | {SEAL: checksum(path, about["size"])}
    return sealed


def changed(folder: Path, sealed: Any) -> str:
    """The name of a file that is not what it was sealed as; a file that is gone, or was copied, is no fault."""
    for name, seal in sealed.items() if isinstance(sealed, Mapping) else ():
        try:
            about = _about(folder / name)
        except OSError:
            continue
        is_same = all(about[key] == seal.get(key) for key in about)
        if not is_same and checksum(folder / name, seal.get("size", 0)) != seal.get(SEAL):
            return name
    return ""


def checksum(path: Path, n_bytes: int) -> str:
    """SHA-256 of a file's first bytes: what a process that woke too late wrote behind them does no harm."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(n_bytes)).hexdigest()


def _about(path: Path) -> Content:
    about = os.stat(path)
    return {"size": about.st_size, "changed": about.st_mtime_ns}
