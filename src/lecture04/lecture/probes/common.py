"""Helpers of several probes: parts by name, published shapes, tokens, trained models."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from torch import Tensor

from lecture04 import config
from lecture04.config import resolve
from lecture04.config.messages import UserError
from lecture04.config.registry import lookup
from lecture04.lecture.probes.finished import Run
from lecture04.nn.model import LanguageModel
from lecture04.training import checkpoint

HERE = Path(__file__).parent


def activation(name: str, *, beta: float = 1.0) -> Any:
    """The elementwise function of the registered FFN of that name."""
    options = config.Swish(name=name, d_ff=1, bias=False, beta=beta)
    return lookup("ffn", name)(options, config.Model(d_model=1, n_heads=1)).activation


def with_posenc(cfg: config.Root, name: str) -> config.Root:
    """The same config with another position encoding, resolved; a learned table is as long as the documents.

    Options are the config's own where it chose this encoding, else the defaults. Raises ValueError as resolving does.
    """
    options = cfg.posenc if cfg.posenc.name == name else _schema("posenc", name, config.PosEnc)(name=name)
    if isinstance(options, config.Learned):
        options = replace(options, n_positions=None)
    return resolve.settle(replace(cfg, posenc=options))


def with_attention(cfg: config.Root, name: str, n_kv_heads: int | None = None) -> config.Root:
    """The same config with another attention, resolved; gqa has half as many KV heads as heads unless told."""
    asked = cfg.attention
    if name == "gqa" and n_kv_heads is None:
        n_kv_heads = asked.n_kv_heads if asked.name == name else max(1, cfg.model.n_heads // 2)
    attention = _schema("attention", name, config.Attention)(
        name=name,
        n_kv_heads=n_kv_heads,
        bias=asked.bias,
        scale=asked.scale,
        qk_norm=asked.qk_norm,
        causal=asked.causal,
    )
    return resolve.settle(replace(cfg, attention=attention))


def _schema(family: str, name: str, default: Any) -> Any:
    return config.SCHEMAS.get((family, name), default)


def published(file: str) -> dict[str, dict[str, Any]]:
    """The entries of a YAML file in this folder, by the model's name."""
    return yaml.safe_load((HERE / file).read_text(encoding="utf-8"))


def llama_like(cfg: config.Root, shape: dict[str, Any]) -> config.Root:
    """The config of a published Llama-like model: pre-norm RMSNorm, SwiGLU, GQA, RoPE, no biases, a head of its own."""
    d_model = shape["n_heads"] * shape["d_head"]
    model = config.Model(d_model=d_model, n_layers=shape["n_layers"], n_heads=shape["n_heads"], bias=False, tied=False)
    attention = config.Attention(name="gqa", n_kv_heads=shape["n_kv_heads"], bias=False)
    return resolve.settle(
        replace(
            cfg,
            model=model,
            attention=attention,
            ffn=config.FFN(name="swiglu", d_ff=shape["d_ff"], bias=False),
            norm=config.Norm(name="rmsnorm"),
            placement=config.Placement(name="pre"),
            posenc=config.Rope(name="rope"),
            data=replace(cfg.data, vocab_size=shape["vocab_size"]),
        )
    )


def words(cfg: config.Root, batch: int, n_tokens: int) -> Tensor:
    """Random tokens_BT of the config's vocabulary and seed."""
    return torch.randint(cfg.data.vocab_size, (batch, n_tokens), generator=torch.Generator().manual_seed(cfg.seed))


def largest(x: Tensor) -> float:
    """The largest absolute value."""
    return x.detach().abs().max().item()


def trained(run: Run) -> LanguageModel:
    """A finished run's model. Raises UserError where its checkpoint is missing or does not fit today's code."""
    try:
        return checkpoint.load(run.cfg, run.record.folder).eval()
    except (FileNotFoundError, SafetensorError, RuntimeError) as e:
        said = "is missing" if isinstance(e, FileNotFoundError) else "does not fit the model or cannot be read"
        path = run.record.folder / checkpoint.NAME
        raise UserError(f"{path}: {said}; take the run's folder away and train it again: {run.again}") from e
