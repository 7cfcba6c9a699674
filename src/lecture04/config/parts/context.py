"""What a part's formulas and errors may ask of the model around it."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from lecture04.config.fields import Options, bounded, opened


@dataclass(frozen=True, kw_only=True)
class Model(Options):
    """The sizes that all parts share.

    `bias` is that of the Linear layers. `embed_scale` multiplies the embeddings where they enter, null is
    sqrt(d_model). `budget` is for `ffn.match=model`.
    """

    asked_only: ClassVar = {"budget": (int | None, bounded(None, at_least=1))}

    d_model: int = bounded(64, at_least=1)
    n_layers: int = bounded(2, at_least=1)
    n_heads: int = bounded(4, at_least=1)
    bias: bool = True
    tied: bool = True
    embed_scale: float = opened(lambda own, c: math.sqrt(own.d_model), above=0)

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads


class Context(Protocol):
    """A resolved model, as its parts see it; `config.Architecture` is one."""

    @property
    def model(self) -> Model:
        """The sizes that all parts share."""
        ...

    @property
    def attention(self) -> Any:
        """The attention's options."""
        ...

    @property
    def n_ctx(self) -> int:
        """The most positions of a row."""
        ...
