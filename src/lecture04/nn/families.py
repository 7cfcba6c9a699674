"""What the classes of each family are called with and what they offer: one protocol a family."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from lecture04 import config
from lecture04.config.registry import Family

if TYPE_CHECKING:
    from lecture04.nn.attention import Attention
    from lecture04.nn.block import Block
    from lecture04.nn.init import Init
    from lecture04.nn.posenc import PosEnc

NewNorm = Callable[[int], nn.Module]
"""The model's norm for a width."""


class MakeFFN(Protocol):
    """A feed-forward layer, x_BTD -> x_BTD. Zeros are counted in what enters its module `down`, where it has one."""

    def __call__(self, options: Any, model: config.Model) -> nn.Module: ...


class MakeNorm(Protocol):
    """A norm over the last dimension, `width` wide; its parameters are called weight and bias."""

    def __call__(self, options: Any, width: int) -> nn.Module: ...


class MakeAttention(Protocol):
    """An attention (see nn.attention.Attention): forward(x_BTD, context, cache) -> y_BTD and the cache."""

    def __call__(self, options: Any, model: config.Model, posenc: "PosEnc", new_norm: NewNorm) -> "Attention": ...


class MakePosEnc(Protocol):
    """A position encoding (see nn.posenc.PosEnc), one a model."""

    def __call__(self, options: Any, model: config.Model) -> "PosEnc": ...


class MakeBlock(Protocol):
    """A block (see nn.block.Block): the sublayers, and norms of the model's width where its placement has them."""

    def __call__(self, attention: "Attention", ffn: nn.Module, new_norm: Callable[[], nn.Module]) -> "Block": ...


class MakeInit(Protocol):
    """Initial values (see nn.init.Init)."""

    def __call__(self, model: config.Model) -> "Init": ...


FFNS: Family[MakeFFN] = Family("ffn")
NORMS: Family[MakeNorm] = Family("norm")
ATTENTIONS: Family[MakeAttention] = Family("attention")
POSENCS: Family[MakePosEnc] = Family("posenc")
PLACEMENTS: Family[MakeBlock] = Family("placement")
INITS: Family[MakeInit] = Family("init")
