"""Options of position encodings."""

from dataclasses import dataclass
from enum import Enum

from lecture04.config.fields import Options, bounded, opened
from lecture04.config.parts.attention import Attention
from lecture04.config.parts.context import Context


@dataclass(frozen=True, kw_only=True)
class PosEnc(Options):
    """The position encoding, one a model."""

    name: str

    def errors(self, c: Context) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []

    def params(self, c: Context) -> int:
        """Parameters over the whole model."""
        return 0

    def flops(self, c: Context) -> int:
        """Multiplications and additions in pairs, a token and layer, beside those of the attention."""
        return 0

    def longest(self) -> int | None:
        """The most positions that it has; None for no end."""
        return None


@dataclass(frozen=True, kw_only=True)
class Learned(PosEnc):
    """A learned table; `n_positions` is its length, null for the longest row of the data."""

    n_positions: int = opened(lambda own, c: c.n_ctx, at_least=1)

    def errors(self, c: Context) -> list[str]:
        """A table that is shorter than a row."""
        if self.n_positions < c.n_ctx:
            return [
                f"posenc.n_positions={self.n_positions}: the table is too short for the data, "
                f"which have positions up to {c.n_ctx}; set at least that, or null."
            ]
        return []

    def params(self, c: Context) -> int:
        """A vector a position."""
        return self.n_positions * c.model.d_model

    def longest(self) -> int:
        """There is none beyond the table."""
        return self.n_positions


@dataclass(frozen=True, kw_only=True)
class Shaw(PosEnc):
    """Shaw's relative positions; distances beyond `max_distance` share an embedding."""

    max_distance: int = bounded(16, at_least=1)

    def n_distances(self, attention: Attention) -> int:
        """The distances with an embedding of their own: 0 .. max, and -1 .. -max where tokens see what comes after."""
        return self.max_distance * (1 if attention.causal else 2) + 1

    def params(self, c: Context) -> int:
        """Keys' and values' in each layer."""
        return c.model.n_layers * 2 * self.n_distances(c.attention) * c.model.d_head

    def flops(self, c: Context) -> int:
        """Every query meets every distance, every distance's weight its value."""
        return 2 * self.n_distances(c.attention) * c.model.d_model


@dataclass(frozen=True, kw_only=True)
class T5(PosEnc):
    """T5's buckets of distances; all from `max_distance` on share the last."""

    n_buckets: int = bounded(32, at_least=2)
    max_distance: int = bounded(128, at_least=2)

    def errors(self, c: Context) -> list[str]:
        """Buckets for what comes after, and a last bucket that no distance reaches."""
        if not c.attention.causal:
            return ["attention.causal=false: posenc=t5 has buckets for what came before alone."]
        if self.max_distance <= self.n_buckets // 2:
            return [
                f"posenc.max_distance={self.max_distance}: must be above half of posenc.n_buckets="
                f"{self.n_buckets}, the distances that have a bucket of their own."
            ]
        return []

    def params(self, c: Context) -> int:
        """A scalar for each head and bucket."""
        return self.n_buckets * c.model.n_heads


class RopeScaling(Enum):
    """How RoPE's angles are scaled for contexts longer than those trained on: the formulas of nn/rope_scaling.py."""

    none = "none"
    linear = "linear"
    ntk = "ntk"
    dynamic = "dynamic"
    yarn = "yarn"
    llama3 = "llama3"


@dataclass(frozen=True, kw_only=True)
class Scaling(Options):
    """RoPE for a context `factor` times the `n_original` positions trained on (null: the length of a row).

    yarn and llama3 read the betas, in turns over n_original positions: pairs that turn more than `beta_fast` times
    (null: 32 for yarn, 4 for llama3) keep their frequency, those below `beta_slow` times are interpolated.
    YaRN also makes scores larger, by (temperature ln(factor) + 1)^2: those of the rotated dimensions, or with
    `on_scores` all (DeepSeek).
    """

    name: RopeScaling = RopeScaling.none
    factor: float = bounded(1.0, at_least=1)
    n_original: int = opened(lambda own, c: c.n_ctx, at_least=1)
    beta_fast: float = opened(lambda own, c: 4.0 if own.name is RopeScaling.llama3 else 32.0, above=0)
    beta_slow: float = bounded(1.0, above=0)
    temperature: float = bounded(0.1, at_least=0)
    on_scores: bool = False

    def errors(self, base: float, width: int, path: str) -> list[str]:
        """What a scaling of RoPE's frequencies base^(-2i/width) needs; `path` is where it stands in the config."""
        errors = list[str]()
        match self.name:
            case RopeScaling.none if self.factor != 1:
                choices = ", ".join(name for name in RopeScaling.__members__ if name != "none")
                errors.append(
                    f"{path}.factor={self.factor}: {path}.name=none scales nothing; set the name. Choices: {choices}."
                )
            case RopeScaling.ntk | RopeScaling.dynamic if width < 4:
                errors.append(f"{path}.name={self.name.name}: needs at least 4 rotated dimensions, not 2.")
            case RopeScaling.yarn if base <= 1:
                errors.append(f"posenc.base={base}: {path}.name=yarn needs it above 1.")
            case _:
                pass
        if self.beta_slow >= self.beta_fast:
            errors.append(f"{path}.beta_slow={self.beta_slow}: must be below {path}.beta_fast={self.beta_fast}.")
        return errors


@dataclass(frozen=True, kw_only=True)
class Rope(PosEnc):
    """RoPE; `base` sets the slowest rotation, base^(-2i/width) radians a token for pair i.

    `width` is how many dimensions of a head are rotated, null for all that carry positions.
    """

    base: float = bounded(10000.0, above=0)
    width: int = opened(lambda own, c: c.attention.d_rotated(c.model), at_least=2)
    scaling: Scaling

    def errors(self, c: Context) -> list[str]:
        """A width that the heads do not have, or a scaling that does not go with it."""
        d_rotated, d_head = c.attention.d_rotated(c.model), c.model.d_head
        if d_rotated != d_head:  # the attention has dimensions apart for positions
            if d_rotated % 2:
                return [f"attention.d_rope={d_rotated}: posenc={self.name} rotates pairs and needs it even."]
            if self.width != d_rotated:
                return [
                    f"posenc.width={self.width}: attention={c.attention.name} rotates its d_rope={d_rotated} "
                    "dimensions."
                ]
        elif self.width == d_head and d_head % 2:
            return [
                f"model.n_heads={c.model.n_heads}: posenc={self.name} rotates pairs and needs an even d_head, "
                f"but model.d_model / model.n_heads is {d_head}."
            ]
        elif self.width % 2 or self.width > d_head:
            return [f"posenc.width={self.width}: must be an even number of at most d_head={d_head} dimensions."]
        return self.scaling.errors(self.base, self.width, "posenc.scaling")
