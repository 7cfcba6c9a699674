"""The parts of the model; base classes for your own parts are exported here, and import torch."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04.nn.attention import Attention, AttentionContext
    from lecture04.nn.block import Block
    from lecture04.nn.ffn import GatedFFN, PlainFFN
    from lecture04.nn.init import Init
    from lecture04.nn.kv_cache import KVCache
    from lecture04.nn.model import LanguageModel
    from lecture04.nn.posenc import PosEnc

__all__ = [
    "Attention",
    "AttentionContext",
    "Block",
    "GatedFFN",
    "Init",
    "KVCache",
    "LanguageModel",
    "PlainFFN",
    "PosEnc",
]

_HOME = {
    **dict.fromkeys(("Attention", "AttentionContext"), "attention"),
    **dict.fromkeys(("PlainFFN", "GatedFFN"), "ffn"),
    "Block": "block",
    "Init": "init",
    "KVCache": "kv_cache",
    "LanguageModel": "model",
    "PosEnc": "posenc",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
