"""sweeps/NAME.yaml: one file a comparison table, offered to Hydra as the group `sweeps`."""

import shlex
from pathlib import Path

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from lecture04.errors import UserError


def load(path: Path) -> DictConfig:
    """A sweep file with its own name in it. Raises UserError where it is more, or less, than one `sweep:`."""
    try:
        content = OmegaConf.load(path)
    except (YAMLError, OmegaConfBaseException) as e:
        raise UserError(f"{path}: not a YAML file: {' '.join(str(e).split())}") from e
    if not isinstance(content, DictConfig) or list(content) != ["sweep"]:
        raise UserError(
            f"{path}: a sweep file has one top-level key, `sweep:`; settings of all rows go to sweep.common."
        )
    content.sweep.name = path.stem
    return content


def store(folder: Path) -> None:
    """Hand every sweep file of a folder to Hydra's ConfigStore, so that choices and TAB work from any folder."""
    for path in sorted(folder.glob("*.yaml")):
        ConfigStore.instance().store(
            group="sweeps", name=path.stem, node=load(path), package="_global_", provider=str(path)
        )


def quoted(override: str) -> str:
    """An override as it can be typed into a shell."""
    return shlex.quote(override)
