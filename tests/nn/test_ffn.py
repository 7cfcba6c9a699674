"""Every feed-forward layer against its formula, one number at a time."""

import math
from collections.abc import Callable

import pytest
import torch

from lecture04 import config
from lecture04.config import registry
from lecture04.nn.ffn import FFNS


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gelu(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


BETA = 1.7
PLAIN: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(0.0, x),
    "relu2": lambda x: max(0.0, x) ** 2,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(BETA * x),
}
GATED: dict[str, Callable[[float], float]] = {
    "glu": sigmoid,
    "bilinear": lambda x: x,
    "reglu": PLAIN["relu"],
    "geglu": gelu,
    "geglu_tanh": gelu_tanh,
    "swiglu": PLAIN["silu"],
}
D, F = 5, 7
MODEL = config.Model(d_model=D, embed_scale=1.0)


def layer(name, bias):
    beta = {"beta": BETA} if name == "swish" else {}
    options = registry.options_of("ffn", name, config.FFN)(name=name, d_ff=F, bias=bias, **beta)
    part = FFNS.lookup(name)(options, MODEL).double()
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64))
    return part


@pytest.mark.parametrize("name", [*PLAIN, *GATED])
def test_the_registry_knows_which_have_a_gate(name):
    assert registry.options_of("ffn", name, config.FFN).n_matrices == (3 if name in GATED else 2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", [*PLAIN, *GATED])
def test_a_layer_is_its_formula(name, bias):
    """down(phi(up(x))), or where it is gated down(phi(gate(x)) up(x)), by loops over the weights."""
    part = layer(name, bias)
    x = torch.randn(3, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def linear(module, row, inputs):
        weights = module.weight[row].tolist()
        return sum(w * a for w, a in zip(weights, inputs, strict=True)) + (module.bias[row].item() if bias else 0.0)

    for i, inputs in enumerate(x.tolist()):
        if name in GATED:
            hidden = [GATED[name](linear(part.gate, f, inputs)) * linear(part.up, f, inputs) for f in range(F)]
        else:
            hidden = [PLAIN[name](linear(part.up, f, inputs)) for f in range(F)]
        assert part(x)[i].tolist() == pytest.approx([linear(part.down, d, hidden) for d in range(D)], abs=1e-12)


def test_swish_is_silu_at_one_and_relu_far_out():
    x = torch.linspace(-4, 4, 9, dtype=torch.float64)

    def swish(beta):
        return FFNS.lookup("swish")(config.Swish(name="swish", d_ff=F, bias=False, beta=beta), MODEL)

    torch.testing.assert_close(swish(1.0).activation(x), torch.nn.functional.silu(x))
    torch.testing.assert_close(swish(0.0).activation(x), x / 2)
    torch.testing.assert_close(swish(1000.0).activation(x), x.relu(), atol=1e-12, rtol=0)
