"""What is written to a terminal or a pipe: lines that fit its width, signs that it knows, and a quiet end where the
reader has gone.
"""

import codecs
import io
import os
import re
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

READER_GONE = 141
"""The exit code of a program whose reader has gone: what a shell reports of one that SIGPIPE ended."""
NARROWEST = 30
COMMANDS = ("  lecture04 ", "  python ", "  eval ")
"""How a line begins that is a command to be typed."""
LAST_COMMAND = r"(?:python \S+\.py|lecture04 [a-z-]+)(?: \S+)*$"
"""A command at the end of a sentence."""
GLUE = "\x1f"
"""Stands for a blank at which a line must not be broken."""


def width_of(stream: TextIO) -> int | None:
    """The columns of a stream: what COLUMNS says, or its terminal; None in a pipe, where no line is broken."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all
        return None


def wrapped(text: str, width: int | None) -> str:
    """A text in lines of at most `width` columns, each paragraph by itself; never broken inside a word.

    Nor inside a command (in backticks, or at the end), nor inside a path or a setting that a sentence begins with.
    Where a line has two columns (`  name   what it is`) the second one stays a column.
    """
    if width is None:
        return text
    return "\n".join(_wrapped_line(line, max(width, NARROWEST)) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if len(line) <= width or line.startswith(COMMANDS):
        return line
    entry = re.match(r" *\S.*?\S {2,}(?=\S)", line) if line.startswith(" ") else None
    hanging = len(entry[0]) if entry and len(entry[0]) <= width // 2 else len(line) - len(line.lstrip()) + 2
    head = entry[0] if entry and len(entry[0]) <= width // 2 else line[: len(line) - len(line.lstrip())]
    text = re.sub(rf"`[^`]*`|{LAST_COMMAND}", lambda said: said[0].replace(" ", GLUE), line[len(head) :])
    subject, colon, rest = text.partition(": ")
    if colon and re.search(r"[/=]", subject):
        text = f"{subject.replace(' ', GLUE)}{colon}{rest}"
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=" " * (hanging if line.startswith(" ") else 0),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(GLUE, " ")


def say(text: str) -> None:
    """Print on stdout; where its reader has gone, what follows is work all the same, and goes on unheard."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _hang_up()


@contextmanager
def readers_may_go() -> Generator[None]:
    """A block that ends without a word where the reader of its output has gone (`... | head -1`)."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # what the buffer still holds would fail at the interpreter's end, with a traceback
    except BrokenPipeError:
        _hang_up()
        sys.exit(READER_GONE)


def _hang_up() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


IN_ASCII = {
    **dict.fromkeys("─━╌═", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╺╸╋", "+"),
    **dict.fromkeys("·•∙", "."),
    **dict.fromkeys("–‐‑−", "-"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("\xa0\u2009\u202f", " "),
    **{"±": "+-", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "×": "x", "÷": "/", "∞": "inf"},
    **{
        "§": "section ",
        "…": "...",
        "—": "--",
        "²": "^2",
        "³": "^3",
        "√": "sqrt ",
        "Δ": "delta ",
        "β": "beta",
        "µ": "u",
        "°": " deg",
    },
}
"""Our signs in ASCII."""


def _spelt(error: UnicodeError) -> tuple[str | bytes, int]:
    """What stands for a sign that a stream's encoding has not got, and where to go on behind it.

    A sign that gets longer takes the blanks behind it, so that columns stay in line. One of a name that we do not know
    is written as Python escapes it; a byte of a file's name that is no text is written as it is.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign, end = error.object[error.start], error.start + 1
    if "\udc80" <= sign <= "\udcff":
        return bytes([ord(sign) - 0xDC00]), end
    spelt = IN_ASCII.get(sign) or sign.encode("ascii", "backslashreplace").decode()
    while len(spelt) > end - error.start and error.object[end : end + 2] == "  ":
        end += 1
    return spelt, end


def write_what_can_be_written() -> None:
    """Spell what a terminal's encoding has not got, in all that is printed from here on."""
    codecs.register_error("lecture04", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="lecture04")
