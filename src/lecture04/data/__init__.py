"""Sources of data, and how their documents become batches. What a source of your own needs is exported here."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04.data.cache import cached
    from lecture04.data.types import Batch, Measure, Split, Splits

__all__ = ["Batch", "Measure", "Split", "Splits", "cached"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'cache' if name == 'cached' else 'types'}"), name)
