"""sweeps/NAME.yaml: one file a comparison table, offered to Hydra as the group `sweeps`."""

from collections.abc import Sequence
from pathlib import Path

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from lecture04.config import Table
from lecture04.config.messages import UserError, explain
from lecture04.config.places import yamls

# Files that are wrong, by name. A wrong file is said when it is asked for, and bothers no other command.
BROKEN: dict[str, str] = {}


def load(path: Path) -> DictConfig:
    """A sweep file with its own name in it. Raises UserError where it is more, or less, than one sound `sweep:`."""
    try:
        content = OmegaConf.load(path)
        if not isinstance(content, DictConfig) or list(content) != ["sweep"] or not OmegaConf.is_dict(content.sweep):
            raise UserError(
                f"{path}: a sweep file has one top-level key, `sweep:`, with keys below it, not "
                f"{', '.join(map(str, content)) or 'nothing'}; settings of all rows go to sweep.common."
            )
        OmegaConf.merge({"sweep": Table}, content)
    except (YAMLError, OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: not a YAML file: {' '.join(str(e).split())}") from e
    except OmegaConfBaseException as e:
        raise UserError(f"{path}: {explain(e)}") from e
    content.sweep.name = path.stem
    return content


def store(folder: Path) -> None:
    """Hand every sweep file of a folder to Hydra's ConfigStore, so that choices and TAB work from any folder."""
    for path in yamls(folder):
        try:
            node = load(path)
        except UserError as e:
            BROKEN[path.stem], node = str(e), OmegaConf.create({"sweep": {"name": path.stem}})
        ConfigStore.instance().store(group="sweeps", name=path.stem, node=node, package="_global_", provider=str(path))


def complaints(arguments: Sequence[str]) -> list[str]:
    """What is wrong with the sweep files that a command line asks for."""
    return [wrong for name, wrong in BROKEN.items() if f"sweeps={name}" in arguments]
