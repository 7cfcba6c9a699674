"""Norms against torch's own and their formulas."""

import pytest
import torch
from torch import nn

from lecture04 import config
from lecture04.nn.norm import LayerNorm, RMSNorm

WIDTH = 12


def x():
    return 3 * torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(0)) + 1


def ours(part, eps=1e-5):
    g = torch.Generator().manual_seed(1)
    module = part(config.Norm(name="any", eps=eps), WIDTH)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=g)
    return module


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
@pytest.mark.parametrize(("part", "torchs"), [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_equals_torchs_bit_for_bit(part, torchs, eps):
    module, reference = ours(part, eps), torchs(WIDTH, eps=eps)
    reference.load_state_dict(module.state_dict())
    assert torch.equal(module(x()), reference(x()))


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_rmsnorm_is_its_formula(eps):
    module = ours(RMSNorm, eps)
    expected = x() / (x().square().mean(-1, keepdim=True) + eps).sqrt() * module.weight
    torch.testing.assert_close(module(x()), expected)


@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_layernorm_is_its_formula(eps):
    module = ours(LayerNorm, eps)
    centred = x() - x().mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * module.weight + module.bias
    torch.testing.assert_close(module(x()), expected)


@pytest.mark.parametrize("part", [LayerNorm, RMSNorm])
def test_scaling_the_input_changes_nothing(part):
    module = ours(part, eps=1e-12)
    torch.testing.assert_close(module(100 * x()), module(x()))


def test_layernorm_does_not_see_a_shift_and_rmsnorm_does():
    layernorm, rmsnorm = ours(LayerNorm), ours(RMSNorm)
    torch.testing.assert_close(layernorm(x() + 5), layernorm(x()), atol=1e-5, rtol=1e-5)
    assert (rmsnorm(x() + 5) - rmsnorm(x())).abs().max() > 0.1


def test_they_agree_on_centred_inputs():
    layernorm, rmsnorm = LayerNorm(config.Norm(name="any"), WIDTH), RMSNorm(config.Norm(name="any"), WIDTH)
    centred = x() - x().mean(-1, keepdim=True)
    torch.testing.assert_close(layernorm(centred), rmsnorm(centred))


@pytest.mark.parametrize("part", [LayerNorm, RMSNorm])
def test_starts_at_gain_one_and_bias_zero(part):
    module = part(config.Norm(name="any"), WIDTH)
    assert torch.equal(module.weight, torch.ones(WIDTH))
    assert not hasattr(module, "bias") or torch.equal(module.bias, torch.zeros(WIDTH))


@pytest.mark.parametrize("part", [LayerNorm, RMSNorm])
def test_zeros_give_no_nan(part):
    y = ours(part)(torch.zeros(2, WIDTH, requires_grad=True))
    assert torch.isfinite(y).all()
