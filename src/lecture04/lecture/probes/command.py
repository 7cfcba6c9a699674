"""`python probe.py probe=NAME`: Hydra composes the config, the probe runs, its table is printed and written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from lecture04.cli import train as cli
from lecture04.config import messages as errors
from lecture04.config import overrides as arguments
from lecture04.config import registry, resolve
from lecture04.config.places import CONF
from lecture04.lecture.probes import options

if TYPE_CHECKING:  # config errors and --help do without pandas
    import pandas as pd

USAGE = """\
Lecture04's probes answer a question that needs no training of its own, with one table each.

  python probe.py probe=NAME [GROUP=CHOICE ...] [SETTING=VALUE ...]   print it, and write it to outputs/probes/NAME/
  python probe.py probe=NAME -m SETTING=VALUE,VALUE                   one after the other, a folder each
  python probe.py probe=NAME --cfg job                                every setting, and its value

Groups and settings are those of a run (python train.py --help).
"""


def resolved(cfg: DictConfig) -> options.ProbeRoot:
    """The config of a probe, resolved. Raises UserError with every error, one a line."""
    root = cli.to_root(cfg)
    assert isinstance(root, options.ProbeRoot)
    if bad := resolve.validate(root) + root.probe.errors(root):
        raise errors.UserError("\n".join(bad))
    done = resolve.settle(root)
    assert isinstance(done, options.ProbeRoot)
    return done


def ready(cfg: DictConfig) -> options.ProbeRoot:
    """As `resolved`; raises UserError also where runs that the probe reads are missing."""
    done = resolved(cfg)
    done.probe.require(done)
    return done


class Check(Callback):
    """Reports every error of the config, and missing runs, before the probe's folder is made."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Exit with the errors."""
        errors.or_exit(lambda: ready(config))


def register() -> None:
    """Hand Hydra the schemas."""
    store = ConfigStore.instance()
    store.store(name="probe_schema", node=options.ProbeRoot)
    for name, node in options.SCHEMAS.items():
        store.store(group="schema/probe", name=name, node=node)


register()


def perform(cfg: options.ProbeRoot, folder: Path, command: str) -> str:
    """Run a resolved config's probe; write table.csv, table.md and, if it has a plot, plot.png. Returns the text."""
    import torch

    from lecture04.lecture.probes import text
    from lecture04.records.record import write_whole

    torch.set_num_threads(cfg.trainer.threads)
    entry = registry.entry("probe", cfg.probe.name)
    table: pd.DataFrame = registry.lookup("probe", cfg.probe.name)(cfg)
    module = sys.modules[entry.module]
    title = entry.summary.rstrip(".")
    frames = module.shown(table) if hasattr(module, "shown") else {title: table}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "table.csv", table.to_csv(index=False))
    write_whole(folder / "table.md", f"# {title}\n\n{text.markdown(frames)}\nMade by `{command}`.\n")
    files = ["table.csv", "table.md"]
    if hasattr(module, "plot"):
        module.plot(table).savefig(folder / "plot.png", dpi=150)
        files.append("plot.png")
    return f"{text.terminal(frames)}\n\n{folder}/{', '.join(files)}"


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="probe")
def main(cfg: DictConfig) -> None:
    """One probe."""
    here = HydraConfig.get()
    command = arguments.command_line("probe.py", here.overrides.task)
    print(perform(ready(cfg), Path(here.runtime.output_dir), command))


def help_text() -> str:
    """What `python probe.py --help` prints."""
    about = {name: registry.entry("probe", name).summary for name in registry.names("probe")}
    width = max(map(len, about))
    usage = USAGE.replace("python probe.py", arguments.program("probe.py"))
    usage = usage.replace("python train.py", arguments.program("train.py"))
    return "\n".join([usage, "probe:", *(f"  {name:{width}}  {what}" for name, what in about.items())])


def entry() -> None:
    """The command line."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_text())
        return
    sys.argv[1:] = arguments.multirun_last(sys.argv[1:])
    if bad := arguments.complaints(sys.argv[1:]):
        sys.exit("\n".join(bad))
    if not any(line.startswith(("probe=", "-")) for line in sys.argv[1:]):
        sys.exit("No probe is named; write probe=NAME." + errors.nearest("", registry.names("probe")))
    errors.run(main)
