"""A script whose stderr is a terminal, and what such a terminal shows.

As a program, `in_terminal.py COLUMNS LINES FILE SCRIPT ARGUMENTS...` runs a Python script in its own process; what it
writes to the terminal goes to FILE. A second size, as 80-40, is that of the terminal from half a second after the first
output on.
"""

import fcntl
import os
import pty
import re
import runpy
import struct
import sys
import termios
import threading
import time
from pathlib import Path

CODE = re.compile(rb"\x1b\[([?\d;]*)([A-Za-z])")


class Terminal:
    """A screen with as much of a terminal in it as a display needs. A line that is too long is folded."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.text: list[str] = [""]
        self.row = self.column = self.top = 0
        self.clears = 0

    def feed(self, data: bytes) -> None:
        """Take output."""
        at = 0
        while at < len(data):
            if code := CODE.match(data, at):
                at = code.end()
                self._obey(code[1].decode(), code[2].decode())
                continue
            end = min(i for i in (data.find(b"\x1b", at + 1), len(data)) if i > 0)
            for sign in data[at:end].decode():
                self._write(sign)
            at = end

    def shown(self) -> list[str]:
        """The lines on the screen, without empty ones at the end."""
        lines = [line.rstrip() for line in self.text[self.top :]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _obey(self, number: str, letter: str) -> None:
        if letter == "A":
            self.row = max(self.top, self.row - int(number or 1))
        elif (number, letter) == ("2", "K"):
            self.text[self.row] = ""
        elif (number, letter) == ("2", "J"):
            self.text[self.top :], self.clears = [""] * (self.row - self.top + 1), self.clears + 1
        elif letter == "H":
            self.row, self.column = self.top, 0
        else:
            assert letter == "m" or number.startswith("?25"), f"a code that is not known here: {number}{letter}"

    def _write(self, sign: str) -> None:
        if sign == "\r":
            self.column = 0
        elif sign == "\n" or self.column == self.columns:
            self.row, self.column = self.row + 1, 0
            self.text += [""] * (self.row + 1 - len(self.text))
            self.top = max(self.top, self.row + 1 - self.lines)
        if sign not in "\r\n":
            line = self.text[self.row].ljust(self.column)
            self.text[self.row] = line[: self.column] + sign + line[self.column + 1 :]
            self.column += 1


def screens(raw: bytes, columns: int, lines: int) -> list[list[str]]:
    """What the terminal showed each time before the display began anew, and at the end."""
    terminal, found = Terminal(columns, lines), []
    for part in re.split(rb"(?=\r\x1b\[2K)", raw):
        terminal.feed(part)
        found.append(terminal.shown())
    return found


def run(columns: str, lines: str, file: str, script: str, *arguments: str) -> None:
    """Run the script."""
    first, _, later = columns.partition("-")
    ours, its = pty.openpty()

    def resize(columns: str) -> None:
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", int(lines), int(columns), 0, 0))

    def read() -> None:
        begun = 0.0
        with open(file, "wb", buffering=0) as out:
            while True:
                try:
                    out.write(os.read(ours, 1 << 16))
                except OSError:  # the other end is closed
                    return
                begun = begun or time.monotonic()
                if later and time.monotonic() - begun > 0.5:
                    resize(later)

    resize(first)
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        os.environ.pop(name, None)
    os.environ["TERM"] = "xterm-256color"
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    os.dup2(its, 2)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.stderr.flush()
        time.sleep(0.1)


if __name__ == "__main__":
    run(*sys.argv[1:])
