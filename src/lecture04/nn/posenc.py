"""Position encodings: one a model, owner of what its layers share.

A model calls four hooks and knows no encoding by name; an encoding overrides those it needs:

    embed      adds to the embeddings (sinusoidal, learned)
    rotation   what `rotate` needs, computed once a forward (RoPE)
    rotate     turns queries and NEW keys, before the keys enter the cache (RoPE)
    bias       added to the scores after their scaling (T5, ALiBi)

Shapes: B batch, T queries, S keys, H heads, D d_model, K d_head. Positions are integers, pos_T or, where each row of
the batch has its own, pos_BT.
"""

import torch
from torch import Tensor, nn

from lecture04 import config
from lecture04.registry import register


def frequencies(width: int, base: float) -> Tensor:
    """base^(-2i/width) radians a token, for i = 0 .. width/2 - 1 (Vaswani et al. 2017, section 3.5)."""
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


class PosEnc(nn.Module):
    """No hook does anything here; see the module's docstring."""

    def __init__(self, options: config.PosEnc, model: config.Model) -> None:
        super().__init__()

    def embed(self, x_BTD: Tensor, pos: Tensor) -> Tensor:
        """The embeddings with their positions added."""
        return x_BTD

    def rotation(self, pos: Tensor) -> Tensor | None:
        """What `rotate` needs for these positions; None where nothing is rotated."""
        return None

    def rotate(self, x_BHTK: Tensor, rotation: Tensor | None) -> Tensor:
        """Queries or keys turned to their positions."""
        return x_BHTK

    def bias(self, pos_q: Tensor, pos_k: Tensor) -> Tensor | None:
        """What is added to the scores, bias_HTS or bias_BHTS; None for nothing."""
        return None


@register("posenc", "none")
class NoPE(PosEnc):
    """No position encoding: the causal mask alone tells the order (Kazemnejad et al. 2023)."""


@register("posenc", "sinusoidal")
class Sinusoidal(PosEnc):
    """Adds sin(p f_i) to even and cos(p f_i) to odd dimensions, f_i = 10000^(-2i/D) (Vaswani et al. 2017)."""

    frequency: Tensor

    def __init__(self, options: config.PosEnc, model: config.Model) -> None:
        super().__init__(options, model)
        self.width = model.d_model
        self.register_buffer("frequency", frequencies(model.d_model, 10000.0), persistent=False)

    def embed(self, x_BTD: Tensor, pos: Tensor) -> Tensor:
        """x + [sin, cos, sin, cos, ...]; an odd width drops the last cosine."""
        angle = pos[..., None] * self.frequency
        wave = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., : self.width]
        return x_BTD + wave.to(x_BTD.dtype)


@register("posenc", "rope", rotates=True)
class RoPE(PosEnc):
    """Turns the pair (x_2i, x_2i+1) of queries and keys by p base^(-2i/K) radians (Su et al. 2021).

    Neighbouring dimensions make a pair ("interleaved"). A score then depends on the distance of its positions alone.
    """

    frequency: Tensor

    def __init__(self, options: config.Rope, model: config.Model) -> None:
        super().__init__(options, model)
        self.register_buffer("frequency", frequencies(model.d_head, options.base), persistent=False)

    def rotation(self, pos: Tensor) -> Tensor:
        """cos and sin of every angle, stacked: 2 x (B, 1,) T x K/2."""
        angle = (pos[..., None] * self.frequency).unsqueeze(-3)
        return torch.stack([angle.cos(), angle.sin()]).float()

    def rotate(self, x_BHTK: Tensor, rotation: Tensor | None) -> Tensor:
        """(x_2i cos - x_2i+1 sin, x_2i sin + x_2i+1 cos) for each pair."""
        assert rotation is not None
        cos, sin = rotation.to(x_BHTK.dtype)
        even, odd = x_BHTK[..., 0::2], x_BHTK[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
