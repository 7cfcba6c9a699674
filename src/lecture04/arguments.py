"""The command line's overrides, looked at before Hydra does: for what Hydra would take without a word, or misname."""

import re
from collections.abc import Sequence
from pathlib import Path

from lecture04.errors import nearest

CONF = Path(__file__).parents[2] / "conf"
# Options of Hydra's that are followed by a value.
WITH_VALUE = {
    *("-c", "--cfg", "-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir"),
    *("-i", "--info", "--experimental-rerun"),
}


def multirun_last(arguments: Sequence[str]) -> list[str]:
    """-m behind everything else: Hydra 1.3 refuses overrides on both sides of it."""
    flags = ("-m", "--multirun")
    return [a for a in arguments if a not in flags] + ["-m"] * any(a in flags for a in arguments)


def overrides(arguments: Sequence[str]) -> list[str]:
    """The arguments that are overrides: neither an option nor an option's value."""
    pairs = zip(arguments, ["", *arguments], strict=False)
    return [a for a, before in pairs if not a.startswith("-") and before not in WITH_VALUE]


def groups() -> dict[str, list[str]]:
    """The groups of conf/ that every run needs one choice of, with their choices."""
    optional = {"recipe", "hydra"}
    found = {path.name: sorted(p.stem for p in path.glob("*.yaml")) for path in CONF.iterdir() if path.is_dir()}
    return {name: choices for name, choices in sorted(found.items()) if name not in optional}


def complaint(override: str) -> str | None:
    """One sentence on what is wrong with an override, or None; what Hydra says well is left to it."""
    key, equals, value = override.partition("=")
    if override.startswith("~"):
        name = key.removeprefix("~")
        return f"{override}: {name} is part of every run and cannot be taken away." if name in groups() else None
    if not equals:
        return f"{override}: not an override; write GROUP=CHOICE or SETTING=VALUE."
    if not key.strip("+"):
        return f"{override}: nothing is named; write GROUP=CHOICE or SETTING=VALUE."
    if key.startswith("+") and not key.startswith(("+hydra", "++hydra")):
        return f"{override}: nothing can be added to a run's settings; to change one, write {override.lstrip('+')}."
    group, _, field = key.partition(".")
    if field == "name" and group in groups():
        return f"{override}: a part is chosen with its options; write {group}={value}."
    if key not in groups():
        return None
    if value.startswith(("[", "{")):
        among = value.strip("[]{}")
        return f"{override}: one {key} a run; to compare several, python train.py -m {key}={among}"
    if re.search(r"(^|,)\s*(null)?\s*(,|$)", value):
        return f"{override}: every run needs one choice of {key}." + nearest("", groups()[key])
    return None


def complaints(arguments: Sequence[str]) -> list[str]:
    """What is wrong with a command line, a sentence each."""
    return [text for override in overrides(arguments) if (text := complaint(override))]
