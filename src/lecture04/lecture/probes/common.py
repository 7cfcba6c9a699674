"""Helpers of several probes: parts by name, published shapes, tokens, trained models."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from torch import Tensor

from lecture04 import config
from lecture04.config import Architecture, Options, Run, UserError, asked, resolve
from lecture04.config.fields import schema_of
from lecture04.config.registry import options_of
from lecture04.config.schema import ARCHITECTURE, PARTS
from lecture04.config.validate import architecture_errors
from lecture04.lecture.probes.finished import Finished
from lecture04.nn.ffn import FFNS
from lecture04.nn.model import LanguageModel
from lecture04.training import checkpoint

HERE = Path(__file__).parent


def sizes(d_model: int, n_heads: int = 1) -> config.Model:
    """A model's sizes, where nothing but its width counts."""
    return resolve.fill(config.Model, asked(config.Model, d_model=d_model, n_heads=n_heads), None)


def activation(name: str, *, beta: float = 1.0) -> Any:
    """The elementwise function of the registered FFN of that name."""
    ffn: Any = FFNS.lookup(name)(config.Swish(name=name, d_ff=1, bias=False, beta=beta), sizes(1))
    return ffn.activation


def plain_rope(base: float, width: int) -> config.Rope:
    """RoPE's options, unscaled."""
    return config.Rope(name="rope", base=base, width=width, scaling=config.Scaling(n_original=1, beta_fast=32.0))


def opened(part: Options, run: Run) -> Any:
    """A run's part as it can be asked for: what null would stand for is null again, to follow when others change."""
    found: dict[str, Any] = {}
    for f in fields(part):
        value, stands_for = getattr(part, f.name), f.metadata.get("open")
        if isinstance(value, Options):
            value = opened(value, run)
        elif stands_for is not None and value == stands_for(part, run):
            value = None
        found[f.name] = value
    return schema_of(type(part))(**found)


def open_part(run: Run, family: str, name: str) -> Any:
    """A part as it can be asked for: with the run's own options where it chose this one, else with the defaults."""
    own, options = getattr(run, family), options_of(family, name, PARTS[family])
    if own.name == name:
        return opened(own, run)
    follows = {"bias": run.model.bias} if any(f.name == "bias" for f in fields(options)) else {}
    return asked(options, name=name, **follows)


def open_attention(run: Run, name: str, n_kv_heads: int | None = None) -> Any:
    """As `open_part`, with the run's biases, scale and mask; gqa has half as many KV heads as heads unless told."""
    own, found = opened(run.attention, run), open_part(run, "attention", name)
    for setting in ("bias", "output_bias", "scale", "qk_norm", "causal"):
        setattr(found, setting, getattr(own, setting))
    if n_kv_heads is not None:
        found.n_kv_heads = n_kv_heads
    elif name == "gqa" != own.name:
        found.n_kv_heads = max(1, run.model.n_heads // 2)
    return found


def with_parts(run: Run, parts: Mapping[str, Any], *, n_ctx: int | None = None) -> Run:
    """The same run with other parts, by their families, or with longer rows. Raises UserError where they cannot be."""
    wanted = {family: opened(getattr(run, family), run) for family in ("model", *ARCHITECTURE)} | dict(parts)
    c = resolve.architecture(SimpleNamespace(**wanted), run.vocab_size, n_ctx or run.n_ctx)
    if bad := architecture_errors(c):
        raise UserError("\n".join(bad))
    return replace(run, **{f.name: getattr(c, f.name) for f in fields(Architecture)})


def stacked(run: Run, placement: str, n_layers: int) -> Run:
    """The same run with its norms placed elsewhere, and so many layers."""
    model = replace(opened(run.model, run), n_layers=n_layers)
    return with_parts(run, {"placement": open_part(run, "placement", placement), "model": model})


def published(file: str) -> dict[str, dict[str, Any]]:
    """The entries of a YAML file in this folder, by the model's name."""
    return yaml.safe_load((HERE / file).read_text(encoding="utf-8"))


def llama_like(shape: Mapping[str, Any]) -> Architecture:
    """A published Llama-like model: pre-norm RMSNorm, SwiGLU, GQA, RoPE, no biases, a head of its own."""
    heads = {"n_layers": shape["n_layers"], "n_heads": shape["n_heads"]}
    wanted = SimpleNamespace(
        model=asked(config.Model, d_model=shape["n_heads"] * shape["d_head"], bias=False, tied=False, **heads),
        attention=asked(config.Attention, name="gqa", n_kv_heads=shape["n_kv_heads"], bias=False),
        ffn=asked(config.GatedFFN, name="swiglu", d_ff=shape["d_ff"], bias=False),
        norm=asked(config.Norm, name="rmsnorm"),
        placement=asked(config.Placement, name="pre"),
        posenc=asked(config.Rope, name="rope"),
    )
    return resolve.architecture(wanted, shape["vocab_size"], n_ctx=1)  # no figure depends on the length of a row


def words(run: Run, batch: int, n_tokens: int) -> Tensor:
    """Random tokens_BT of the run's vocabulary and seed."""
    return torch.randint(run.vocab_size, (batch, n_tokens), generator=torch.Generator().manual_seed(run.seed))


def largest(x: Tensor) -> float:
    """The largest absolute value."""
    return x.detach().abs().max().item()


def trained(found: Finished) -> LanguageModel:
    """A finished run's model. Raises UserError where its checkpoint is missing or does not fit today's code."""
    try:
        return checkpoint.load(found.run, found.record.folder).eval()
    except (FileNotFoundError, SafetensorError, RuntimeError) as e:
        said = "is missing" if isinstance(e, FileNotFoundError) else "does not fit the model or cannot be read"
        path = found.record.folder / checkpoint.NAME
        raise UserError(f"{path}: {said}; take the run's folder away and train it again: {found.again}") from e
