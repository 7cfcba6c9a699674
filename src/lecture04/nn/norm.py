"""Normalisations over the last dimension. `n_vectors` is how many parameter vectors of that width each one has."""

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register


class MakeNorm(Protocol):
    """A norm over the last dimension, `width` wide; its parameters are called weight and bias."""

    def __call__(self, options: Any, width: int) -> nn.Module: ...


NORMS: Family[MakeNorm] = Family("norm")


@register("norm", "layernorm", options=config.CentredNorm)
class LayerNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias (Ba et al. 2016). Starts at gain 1 and bias 0."""

    def __init__(self, options: config.Norm, width: int) -> None:
        super().__init__()
        self.eps = options.eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


@register("norm", "rmsnorm", options=config.Norm)
class RMSNorm(nn.Module):
    """x * rsqrt(mean(x^2) + eps) * weight: scales, does not centre (Zhang & Sennrich 2019). Starts at gain 1."""

    def __init__(self, options: config.Norm, width: int) -> None:
        super().__init__()
        self.eps = options.eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
