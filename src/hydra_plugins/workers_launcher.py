"""Hydra's side of our launcher: jobs in worker processes, each of which may die without harm to the others.

Hydra imports every plugin at start-up, so nothing heavy is imported before a sweep runs; and the class must be defined
in this namespace to be found.
"""

# No `from __future__ import annotations`: together with @dataclass it crashes Hydra's scan of this module.
from collections.abc import Sequence
from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class WorkersConf:
    """`n_jobs` runs side by side; -1 for one on each core."""

    _target_: str = "hydra_plugins.workers_launcher.WorkersLauncher"
    n_jobs: int = -1


class WorkersLauncher(Launcher):
    """Runs jobs side by side, each worker a process of its own."""

    isolates = True
    """Whether a job that kills its worker takes no other with it."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.config: DictConfig | None = None
        self.task_function: TaskFunction | None = None
        self.hydra_context: HydraContext | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra gives."""
        self.config, self.task_function, self.hydra_context = config, task_function, hydra_context

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs; one that killed its worker comes back as failed, with the cause."""
        from lecture04.sweep.workers import launch

        assert self.config is not None
        assert self.task_function is not None
        assert self.hydra_context is not None
        return launch(self.n_jobs, self.hydra_context, self.task_function, self.config, job_overrides, initial_job_idx)


ConfigStore.instance().store(group="hydra/launcher", name="workers", node=WorkersConf, provider="lecture04")
