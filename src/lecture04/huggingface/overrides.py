"""The model of a settled config as the overrides that one would type for it; without torch."""

import re
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from lecture04 import config
from lecture04.config.resolve import GARDEN_MAX_LEN, GARDEN_VOCAB

FAMILIES = ("ffn", "norm", "placement", "attention", "posenc")
# How d_ff was arrived at; and what is written in the part's choice, or follows from another setting.
NOT_TYPED = ("name", "match", "budget", "n_kv_heads", "scaling")


def overrides(cfg: config.Root) -> list[str]:
    """Parts and sizes of a settled config, each option that a part does not have by itself, and nothing of the rest."""
    bias, lines = cfg.model.bias, _options("model", cfg.model, config.Model())
    for family in FAMILIES:
        part = getattr(cfg, family)
        if family == "attention":
            lines += _attention(cfg)
            usual = replace(_usual(part, bias), output_bias=part.bias)
        else:
            lines.append(f"{family}={part.name}")
            usual = _usual(part, bias)
        if isinstance(part, config.Rope) and isinstance(cfg.attention, config.MLA):
            part = replace(part, width=None)  # it is attention.d_rope
        lines += _options(family, part, usual)
        if isinstance(part, config.Rope) and part.scaling.name is not config.RopeScaling.none:
            lines += _options("posenc.scaling", part.scaling, config.Scaling(), typed=("name",))
    return lines


def uptraining(cfg: config.Root, folder: str) -> list[str] | str:
    """The overrides that go on from a folder with half its key and value heads, or why there are none.

    Of an odd number it is the largest that divides it; one head stays one.
    """
    if isinstance(cfg.attention, config.MLA):
        return "init=uptrain merges key and value heads, and a latent has none"
    if cfg.data.vocab_size != GARDEN_VOCAB:
        return f"there are no data here of {cfg.data.vocab_size:,} words; data=garden has {GARDEN_VOCAB}"
    n_kv_heads = cfg.attention.n_kv_heads
    assert n_kv_heads is not None, "settle the config first"
    fewer = next((n for n in range(n_kv_heads // 2, 0, -1) if n_kv_heads % n == 0), 1)
    merged = replace(cfg, attention=replace(cfg.attention, n_kv_heads=fewer))
    short = ["data=garden_packed", f"data.max_len={cfg.data.max_len}"] if cfg.data.max_len < GARDEN_MAX_LEN else []
    return [*overrides(merged), *short, "init=uptrain", f"init.folder={_quoted(folder)}"]


def _usual(part: Any, bias: bool) -> Any:
    """The part as it is by itself, with the model's biases."""
    usual = type(part)(name=part.name)
    return replace(usual, bias=bias) if hasattr(part, "bias") else usual


def _attention(cfg: config.Root) -> list[str]:
    """The choice of attention by its number of key and value heads; `mla` is a choice of its own."""
    n_kv_heads = cfg.attention.n_kv_heads
    if isinstance(cfg.attention, config.MLA) or n_kv_heads == cfg.model.n_heads:
        return ["attention=mla" if isinstance(cfg.attention, config.MLA) else "attention=mha"]
    return ["attention=mqa"] if n_kv_heads == 1 else ["attention=gqa", f"attention.n_kv_heads={n_kv_heads}"]


def _options(path: str, settings: Any, usual: Any, typed: tuple[str, ...] = ()) -> list[str]:
    """PATH.FIELD=VALUE for each field that is not as usual."""
    return [
        f"{path}.{f.name}={_value(value)}"
        for f in fields(settings)
        if (f.name in typed or f.name not in NOT_TYPED)
        and (value := getattr(settings, f.name)) != getattr(usual, f.name)
    ]


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(folder: str) -> str:
    """A path as Hydra reads it; one of unusual characters in quotes."""
    return folder if re.fullmatch(r"[\w./-]+", folder) else "'" + folder.replace("'", "\\'") + "'"
