"""Exercise 5: the Jacobian of three layers."""

import pytest
import torch

from lecture04.lecture.probes import residual_paths

SMALL = ("model.d_model=16",)
D, T = 16, 3


@pytest.fixture
def found(ask):
    table = ask("residual_paths", *SMALL).set_index(["placement", "sublayers", "quantity"]).value
    return lambda placement, sublayers, quantity: table[placement, sublayers, quantity]


def test_residual_paths_of_pre_norm(found):
    """residual_paths: I plus branches, and I itself where every sublayer is zero."""
    assert found("pre", "zero", "identity_gap") == 0.0
    assert found("pre", "initial", "identity_gap") > 0.01
    assert found("pre", "initial", "branches_gap") < 1e-12
    assert found("pre", "initial", "lost_rank") == 0


def test_residual_paths_of_post_norm(found):
    """residual_paths: a product through every norm, never I: each norm takes the mean's direction and the scale."""
    for sublayers in ("initial", "zero"):
        assert found("post", sublayers, "identity_gap") > 0.01
        assert found("post", sublayers, "product_gap") < 1e-12
        assert found("post", sublayers, "lost_rank") >= T
        assert found("post", sublayers, "smallest_singular") < 1e-9


def test_the_zeroed_post_norm_jacobian_is_that_of_its_norms_alone(resolved):
    """By LayerNorm's own Jacobian, written out: (I - 1/D - z z^T / D) / s, six times."""
    request, _ = resolved("probe=residual_paths", *SMALL)
    model = residual_paths.new_model(request.run, "post", zeroed=True)
    fs = residual_paths.layers(model)
    x_TD = torch.randn(T, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours = residual_paths.jacobian_of(lambda x: residual_paths.through(fs, x), x_TD)
    expected = torch.zeros_like(ours)
    for t in range(T):
        x, product = x_TD[t], torch.eye(D, dtype=torch.float64)
        for _ in range(2 * residual_paths.N_LAYERS):
            s = (x.var(correction=0) + request.run.norm.eps).sqrt()
            z = (x - x.mean()) / s
            step = (torch.eye(D, dtype=torch.float64) - 1 / D - torch.outer(z, z) / D) / s
            product, x = step @ product, z
        expected[t * D : (t + 1) * D, t * D : (t + 1) * D] = product
    torch.testing.assert_close(ours, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("parts", [("norm=rmsnorm", "ffn=swiglu"), ("posenc=shaw", "attention=mqa")])
def test_other_parts_change_nothing_of_it(ask, parts):
    table = ask("residual_paths", *SMALL, *parts).set_index(["placement", "sublayers", "quantity"]).value
    assert table["pre", "zero", "identity_gap"] == 0.0
    assert table["post", "zero", "identity_gap"] > 0.01
