"""A display that moves in the terminal while something runs, below what is printed and logged meanwhile."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


class _Above(io.TextIOBase):
    """A stream whose lines appear above a display."""

    def __init__(self, console: Console, stream: TextIO) -> None:
        self.console, self.stream, self.begun = console, stream, ""

    def write(self, text: str) -> int:
        """Whole lines at once; the rest waits for its end."""
        *lines, self.begun = (self.begun + text).split("\n")
        for line in lines:
            self._print(line)
        return len(text)

    def end(self) -> None:
        """Write what waits."""
        if self.begun:
            self._print(self.begun)

    def _print(self, line: str) -> None:
        from rich.text import Text

        self.console.print(Text.from_ansi(line), soft_wrap=True)

    def isatty(self) -> bool:
        """It is written to one."""
        return True

    def fileno(self) -> int:
        """That of the stream which it stands for."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the stream which it stands for."""
        return self.stream.encoding


@contextmanager
def _above(console: Console) -> Iterator[None]:
    """What is printed and logged in the block appears above the display that the console draws."""
    err = _Above(console, sys.stderr)
    out = _Above(console, sys.stdout) if sys.stdout.isatty() else sys.stdout
    with redirect_stderr(err), redirect_stdout(out):
        _redirect_logs(err.stream, err)
        try:
            yield
        finally:
            _redirect_logs(err, err.stream)
            for stream in (err, out):
                if isinstance(stream, _Above):
                    stream.end()


def _redirect_logs(old: object, new: TextIO | _Above) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is old:
            handler.setStream(new)


@contextmanager
def showing(draw: Callable[[Console], RenderableType]) -> Iterator[None]:
    """Draw on stderr four times a second while the block runs, if that is a terminal; it is wiped at the end.

    What is drawn must not be higher than the console. In a notebook it is drawn below the cell.
    """
    from rich.console import Console

    console = Console(file=sys.stderr)  # this one, whatever the name stands for meanwhile
    if console.is_jupyter:
        with _in_cell(draw):
            yield
        return
    if not console.is_interactive:
        yield
        return
    with _above(console), _live(console, draw):
        yield


def _live(console: Console, draw: Callable[[Console], RenderableType]) -> Live:
    from rich.control import Control
    from rich.live import Live

    width = console.width

    def drawn() -> RenderableType:
        nonlocal width
        before, width = width, console.width
        if width < before:  # lines were folded, so that it is not known any more where the display begins
            console.control(Control.clear(), Control.home())
        return draw(console)

    return Live(
        get_renderable=drawn,
        console=console,
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


@contextmanager
def _in_cell(draw: Callable[[Console], RenderableType]) -> Iterator[None]:
    """One output of a notebook's cell, which is written again twice a second and is empty at the end."""
    from IPython.display import DisplayHandle

    handle, ended = DisplayHandle(), threading.Event()

    def write(text: str, how: Callable[..., object]) -> None:
        how({"text/plain": text}, raw=True)

    def follow() -> None:
        while not ended.wait(0.5):
            write(_plain(draw), handle.update)

    write("", handle.display)
    thread = threading.Thread(target=follow, name="display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write("", handle.update)


def _plain(draw: Callable[[Console], RenderableType]) -> str:
    """What is drawn, as text."""
    from rich.console import Console

    with io.StringIO() as file:
        console = Console(file=file, width=120, force_jupyter=False, color_system=None)
        console.print(draw(console))
        return file.getvalue().rstrip()


def spinner(console: Console) -> str:
    """A sign that turns, so that one sees that something moves."""
    frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if console.encoding.lower().startswith("utf") else "|/-\\"
    return frames[int(8 * time.monotonic()) % len(frames)]


def clock(seconds: float) -> str:
    """1:05, or 2:01:05."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
