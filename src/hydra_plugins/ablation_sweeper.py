"""Hydra's side of a sweep: it takes the overrides of `-m` and hands them to lecture04.sweep.

Hydra imports every plugin at start-up, so nothing heavy is imported before a sweep runs; and the class must be defined
in this namespace to be found.
"""

# No `from __future__ import annotations`: together with @dataclass it crashes Hydra's scan of this module.
import sys
from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class AblationConf:
    """The sweeper has no options of its own: a sweep file, or the swept keys, say what to do."""

    _target_: str = "hydra_plugins.ablation_sweeper.AblationSweeper"


class AblationSweeper(Sweeper):
    """Rows times seeds, with a comparison table at the end."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra gives, and make its launcher."""
        # Hydra's Sweeper declares these as optional; `ours` and `loader` are what is there from now on.
        self.config, self.ours, self.loader = config, config, hydra_context.config_loader
        self.launcher = self.starter = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Plan, launch what is missing, and print the table; exits with 1 if a run failed."""
        from lecture04.cli.train import resolved, settings_of
        from lecture04.config import overrides
        from lecture04.sweep import command

        settings = settings_of(self.ours)
        # Hydra composed what is for all rows; what is for each of them it has not seen yet.
        asked = OverridesParser.create(config_loader=self.loader).parse_overrides(overrides.ASKED or arguments)
        plan = command.plan(
            settings.sweep,
            asked,
            is_group=lambda key: bool(self.loader.get_group_options(key)),
            compose=lambda lines: resolved(self.loader.load_sweep_config(self.ours, list(lines))),
        )
        typed = overrides.TYPED or sys.argv[1:]
        if settings.sweep.plan:
            command.show(plan, self.ours.hydra.launcher)
        elif command.execute(plan, self.starter, typed, verbose=settings.table.verbose):
            sys.exit(1)


ConfigStore.instance().store(group="hydra/sweeper", name="ablation", node=AblationConf, provider="lecture04")
