"""Options of attentions."""

from dataclasses import dataclass
from typing import ClassVar

from omegaconf import II

from lecture04.config.fields import Options, bounded, opened
from lecture04.config.parts.context import Context, Model
from lecture04.config.parts.ffn import linear


def divisors(n: int) -> str:
    """What divides a number, as choices; of a large one the small ones."""
    return f"Choices: {', '.join(str(i) for i in range(1, min(n, 1024) + 1) if n % i == 0)}."


@dataclass(frozen=True, kw_only=True)
class Attention(Options):
    """The attention.

    `output_bias` is the bias of the output projection alone, null as `bias` (Qwen2 has one on q, k and v only).
    `n_kv_heads: null` means what the name says: all heads for mha, one for mqa. `scale` multiplies the scores, null is
    1/sqrt(d_head). `qk_norm` puts the model's norm on every query and key. `causal: false` lets every token see all
    others: for probes, not for training.
    """

    refuses: ClassVar[tuple[str, ...]] = ()
    """Position encodings that it cannot be combined with, by name."""

    name: str
    n_kv_heads: int = opened(lambda own, c: c.model.n_heads, at_least=1)
    bias: bool = II("model.bias")
    output_bias: bool = opened(lambda own, c: own.bias)
    scale: float = opened(lambda own, c: c.model.d_head**-0.5, above=0)
    qk_norm: bool = False
    causal: bool = True

    def errors(self, c: Context) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        if c.model.n_heads % self.n_kv_heads:
            return [
                f"attention.n_kv_heads={self.n_kv_heads}: must divide model.n_heads={c.model.n_heads}. "
                + divisors(c.model.n_heads)
            ]
        return []

    def params(self, c: Context) -> int:
        """Parameters of one layer: q and output of d_model, k and v of n_kv_heads d_head. Norms apart."""
        return self._projections(c, bias=self.bias, output_bias=self.output_bias)

    def _projections(self, c: Context, *, bias: bool, output_bias: bool) -> int:
        d, d_kv = c.model.d_model, self.n_kv_heads * c.model.d_head
        return linear(d, d, bias) + 2 * linear(d, d_kv, bias) + linear(d, d, output_bias)

    def norm_widths(self, c: Context) -> int:
        """The widths of one layer's own norms together: those of queries and keys."""
        return self.qk_norm * 2 * c.model.d_head

    def flops(self, c: Context, n_ctx: int) -> int:
        """Multiplications and additions in pairs, a token and layer, with n_ctx keys.

        A weight is used once a token; GQA shares keys, not work: every query head meets every key.
        """
        return self._projections(c, bias=False, output_bias=False) + 2 * n_ctx * c.model.d_model

    def kv_numbers(self, c: Context) -> int:
        """Numbers that one layer's cache keeps for a token: keys and values."""
        return 2 * self.n_kv_heads * c.model.d_head

    def d_rotated(self, model: Model) -> int:
        """How many dimensions of each query and key carry positions."""
        return model.d_head


@dataclass(frozen=True, kw_only=True)
class MultiHead(Attention):
    """Every query head has a key and a value head of its own."""

    def errors(self, c: Context) -> list[str]:
        """Another number of key and value heads than the name says."""
        if self.n_kv_heads != (own := self.own_kv_heads(c.model)):
            return [f"attention.n_kv_heads={self.n_kv_heads}: {self.name} has {own}; choose attention=gqa to set it."]
        return []

    @staticmethod
    def own_kv_heads(model: Model) -> int:
        """The number that the name says."""
        return model.n_heads


@dataclass(frozen=True, kw_only=True)
class MultiQuery(MultiHead):
    """All query heads share one key and one value head."""

    n_kv_heads: int = opened(lambda own, c: 1, at_least=1)

    @staticmethod
    def own_kv_heads(model: Model) -> int:
        """One."""
        return 1


@dataclass(frozen=True, kw_only=True)
class MLA(MultiHead):
    """Multi-head latent attention: the width of the latent that is cached, and of the part that carries positions."""

    # Shaw's embeddings would have to be added to keys and values that decoding never restores.
    refuses: ClassVar[tuple[str, ...]] = ("shaw",)

    d_latent: int = bounded(24, at_least=1)
    d_rope: int = bounded(8, at_least=2)
    scale: float = opened(lambda own, c: (c.model.d_head + own.d_rope) ** -0.5, above=0)

    def errors(self, c: Context) -> list[str]:
        """Also a norm on queries and keys."""
        if self.qk_norm:
            return ["attention.qk_norm=true: attention=mla normalises its latent instead."]
        return super().errors(c)

    def _projections(self, c: Context, *, bias: bool, output_bias: bool) -> int:
        d, latent, rope = c.model.d_model, self.d_latent, self.d_rope
        down = linear(d, d + c.model.n_heads * rope, bias) + linear(d, latent, bias) + linear(d, rope, bias)
        return down + 2 * linear(latent, d, False) + linear(d, d, output_bias)

    def norm_widths(self, c: Context) -> int:
        """The latent's norm."""
        return self.d_latent

    def flops(self, c: Context, n_ctx: int) -> int:
        """As any attention's, and the scores of the dimensions that carry positions."""
        return super().flops(c, n_ctx) + n_ctx * c.model.n_heads * self.d_rope

    def kv_numbers(self, c: Context) -> int:
        """The latent and the key that carries positions."""
        return self.d_latent + self.d_rope

    def d_rotated(self, model: Model) -> int:
        """Those that are apart for it."""
        return self.d_rope
