"""`lecture04 convert`: a finished run as a Hugging Face folder, and what such a folder is here."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lecture04.cli.parser import Parser, folder
from lecture04.config import messages
from lecture04.config.schema import Architecture

if TYPE_CHECKING:
    from lecture04.nn.model import LanguageModel


def parser() -> Parser:
    """The command line."""
    p = Parser("lecture04 convert", description=__doc__)
    commands = p.add_subparsers(dest="command", required=True, metavar="{write,read}")
    write_ = commands.add_parser("write", help="write a finished run's model into a Hugging Face folder")
    write_.add_argument("run", type=folder, metavar="RUN_FOLDER", help="a folder of outputs/runs/")
    write_.add_argument(
        "folder", type=folder, metavar="HF_FOLDER", help="a new folder, or one that was written so before"
    )
    write_.add_argument("--architecture", metavar="NAME", help="llama, gpt2, ...; the first that has all parts")
    read_ = commands.add_parser(
        "read", help="say which parts a Hugging Face folder's model has, and how to go on from it"
    )
    read_.add_argument("folder", type=folder, metavar="HF_FOLDER")
    return p


def main(args: argparse.Namespace) -> None:
    """Do what was asked for, and say it."""
    from lecture04.huggingface import command

    if args.command == "read":
        print(command.read(args.folder))
        return

    def load(run: Architecture, folder: Path) -> "LanguageModel":
        from lecture04.training import checkpoint

        return checkpoint.load(run, folder)

    print(command.write(args.run, args.folder, args.architecture, load))


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: main(args))
