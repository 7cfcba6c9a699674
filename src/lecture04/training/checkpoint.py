"""A run's parameters on disk: safetensors, under the names of the parameters."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lecture04 import config
from lecture04.files import rename_unreadable, whole
from lecture04.nn.model import LanguageModel
from lecture04.records.record import Record

NAME = "checkpoint.safetensors"


def save(model: LanguageModel, folder: Path) -> None:
    """Write the parameters whole, by rename."""
    with whole(folder / NAME) as part:
        save_file(model.state_dict(), part)


def load_sound(c: config.Architecture, folder: Path) -> LanguageModel | None:
    """As `load`; a file that is torn is renamed and said, and counts as none."""
    try:
        return load(c, folder)
    except FileNotFoundError:
        return None
    except SafetensorError as e:
        rename_unreadable(folder / NAME, e)
        return None


def load(c: config.Architecture, folder: Path) -> LanguageModel:
    """The model with the parameters kept in a folder. Every parameter must be there, no other.

    Raises ValueError where they are not those that the run ended with.
    """
    if (folder / "summary.json").exists() and not Record(folder).summary():
        raise ValueError(f"{folder}: its summary and its checkpoint do not belong together; train the run again.")
    model = LanguageModel(c)
    model.load_state_dict(load_file(folder / NAME))
    return model
