"""Lecture04: an ablation workbench for Transformer parts.

What a user's own file needs is exported here; the families' base classes are in lecture04.nn, a source's types in
lecture04.data. Names are imported when they are asked for: `lecture04 --help` answers without OmegaConf.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04 import config as config
    from lecture04.config.fields import bounded, opened
    from lecture04.config.registry import register
    from lecture04.records.metrics import Metric, measure
    from lecture04.report.columns import column

__all__ = ["Metric", "bounded", "column", "measure", "opened", "register"]

_HOME = {
    "Metric": "records.metrics",
    "bounded": "config.fields",
    "column": "report.columns",
    "measure": "records.metrics",
    "opened": "config.fields",
    "register": "config.registry",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
