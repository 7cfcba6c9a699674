"""Options of feed-forward layers."""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from omegaconf import II

from lecture04.config.fields import Options, bounded, opened
from lecture04.config.parts.context import Context


class Match(Enum):
    """What a matched d_ff is matched to: the plain FFN of 4 d_model, or the whole standard model."""

    ffn = "ffn"
    model = "model"


def linear(d_in: int, d_out: int, bias: bool) -> int:
    """Parameters of a Linear layer."""
    return d_in * d_out + bias * d_out


@dataclass(frozen=True, kw_only=True)
class FFN(Options):
    """The feed-forward layer. `d_ff: null` means matched (`match`: ffn or model)."""

    n_matrices: ClassVar[int] = 2
    asked_only: ClassVar = {"match": (Match, Match.ffn)}

    name: str
    d_ff: int = opened(at_least=1)
    bias: bool = II("model.bias")

    def errors(self, c: Context) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []

    def params(self, c: Context) -> int:
        """Parameters of one layer: up, and gate where there is one, and down."""
        up = linear(c.model.d_model, self.d_ff, self.bias)
        return (self.n_matrices - 1) * up + linear(self.d_ff, c.model.d_model, self.bias)

    def flops(self, c: Context) -> int:
        """Multiplications and additions in pairs, a token and layer: each weight is used once."""
        return self.n_matrices * c.model.d_model * self.d_ff


@dataclass(frozen=True, kw_only=True)
class GatedFFN(FFN):
    """A gated feed-forward layer: three matrices."""

    n_matrices: ClassVar[int] = 3


@dataclass(frozen=True, kw_only=True)
class Swish(FFN):
    """Swish; `beta` is the slope inside the sigmoid."""

    beta: float = bounded(1.0, at_least=0)
