"""The command line's overrides, checked before Hydra sees them: for what it would accept silently or report badly."""

import shlex
import sys
from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from lecture04.config.errors import nearest
from lecture04.config.places import CONF, IS_CHECKOUT, yamls
from lecture04.config.schema import PARTS, SESSION

# What a run that starts from another one (init=uptrain) shares with it, beside its seed.
INHERITED = ("data", "layout", "eval", *(name for name in SESSION if name != "origin"))
CONF_FOLDERS = [CONF]
"""Where YAMLs lie: the package's, then those from outside."""
TYPED: list[str] = []
"""The command line as the user typed it, before anything was added to it."""
# Options of Hydra's that are followed by a value.
WITH_VALUE = {
    *("-c", "--cfg", "-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir"),
    *("-i", "--info", "--experimental-rerun"),
}


def options_first(arguments: Sequence[str]) -> list[str]:
    """Options in front, overrides behind them: argparse wants the overrides side by side."""
    lines = overrides(arguments)
    left = list(arguments)
    for line in lines:
        left.remove(line)
    return [*left, *lines]


def overrides(arguments: Sequence[str]) -> list[str]:
    """The arguments that are overrides: neither an option nor an option's value."""
    pairs = zip(arguments, ["", *arguments], strict=False)
    return [a for a, before in pairs if not a.startswith("-") and before not in WITH_VALUE]


def family_of(override: str) -> str:
    """The family that an override sets something of: `data` for data=garden and for data.n_train=80."""
    return override.partition("=")[0].partition(".")[0]


def source_line(source: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """The overrides of the run that another one starts from: what `init.source` says, and what they share."""
    return [*source, *(line for line in overrides if family_of(line) in ("seed", *INHERITED))]


def program(script: str) -> str:
    """How a script's command is called here: `python train.py`, or `lecture04 train`.

    The second where the user typed it (the dispatcher then makes it the process's name), or where there is no script.
    """
    command = f"lecture04 {script.removesuffix('.py')}"
    return command if sys.argv[0] == "lecture04" or not IS_CHECKOUT else f"python {script}"


def command_line(script: str, arguments: Sequence[str]) -> str:
    """A script's command as it can be typed into a shell."""
    return f"{program(script)} {shlex.join(arguments)}".rstrip()


def groups() -> dict[str, list[str]]:
    """The groups that every run needs one choice of, with their choices."""
    return {name: choices(name) for name in (*PARTS, "model")}


def choices(group: str) -> list[str]:
    """The YAMLs of a group, those from outside among them."""
    return sorted({path.stem for conf in CONF_FOLDERS for path in yamls(conf / group)})


def complaint(override: str) -> str | None:
    """One sentence on what is wrong with an override, or None; what Hydra says well is left to it."""
    key, equals, value = override.partition("=")
    if override.startswith("~"):
        return None if key.startswith("~hydra") else f"{override}: nothing can be taken away from a run's settings."
    if not equals:
        return f"{override}: not an override; write GROUP=CHOICE or SETTING=VALUE."
    if len(value) > 300 and value.lstrip("-").isdigit():
        return f"{key}: a number of {len(value)} digits is too large."
    if not key.strip("+"):
        return f"{override}: nothing is named; write GROUP=CHOICE or SETTING=VALUE."
    if key.startswith("+") and not key.startswith(("+hydra", "++hydra")):
        return f"{override}: nothing can be added to a run's settings; to change one, write {override.lstrip('+')}."
    group, _, field = key.partition(".")
    if field == "name" and group in groups():
        return f"{override}: a part is chosen with its options; write {group}={value}."
    if "@" in key:
        return f"{override}: a part has one place; write {key.partition('@')[0]}={value}."
    if key in groups() and value.startswith("["):
        return f"{override}: one {key} a run; to compare several, {program('train.py')} -m {key}={value.strip('[]')}"
    if key in groups() and not _are_names(value):
        return f"{override}: every run needs one choice of {key}, by its name." + nearest("", groups()[key])
    if key == "sweeps" and "," in value:
        return f"{override}: one sweep at a time."
    if key == "parts" and not value.startswith("["):
        return f"{override}: write a list of files or modules, as in parts=[{value}]."
    if key == "init.source" and not _is_override(override):
        return f"{override}: write a list of overrides, each in quotes, as in \"init.source=['attention=mha']\"."
    is_group = "/" in key or key in (
        "schema",
        "sweeps",
        *(path.name for conf in CONF_FOLDERS for path in conf.iterdir()),
    )
    if is_group and not _are_names(value):
        return f"{override}: {key} takes one choice, by its name; for none, leave {key}= away."
    return None


def _is_override(text: str) -> bool:
    """Whether Hydra's grammar takes it."""
    try:
        OverridesParser.create().parse_override(text)
    except HydraException:
        return False
    return True


def _are_names(value: str) -> bool:
    """Whether Hydra reads texts; at a number, null or list in a group's place it would fail without a sentence."""
    try:
        override = OverridesParser.create().parse_override(f"x={value}")
    except HydraException:
        return True  # no override at all: Hydra says so itself
    if override.is_sweep_override():
        return "(" in value or all(map(_are_names, value.split(",")))
    return isinstance(override.value(), str) and override.value() not in ("", "???")


def complaints(arguments: Sequence[str]) -> list[str]:
    """What is wrong with a command line, a sentence each."""
    both = {"-m", "--multirun"} & set(arguments) and {"-c", "--cfg", "-i", "--info"} & set(arguments)
    alone = ["--cfg shows the settings of a single run; leave -m away."] if both else []
    return alone + [text for override in overrides(arguments) if (text := complaint(override))]
