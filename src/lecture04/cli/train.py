"""`lecture04 train`: the only place where a DictConfig exists. Hydra composes, we check, resolve and hand on."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from lecture04 import config
from lecture04.cli import complete, hydra_settings
from lecture04.config import Request, messages, overrides, project, registry
from lecture04.config.errors import UserError
from lecture04.config.fields import schema_of
from lecture04.config.places import CONF, SWEEPS
from lecture04.config.resolve import resolve, resolve_for_training
from lecture04.config.schema import PARTS
from lecture04.config.typed import quoted, understood
from lecture04.sweep import files as sweep_files
from lecture04.training import start

if TYPE_CHECKING:
    from lecture04.records.record import Record
    from lecture04.records.tracker import ModeProbe


def settings_of(cfg: DictConfig) -> Any:
    """A composed config as plain dataclasses, interpolations resolved. Hydra's own node, where present, is left out."""
    ours = cfg.copy()
    OmegaConf.set_readonly(ours, False)
    with open_dict(ours):
        ours.pop("hydra", None)
    if missing := sorted(OmegaConf.missing_keys(ours)):
        raise UserError("\n".join(f"{key}: has no value; write {key}=VALUE." for key in missing))
    return OmegaConf.to_object(ours)


def resolved(cfg: DictConfig) -> Request:
    """What a composed config asks for. Raises UserError with every error, one a line."""
    return resolved_settings(settings_of(cfg))


def resolved_settings(settings: Any) -> Request:
    """As `resolved`; the run or folder that init=uptrain starts from is found and resolved too."""
    request = resolve_for_training(settings, start.finder(composed))
    start.check(request.run)
    return request


def composed(lines: list[str]) -> Any:
    """The settings that a command line comes to, also where Hydra is not running. Raises UserError."""
    try:
        if GlobalHydra.instance().is_initialized():
            return settings_of(hydra.compose("config", overrides=lines))
        more = [f"file://{conf.absolute()}" for conf in overrides.CONF_FOLDERS[1:]]
        search = [f"hydra.searchpath=[{','.join(map(quoted, more))}]"] if more else []
        lines = [understood(line) for line in lines]
        with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
            return settings_of(hydra.compose("config", overrides=[*search, *lines]))
    except (HydraException, OmegaConfBaseException) as e:
        raise UserError(messages.explain(e)) from e


def model_of(arguments: Sequence[str]) -> Request:
    """What a command line comes to as a model, whether or not it can be trained; parts from outside and all.

    Raises UserError.
    """
    return resolve(composed(overrides.overrides(prepared(list(arguments)))), start.finder(composed))


def run_name(*, _root_: DictConfig) -> str:
    """Hydra's resolver for the run's folder: that of the record which stands for it."""
    from lecture04.records.record import find

    request = resolved(_root_)
    return find(request.run, request.session).folder.name


class Check(Callback):
    """Every error of a single run's config, before its folder is made (a sweep checks its own rows)."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Exit with the errors."""
        if rows := config.sweep.rows:
            messages.leave(f"sweeps={config.sweep.name} is a table of {len(rows)} rows: add -m to run it.")
        messages.or_exit(lambda: _ready(config))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """As `on_run_start`, for what is Hydra's own."""
        messages.or_exit(lambda: _none(hydra_settings.sweep_errors(config.hydra)))


def _ready(config: DictConfig) -> None:
    """Raises UserError where a run is asked for that cannot be, or cannot be written."""
    from lecture04.records.identity import evaluation_key
    from lecture04.records.record import Record, refuse_unwritable

    request = resolved(config)
    _none(hydra_settings.run_errors(config.hydra, request.run))
    record = Record(Path(config.hydra.run.dir))
    if not record.is_complete(evaluation_key(request.run, request.evaluation)):
        refuse_unwritable(Path(request.session.outputs), [record])


def _none(errors: list[str]) -> None:
    """Raise UserError where there are any."""
    if errors:
        raise UserError("\n".join(errors))


def register() -> None:
    """Hand Hydra the schemas, the sweep files and the resolver."""
    ConfigStore.instance().store(name="schema", node=config.Settings)
    register_schemas()
    sweep_files.store(SWEEPS)
    # Hydra copies the cache of the parent's config into the jobs: a cached name would be that of the first row.
    OmegaConf.register_new_resolver("run_name", run_name, use_cache=False, replace=True)


_SCHEMAS: set[registry.Entry] = set()


def register_schemas() -> None:
    """Hand Hydra the schema of every part that has options of its own, where it has not got it yet."""
    for (family, name), entry in registry.entries().items():
        if family in PARTS and entry not in _SCHEMAS:
            _SCHEMAS.add(entry)
            if (node := registry.options_of(family, name, PARTS[family])) is not PARTS[family]:
                ConfigStore.instance().store(group=f"schema/{family}", name=name, node=schema_of(node))


register()


def _completed_line() -> list[str]:
    """The words before TAB; Hydra gets them without --config-dir, which it does not understand there."""
    words = os.environ.get("COMP_LINE", "").split()
    if "--config-dir" in words[:-1]:
        i = words.index("--config-dir")
        line = os.environ["COMP_LINE"].replace(f"--config-dir {words[i + 1]}", "")
        os.environ["COMP_LINE"] = line
    return words


