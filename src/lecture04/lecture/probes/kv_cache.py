"""What the KV cache costs: published models by formula, and our own by the bytes of its tensors.

Numbers a token and layer: 2 n_kv_heads d_head for attention, d_latent + d_rope for latent attention (MLA).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lecture04 import config
from lecture04.config import sizes
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, llama_like, open_attention, open_part, published, with_parts, words
from lecture04.lecture.probes.options import BYTES, KVCache
from lecture04.lecture.probes.text import counted, labelled, number, times
from lecture04.nn.attention import ATTENTIONS
from lecture04.nn.init import build
from lecture04.nn.model import Cache, LanguageModel
from lecture04.nn.posenc import POSENCS

# claim, part, model, attention, posenc, n_kv_heads, quantity, value
Row = tuple[str, str, str, str, str, int | None, str, float]
COLUMNS = ["claim", "part", "model", "attention", "posenc", "n_kv_heads", "quantity", "value"]
KIB, GIB = 2**10, 2**30
# The parts and quantities of the table, as they are shown.
ACCOUNT, MEASURED, GROUPS = "published", "own", "groups"
TITLES = {
    ACCOUNT: "Published models",
    MEASURED: "Our own cache: logits against those of the whole sequence, bytes against the formula",
    GROUPS: "Groups and heads: gqa against the attention that is the same",
}
LABELS = {
    "numbers": "numbers per token, layer",
    "share_of_mha": "share of MHA",
    "kib_per_token": "KiB per token",
    "cache_gib": "GiB of cache",
    "weights_gib": "GiB of weights",
    "cached_gap": "gap of logits",
    "bytes_measured": "bytes measured",
    "bytes_formula": "bytes by formula",
    "output_gap": "gap to other",
    "bytes_gqa": "bytes of gqa",
    "bytes_other": "bytes of other",
    "cache_share": "share of MHA",
    "attention_flops": "FLOPs per token",
}


def attention_numbers(shape: Mapping[str, Any], n_kv_heads: int) -> int:
    """Numbers that one layer's attention caches for a token, by the attention's own formula."""
    one_layer = {"n_layers": 1, "n_kv_heads": n_kv_heads, "d_ff": 1, "vocab_size": 1}
    return sizes.kv_per_token(llama_like({**shape, **one_layer}))


def accounted(wanted: KVCache) -> Iterator[Row]:
    """Every published model as it is and, where it has fewer KV heads or a latent, as if it were MHA."""
    width = BYTES[wanted.dtype]
    for name, shape in published("shapes.yaml").items():
        as_mha, own = (attention_numbers(shape, shape[heads]) for heads in ("n_heads", "n_kv_heads"))
        kind = "mha" if own == as_mha else "gqa"
        if "d_latent" in shape:
            kind, own = "mla", shape["d_latent"] + shape["d_rope"]
        for name_of, numbers in {kind: own, "mha": as_mha}.items():
            a_token = numbers * shape["n_layers"] * width
            figures = {
                "numbers": numbers,
                "share_of_mha": numbers / as_mha,
                "kib_per_token": a_token / KIB,
                "cache_gib": a_token * wanted.n_ctx * wanted.batch / GIB,
                "weights_gib": n_params(shape) * width / GIB,
            }
            for quantity, value in figures.items():
                yield "kv_formula", ACCOUNT, name, name_of, "", None, quantity, value


def n_params(shape: Mapping[str, Any]) -> int:
    """A published model's parameters: as stated, or counted from its shape."""
    return shape.get("params") or sizes.params(llama_like(shape))


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


def measured(run: config.Run, wanted: KVCache) -> Iterator[Row]:
    """Every attention with every position encoding: logits against the whole sequence, bytes against the formula."""
    tokens_BT, n_ctx = words(run, 1, wanted.n_tokens), max(run.n_ctx, wanted.n_tokens)
    for name in ATTENTIONS.names():
        for posenc in POSENCS.names():
            parts = {"attention": open_attention(run, name), "posenc": open_part(run, "posenc", posenc)}
            try:
                other = with_parts(run, parts, n_ctx=n_ctx)
            except config.UserError:  # a pair that cannot be
                continue
            model = build(other)
            with torch.no_grad():
                logits, cache = decoded(model, tokens_BT)
                gap = largest(logits - model(tokens_BT))
            formula = sizes.kv_per_token(other) * wanted.n_tokens * model.embed.weight.element_size()
            figures = {"cached_gap": gap, "bytes_measured": n_bytes(cache), "bytes_formula": formula}
            for quantity, value in figures.items():
                yield "cached_equals_full", MEASURED, "", name, posenc, None, quantity, value


