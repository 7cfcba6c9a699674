"""Rotary position embeddings: queries and keys turned by angles that grow with their positions.

Shapes: B batch, T queries, H heads, K d_head. Positions are integers, pos_T or, where each row of the batch has its
own, pos_BT.
"""

import torch
from torch import Tensor

from lecture04 import config
from lecture04.config.registry import register
from lecture04.nn.posenc import PosEnc
from lecture04.nn.rope_scaling import scaled


@register("posenc", "rope", options=config.Rope)
class RoPE(PosEnc):
    """Turns the pair (x_2i, x_2i+1) of queries and keys by p base^(-2i/width) radians (Su et al. 2021).

    A score then depends on the distance of its positions alone. Neighbouring dimensions make a pair ("interleaved");
    where `width` is less than K the rest of a head is not turned (GPT-NeoX). `scaling` changes the frequencies for
    contexts longer than those trained on, and YaRN's makes what is turned longer (see nn/rope_scaling.py); no parameter
    depends on it, so that a trained model can be given another.
    """

    def __init__(self, options: config.Rope, model: config.Model) -> None:
        super().__init__(options, model)
        self.width = options.width
        self.frequencies = scaled(options.scaling, options.base, self.width)
        _, factor = self.frequencies(torch.arange(1))
        self.score_factor = factor**2 if options.scaling.on_scores else 1.0
        self.vector_factor = 1.0 if options.scaling.on_scores else factor

    def rotation(self, pos: Tensor) -> Tensor:
        """cos and sin of every angle, stacked: 2 x (B, 1,) T x width/2."""
        frequencies, _ = self.frequencies(pos)
        angle = (pos[..., None] * frequencies).unsqueeze(-3)
        return torch.stack([angle.cos(), angle.sin()]) * self.vector_factor

    def rotate(self, x_BHTK: Tensor, rotation: Tensor | None) -> Tensor:
        """(a cos - b sin, a sin + b cos) for each pair (a, b)."""
        assert rotation is not None
        cos, sin = rotation.to(x_BHTK.dtype)
        turned, rest = x_BHTK[..., : self.width], x_BHTK[..., self.width :]
        a, b = self.split(turned)
        turned = self.join(a * cos - b * sin, a * sin + b * cos)
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The two halves of every pair."""
        return x[..., 0::2], x[..., 1::2]

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        """The inverse of `split`."""
        return torch.stack([a, b], dim=-1).flatten(-2)


@register("posenc", "rope_half", options=config.Rope)
class HalfRoPE(RoPE):
    """RoPE whose pair i is (x_i, x_i+width/2), the first half with the second (Llama, GPT-NeoX; Su et al. 2021).

    The same functions as the interleaved layout under a permutation of each head's dimensions.
    """

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The two halves of every pair."""
        first, second = x.chunk(2, dim=-1)
        return first, second

    def join(self, a: Tensor, b: Tensor) -> Tensor:
        """The inverse of `split`."""
        return torch.cat([a, b], dim=-1)
