"""`lecture04.train(...)`: the command `lecture04 train` as a function, in a script, a notebook or a test."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import getfile
from pathlib import Path

from hydra.core.global_hydra import GlobalHydra

from lecture04.cli import train as command
from lecture04.config import Request, overrides, project, registry
from lecture04.config.errors import UserError
from lecture04.config.flags import WITH_VALUE
from lecture04.config.typed import in_shell, read
from lecture04.records.metrics import MEASURES
from lecture04.records.record import find, refuse_unwritable
from lecture04.sweep import files as sweep_files
from lecture04.training.trained import TrainedRun

MULTIRUN = ("-m", "--multirun")
TAKEN = ("-cd", "--config-dir")
LOG_FORMAT = "[%(asctime)s][%(levelname)s] %(message)s"  # as conf/hydra/job_logging has it


def train(overrides: Sequence[str] = ()) -> TrainedRun:
    """Train one model, as `lecture04 train` with these overrides does, and return the run.

    overrides  as they are typed: ["ffn=swiglu", "seed=1"]; ["--config-dir", DIR] and a project's lecture04.yaml count
               as they do there

    It is the same run, in the same folder, as the command's; one that is there already is returned, and nothing is
    trained. Progress is shown where stderr is a terminal. What a run returns is said at `load`.

    >>> import lecture04 as l4
    >>> tiny = ["trainer.steps=20", "data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none"]
    >>> run = l4.train(["ffn=swiglu", "seed=1", *tiny])
    >>> run.config.ffn.name, run.config.seed, run.metrics["steps"]
    ('swiglu', 1, 20)
    >>> l4.train(["ffn=swiglu", "seed=1", *tiny]).folder == run.folder
    True

    Raises UserError, with the command's own sentences, for overrides that cannot be, and for several values: those are
    a table, which the command line trains and `table` shows.
    """
    if isinstance(overrides, str):
        raise UserError(f"{overrides}: a list of overrides is wanted; write train([{overrides!r}]).")
    typed = list(overrides)
    if bad := list(_refused(typed)):
        raise UserError("\n".join(bad))
    with _no_hydra():
        request, asked = _requested(typed)
        record = find(request.run, request.session)
        key = _evaluation_key(request)
        if not record.is_complete(key):
            outputs = Path(request.session.outputs)
            refuse_unwritable(outputs, [record])
            with _logged(record.folder / "train.log"), _own_threads():
                command.perform(request, record, asked, project.config_dir(typed))
            if why := record.untracked():
                print(f"W&B has not got this run: {why}. Its metrics.jsonl has everything.", file=sys.stderr)
    return TrainedRun(record.folder, request.run, Path(request.session.outputs), key)


def _requested(typed: list[str]) -> tuple[Request, list[str]]:
    """What these words ask for, and the overrides among them as Hydra reads them. Raises UserError."""
    arguments = command.prepared(typed)
    if bad := sweep_files.complaints(arguments):
        raise UserError("\n".join(bad))
    if nowhere := [name for name, made in MEASURES.items() if not _lies_in_a_file(made)]:
        raise UserError(
            f"{nowhere[0]}: what measures it must lie in a file, named by parts=[FILE]; "
            "its code is part of what an evaluation is."
        )
    asked = overrides.overrides(arguments)
    settings = command.composed(asked)
    if rows := settings.sweep.rows:
        raise UserError(f"sweeps={settings.sweep.name} is a table of {len(rows)} rows: {_table(typed)}")
    return command.resolved_settings(settings), asked


def _refused(typed: Sequence[str]) -> Iterator[str]:
    """What the command line takes and a single run from Python does not."""
    lines = overrides.overrides(typed)
    for word, before in zip(typed, ["", *typed], strict=False):
        option = word.partition("=")[0]
        if option in MULTIRUN:
            yield f"{word}: one run at a time is trained here; {_table(typed)}"
            return
        elif word.startswith("-") and option not in TAKEN and before not in WITH_VALUE:
            yield f"{word}: an option of the command line's; only overrides and --config-dir can stand here."
        elif word in lines and overrides.is_hydras(word):
            yield f"{word}: a setting of Hydra's own, which only the command line has; leave it away."
        elif word in lines and (override := read(word)) and override.is_sweep_override():
            yield f"{word}: several values, and one run at a time is trained here; {_table(typed)}"


def _table(typed: Sequence[str]) -> str:
    line = " ".join(["lecture04 train -m", *(in_shell(word) for word in typed if word not in MULTIRUN)])
    return f"`{line}` trains the table, and lecture04.table(NAME) shows it."


def _evaluation_key(request: Request) -> str:
    from lecture04.records.identity import evaluation_key

    return evaluation_key(request.run, request.evaluation)


def _lies_in_a_file(made: type) -> bool:
    """Whether a class is of a file that was named as one with parts; one of a notebook's cell is not."""
    try:
        return Path(getfile(made)) in registry.outside().values()
    except (TypeError, OSError):
        return False


@contextmanager
def _no_hydra() -> Iterator[None]:
    """Within the block Hydra is not initialised: whoever calls this may have a Hydra application of their own."""
    theirs = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = theirs


@contextmanager
def _logged(file: Path) -> Iterator[None]:
    """The package's log goes to this file and nowhere else, as a run's does on the command line."""
    ours = logging.getLogger("lecture04")
    before = (ours.level, ours.propagate)
    handler = logging.FileHandler(file, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
    try:
        yield
    finally:
        ours.removeHandler(handler)
        handler.close()
        ours.setLevel(before[0])
        ours.propagate = before[1]


@contextmanager
def _own_threads() -> Iterator[None]:
    """A run sets torch's threads, as they are part of what it is; whoever called keeps theirs."""
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
