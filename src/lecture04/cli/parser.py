"""argparse as our commands speak: one sentence for what is wrong, and help that breaks no path at a hyphen."""

import argparse
import re
import sys
import textwrap
from pathlib import Path
from typing import NoReturn

from lecture04.config.errors import nearest
from lecture04.terminal import width_of, wrapped


class _Help(argparse.HelpFormatter):
    """Help in lines of whole words."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in self._split_lines(text, width - len(indent)))


class Parser(argparse.ArgumentParser):
    """An argument parser of ours, and of its subcommands."""

    def __init__(self, prog: str, *, description: str | None = None, help: str | None = None) -> None:  # noqa: A002
        super().__init__(prog=prog, description=description or help, formatter_class=_Help)

    def error(self, message: str) -> NoReturn:
        """End with a sentence, and code 2 as argparse has it."""
        self.exit(2, wrapped(self._sentence(message), width_of(sys.stderr)) + "\n")

    def _sentence(self, message: str) -> str:
        if said := re.fullmatch(r"argument (.*?): invalid choice: '(.*?)' \(choose from (.*)\)", message):
            return f"{said[2]}: there is no such choice." + nearest(said[2], re.findall(r"[\w-]+", said[3]))
        if said := re.fullmatch(r"unrecognized arguments: (.*)", message):
            if not said[1].startswith("-"):
                return f"{said[1]}: `{self.prog}` takes no such word; `{self.prog} --help` says what it takes."
            known = [option for action in self._actions for option in action.option_strings if option != "-h"]
            return f"{said[1]}: `{self.prog}` has no such option." + nearest(said[1].partition("=")[0], known)
        if said := re.fullmatch(r"the following arguments are required: (.*)", message):
            return f"{said[1]}: missing; `{self.prog} --help` says what stands there."
        return re.sub(r"^argument ", "", message).rstrip(".") + "."


def folder(text: str) -> Path:
    """The name of a folder on a command line. An empty one, of a variable that is not set, is no folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty name is no folder; write its path")
    return Path(text).expanduser()
