"""Feed-forward layers: one class a variant, registered beside its code.

Shapes: B batch, T tokens, D d_model, F d_ff.
"""

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import Family, register


class PlainFFN(nn.Module):
    """down(activation(up(x))): W_2 phi(W_1 x + b_1) + b_2 (Vaswani et al. 2017, section 3.3).

    A variant gives `activation`. x_BTD -> x_BTD; the hidden layer is F wide.
    """

    def __init__(self, options: config.FFN, model: config.Model) -> None:
        super().__init__()
        self.up = nn.Linear(model.d_model, options.d_ff, bias=options.bias)
        self.down = nn.Linear(options.d_ff, model.d_model, bias=options.bias)

    def activation(self, x: Tensor) -> Tensor:
        """The elementwise nonlinearity phi."""
        raise NotImplementedError

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """What enters the down-projection, h_BTF."""
        return self.activation(self.up(x_BTD))

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down(self.hidden(x_BTD))


class GatedFFN(PlainFFN):
    """down(activation(gate(x)) * up(x)): W_2 (phi(W_1 x) * W_3 x), a gated linear unit (Shazeer 2020).

    Three matrices; at two thirds of the plain d_ff it has the plain FFN's number of parameters.
    """

    def __init__(self, options: config.FFN, model: config.Model) -> None:
        super().__init__(options, model)
        self.gate = nn.Linear(self.up.in_features, self.up.out_features, bias=options.bias)

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """What enters the down-projection, h_BTF."""
        return self.activation(self.gate(x_BTD)) * self.up(x_BTD)


class MakeFFN(Protocol):
    """A feed-forward layer, x_BTD -> x_BTD. Zeros are counted in what enters its module `down`, where it has one."""

    def __call__(self, options: Any, model: config.Model) -> nn.Module: ...


FFNS: Family[MakeFFN] = Family("ffn")


@register("ffn", "relu", options=config.FFN)
class ReLU(PlainFFN):
    """max(0, x), the activation of the 2017 Transformer (Vaswani et al. 2017)."""

    def activation(self, x: Tensor) -> Tensor:
        """max(0, x)."""
        return torch.relu(x)


@register("ffn", "relu2", options=config.FFN)
class ReLU2(PlainFFN):
    """max(0, x)^2, squared ReLU (So et al. 2021, Primer)."""

    def activation(self, x: Tensor) -> Tensor:
        """max(0, x)^2."""
        return torch.relu(x).square()


@register("ffn", "gelu", options=config.FFN)
class GELU(PlainFFN):
    """x Phi(x), Phi the standard normal's distribution function (Hendrycks & Gimpel 2016)."""

    def activation(self, x: Tensor) -> Tensor:
        """x Phi(x), exact."""
        return F.gelu(x)


@register("ffn", "gelu_tanh", options=config.FFN)
class GELUTanh(PlainFFN):
    """GELU by its tanh approximation, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (BERT, GPT-2)."""

    def activation(self, x: Tensor) -> Tensor:
        """The tanh approximation of x Phi(x)."""
        return F.gelu(x, approximate="tanh")


@register("ffn", "silu", options=config.FFN)
class SiLU(PlainFFN):
    """x sigmoid(x), Swish at beta = 1 (Elfwing et al. 2017; Ramachandran et al. 2017)."""

    def activation(self, x: Tensor) -> Tensor:
        """x sigmoid(x)."""
        return F.silu(x)


@register("ffn", "swish", options=config.Swish)
class Swish(PlainFFN):
    """x sigmoid(beta x): x/2 at beta = 0, ReLU as beta grows (Ramachandran et al. 2017). beta is fixed, not learned."""

    def __init__(self, options: config.Swish, model: config.Model) -> None:
        super().__init__(options, model)
        self.beta = options.beta

    def activation(self, x: Tensor) -> Tensor:
        """x sigmoid(beta x)."""
        return x * torch.sigmoid(self.beta * x)


@register("ffn", "glu", options=config.GatedFFN)
class GLU(GatedFFN):
    """sigmoid(gate(x)) * up(x), the gated linear unit (Dauphin et al. 2017; as an FFN Shazeer 2020)."""

    def activation(self, x: Tensor) -> Tensor:
        """sigmoid(x)."""
        return torch.sigmoid(x)


@register("ffn", "bilinear", options=config.GatedFFN)
class Bilinear(GatedFFN):
    """gate(x) * up(x), a GLU without a nonlinearity (Mnih & Hinton 2007; Shazeer 2020)."""

    def activation(self, x: Tensor) -> Tensor:
        """x itself."""
        return x


@register("ffn", "reglu", options=config.GatedFFN)
class ReGLU(GatedFFN):
    """max(0, gate(x)) * up(x) (Shazeer 2020)."""

    def activation(self, x: Tensor) -> Tensor:
        """max(0, x)."""
        return torch.relu(x)


@register("ffn", "geglu", options=config.GatedFFN)
class GEGLU(GatedFFN):
    """GELU(gate(x)) * up(x) (Shazeer 2020)."""

    def activation(self, x: Tensor) -> Tensor:
        """x Phi(x), exact."""
        return F.gelu(x)


@register("ffn", "geglu_tanh", options=config.GatedFFN)
class GEGLUTanh(GatedFFN):
    """GELU(gate(x)) * up(x) with GELU's tanh approximation (Shazeer 2020; T5 1.1 and Gemma as released)."""

    def activation(self, x: Tensor) -> Tensor:
        """The tanh approximation of x Phi(x)."""
        return F.gelu(x, approximate="tanh")


@register("ffn", "swiglu", options=config.GatedFFN)
class SwiGLU(GatedFFN):
    """SiLU(gate(x)) * up(x), with SiLU(x) = x sigmoid(x) (Shazeer 2020; Llama)."""

    def activation(self, x: Tensor) -> Tensor:
        """x sigmoid(x)."""
        return F.silu(x)
