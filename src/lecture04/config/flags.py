"""What begins with a dash on the command line: Hydra's options, and what other tools would have there."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from lecture04.config.errors import UserError, nearest
from lecture04.config.settings import settings

# Options of Hydra's that are followed by a value.
WITH_VALUE = {
    *("-c", "--cfg", "-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir"),
    *("-i", "--info", "--experimental-rerun"),
}
REFUSED = {
    "--experimental-rerun": "a run is repeated by its own command; `lecture04 runs show RUN` prints it",
    "--config-path": "the configs are in conf/; --config-dir adds a folder of your own",
    "--config-name": "there is one config; a recipe (recipe=llama) and a sweep file (-m sweeps=recipe) change it",
}
SHORT = {"-cp": "--config-path", "-cn": "--config-name"}
OFFERED = ("-m", "--multirun", "--cfg", "--resolve", "--package", "--info", "--config-dir", "--help", "--hydra-help")
"""The options that a user has a use for."""


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


def complaint(arguments: Sequence[str], groups: Sequence[str]) -> str | None:
    """One sentence on what is wrong with the options, or None. What looks like a setting is told how it is typed."""
    known = {option for action in get_args_parser()._actions for option in action.option_strings}
    for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
        if not word.startswith("-"):
            continue
        option, equals, value = word.partition("=")
        if (option := SHORT.get(option, option)) in REFUSED:
            return f"{option}: not offered; {REFUSED[option]}."
        if option not in known:
            value = value if equals else "VALUE" if after.startswith("-") or "=" in after else after or "VALUE"
            return f"{word if equals else option}: " + _meant(option.lstrip("-"), value, groups)
    return _unfit(options_first(arguments))


def _meant(name: str, value: str, groups: Sequence[str]) -> str:
    name = name.replace("-", "_")
    if name == "resume":
        return "there is no such option; the same command goes on with what is missing."
    found = [n for n in (*groups, *settings()) if n.lower() == name.lower()] or [
        n for n in settings() if n.rpartition(".")[2].lower() == name.lower()
    ]
    if found:
        return f"settings have no dashes here; write {found[0]}={value}."
    return "there is no such option." + nearest(f"--{name}", OFFERED)


class _Said(Exception):  # noqa: N818 (not an error: it carries argparse's sentence)
    pass


def _unfit(arguments: Sequence[str]) -> str | None:
    """What argparse, or Hydra after it, would not take."""
    parser = get_args_parser()

    def error(message: str) -> NoReturn:
        raise _Said(message)

    parser.error = error
    if "--version" in arguments:
        return None
    try:
        asked = _parsed(parser, arguments)
    except _Said as e:
        if said := re.fullmatch(r"argument (-[\w-]+).*: invalid choice: '(.*?)' \(choose from (.*)\)", str(e)):
            return f"{said[1]} {said[2]}: there is no such choice." + nearest(said[2], re.findall(r"[\w-]+", said[3]))
        return str(e).removeprefix("argument ").rstrip(".") + "."
    doing = {"--run": asked.run, "--multirun": asked.multirun, "--cfg": asked.cfg, "--info": asked.info}
    many = [option for option, typed in (doing | {"-sc": asked.shell_completion}).items() if typed]
    if "--cfg" in many and "--multirun" in many:
        return "--cfg shows the settings of a single run; leave -m away."
    if len(many) > 1:
        return f"{' and '.join(many)}: one of them at a time."
    if asked.resolve and not (asked.cfg or asked.help):
        return "--resolve: goes with --cfg job, whose settings it shows with every ${...} filled in."
    if asked.config_dir is not None and not asked.config_dir.strip():
        return "--config-dir: an empty name is no folder; write its path."
    if asked.shell_completion and not _completes(asked.overrides):
        return "-sc: write install=SHELL or uninstall=SHELL, with bash, fish or zsh for SHELL."
    return None


def _parsed(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    return parser.parse_args(list(arguments))


def _completes(lines: Sequence[str]) -> bool:
    return len(lines) == 1 and re.fullmatch(r"(install|uninstall|query)=(bash|fish|zsh)", lines[0]) is not None


def refuse(arguments: Sequence[str], taken: Sequence[str]) -> None:
    """Raise UserError for an option that a command of ours does not take, beside `taken`."""
    for word in arguments:
        if word.startswith("-") and word.partition("=")[0] not in taken:
            raise UserError(f"{word}: there is no such option." + nearest(word, taken))
