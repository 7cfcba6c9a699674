"""Lecture04: an ablation workbench for Transformer parts.

    import lecture04 as l4

    run = l4.train(["ffn=swiglu", "seed=1"])    what `lecture04 train` trains
    run = l4.load("outputs/runs/NAME")          a run from its folder
    l4.runs()                                   every run, a line each
    l4.table("recipe")                          a comparison, which shows itself in a notebook
    l4.judge({"before": [...], "after": [...]}) the same of numbers of your own

The other names are for a file with parts or metrics of your own; the families' base classes are in lecture04.nn, a
source's types in lecture04.data. Names are imported when they are asked for: `lecture04 --help` answers without
OmegaConf.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04 import config as config
    from lecture04.cli.called import train
    from lecture04.config.fields import bounded, opened
    from lecture04.config.registry import register
    from lecture04.records.metrics import Metric, measure
    from lecture04.report.columns import column
    from lecture04.report.runs import runs
    from lecture04.report.shown import judge, table
    from lecture04.training.trained import load

__all__ = [
    "Metric",
    "bounded",
    "column",
    "judge",
    "load",
    "measure",
    "opened",
    "register",
    "runs",
    "table",
    "train",
]

_HOME = {
    "Metric": "records.metrics",
    "bounded": "config.fields",
    "column": "report.columns",
    "judge": "report.shown",
    "load": "training.trained",
    "measure": "records.metrics",
    "opened": "config.fields",
    "register": "config.registry",
    "runs": "report.runs",
    "table": "report.shown",
    "train": "cli.called",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
