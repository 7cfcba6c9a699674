"""A word as it was typed, and as Hydra's grammar has to read it.

Hydra's grammar knows lists, functions and sweeps, and takes a sign that it does not know for a mistake: the equals sign
in `paths.outputs=/tmp/a=b`, the blank in a folder's name, every letter outside ASCII. Where a setting is a text, what
was typed is the text; it is put in quotes for Hydra here, so that nobody has to know.
"""

import os
import re
import shlex

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString
from hydra.errors import HydraException

from lecture04.config.project import typed_parts
from lecture04.config.settings import is_session, is_text

PATHS = ("paths.outputs", "init.folder", "hydra.run.dir", "data.path", "data.tokenizer")
"""Texts that name a place on the disk: `~` is the home folder, as in a shell."""
GRAMMAR = set("[]{}()'\",$\\")
"""Signs by which somebody may mean more than a text."""


def read(line: str) -> Override | None:
    """An override as Hydra reads it; None where its grammar does not take it."""
    try:
        return OverridesParser.create().parse_override(line)
    except HydraException:
        return None


def quoted(text: str) -> str:
    """A text as a value that Hydra and OmegaConf read back as it was, whatever is in it."""
    text = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)  # or it would name another setting
    # Backslashes count as escapes only where a quote follows them.
    text = re.sub(r"(\\*)('|\Z)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{text}'"


WORDS = ("null", "none", "true", "false", "yes", "no", "on", "off", "nan", "inf")
"""Words of YAML that are no texts."""


def plain(text: str) -> str:
    """As `quoted`, without the quotes where they are not needed."""
    is_plain = re.fullmatch(r"[A-Za-z_./][A-Za-z0-9_./-]*", text) and text.lower() not in WORDS
    is_number = re.fullmatch(r"\.\d[\d_]*(e-?\d+)?", text, re.IGNORECASE)
    return text if is_plain and not is_number else quoted(text)


def understood(line: str, *, multirun: bool = False) -> str:
    """An override with its value in quotes where it is a text that Hydra would not read as it was typed.

    What is in quotes already, an interpolation and a function of Hydra's stay as they are. With -m a comma stands
    between values, but for settings of the session, which has only one.
    """
    key, equals, value = line.partition("=")
    if not equals or not value.strip():
        return line
    if key == "parts" and value.startswith("[") and read(line) is None:
        return f"parts=[{','.join(map(quoted, typed_parts(line)))}]"
    if is_text(key) or key in PATHS:
        if _is_in_quotes(line) or _is_function(line):
            return line
        pieces = value.split(",") if multirun and not is_session(key) and key.partition(".")[0] != "sweep" else [value]
        return f"{key}={','.join(_text(key, piece) for piece in pieces)}"
    if not set(value) & GRAMMAR and read(line) is None and read(f"{key}=x") is not None:
        return f"{key}={quoted(value)}"
    return line


def in_shell(word: str) -> str:
    """A word for a shell: in double quotes where it has single ones, as Hydra's texts do, and nothing a shell reads."""
    if "'" in word and not set(word) & set('"$`\\!\n'):
        return f'"{word}"'
    return shlex.quote(word)


def _is_in_quotes(line: str) -> bool:
    override = read(line)
    if override is None:
        return False
    if override.is_sweep_override():
        return any(sign in line for sign in "'\"")
    return isinstance(override._value, QuotedString)


def _is_function(line: str) -> bool:
    """Whether the value is one of Hydra's functions, as choice(a,b) is; other brackets are a path's."""
    return re.fullmatch(r"[^=]+=\w+\(.*\)", line) is not None and read(line) is not None


def _text(key: str, value: str) -> str:
    if "${" in value or value.lower() == "null":
        return value
    if key in PATHS and value.startswith("~"):
        value = os.path.expanduser(value)
    override = read(f"{key}={value}")
    as_it_stands = override is not None and not override.is_sweep_override() and override.value() == value
    return value if as_it_stands else quoted(value)
