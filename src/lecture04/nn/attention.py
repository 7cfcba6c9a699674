"""Attention: every query meets the keys it may see.

Shapes: B batch, T queries, S keys, H query heads, G key and value heads, D d_model, K d_head.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from lecture04 import config
from lecture04.nn.kv_cache import KVCache
from lecture04.registry import register


@dataclass(frozen=True)
class Sight:
    """What each query of a forward may see; made once, shared by all layers.

    `mask` is added to the scores after their scaling: mask_(B)(H)TS, -inf where a query may not look, with the position
    encoding's bias in it. None stands for plain causal order without a bias, which the fused kernel knows by itself.
    `rotate` is the position encoding's, set to the positions of the new tokens: x_BHTK -> x_BHTK.
    """

    mask: Tensor | None
    rotate: Callable[[Tensor], Tensor]


@register("attention", "mha")
@register("attention", "gqa", grouped=True)
@register("attention", "mqa", n_kv_heads=1)
class Attention(nn.Module):
    """softmax(q k^T / sqrt(K) + mask) v with H query heads over G key and value heads.

    G = H is multi-head attention (Vaswani et al. 2017), G = 1 multi-query (Shazeer 2019), between them grouped-query
    attention (Ainslie et al. 2023): H/G neighbouring query heads share a key and a value head. The cache holds 2 G K
    numbers a token; the work stays that of H heads.
    """

    def __init__(self, options: config.Attention, model: config.Model) -> None:
        super().__init__()
        assert options.n_kv_heads is not None, "settle the config first"
        self.d_head = model.d_head
        d_q, d_kv = model.n_heads * model.d_head, options.n_kv_heads * model.d_head
        self.q = nn.Linear(model.d_model, d_q, bias=options.bias)
        self.k = nn.Linear(model.d_model, d_kv, bias=options.bias)
        self.v = nn.Linear(model.d_model, d_kv, bias=options.bias)
        self.output = nn.Linear(d_q, model.d_model, bias=options.bias)
        self.shares_kv = d_kv < d_q

    def empty_cache(self, batch: int) -> KVCache:
        """A cache without tokens for `batch` sequences."""
        none = self.k.weight.new_empty(batch, self.k.out_features // self.d_head, 0, self.d_head)
        return KVCache(none, none)

    def heads(self, x: Tensor) -> Tensor:
        """x_BT(HK) -> x_BHTK."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def forward(self, x_BTD: Tensor, sight: Sight, cache: KVCache | None = None) -> tuple[Tensor, KVCache | None]:
        """The attended values y_BTD, and the cache with the new tokens in it where one was given."""
        q_BHTK = sight.rotate(self.heads(self.q(x_BTD)))
        k_BGSK = sight.rotate(self.heads(self.k(x_BTD)))
        v_BGSK = self.heads(self.v(x_BTD))
        if cache is not None:
            cache = cache.append(k_BGSK, v_BGSK)
            k_BGSK, v_BGSK = cache.k, cache.v
        y_BHTK = F.scaled_dot_product_attention(
            q_BHTK, k_BGSK, v_BGSK, attn_mask=sight.mask, is_causal=sight.mask is None, enable_gqa=self.shares_kv
        )
        return self.output(y_BHTK.transpose(1, 2).flatten(2)), cache
