"""The command `lecture04`: a table of subcommands, each imported only when it is asked for."""

import os
import sys
from importlib import import_module
from typing import NoReturn

from lecture04.terminal import readers_may_go, width_of, wrapped, write_what_can_be_written

COMMANDS = {
    "train": ("lecture04.cli.train:entry", "train one model, or with -m a table of them"),
    "probe": ("lecture04.lecture.probes.command:entry", "answer a question that needs no training of its own"),
    "report": ("lecture04.cli.report:entry", "tables again from their records; as pages, as figures, to W&B"),
    "runs": ("lecture04.cli.runs:entry", "the store of runs: list, show, why two are not the same, prune"),
    "parts": ("lecture04.cli.help:entry", "every part with what it is and where it comes from"),
    "check-part": ("lecture04.cli.check_part:entry", "try what every part must hold to on one of yours"),
    "new": ("lecture04.cli.new:entry", "start a project with a part of your own"),
    "convert": ("lecture04.cli.convert:entry", "write a run as a Hugging Face folder, and read such a folder"),
    "sample": ("lecture04.cli.sample:entry", "what a trained model writes; documents of the Garden World"),
    "lecture": (
        "lecture04.lecture.command:entry",
        "run what the lecture computes, judge its claims, write its pages",
    ),
}
"""Name -> the function that reads sys.argv[1:], and one line for --help."""


def help_text() -> str:
    """What `lecture04 --help` prints."""
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            "Lecture04 trains small Transformers with one part swapped at a time, and says which differences are "
            "larger than what the random seeds alone can do.",
            "",
            "  lecture04 COMMAND ...        lecture04 COMMAND --help says more",
            "",
            *(f"  {name:{width}}  {about}" for name, (_, about) in COMMANDS.items()),
        ]
    )


def main(words: list[str] | None = None) -> None:
    """Run a subcommand: of the command line, or these words where a script is another name for one."""
    write_what_can_be_written()
    if words is None:
        words = sys.argv[1:]
        sys.argv[0] = "lecture04"  # by this `config.overrides.program` knows what the user typed
    with readers_may_go():
        run(words)


def run(words: list[str]) -> None:
    """Run the subcommand that these words name."""
    if words[:1] in (["-sc"], ["--shell_completion"]):
        words = _completion(words)
    if not words or words[0] in ("-h", "--help"):
        print(wrapped(help_text(), width_of(sys.stdout)))
        return
    name, *rest = words
    if name not in COMMANDS:
        from lecture04.config.errors import nearest

        sys.exit(wrapped(f"{name}: there is no such command." + nearest(name, COMMANDS), width_of(sys.stderr)))
    if name not in ("train", "probe") and {"-sc", "--shell-completion"} & set(rest):
        sys.exit('-sc: TAB is set up for all commands at once; write `eval "$(lecture04 -sc install=bash)"`.')
    place = COMMANDS[name][0]
    if name == "train" and {"-h", "--help"} & set(rest):  # Hydra's own would list its groups, in seconds
        place = "lecture04.cli.help:train_help"
    module, _, function = place.partition(":")
    try:
        entry = getattr(import_module(module), function)
    except ModuleNotFoundError as e:
        sys.exit(f"{e.name} is not installed here. `make install` sets up .venv; then `source .venv/bin/activate`.")
    sys.argv[1:] = rest
    entry()


def _completion(words: list[str]) -> list[str]:
    """The words that Hydra's TAB completion calls a command with; it knows of no subcommands, and completes `train`."""
    command, _, line = os.environ.get("COMP_LINE", "").partition(" ")
    name, space, line = line.lstrip().partition(" ")
    if space or words[1:2] != ["query=bash"]:
        os.environ["COMP_LINE"] = f"{command} {line}"
        if name in COMMANDS and name not in ("train", "probe", "check-part"):
            _print_completion_of(name, line)
        return [name if name in ("train", "probe") else "train", *words]
    print(" ".join(choice for choice in COMMANDS if choice.startswith(name)))
    sys.exit()


def _print_completion_of(name: str, line: str) -> NoReturn:
    """What may follow a subcommand that is no application of Hydra's; ends the program."""
    from lecture04.cli.complete import of_parser

    module = import_module(COMMANDS[name][0].partition(":")[0])
    print(" ".join(of_parser(module.parser(), line)) if hasattr(module, "parser") else "")
    sys.exit()


if __name__ == "__main__":
    main()
