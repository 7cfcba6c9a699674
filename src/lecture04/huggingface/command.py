"""What `lecture04 convert` does: a finished run as a Hugging Face folder, and what such a folder is here."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lecture04 import config
from lecture04.config import overrides as arguments
from lecture04.config import sizes
from lecture04.config.errors import UserError

if TYPE_CHECKING:
    from lecture04.data.types import Splits
    from lecture04.nn.model import LanguageModel

Load = Callable[[config.Architecture, Path], "LanguageModel"]
"""A run and its folder -> its model. Training knows how (`training.checkpoint.load`), and nothing here imports it."""


def write(run_folder: Path, folder: Path, architecture: str | None, load: Load) -> str:
    """Write a run's model; what was written, and where. Raises UserError where the run has not finished."""
    from lecture04.records.config_file import read_run
    from lecture04.records.record import Record
    from lecture04.records.store import outputs_of

    run, status = read_run(run_folder), Record(run_folder).status()
    if not status.ended_well:
        raise UserError(f"{run_folder}: the run is {status.value}, not finished, so there is no model to write.")
    from safetensors import SafetensorError

    from lecture04.huggingface import files, folders

    try:
        model = load(run, run_folder)
    except (SafetensorError, RuntimeError) as e:
        raise UserError(f"{run_folder}: its checkpoint does not hold this run's parameters: {e}") from e
    found = _corpus(run, outputs_of(run_folder))
    their = folders.save(
        model,
        run,
        folder,
        architecture,
        None if isinstance(found, str) else special_tokens(run, found),
        None if isinstance(found, str) else found.tokenizer,
    )
    _, written = files.read_settings(folder)
    says = f"{folder}: written as {their.model_type} ({their.class_name}), {_n_parameters(written)}."
    if run.model.tied and not written.model.tied:
        says += " Its embeddings are scaled, so the head that it shares with them was written on its own."
    return says + (f" No tokenizer was written: {found}" if isinstance(found, str) else "")


def _corpus(run: config.Run, outputs: Path) -> Splits | str:
    """What a run was trained on; or why that cannot be read any more, which keeps no model from being written."""
    from lecture04.data.types import load as load_corpus

    try:
        return load_corpus(run, outputs)
    except (ValueError, OSError) as e:
        return str(e)


def special_tokens(run: config.Run, splits: Splits) -> dict[str, int]:
    """The ids of the tokens that its texts begin and end with, and of padding, by their names in a config.json."""
    from lecture04.data.types import row_start

    ids = {"bos": row_start(run, splits), "eos": splits.eos, "pad": splits.pad}
    return {f"{name}_token_id": token for name, token in ids.items() if token is not None}


def read(folder: Path) -> str:
    """What a folder's model is here, and the command that goes on from it. Raises UserError where it is nothing."""
    from lecture04.huggingface import files
    from lecture04.huggingface.overrides import overrides, uptraining

    their, c = files.read_settings(folder)
    from lecture04.huggingface import folders  # torch, which a config that is refused need not wait for

    folders.check(folder, c)
    lines = [
        f"{folder}: {their.model_type} ({their.class_name}), {_n_parameters(c)}.",
        f"Its vocabulary has {c.vocab_size:,} words, its rows at most {c.n_ctx:,}.",
        "",
        "Its parts, as overrides:",
        f"  {shlex.join(overrides(c))}",
        "",
    ]
    line = uptraining(c, str(folder))
    if isinstance(line, str):
        return "\n".join([*lines, f"It cannot be trained here: {line}."])
    lines += [
        "To go on from its parameters, its key and value heads merged:",
        "  " + arguments.command_line("train.py", line),
    ]
    return "\n".join(lines)


def _n_parameters(c: config.Architecture) -> str:
    return f"{sizes.params(c):,} parameters"
