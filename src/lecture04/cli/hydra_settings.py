"""Settings of Hydra's own by which a run or a table would not be what it is here, refused before anything is made."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from lecture04.config import Run
from lecture04.config.errors import nearest
from lecture04.records.named import trouble

OURS = {
    "run.dir": "${paths.outputs}/runs/${run_name:}",
    "sweep.dir": "${paths.outputs}/runs",
    "sweep.subdir": "${run_name:}",
}
"""Where runs lie, as conf/config.yaml has it: the folder's name is what the run is."""
SWEEPER = "hydra_plugins.ablation_sweeper.AblationSweeper"
JOBLIB = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
# Hydra's joblib launcher is for processes: in threads two runs would share one of Hydra's configs. Other values are
# ignored by it, or make it wait for ever.
JOBLIB_CHOICES = {"backend": ["null", "loky"], "prefer": ["null", "processes"], "require": ["null"]}


def run_errors(hydra: DictConfig, run: Run) -> list[str]:
    """What a single run cannot be started with."""
    errors = [*_errors(hydra), *_other_sweeper(hydra)]
    if _as_written(hydra, "run.dir") != OURS["run.dir"] and not errors and (why := trouble(str(hydra.run.dir), run)):
        errors.append(f"hydra.run.dir={hydra.run.dir}: {why}")
    return errors


def _other_sweeper(hydra: DictConfig) -> list[str]:
    if _as_written(hydra, "sweeper._target_") == SWEEPER:
        return []
    chosen = OmegaConf.select(hydra, "runtime.choices.hydra/sweeper")
    return [f"hydra/sweeper={chosen}: another sweeper makes no table of its runs; leave it away."]


def sweep_errors(hydra: DictConfig) -> list[str]:
    """What a table cannot be made with."""
    errors = _errors(hydra)
    if (folder := _as_written(hydra, "run.dir")) != OURS["run.dir"]:
        errors.append(f"hydra.run.dir={folder}: names the folder of one run; paths.outputs=FOLDER those of a table.")
    errors += _other_sweeper(hydra)
    n_jobs = OmegaConf.select(hydra, "launcher.n_jobs")
    if isinstance(n_jobs, int) and n_jobs < 1 and n_jobs != -1:
        errors.append(f"hydra.launcher.n_jobs={n_jobs}: must be at least 1, or -1 for all cores.")
    if _as_written(hydra, "launcher._target_") == JOBLIB:
        for name, choices in JOBLIB_CHOICES.items():
            value = OmegaConf.select(hydra, f"launcher.{name}")
            text = "null" if value is None else str(value)
            if text not in choices:
                errors.append(f"hydra.launcher.{name}={text}: there is no such choice here." + nearest(text, choices))
    return errors


def _errors(hydra: DictConfig) -> list[str]:
    errors = list[str]()
    for name in ("sweep.dir", "sweep.subdir"):
        if (said := _as_written(hydra, name)) != OURS[name]:
            errors.append(
                f"hydra.{name}={said}: the runs of a table lie in outputs/runs, each in a folder of its own name; "
                "write paths.outputs=FOLDER to have all results elsewhere."
            )
    if (said := _as_written(hydra, "output_subdir")) is not None:
        errors.append(
            f"hydra.output_subdir={said}: a run's folder has its config in config.yaml already; leave it away."
        )
    return errors


def _as_written(hydra: DictConfig, name: str) -> Any:
    """A setting with its interpolations in it."""
    node: Any = hydra
    for key in name.split("."):
        node = node._get_node(key)
        if node is None:
            return None
    return node._value()
