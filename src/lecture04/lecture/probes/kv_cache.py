"""What the KV cache costs: published models by formula, and our own by the bytes of its tensors.

Numbers a token and layer: 2 n_kv_heads d_head for attention, d_latent + d_rope for latent attention (MLA).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lecture04 import config
from lecture04.config import sizes as counts
from lecture04.config.registry import names, register
from lecture04.lecture.probes import options
from lecture04.lecture.probes.common import largest, llama_like, published, with_attention, with_posenc, words
from lecture04.nn.init import build
from lecture04.nn.model import Cache, LanguageModel

Row = tuple[str, str, str, str, float]
KIB, GIB = 2**10, 2**30
ACCOUNT, MEASURED, GROUPS = "published models", "our own cache", "groups and heads"


def attention_numbers(cfg: config.Root, n_heads: int, n_kv_heads: int, d_head: int) -> int:
    """Numbers that one layer's attention caches for a token, by the formula of counts.py."""
    model = config.Model(d_model=n_heads * d_head, n_heads=n_heads, n_layers=1)
    return counts.kv_per_token(replace(cfg, model=model, attention=config.Attention("gqa", n_kv_heads, bias=False)))


def accounted(cfg: config.Root, wanted: options.KVCache) -> Iterator[Row]:
    """Every published model as it is and, where it has fewer KV heads or a latent, as if it were MHA."""
    width = options.BYTES[wanted.dtype]
    for name, shape in published("shapes.yaml").items():
        n_heads, d_head = shape["n_heads"], shape["d_head"]
        as_mha = attention_numbers(cfg, n_heads, n_heads, d_head)
        own = attention_numbers(cfg, n_heads, shape["n_kv_heads"], d_head)
        kind = "MHA" if own == as_mha else "GQA"
        if "d_latent" in shape:
            kind, own = "MLA", shape["d_latent"] + shape["d_rope"]
        for label, numbers in {kind: own, "MHA": as_mha}.items():
            a_token = numbers * shape["n_layers"] * width
            case = f"{name}, {label if label == kind else 'as if MHA'}"
            yield "kv_formula", ACCOUNT, case, "numbers per token and layer", numbers
            yield "kv_formula", ACCOUNT, case, "share of MHA", numbers / as_mha
            yield "kv_formula", ACCOUNT, case, "KiB per token", a_token / KIB
            yield "kv_formula", ACCOUNT, case, "GiB of cache", a_token * wanted.n_ctx * wanted.batch / GIB
            yield "kv_formula", ACCOUNT, case, "GiB of weights", n_params(cfg, shape) * width / GIB


def n_params(cfg: config.Root, shape: dict[str, Any]) -> int:
    """A published model's parameters: as stated, or counted from its shape."""
    return shape.get("params") or counts.params(llama_like(cfg, shape))


def decoded(model: LanguageModel, tokens_BT: Tensor) -> tuple[Tensor, Cache]:
    """logits_BTV of the tokens decoded one by one, and the cache at the end."""
    cache, logits = model.empty_cache(len(tokens_BT)), []
    for token_B1 in tokens_BT.split(1, dim=1):
        new, cache = model.decode(token_B1, cache)
        logits.append(new)
    return torch.cat(logits, dim=1), cache


def n_bytes(cache: Cache) -> int:
    """Bytes that the cache's tensors hold."""
    return sum(layer.n_bytes for layer in cache)


def measured(cfg: config.Root, wanted: options.KVCache) -> Iterator[Row]:
    """Every attention with every position encoding: logits against the whole sequence, bytes against the formula."""
    tokens_BT = words(cfg, 1, wanted.n_tokens)
    longer = replace(cfg, data=replace(cfg.data, max_len=max(cfg.data.max_len, wanted.n_tokens)))
    for attention in names("attention"):
        for posenc in names("posenc"):
            try:
                parts = with_posenc(with_attention(longer, attention), posenc)
            except ValueError:  # a pair that cannot be
                continue
            model, case = build(parts), f"{attention}, {posenc}"
            with torch.no_grad():
                logits, cache = decoded(model, tokens_BT)
                gap = largest(logits - model(tokens_BT))
            formula = counts.kv_per_token(parts) * wanted.n_tokens * model.embed.weight.element_size()
            yield "cached_equals_full", MEASURED, case, "max |cached - whole|", gap
            yield "cached_equals_full", MEASURED, case, "bytes measured", n_bytes(cache)
            yield "cached_equals_full", MEASURED, case, "bytes by formula", formula


def groups(cfg: config.Root, wanted: options.KVCache) -> Iterator[Row]:
    """GQA at both ends: with a KV head for each head it is MHA, with one it is MQA; the work is the same for all."""
    tokens_BT, h = words(cfg, 1, wanted.n_tokens), cfg.model.n_heads
    cfg = replace(cfg, data=replace(cfg.data, max_len=max(cfg.data.max_len, wanted.n_tokens)))
    for n_kv_heads, same in ((h, "mha"), (1, "mqa")):
        grouped, other = with_attention(cfg, "gqa", n_kv_heads), with_attention(cfg, same)
        case = f"gqa with {n_kv_heads} of {h} KV heads, and {same}"
        with torch.no_grad():
            ours, cache = decoded(build(grouped), tokens_BT)
            theirs, full = decoded(build(other), tokens_BT)
            mha_cache = decoded(build(with_attention(cfg, "mha")), tokens_BT)[1]
        yield "groups_are_heads", GROUPS, case, "max |gqa - other|", largest(ours - theirs)
        yield "groups_are_heads", GROUPS, case, "bytes of gqa", n_bytes(cache)
        yield "groups_are_heads", GROUPS, case, "bytes of the other", n_bytes(full)
        yield "groups_are_heads", GROUPS, case, "share of MHA's cache", n_bytes(cache) / n_bytes(mha_cache)
        yield "groups_are_heads", GROUPS, case, "attention FLOPs per token", attention_flops(grouped, wanted.n_tokens)


def attention_flops(cfg: config.Root, n_ctx: int) -> int:
    """Scores and weighted values of one token, all layers: what grows with the context, counted by counts.py."""
    return counts.flops_per_token(cfg, n_ctx) - counts.flops_per_token(cfg, 0)


@register("probe", "kv_cache")
def kv_cache(cfg: options.ProbeRoot) -> pd.DataFrame:
    """What the KV cache costs: of published models at any length, and of ours, measured while decoding.

    Columns: claim, part, case, quantity, value. The account counts probe.n_ctx tokens in probe.batch sequences at
    probe.dtype; probe.n_tokens tokens are decoded through our own model, at initial values in float32.
    """
    wanted = cfg.probe
    assert isinstance(wanted, options.KVCache)
    rows = [*accounted(cfg, wanted), *measured(cfg, wanted), *groups(cfg, wanted)]
    return pd.DataFrame(rows, columns=["claim", "part", "case", "quantity", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table a part, a row a case."""
    frames = {}
    for part in table.part.unique():
        lines = table[table.part == part]
        wide = lines.pivot(index="case", columns="quantity", values="value")
        frames[part.capitalize()] = wide.loc[lines.case.unique(), lines.quantity.unique()].reset_index()
    return frames
