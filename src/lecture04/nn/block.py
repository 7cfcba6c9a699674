"""A block: attention and a feed-forward layer on the residual stream, and where the norms stand.

A placement is a class; the names of the parameters (`attention_norm.weight`, `ffn.up.weight`) are the same in all.
`final_norm` says whether the model ends with one more norm; `norms_per_sublayer` is 1 where nothing is said.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register
from lecture04.nn.attention import Attention, AttentionContext
from lecture04.nn.kv_cache import KVCache


class Block(nn.Module):
    """What every placement has: two sublayers and a norm for each."""

    def __init__(self, attention: Attention, ffn: nn.Module, new_norm: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.attention_norm = new_norm()
        self.attention = attention
        self.ffn_norm = new_norm()
        self.ffn = ffn

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        """The stream x_BTD after this block, and the block's cache."""
        raise NotImplementedError


class MakeBlock(Protocol):
    """A block of these sublayers, with norms of the model's width where its placement has them."""

    def __call__(self, attention: Attention, ffn: nn.Module, new_norm: Callable[[], nn.Module]) -> Block: ...


PLACEMENTS: Family[MakeBlock] = Family("placement")


@register("placement", "pre", options=config.Placement)
class PreNorm(Block):
    """x + f(norm(x)): the residual stream itself is never normalised but at the end (Xiong et al. 2020; GPT-2)."""

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        attended, cache = self.attention(self.attention_norm(x_BTD), context, cache)
        x_BTD = x_BTD + attended
        return x_BTD + self.ffn(self.ffn_norm(x_BTD)), cache


@register("placement", "post", options=config.PostNorm)
class PostNorm(Block):
    """norm(x + f(x)): the stream is normalised after every sublayer (Vaswani et al. 2017); needs warm-up."""

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        attended, cache = self.attention(x_BTD, context, cache)
        x_BTD = self.attention_norm(x_BTD + attended)
        return self.ffn_norm(x_BTD + self.ffn(x_BTD)), cache


@register("placement", "sandwich", options=config.SandwichNorm)
class SandwichNorm(Block):
    """x + norm(f(norm(x))): a norm on both sides of each sublayer (Ding et al. 2021, CogView; Gemma 2)."""

    def __init__(self, attention: Attention, ffn: nn.Module, new_norm: Callable[[], nn.Module]) -> None:
        super().__init__(attention, ffn, new_norm)
        self.attention_output_norm = new_norm()
        self.ffn_output_norm = new_norm()

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        attended, cache = self.attention(self.attention_norm(x_BTD), context, cache)
        x_BTD = x_BTD + self.attention_output_norm(attended)
        return x_BTD + self.ffn_output_norm(self.ffn(self.ffn_norm(x_BTD))), cache
