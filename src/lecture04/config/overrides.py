"""The command line's overrides, checked before Hydra sees them: for what it would accept silently or report badly."""

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from lecture04.config import flags
from lecture04.config.errors import nearest
from lecture04.config.flags import options_first as options_first
from lecture04.config.flags import overrides as overrides
from lecture04.config.places import CONF, IS_CHECKOUT, yamls
from lecture04.config.schema import PARTS, SESSION
from lecture04.config.settings import INTERNAL, is_text
from lecture04.config.typed import PATHS, in_shell, read, understood

# What a run that starts from another one (init=uptrain) shares with it, beside its seed.
INHERITED = ("data", "layout", "eval", *(name for name in SESSION if name != "origin"))
CONF_FOLDERS = [CONF]
"""Where YAMLs lie: the package's, then those from outside."""
TYPED: list[str] = []
"""The command line as the user typed it, before anything was added to it."""
ASKED: list[str] = []
"""With -m, every override that was typed, as Hydra reads it: each row is composed of them (see `for_all_rows`)."""


def family_of(override: str) -> str:
    """The family that an override sets something of: `data` for data=garden and for data.n_train=80."""
    return override.partition("=")[0].partition(".")[0]


def source_line(source: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """The overrides of the run that another one starts from: what `init.source` says, and what they share."""
    return [*source, *(line for line in overrides if family_of(line) in ("seed", *INHERITED))]


def is_multirun(arguments: Sequence[str]) -> bool:
    """Whether a table is asked for."""
    return bool({"-m", "--multirun"} & set(arguments))


def as_hydra_reads(arguments: Sequence[str]) -> list[str]:
    """The arguments, with each override as Hydra's grammar has to have it."""
    lines, many = overrides(arguments), is_multirun(arguments)
    return [understood(word, multirun=many) if word in lines else word for word in arguments]


def is_hydras(line: str) -> bool:
    """Whether an override is of Hydra's own settings."""
    return line.lstrip("+~").startswith(("hydra.", "hydra/"))


def for_all_rows(line: str) -> bool:
    """Whether an override is for the sweep as a whole, which Hydra composes first, with the standard parts.

    The others are for the rows: the standard model need not have what is set of every row's part.
    """
    return is_hydras(line) or family_of(line) in ("sweep", "sweeps", *SESSION)


def program(script: str) -> str:
    """How a script's command is called here: `python train.py`, or `lecture04 train`.

    The second where the user typed it (the dispatcher then makes it the process's name), or where there is no script.
    A script of another folder is named by the path that was typed, so that what is printed can be typed here.
    """
    if sys.argv[0] == "lecture04" or not IS_CHECKOUT:
        return f"lecture04 {script.removesuffix('.py')}"
    called = Path(sys.argv[0])
    elsewhere = called.name in ("train.py", "probe.py", "sample.py") and called.resolve().parent != Path.cwd()
    return f"python {in_shell(str(called.with_name(script)) if elsewhere else script)}"


def command_line(script: str, arguments: Sequence[str]) -> str:
    """A script's command as it can be typed into a shell."""
    return " ".join([program(script), *map(in_shell, arguments)])


_INSTEAD = {
    "sweep.name": "a table has the name of its sweep file",
    "sweep.rows": "rows are written in a sweep file",
    "sweep.slices": "slices are written in a sweep file",
    "sweep.common": "what is typed beside sweeps= holds for every row",
}


def groups() -> dict[str, list[str]]:
    """The groups that every run needs one choice of, with their choices."""
    return _groups(tuple(CONF_FOLDERS))


@cache
def _groups(folders: tuple[Path, ...]) -> dict[str, list[str]]:
    """Kept for the folders that are known: each value of a list is looked at, and none of them makes a YAML."""
    return {name: choices(name) for name in (*PARTS, "model")}


def choices(group: str) -> list[str]:
    """The YAMLs of a group, those from outside among them."""
    return sorted({path.stem for conf in CONF_FOLDERS for path in yamls(conf / group)})


def complaint(override: str) -> str | None:
    """One sentence on what is wrong with an override, or None; what Hydra says well is left to it."""
    key, equals, value = override.partition("=")
    if equals and not value.strip("'\" ") and (is_text(key) or key in PATHS):
        return f"{override}: no value stands there; write one, or leave {key}= away."
    if any(key == name or key.startswith(f"{name}.") for name in INTERNAL):
        return f"{override}: not to be typed; {_INSTEAD.get(key, 'it is found out for each run')}."
    if value.startswith("interval("):
        return f"{override}: an interval has no list of values; name those to compare, as in `-m {key}=1e-4,1e-3`."
    if key == "hydra.mode":
        return f"{override}: a table is asked for by -m, and a single run by nothing."
    if override.startswith("~"):
        return None if key.startswith("~hydra") else f"{override}: nothing can be taken away from a run's settings."
    if not equals:
        return f"{override}: not an override; write GROUP=CHOICE or SETTING=VALUE."
    if len(value) > 300 and value.lstrip("-").isdigit():
        return f"{key}: a number of {len(value)} digits is too large."
    if not key.strip("+"):
        return f"{override}: nothing is named; write GROUP=CHOICE or SETTING=VALUE."
    if key.startswith("+") and not key.startswith(("+hydra", "++hydra")):
        line = in_shell(override.lstrip("+"))
        return f"{override}: nothing can be added to a run's settings; to change one, write {line}."
    group, _, field = key.partition(".")
    if field == "name" and group in groups():
        return f"{override}: a part is chosen with its options; write {group}={value}."
    if "@" in key:
        return f"{override}: a part has one place; write {key.partition('@')[0]}={value}."
    if key in groups() and value.startswith("["):
        several = ["-m", f"{key}={value.strip('[]')}"]
        return f"{override}: one {key} a run; to compare several, `{command_line('train.py', several)}`."
    if key in groups() and not _are_names(value):
        return f"{override}: every run needs one choice of {key}, by its name." + nearest("", groups()[key])
    if key == "sweeps" and "," in value:
        return f"{override}: one sweep at a time."
    if key == "parts" and not value.startswith("["):
        return f"{override}: write a list of files or modules, as in parts=[{value}]."
    if key == "init.source" and read(override) is None:
        return f"{override}: write a list of overrides, each in quotes, as in \"init.source=['attention=mha']\"."
    is_group = "/" in key or key in (
        "schema",
        "sweeps",
        *(path.name for conf in CONF_FOLDERS for path in conf.iterdir()),
    )
    if is_group and not _are_names(value):
        return f"{override}: {key} takes one choice, by its name; for none, leave {key}= away."
    return None


def _are_names(value: str) -> bool:
    """Whether Hydra reads texts; at a number, null or list in a group's place it would fail without a sentence."""
    override = read(f"x={value}")
    if override is None:
        return True  # no override at all: Hydra says so itself
    if override.is_sweep_override():
        return "(" in value or all(map(_are_names, value.split(",")))
    return isinstance(override.value(), str) and override.value() not in ("", "???")


def complaints(arguments: Sequence[str]) -> list[str]:
    """What is wrong with a command line, a sentence each."""
    if wrong := flags.complaint(arguments, [*groups(), "recipe", "sweeps"]):
        return [wrong]
    lines = overrides(arguments)
    return [*_twice(lines), *(text for override in lines if (text := complaint(override)))]


def _twice(lines: Sequence[str]) -> Iterator[str]:
    """Parts of which two are chosen; of a plain setting the last value wins, as scripts that append some expect."""
    first = dict[str, str]()
    for line in lines:
        key, _, value = line.partition("=")
        if key in groups() and first.setdefault(key, value) != value:
            yield f"{line}: {key}={first[key]} is chosen already; to compare them write -m {key}={first[key]},{value}."
