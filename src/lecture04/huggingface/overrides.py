"""An architecture as the overrides that one would type for it; without torch."""

from dataclasses import Field, fields, replace
from enum import Enum
from typing import Any

from omegaconf import II

from lecture04 import config
from lecture04.config.schema import ARCHITECTURE
from lecture04.config.typed import plain

# What is said by the part's choice, or has lines of its own.
NOT_TYPED = ("name", "n_kv_heads", "scaling")


def overrides(c: config.Architecture) -> list[str]:
    """Parts and sizes: each option that is not what a part has by itself, and nothing of a run but its model.

    What follows from the length of a row is typed too, since the rows of a run may be shorter.
    """
    lines = _options("model", c.model, c)
    for family in ARCHITECTURE:
        part = getattr(c, family)
        lines += _attention(c) if family == "attention" else [f"{family}={part.name}"]
        lines += _options(family, part, c)
        if isinstance(part, config.Rope) and part.scaling.name is not config.RopeScaling.none:
            lines.append(f"posenc.scaling.name={part.scaling.name.name}")
            lines += _options("posenc.scaling", part.scaling, c)
    return lines


def uptraining(c: config.Architecture, folder: str) -> list[str] | str:
    """The overrides that go on from a folder with half its key and value heads, or why there are none.

    Of an odd number it is the largest that divides it; one head stays one.
    """
    if isinstance(c.attention, config.MLA):
        return "init=uptrain merges key and value heads, and a latent has none"
    garden = config.Garden
    if c.vocab_size != garden.VOCAB_SIZE:
        return f"there are no data here of {c.vocab_size:,} words; data=garden has {garden.VOCAB_SIZE}"
    n_kv_heads = c.attention.n_kv_heads
    fewer = next((n for n in range(n_kv_heads // 2, 0, -1) if n_kv_heads % n == 0), 1)
    merged = replace(c, attention=replace(c.attention, n_kv_heads=fewer))
    short = ["layout=stream", f"layout.length={c.n_ctx}"] if c.n_ctx < garden.MAX_LEN else []
    return [*overrides(merged), *short, "init=uptrain", f"init.folder={plain(folder)}"]


def _attention(c: config.Architecture) -> list[str]:
    """The choice of attention by its number of key and value heads; `mla` is a choice of its own."""
    n_kv_heads = c.attention.n_kv_heads
    if isinstance(c.attention, config.MLA) or n_kv_heads == c.model.n_heads:
        return ["attention=mla" if isinstance(c.attention, config.MLA) else "attention=mha"]
    return ["attention=mqa"] if n_kv_heads == 1 else ["attention=gqa", f"attention.n_kv_heads={n_kv_heads}"]


def _options(path: str, part: Any, c: config.Architecture) -> list[str]:
    """PATH.FIELD=VALUE for each field that has another value than where nothing is typed."""
    return [
        f"{path}.{f.name}={_value(value)}"
        for f in fields(part)
        if f.name not in NOT_TYPED and (value := getattr(part, f.name)) != _untyped(f, part, c)
    ]


def _untyped(f: Field[Any], part: Any, c: config.Architecture) -> object:
    """A field's value where nothing is typed: its default, or what null stands for in this part."""
    if "open" not in f.metadata:
        return c.model.bias if f.default == II("model.bias") else f.default
    value = f.metadata["open"]
    # No row has length 0, so what null takes from it is always another value.
    return value(part, replace(c, n_ctx=0)) if value else None


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
