"""A model's parameters on disk: safetensors, by the names of the parameters."""

from pathlib import Path

from safetensors.torch import load_file, save_file

from lecture04 import config
from lecture04.nn.model import LanguageModel

NAME = "checkpoint.safetensors"


def save(model: LanguageModel, folder: Path) -> None:
    """Write the parameters whole, by rename."""
    part = folder / f"{NAME}.part"
    save_file(model.state_dict(), part)
    part.replace(folder / NAME)


def load(cfg: config.Root, folder: Path) -> LanguageModel:
    """The model of a settled config with the parameters kept in a folder. Every parameter must be there, no other."""
    model = LanguageModel(cfg)
    model.load_state_dict(load_file(folder / NAME))
    return model
