"""Who works on a run: a lease, which its owner renews while it lives and which another takes over where it does not.

    runs/.leases/RUN.000001    the owner, and how often it was renewed

A kernel's lock is not seen across machines; a file in a shared folder is. Leases are numbered: who takes one over makes
the next number, which only one can (a hard link to a name that is free), and the owner of a lower one has lost it. An
owner is dead where its process is gone, if that can be seen from here, and else where its lease was not renewed for
EXPIRY seconds of the clock of who looks: no two clocks are compared.
"""

import json
import logging
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from lecture04.files import write_whole

log = logging.getLogger(__name__)

FOLDER = ".leases"
EXPIRY = 60.0
RENEWED = 5.0
"""Seconds between two renewals."""
POLLED = 0.5
"""Seconds between two looks at another's lease."""


class LeaseLostError(RuntimeError):
    """Another process has taken the run over, since this one was not heard of for too long."""


@dataclass
class Lease:
    """A run of this process's, as long as no other has taken it over."""

    path: Path
    number: int
    renewals: int = 0
    beats: threading.Event = field(default_factory=threading.Event)

    def is_ours(self) -> bool:
        """Whether nobody has taken it over."""
        return max(_numbers(self.path), default=self.number) == self.number

    def renew(self) -> None:
        """Say that the owner lives."""
        self.renewals += 1
        with suppress(OSError):  # a disk that is full, or away for a moment: the next one may go through
            write_whole(_numbered(self.path, self.number), _of_this_process(self.renewals))

    def release(self) -> None:
        """Give it back, with the numbers below, whose owners are dead."""
        self.beats.set()
        if self.is_ours():
            for number in sorted(_numbers(self.path)):
                _numbered(self.path, number).unlink(missing_ok=True)
        with suppress(OSError):  # where others' leases are there
            self.path.parent.rmdir()


_held: dict[Path, Lease] = {}


@contextmanager
def lease(run: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a run's lease while the block runs; yields whether it is ours.

    It waits, and says so in the log, while another process holds it; without `wait` only as long as it is not known
    whether that one lives.
    """
    own = take(run, wait=wait)
    try:
        yield own is not None
    finally:
        if own is not None:
            give_back(run, own)


def take(run: Path, *, wait: bool) -> Lease | None:
    """A run's lease; None where an owner that lives holds it and nobody waits.

    Of an owner on another machine that is known from a renewal, for which this looks on for some seconds.
    """
    path = run.parent / FOLDER / run.name
    seen, since, said = "", time.monotonic(), False
    while True:
        number = max(_numbers(path), default=0)
        content = _read(_numbered(path, number)) if number else ""
        was_renewed = bool(seen) and content != seen
        if content != seen:
            seen, since = content, time.monotonic()
        lives = was_renewed or lives_here(content)
        if not number or lives is False or time.monotonic() - since > EXPIRY:
            if _make(path, number + 1):
                if not number or _read(_numbered(path, number)) == content:
                    break
                _numbered(path, number + 1).unlink(missing_ok=True)  # the dead one's was given up by another meanwhile
            continue
        if not wait and lives:
            return None
        if wait and not said:
            log.warning("%s waits: %s works on it.", run.name, described(content))
            said = True
        time.sleep(POLLED)
    own = Lease(path, number + 1)
    _held[run.absolute()] = own
    threading.Thread(target=_renewing, args=(own,), name="lease", daemon=True).start()
    return own


def give_back(run: Path, own: Lease) -> None:
    """The end of the work on a run."""
    _held.pop(run.absolute(), None)
    own.release()


def check(run: Path) -> None:
    """Before anything is written: raises LeaseLostError where this process held the run and another has it now."""
    own = _held.get(run.absolute())
    if own is not None and not own.is_ours():
        raise LeaseLostError(f"{run.name}: another process has taken it over; nothing more is written here.")


class Holders:
    """Who works on the runs of a folder, as it is seen over time: an owner that was silent for too long is none."""

    def __init__(self, runs: Path) -> None:
        self.leases = runs / FOLDER
        self.seen = dict[str, tuple[str, float]]()

    def now(self) -> dict[str, str]:
        """{the name of a run: its owner in words}."""
        before, self.seen = self.seen, {}
        for run, last in dict(sorted(_leases(self.leases))).items():
            content = _read(_numbered(self.leases / run, last))
            same = run in before and before[run][0] == content
            self.seen[run] = before[run] if same else (content, time.monotonic())
        end_of_patience = time.monotonic() - EXPIRY
        return {
            run: described(content)
            for run, (content, since) in self.seen.items()
            if lives_here(content) is not False and since >= end_of_patience
        }


def clear_dead(runs: Path) -> None:
    """Take away leases whose owners are known to be dead."""
    for name in _names(runs / FOLDER):
        path = runs / FOLDER / name
        if path.suffix == ".part" or lives_here(_read(path)) is False:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        (runs / FOLDER).rmdir()


def lives_here(content: str) -> bool | None:
    """Whether the owner lives, where it is a process of this machine; None where it is another's."""
    owner = _parsed(content)
    if owner.get("host") != platform.node() or owner.get("boot") != _boot():
        return None
    return _started(owner.get("process", 0)) == owner.get("started")


def described(content: str) -> str:
    """The owner in words."""
    owner = _parsed(content)
    where = "" if owner.get("host") == platform.node() else f" on {owner.get('host')}"
    return f"process {owner.get('process')}{where}"


def _renewing(own: Lease) -> None:
    while not own.beats.wait(RENEWED):
        if not own.is_ours():
            return
        own.renew()


def _make(path: Path, number: int) -> bool:
    """Make a number of a lease, whole; returns whether it was free."""
    part = path.parent / f"{uuid4().hex}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(_of_this_process(0), encoding="utf-8")
        os.link(part, _numbered(path, number))
    except (FileExistsError, FileNotFoundError):  # or the folder was taken away as an empty one
        return False
    except OSError:  # a file system without hard links
        with suppress(FileExistsError), open(_numbered(path, number), "x", encoding="utf-8") as file:
            file.write(part.read_text(encoding="utf-8"))
            return True
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def _of_this_process(renewals: int) -> str:
    """What its lease says."""
    process = os.getpid()
    about = {"host": platform.node(), "boot": _boot(), "process": process, "started": _started(process)}
    return json.dumps(about | {"renewals": renewals})


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number:06d}")


def _numbers(path: Path) -> list[int]:
    return [number for run, number in _leases(path.parent) if run == path.name]


def _leases(folder: Path) -> Iterator[tuple[str, int]]:
    """(the name of a run, a number of its lease) of all of them."""
    for name in _names(folder):
        run, _, number = name.rpartition(".")
        if number.isdigit():
            yield run, int(number)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _parsed(content: str) -> dict[str, Any]:
    try:
        owner = json.loads(content)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _boot() -> str:
    """What tells this start of the machine from the one before, where that can be had."""
    return _read(Path("/proc/sys/kernel/random/boot_id")).strip()


def _started(process: int) -> str:
    """When a process of this machine began, as Linux counts it; elsewhere only whether it is there. Empty: it is not.

    A number may belong to another process by now, which began later.
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError, TypeError):
        return ""
    except PermissionError:
        pass
    behind_the_name = _read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    if not behind_the_name:
        return "there"
    return "" if behind_the_name[0] == "Z" else behind_the_name[19]
