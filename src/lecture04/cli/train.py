"""`python train.py`: the only place where a DictConfig exists. Hydra composes, we check, settle and hand on."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from lecture04.cli import help as shelf
from lecture04.config import messages as errors
from lecture04.config import overrides as arguments
from lecture04.config import resolve as settle
from lecture04.sweep import files as sweep_files

ROOT = Path(__file__).parents[3]


def to_root(cfg: DictConfig) -> config.Root:
    """A composed config as plain dataclasses, interpolations resolved. Hydra's own node, where present, is left out."""
    ours = cfg.copy()
    OmegaConf.set_readonly(ours, False)
    with open_dict(ours):
        ours.pop("hydra", None)
    root = OmegaConf.to_object(ours)
    assert isinstance(root, config.Root)
    return root


def settled(cfg: DictConfig) -> config.Root:
    """The config of a run, settled. Raises UserError with every error, one a line."""
    return settled_root(to_root(cfg))


def settled_root(root: config.Root) -> config.Root:
    """As `settled`; the run or folder that init=uptrain starts from is found and settled too."""
    if isinstance(root.init, config.Uptrain):
        root = replace(root, init=_with_source(root, root.init))
    if bad := settle.validate(root) + settle.training_errors(root):
        raise errors.UserError("\n".join(bad))
    done = settle.settle(root)
    if bad := settle.source_errors(done):
        raise errors.UserError("\n".join(bad))
    if isinstance(done.init, config.Uptrain) and done.init.folder:
        from lecture04.huggingface import folders  # the tensors are looked at last, since that takes torch

        with _said_of("init.folder"):
            folders.check(done.init.folder, done.init.run)
    return done


def _with_source(root: config.Root, init: config.Uptrain) -> config.Uptrain:
    """What a run starts from, found: the config of a run, or that of a folder and the digest of what lies there."""
    if init.folder and init.source:
        raise errors.UserError("init.source, init.folder: a run starts from one of them; leave the other away.")
    if not init.folder:
        return replace(init, run=_source(root, init.source), digest="")
    from lecture04.huggingface import files

    with _said_of("init.folder"):
        return replace(init, run=files.source(Path(init.folder), root), digest=files.digest(Path(init.folder)))


@contextmanager
def _said_of(setting: str) -> Iterator[None]:
    """Each line of a UserError begins with the setting that it is about."""
    try:
        yield
    except errors.UserError as e:
        raise errors.UserError("\n".join(f"{setting}: {line}" for line in str(e).splitlines())) from e


def _source(root: config.Root, lines: list[str]) -> config.Root:
    """The settled config of the run that these overrides name, on the same data and with the same seed."""
    if not lines:
        raise errors.UserError(
            "init.source=[]: name the run to start from, as in init.source=['attention=mha'], "
            "or a Hugging Face folder: init.folder=path/to/model."
        )
    if own := [line for line in lines if arguments.family_of(line) in ("seed", *config.INHERITED)]:
        raise errors.UserError(f"init.source: {own[0]} cannot stand there; the run's own holds for its source too.")
    same = {family: getattr(root, family) for family in config.INHERITED}
    with _said_of("init.source"):
        try:
            composed = to_root(_compose(lines))
        except (HydraException, OmegaConfBaseException) as e:
            raise errors.UserError(errors.explain(e)) from e
        return settled_root(replace(composed, seed=root.seed, **same))


def _compose(lines: list[str]) -> DictConfig:
    """What a command line comes to, also where Hydra is not running."""
    if GlobalHydra.instance().is_initialized():
        return hydra.compose("config", overrides=lines)
    with hydra.initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return hydra.compose("config", overrides=lines)


def run_name(*, _root_: DictConfig) -> str:
    """Hydra's resolver for the run's folder: that of the record which stands for it."""
    from lecture04.records.record import find

    return find(settled(_root_)).folder.name


class Check(Callback):
    """Every error of a single run's config, before its folder is made (a sweep checks its rows by itself)."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Exit with the errors."""
        if rows := config.sweep.rows:
            sys.exit(f"sweeps={config.sweep.name} is a table of {len(rows)} rows: add -m to run it.")
        errors.or_exit(lambda: settled(config))


def register() -> None:
    """Hand Hydra the schemas, the sweep files and the resolver."""
    store = ConfigStore.instance()
    store.store(name="schema", node=config.Root)
    for (family, name), node in config.SCHEMAS.items():
        store.store(group=f"schema/{family}", name=name, node=node)
    sweep_files.store(ROOT / "sweeps")
    # Hydra copies the cache of the parent's config into the jobs: a cached name would be that of the first row.
    OmegaConf.register_new_resolver("run_name", run_name, use_cache=False, replace=True)


register()


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


@hydra.main(version_base="1.3", config_path=str(ROOT / "conf"), config_name="config")
def main(cfg: DictConfig) -> None:
    """One run: what `python train.py` does, and each job of a sweep."""
    run = settled(cfg)
    here = HydraConfig.get()
    from lecture04.records.identity import evaluation_key
    from lecture04.records.record import Record
    from lecture04.records.tracker import ModeProbe

    record = Record(Path(here.runtime.output_dir))
    asked = [line for line in here.overrides.task if not line.startswith("origin.")]
    command = arguments.command_line("train.py", asked)
    alone = here.mode is RunMode.RUN
    with warnings_on_stderr():  # of records that are set aside; later ones would tear the progress bar
        complete = record.is_complete(evaluation_key(run))
    if alone and not complete:
        probe = ModeProbe(run.logger.name)
        from lecture04 import job, screen  # torch takes its two seconds while W&B is asked

        run = replace(run, origin=replace(run.origin, wandb_mode=probe.mode()))
    else:
        from lecture04.cli import progress as screen
        from lecture04.training import run as job
    try:
        if alone:
            _train_source(run, asked)
        with screen.run_progress(run, show=alone) as progress:
            job.run(run, record, command=command, progress=progress)
    except Exception as e:
        if not alone:
            raise  # the launcher goes on with the other jobs, and the sweeper reads the record
        sys.exit(f"The run failed: {type(e).__name__}: {e}\nIts traceback: {record.folder / 'train.log'}")
    if alone:
        screen.print_run(run, record, was_there=complete)


def _train_source(run: config.Root, asked: list[str]) -> None:
    """Train what a single run starts from, where that is missing; a sweep sees to it by itself."""
    from lecture04.cli import progress as screen
    from lecture04.records.record import find
    from lecture04.training import run as job

    if (source := config.source_of(run)) is None or find(source).status().is_result:
        return
    assert isinstance(run.init, config.Uptrain)
    line, record = arguments.source_line(run.init.source, asked), find(source)
    _train_source(source, line)
    print(f"first the run that it starts from: {record.folder}", file=sys.stderr, flush=True)
    with screen.run_progress(source, show=True) as progress:
        source = replace(source, origin=run.origin)
        job.run(source, record, command=arguments.command_line("train.py", line), progress=progress)


def entry() -> None:
    """The command line."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(shelf.help_text())  # Hydra's own would list its groups, in seconds
        return
    sys.argv[1:] = arguments.multirun_last(sys.argv[1:])
    if bad := arguments.complaints(sys.argv[1:]) + sweep_files.complaints(sys.argv[1:]):
        sys.exit("\n".join(bad))
    errors.run(main)
