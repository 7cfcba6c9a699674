"""Lecture04: an ablation workbench for Transformer parts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04.config.registry import register

__all__ = ["register"]


def __getattr__(name: str) -> object:
    """`register`, imported when it is asked for: `lecture04 --help` answers without OmegaConf."""
    if name != "register":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lecture04.config.registry import register

    return register
