"""Signals that ask a process to end: while work holds them they wait until it has written down where it stands.

| signal | sent by | exit code |
|---|---|---|
| SIGINT | Ctrl-C | 130 |
| SIGTERM | `kill`, a cluster's scheduler | 143 |
| SIGHUP | a terminal that is closed | 129 |
| SIGUSR1 | Slurm, some time before a job's limit | 138 |

A second Ctrl-C ends the process at once; files are written whole, so that nothing is torn.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """The process was asked to end. As Ctrl-C's own exception it is nothing that a job's failure would be taken for."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell has it for a process that a signal ended."""
        return 128 + self.number


class _State:
    asked = 0
    holding = False
    busy = False


def listen() -> None:
    """From now on these signals raise `Stopped`, or are held. A signal that the user has set to be ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _heard)


def asked() -> int:
    """The signal that is held, 0 where none has come."""
    return _State.asked


def hold(holding: bool) -> None:
    """Whether a first signal only waits, for somebody to ask for it."""
    _State.holding = holding


@contextmanager
def held() -> Iterator[None]:
    """While the block runs a first signal only waits, for the block to ask for it; at its end it is raised."""
    before, _State.holding = _State.holding, True
    try:
        yield
    finally:
        _State.holding = before
    if _State.asked and not before:
        raise Stopped(_State.asked)


@contextmanager
def busy() -> Iterator[None]:
    """A worker's job: in the block signals are raised, before and after it they are held."""
    _State.busy, _State.holding = True, False
    try:
        if _State.asked:
            raise Stopped(_State.asked)
        yield
    finally:
        _State.busy, _State.holding = False, True


def is_busy() -> bool:
    """Whether a job runs in this process."""
    return _State.busy


def _heard(number: int, frame: FrameType | None) -> None:
    before, _State.asked = _State.asked, _State.asked or number
    if before and number == signal.SIGINT:
        os._exit(128 + number)
    if not before and not _State.holding:
        raise Stopped(number)