def bring_in(arguments: list[str]) -> list[str]:
    """Make known what a command line, or the project that it is typed in, brings from outside.

    Returns the arguments with what has to be added for Hydra. Raises UserError.
    """
    found = project.outside([*arguments, *_completed_line()], Path.cwd())
    registry.load(found.parts)
    register_schemas()
    for folder in found.conf:
        if not folder.is_dir():
            raise UserError(f"--config-dir {folder}: there is no such folder.")
        if folder not in overrides.CONF_FOLDERS:
            overrides.CONF_FOLDERS.append(folder)
    for folder in found.sweeps:
        sweep_files.store(folder)
    completing = "COMP_LINE" in os.environ and found.conf and "--config-dir" not in (*arguments, *found.typed)
    return [*arguments, *found.typed, *(["--config-dir", str(found.conf[0])] if completing else [])]


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """A run's log is a file; what a user must see at once goes to the terminal as well."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(cfg: DictConfig) -> None:
    """One run: what `python train.py` does, and each job of a sweep."""
    here = HydraConfig.get()
    os.chdir(here.runtime.cwd)  # with hydra.job.chdir too, a path means the folder that the command was typed in
    request = resolved(cfg)
    from lecture04.records.identity import evaluation_key
    from lecture04.records.record import Record

    record = Record(Path(here.runtime.output_dir))
    asked = [line for line in here.overrides.task if not line.startswith("origin.")]
    outside = _config_dir(here.runtime.config_sources)
    alone = here.mode is RunMode.RUN
    with warnings_on_stderr():  # of records that are renamed as unreadable; later ones would tear the progress bar
        complete = record.is_complete(evaluation_key(request.run, request.evaluation))
    from lecture04.cli import progress

    if alone and complete:
        progress.print_run(request, record, was_there=True)
        return

    try:
        perform(request, record, asked, outside, alone=alone)
    except Exception as e:
        if not alone:
            raise  # the launcher goes on with the other jobs, and the sweeper reads the record
        log = record.folder / "train.log"  # hydra/job_logging may have put it elsewhere
        messages.leave(f"The run failed: {type(e).__name__}: {e}" + f"\nIts traceback: {log}" * log.exists())
    if alone:
        if why := record.untracked():
            print(f"W&B has not got this run: {why}. Its metrics.jsonl has everything.", file=sys.stderr)
        progress.print_run(request, record, was_there=False)


def perform(request: Request, record: Record, asked: list[str], outside: list[str], *, alone: bool = True) -> None:
    """Do what is missing of a run; of one that is `alone`, first of the run that it starts from, and with a display.

    `asked` and `outside` are the overrides, and the option for a folder of YAMLs, as they were typed.
    """
    from lecture04.cli import progress
    from lecture04.records.tracker import ModeProbe, several_runs

    probe = ModeProbe(request.session.logger.name) if alone else None
    if probe:
        with several_runs():
            _train_source(request, probe, asked, outside)
    with progress.run_progress(request.run, show=alone) as tick:
        from lecture04.training.run import run  # torch takes its two seconds while W&B is asked

        command = overrides.command_line("train.py", [*outside, *asked])
        run(_told(request, probe), record, command=command, progress=tick)


def _told(request: Request, probe: ModeProbe | None) -> Request:
    """With W&B's mode, once that is known."""
    if probe is None:
        return request
    origin = replace(request.session.origin, wandb_mode=probe.mode())
    if line := probe.said():
        print(line, file=sys.stderr, flush=True)
    return replace(request, session=replace(request.session, origin=origin))


def _config_dir(sources: Sequence[Any]) -> list[str]:
    """The folder of YAMLs that was typed, as the option for it; a project's own is found where it was typed."""
    here = Path.cwd()
    own = here / "conf" if (here / project.FILE).exists() else None
    typed = [s.path for s in sources if s.provider == "command-line" and Path(s.path) != own]
    return ["--config-dir", *typed] if typed else []


def _train_source(request: Request, probe: ModeProbe, asked: list[str], outside: list[str]) -> None:
    """Train what a single run starts from, where that is missing; a sweep does so itself."""
    from lecture04.cli import progress
    from lecture04.records.record import find

    source = start.source_run(request.run)
    if source is None or find(source, request.session).status().is_result:
        return
    line, record = overrides.source_line(start.source_lines(request.run), asked), find(source, request.session)
    own = replace(resolved_settings(composed(line)), session=request.session)
    _train_source(own, probe, line, outside)
    print(f"first the run that it starts from: {record.folder}", file=sys.stderr, flush=True)
    with progress.run_progress(source, show=True) as tick:
        from lecture04.training.run import run

        run(_told(own, probe), record, command=overrides.command_line("train.py", [*outside, *line]), progress=tick)


def entry() -> None:
    """The command line."""
    messages.run(_entry)


def _entry() -> object:
    overrides.TYPED[:] = sys.argv[1:]
    sys.argv[1:] = prepared(sys.argv[1:])
    if bad := sweep_files.complaints(sys.argv[1:]):
        raise UserError("\n".join(bad))
    if complete.is_query(sys.argv[1:]):
        return complete.answer(main, sys.argv[1:])
    if overrides.is_multirun(sys.argv):
        overrides.ASKED[:] = [line for line in overrides.overrides(sys.argv[1:]) if not overrides.is_hydras(line)]
        sys.argv[1:] = [word for word in sys.argv[1:] if word not in overrides.ASKED or overrides.for_all_rows(word)]
    return main()


def prepared(arguments: list[str]) -> list[str]:
    """The arguments as Hydra takes them, with what they bring from outside made known. Raises UserError."""
    arguments = overrides.as_hydra_reads(bring_in(arguments))
    if bad := overrides.complaints(arguments):
        raise UserError("\n".join(bad))
    return overrides.options_first(arguments)
