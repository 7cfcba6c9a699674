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
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from lecture04 import arguments, config, errors, settle, shelf, sweep_files

ROOT = Path(__file__).parents[2]


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
    root = to_root(cfg)
    if bad := settle.validate(root) + settle.training_errors(root):
        raise errors.UserError("\n".join(bad))
    return settle.settle(root)


def run_name(*, _root_: DictConfig) -> str:
    """Hydra's resolver for the run's folder: that of the record which stands for it."""
    from lecture04.runs.record import find

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
    from lecture04.runs.fingerprint import evaluation_key
    from lecture04.runs.mirror import ModeProbe
    from lecture04.runs.record import Record

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
        from lecture04 import job, screen
    try:
        with screen.run_progress(run, show=alone) as progress:
            job.run(run, record, command=command, progress=progress)
    except Exception as e:
        if not alone:
            raise  # the launcher goes on with the other jobs, and the sweeper reads the record
        sys.exit(f"The run failed: {type(e).__name__}: {e}\nIts traceback: {record.folder / 'train.log'}")
    if alone:
        screen.print_run(run, record, was_there=complete)


def entry() -> None:
    """The command line."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(shelf.help_text())  # Hydra's own would list its groups, in seconds
        return
    sys.argv[1:] = arguments.multirun_last(sys.argv[1:])
    if bad := arguments.complaints(sys.argv[1:]) + sweep_files.complaints(sys.argv[1:]):
        sys.exit("\n".join(bad))
    errors.run(main)
