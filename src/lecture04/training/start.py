"""Where a run starts: from nothing, from another run, or from a Hugging Face folder.

What is asked of a config is answered without torch; `begin` makes the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lecture04.config import Run, Session, Uptrain, UserError
from lecture04.config.overrides import INHERITED, family_of
from lecture04.config.resolve import Source, resolve_for_training
from lecture04.records.record import find

if TYPE_CHECKING:
    from lecture04.nn.model import LanguageModel

Compose = Callable[[list[str]], Any]
"""The overrides of a command line -> the settings that they come to."""


def finder(compose: Compose) -> Callable[[Any], Source | None]:
    """What finds the source of a run's settings (see `config.resolve`)."""

    def find_source(settings: Any) -> Source | None:
        if not hasattr(settings.init, "source"):
            return None
        lines, folder = settings.init.source, settings.init.folder
        if folder and lines:
            raise UserError("init.source, init.folder: a run starts from one of them; leave the other away.")
        return _folder(settings, folder) if folder else _run(settings, lines, compose)

    return find_source


def _folder(settings: Any, folder: str) -> Source:
    from lecture04.huggingface import files

    with _said_of("init.folder"):
        return Source(files.source(Path(folder), settings), files.digest(Path(folder)))


def _run(settings: Any, lines: list[str], compose: Compose) -> Source:
    """The run that these overrides name, on the same data and with the same seed."""
    if not lines:
        raise UserError(
            "init.source=[]: name the run to start from, as in init.source=['attention=mha'], "
            "or a Hugging Face folder: init.folder=path/to/model."
        )
    if own := [line for line in lines if family_of(line) in ("seed", *INHERITED)]:
        raise UserError(f"init.source: {own[0]} cannot stand there; the run's own holds for its source too.")
    same = {name: getattr(settings, name) for name in INHERITED}
    with _said_of("init.source"):
        asked = replace(compose(lines), seed=settings.seed, **same)
        return Source(resolve_for_training(asked, finder(compose)).run)


@contextmanager
def _said_of(setting: str) -> Iterator[None]:
    """Each line of a UserError begins with the setting that it is about."""
    try:
        yield
    except UserError as e:
        raise UserError("\n".join(f"{setting}: {line}" for line in str(e).splitlines())) from e


def check(run: Run) -> None:
    """Look at the tensors of the folder that a run starts from; last, since that takes torch. Raises UserError."""
    if isinstance(run.init, Uptrain) and run.init.folder:
        from lecture04.huggingface import folders

        with _said_of("init.folder"):
            folders.check(run.init.folder, run.init.start)


def source_run(run: Run) -> Run | None:
    """The run that this one starts from, which has to be trained first; None where there is none."""
    if not isinstance(run.init, Uptrain) or not isinstance(run.init.start, Run):
        return None
    return run.init.start


def source_lines(run: Run) -> list[str]:
    """The overrides that name the run which this one starts from."""
    return run.init.source if isinstance(run.init, Uptrain) else []


def begin(run: Run, session: Session) -> LanguageModel:
    """The model before its first step: at its initial values, or at those of the run or folder that it starts from.

    Raises ValueError where that run did not end well, or the folder holds something else than when it was resolved.
    """
    from lecture04.nn.init import build
    from lecture04.nn.uptrain import start_from
    from lecture04.training import checkpoint

    model = build(run)
    if not isinstance(run.init, Uptrain):
        return model
    if source := source_run(run):
        record = find(source, session)
        if not record.status().ended_well:
            raise ValueError(f"init.source: the run {record.folder.name} is {record.status().value}, not finished.")
        parameters = checkpoint.load(source, record.folder).state_dict()
    else:
        from lecture04.huggingface import files, folders

        if files.digest(Path(run.init.folder)) != run.init.digest:
            raise ValueError(f"init.folder={run.init.folder}: its files have changed since the run was asked for.")
        parameters = folders.parameters(run.init.folder, run.init.start)
    start_from(model, parameters, run.init.merge, run.model.d_head)
    return model
