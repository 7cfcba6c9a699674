"""Attention: every query meets the keys it may see.

Shapes: B batch, T queries, S keys, H query heads, G key and value heads, D d_model, K d_head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch.nn.functional as F
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register
from lecture04.nn.kv_cache import KVCache
from lecture04.nn.posenc import PosEnc, ShawLayer


@dataclass(frozen=True)
class AttentionContext:
    """What each query of a forward may see; made once, shared by all layers.

    pos_q, pos_k  the positions of queries and keys, (B)T and (B)S
    mask          added to the scores after their scaling: (B)(H)TS, -inf where a query may not look, with the position
                  encoding's bias in it; None where nothing is hidden but what `is_causal` hides
    is_causal     plain causal order, which the fused kernel knows by itself; never together with a mask
    rotate        the position encoding's, set to the positions of the new tokens: x_BHTK -> x_BHTK
    """

    pos_q: Tensor
    pos_k: Tensor
    mask: Tensor | None
    is_causal: bool
    rotate: Callable[[Tensor], Tensor]


@register(
    "attention",
    "mha",
    options=config.MultiHead,
    about="Every query head has a key and a value head of its own (Vaswani et al. 2017).",
)
@register(
    "attention",
    "gqa",
    options=config.Attention,
    about="Groups of query heads share n_kv_heads (Ainslie et al. 2023; Llama).",
)
@register(
    "attention",
    "mqa",
    options=config.MultiQuery,
    about="All query heads share one key and one value head (Shazeer 2019).",
)
class Attention(nn.Module):
    """softmax(scale q k^T + mask) v with H query heads over G key and value heads; scale is 1/sqrt(K) unless set.

    G = H is multi-head attention (Vaswani et al. 2017), G = 1 multi-query (Shazeer 2019), between them grouped-query
    attention (Ainslie et al. 2023): H/G neighbouring query heads share a key and a value head. The cache holds 2 G K
    numbers a token; the work stays that of H heads. With `qk_norm` every query and key is normalised over K, before it
    is rotated (Henry et al. 2020).
    """

    def __init__(
        self,
        options: config.Attention,
        model: config.Model,
        posenc: PosEnc,
        new_norm: Callable[[int], nn.Module],
    ) -> None:
        super().__init__()
        self.d_head = model.d_head
        self.scale = options.scale * posenc.score_factor
        d_q, d_kv = model.n_heads * model.d_head, options.n_kv_heads * model.d_head
        self.q = nn.Linear(model.d_model, d_q, bias=options.bias)
        self.k = nn.Linear(model.d_model, d_kv, bias=options.bias)
        self.v = nn.Linear(model.d_model, d_kv, bias=options.bias)
        self.output = nn.Linear(d_q, model.d_model, bias=options.output_bias)
        self.q_norm = new_norm(model.d_head) if options.qk_norm else nn.Identity()
        self.k_norm = new_norm(model.d_head) if options.qk_norm else nn.Identity()
        self.relative = posenc.relative(options, model.d_head)
        self.is_fused = not posenc.needs_scores

    def empty_cache(self, batch: int) -> KVCache:
        """A cache without tokens for `batch` sequences."""
        none = self.k.weight.new_empty(batch, self.k.out_features // self.d_head, 0, self.d_head)
        return KVCache(none, none)

    def heads(self, x: Tensor) -> Tensor:
        """x_BT(HK) -> x_BHTK."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        """The attended values y_BTD, and the cache with the new tokens in it where one was given."""
        q_BHTK = context.rotate(self.q_norm(self.heads(self.q(x_BTD))))
        k_BGSK = context.rotate(self.k_norm(self.heads(self.k(x_BTD))))
        v_BGSK = self.heads(self.v(x_BTD))
        if cache is not None:
            cache = cache.append(k_BGSK, v_BGSK)
            k_BGSK, v_BGSK = cache.k, cache.v
        attend = partial(fused if self.is_fused else explicit, scale=self.scale, relative=self.relative)
        y_BHTK = attend(q_BHTK, k_BGSK, v_BGSK, context)
        return self.output(y_BHTK.transpose(1, 2).flatten(2)), cache


class MakeAttention(Protocol):
    """An attention: forward(x_BTD, context, cache) -> y_BTD, cache. `new_norm` makes the model's norm for a width."""

    def __call__(
        self, options: Any, model: config.Model, posenc: PosEnc, new_norm: Callable[[int], nn.Module]
    ) -> Attention: ...


ATTENTIONS: Family[MakeAttention] = Family("attention")


def fused(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    context: AttentionContext,
    *,
    scale: float,
    relative: ShawLayer | None,
) -> Tensor:
    """softmax(scale q k^T + mask) v by torch's fused kernel, y_BHTV. Values may be of another width than keys."""
    return F.scaled_dot_product_attention(
        q_BHTK,
        k_BGSK,
        v_BGSV,
        attn_mask=context.mask,
        is_causal=context.is_causal,
        scale=scale,
        enable_gqa=bool(k_BGSK.shape[1] < q_BHTK.shape[1]),  # a tensor while it is traced
    )


def explicit(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    context: AttentionContext,
    *,
    scale: float,
    relative: ShawLayer | None,
) -> Tensor:
    """The same written out, where positions are learned in the scores or enter the values."""
    assert context.mask is not None
    group = q_BHTK.shape[1] // k_BGSK.shape[1]
    k_BHSK, v_BHSV = (t.repeat_interleave(group, dim=1) for t in (k_BGSK, v_BGSV))
    scores_BHTS = q_BHTK @ k_BHSK.mT
    if relative is None:
        return (scale * scores_BHTS + context.mask).softmax(-1) @ v_BHSV
    index = relative.index(context.pos_q, context.pos_k)
    weights_BHTS = (scale * (scores_BHTS + relative.score(q_BHTK, index)) + context.mask).softmax(-1)
    return weights_BHTS @ v_BHSV + relative.value(weights_BHTS, index)
