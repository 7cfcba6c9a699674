"""`lecture04 convert`: a finished run as a Hugging Face folder, and what such a folder is here."""

import argparse
import shlex
from pathlib import Path

from lecture04 import config
from lecture04.config import messages
from lecture04.config import overrides as arguments
from lecture04.config import sizes as counts
from lecture04.config.errors import UserError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="lecture04 convert", description=__doc__)
    commands = p.add_subparsers(dest="command", required=True, metavar="{write,read}")
    write_ = commands.add_parser("write", help="write a finished run's model into a Hugging Face folder")
    write_.add_argument("run", type=Path, metavar="RUN_FOLDER", help="a folder of outputs/runs/")
    write_.add_argument(
        "folder", type=Path, metavar="HF_FOLDER", help="a new folder, or one that was written so before"
    )
    write_.add_argument("--architecture", metavar="NAME", help="llama, gpt2, ...; the first that has all parts")
    read_ = commands.add_parser(
        "read", help="say which parts a Hugging Face folder's model has, and how to go on from it"
    )
    read_.add_argument("folder", type=Path, metavar="HF_FOLDER")
    return p


def write(run: Path, folder: Path, architecture: str | None) -> str:
    """Write a run's model; what was written, and where. Raises UserError where the run has not finished."""
    from lecture04.records.config_file import read_config
    from lecture04.records.record import Record, Status

    (cfg, _), status = read_config(run), Record(run).status()
    if status is not Status.finished:
        raise UserError(f"{run}: the run is {status.value}, not finished, so there is no model to write.")
    from safetensors import SafetensorError

    from lecture04.huggingface import files, folders
    from lecture04.training import checkpoint

    try:
        model = checkpoint.load(cfg, run)
    except (SafetensorError, RuntimeError) as e:
        raise UserError(f"{run / checkpoint.NAME}: not this run's parameters: {e}") from e
    their = folders.save(model, cfg, folder, architecture)
    _, written = files.read_settings(folder)
    apart = " Its embeddings are scaled, so the head that it shares with them was written on its own."
    says = f"{folder}: written as {their.model_type} ({their.class_name}), {_n_parameters(written)}."
    return says + apart * (cfg.model.tied and not written.model.tied)


def read(folder: Path) -> str:
    """What a folder's model is here, and the command that goes on from it. Raises UserError where it is nothing."""
    from lecture04.huggingface import files, folders
    from lecture04.huggingface.overrides import overrides, uptraining

    their, cfg = files.read_settings(folder)
    folders.check(folder, cfg)
    lines = [
        f"{folder}: {their.model_type} ({their.class_name}), {_n_parameters(cfg)}.",
        f"Its vocabulary has {cfg.data.vocab_size:,} words, its rows at most {cfg.data.max_len:,}.",
        "",
        "Its parts, as overrides:",
        f"  {shlex.join(overrides(cfg))}",
        "",
    ]
    line = uptraining(cfg, str(folder))
    if isinstance(line, str):
        return "\n".join([*lines, f"It cannot be trained here: {line}."])
    lines += [
        "To go on from its parameters, its key and value heads merged:",
        "  " + arguments.command_line("train.py", line),
    ]
    return "\n".join(lines)


def _n_parameters(cfg: config.Architecture) -> str:
    return f"{counts.params(cfg):,} parameters"


def main(args: argparse.Namespace) -> None:
    """Do what was asked for, and say it."""
    print(write(args.run, args.folder, args.architecture) if args.command == "write" else read(args.folder))


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: main(args))