def groups(run: config.Run, wanted: KVCache) -> Iterator[Row]:
    """GQA at both ends: with a KV head for each head it is MHA, with one it is MQA; the work is the same for all."""
    tokens_BT, h = words(run, 1, wanted.n_tokens), run.model.n_heads

    def of(name: str, n_kv_heads: int | None = None) -> config.Run:
        parts = {"attention": open_attention(run, name, n_kv_heads)}
        return with_parts(run, parts, n_ctx=max(run.n_ctx, wanted.n_tokens))

    for n_kv_heads, same in ((h, "mha"), (1, "mqa")):
        grouped, other = of("gqa", n_kv_heads), of(same)
        with torch.no_grad():
            ours, cache = decoded(build(grouped), tokens_BT)
            theirs, full = decoded(build(other), tokens_BT)
            mha_cache = decoded(build(of("mha")), tokens_BT)[1]
        figures = {
            "output_gap": largest(ours - theirs),
            "bytes_gqa": n_bytes(cache),
            "bytes_other": n_bytes(full),
            "cache_share": n_bytes(cache) / n_bytes(mha_cache),
            "attention_flops": attention_flops(grouped, wanted.n_tokens),
        }
        for quantity, value in figures.items():
            yield "groups_are_heads", GROUPS, "", same, "", n_kv_heads, quantity, value


def attention_flops(run: config.Run, n_ctx: int) -> int:
    """Scores and weighted values of one token, all layers: what grows with the context."""
    return sizes.flops_per_token(run, n_ctx) - sizes.flops_per_token(run, 0)


@register("probe", "kv_cache")
def kv_cache(request: config.Request, options: KVCache) -> pd.DataFrame:
    """What the KV cache costs: of published models at any length, and of ours, measured while decoding.

    Columns: claim, part, model, attention, posenc, n_kv_heads, quantity (see LABELS), value. Part "published" counts
    probe.n_ctx tokens in probe.batch sequences at probe.dtype, each model with its own attention and as if it had MHA.
    In part "own" probe.n_tokens tokens are decoded through our own model, at initial values in float32. Part "groups"
    holds gqa with n_kv_heads against the attention that is the same.
    """
    rows = [*accounted(options), *measured(request.run, options), *groups(request.run, options)]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n_kv_heads": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table a part, a row a case."""
    frames = {}
    for part, title in TITLES.items():
        lines = table.loc[table.part == part]
        if part == ACCOUNT:
            title = f"{title}, with a cache of {n_cached(lines):,} tokens"
        lines = labelled(lines, LABELS).assign(case=cases(lines))
        wide = lines.pivot(index="case", columns="quantity", values="value")
        frames[title] = wide.loc[lines.case.unique(), lines.quantity.unique()].reset_index()
    return frames


def n_cached(lines: pd.DataFrame) -> int:
    """How many tokens the caches of the published models hold."""
    bytes_of = lines[lines.quantity == "cache_gib"].value.iloc[0] * GIB
    return round(bytes_of / (lines[lines.quantity == "kib_per_token"].value.iloc[0] * KIB))


def sentence(table: pd.DataFrame) -> str:
    """The published model that saves most, and how true our own cache is."""
    lines = table.loc[table.part == ACCOUNT]
    wide = lines.pivot(index=["model", "attention"], columns="quantity", values="value")
    (model, attention), best = wide.share_of_mha.idxmin(), wide.loc[wide.share_of_mha.idxmin()]
    mha = wide.loc[(model, "mha")]
    own = table[table.part == MEASURED].pivot(index=["attention", "posenc"], columns="quantity", values="value")
    n_wrong = int((own.bytes_measured != own.bytes_formula).sum())
    agree = "in all" if not n_wrong else f"not in {n_wrong} of"
    return (
        f"{model} saves most: its {attention.upper()} keeps {best.numbers:,.0f} numbers a token and layer where MHA "
        f"would keep {mha.numbers:,.0f}, {times(1 / best.share_of_mha)} as many, so that {n_cached(lines):,} tokens "
        f"take {number(best.cache_gib)} GiB and not {number(mha.cache_gib)}. With our own cache the logits differ by "
        f"at most {number(own.cached_gap.max())} from those of the whole sequence, and the cache has the bytes of the "
        f"formula {agree} {counted(len(own), 'case')}."
    )


def cases(lines: pd.DataFrame) -> list[str]:
    """What each row of a part is about, as it is shown. A model's own attention stands before "as if MHA"."""
    own, n_heads, found = dict[str, str](), lines.n_kv_heads.max(), list[str]()
    for row in lines.to_dict("records"):
        attention = row["attention"]
        if row["part"] == ACCOUNT:
            is_own = own.setdefault(row["model"], attention) == attention
            found.append(f"{row['model']}, {attention.upper() if is_own else 'as if MHA'}")
        elif row["part"] == MEASURED:
            found.append(f"{attention}, {row['posenc']}")
        else:
            found.append(f"gqa, {row['n_kv_heads']} of {n_heads} KV heads, and {attention}")
    return found
