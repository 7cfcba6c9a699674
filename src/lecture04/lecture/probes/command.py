"""`python probe.py probe=NAME`: Hydra composes the config, the probe runs, its table is printed and written."""

import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from lecture04.cli import complete
from lecture04.cli import train as cli
from lecture04.config import Request, messages, overrides, registry
from lecture04.config.errors import UserError, nearest
from lecture04.config.fields import schema_of
from lecture04.config.places import CONF
from lecture04.lecture.probes import options
from lecture04.lecture.probes.options import PROBES, Probe
from lecture04.terminal import width_of, wrapped
from lecture04.training import start

USAGE = """\
Lecture04's probes answer a question that needs no training of its own, with one table each.

  python probe.py probe=NAME [GROUP=CHOICE ...] [SETTING=VALUE ...]
      print it, and write it to outputs/probes/NAME/
  python probe.py probe=NAME -m SETTING=VALUE,VALUE
      one after the other, a folder each
  python probe.py probe=NAME --cfg job
      every setting, and its value

Groups and settings are those of a run (python train.py --help).
"""


def resolved(cfg: DictConfig) -> tuple[Request, Probe]:
    """What a composed config asks for, and the probe's options. Raises UserError with every error, one a line."""
    return options.resolved(cli.settings_of(cfg), start.finder(cli.composed))


def ready(cfg: DictConfig) -> tuple[Request, Probe]:
    """As `resolved`; raises UserError also where runs that the probe reads are missing."""
    request, probe = resolved(cfg)
    probe.require(request)
    return request, probe


class Check(Callback):
    """Reports every error of the config, and missing runs, before the probe's folder is made."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Exit with the errors."""
        messages.or_exit(lambda: ready(config))


def register() -> None:
    """Hand Hydra the schemas."""
    store = ConfigStore.instance()
    store.store(name="probe_schema", node=options.ProbeSettings)
    for name, node in options.OPTIONS.items():
        store.store(group="schema/probe", name=name, node=schema_of(node))


register()


def perform(request: Request, probe: Probe, folder: Path, command: str) -> str:
    """Run a probe; write table.csv, table.md and, if it has a plot, plot.png. Returns the text."""
    import torch

    from lecture04.files import write_whole
    from lecture04.lecture.probes import text

    torch.set_num_threads(request.run.trainer.threads)
    entry = registry.entry("probe", probe.name)
    try:
        table = PROBES.lookup(probe.name)(request, probe)
    except (MemoryError, RuntimeError) as e:
        if isinstance(e, RuntimeError) and "allocate" not in str(e):
            raise
        raise UserError(
            f"probe={probe.name}: these sizes take more memory than this machine has; take smaller ones."
        ) from e
    module = sys.modules[entry.module]
    title = entry.about.rstrip(".")
    frames = module.shown(table) if hasattr(module, "shown") else {title: table}
    sentence = module.sentence(table)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "table.csv", table.to_csv(index=False))
    write_whole(folder / "table.md", f"# {title}\n\n{text.markdown(frames, sentence)}\nMade by `{command}`.\n")
    files = ["table.csv", "table.md"]
    if hasattr(module, "plot"):
        module.plot(table).savefig(folder / "plot.png", dpi=150)
        files.append("plot.png")
    return f"{text.terminal(frames, sentence)}\n\n{folder}/{', '.join(files)}"


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="probe")
def main(cfg: DictConfig) -> None:
    """One probe."""
    here = HydraConfig.get()
    command = overrides.command_line("probe.py", here.overrides.task)
    # Hydra adds a line of its own to an exception, but not to an exit.
    messages.or_exit(lambda: print(perform(*ready(cfg), Path(here.runtime.output_dir), command)))


def help_text() -> str:
    """What `python probe.py --help` prints."""
    about = {name: registry.entry("probe", name).about for name in PROBES.names()}
    width = max(map(len, about))
    usage = USAGE.replace("python probe.py", overrides.program("probe.py"))
    usage = usage.replace("python train.py", overrides.program("train.py"))
    return "\n".join([usage, "probe:", *(f"  {name:{width}}  {what}" for name, what in about.items())])


def entry() -> None:
    """The command line."""
    messages.run(_entry)


def _entry() -> None:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(wrapped(help_text(), width_of(sys.stdout)))
        return
    sys.argv[1:] = cli.prepared(sys.argv[1:])
    if complete.is_query(sys.argv[1:]):
        complete.answer(main, sys.argv[1:], is_probe=True)
        return
    if not any(line.startswith(("probe=", "-")) for line in sys.argv[1:]):
        raise UserError("No probe is named; write probe=NAME." + nearest("", PROBES.names()))
    main()
