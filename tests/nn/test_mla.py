"""Latent attention against its equations written out head by head, and its two forms against each other."""

import pytest
import torch

from lecture04.config import UserError
from lecture04.config import sizes as counts
from lecture04.nn.init import build


def model_of(small, *overrides, seed=0):
    model = build(small("attention=mla", "attention.d_latent=10", "attention.d_rope=4", f"seed={seed}", *overrides))
    return model.double()


def tokens(n=9, batch=2):
    return torch.randint(3, 15, (batch, n), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("posenc", ["none", "rope"])
def test_a_layer_is_its_equations(small, posenc):
    """o_i = softmax((q_i . W_UK,i c + q^R_i . r) / sqrt(K + R)) W_UV,i c, c = norm(W_DKV x), q^R and r rotated."""
    model = model_of(small, f"posenc={posenc}")
    part, T = model.blocks[0].attention, 6
    x = torch.randn(1, T, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    pos = torch.arange(T)
    context = model.attention_context(pos, pos)
    y, _ = part(x, context)
    c = part.kv_norm(part.kv_down(x))[0]
    r = context.rotate(part.k_rope(x)[None])[0, 0]
    outputs = []
    for i in range(4):
        q = part.q(x)[0].unflatten(-1, (4, 8))[:, i]
        q_r = context.rotate(q[None, None, :, 4:])[0, 0]
        k, v = c @ part.k_up.weight[4 * i : 4 * i + 4].T, c @ part.v_up.weight[4 * i : 4 * i + 4].T
        scores = (q[:, :4] @ k.T + q_r @ r.T) / 8**0.5
        hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        outputs.append(scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v)
    torch.testing.assert_close(y[0], part.output(torch.cat(outputs, dim=-1)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("posenc", ["none", "sinusoidal", "learned", "rope", "rope_half", "alibi", "t5"])
@pytest.mark.parametrize("chunk", [1, 3, 9])
def test_absorbed_decoding_is_the_restored_form(small, posenc, chunk):
    model = model_of(small, f"posenc={posenc}")
    cache, pieces = model.empty_cache(2), []
    for start in range(0, 9, chunk):
        logits, cache = model.decode(tokens()[:, start : start + chunk], cache)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens()), atol=1e-12, rtol=0)


def test_the_cache_holds_the_latent_and_the_rotated_key_alone(small):
    cfg = small("attention=mla", "attention.d_latent=10", "attention.d_rope=4", "posenc=rope")
    model = build(cfg)
    _, cache = model.decode(tokens(5, batch=3), model.empty_cache(3))
    numbers = sum(layer.k.numel() + layer.v.numel() for layer in cache)
    assert numbers == 3 * 5 * 2 * (10 + 4) == 3 * 5 * counts.kv_per_token(cfg)


def test_absorbing_over_a_rotated_restored_key_is_wrong(small):
    """Why the positions need a part of their own: R_t stands between q and W_UK and cannot be moved into q."""
    model = model_of(small, "posenc=rope")
    part, pos = model.blocks[0].attention, torch.arange(6)
    x = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    rotate = model.attention_context(pos, pos).rotate
    c = part.kv_norm(part.kv_down(x))[0]
    q, up = part.q(x)[0, :, :4], part.k_up.weight[:4]
    right = rotate(q[None, None])[0, 0] @ rotate((c @ up.T)[None, None])[0, 0].T
    absorbed = (rotate(q[None, None])[0, 0] @ up) @ c.T
    assert (right - absorbed).abs().max() > 0.1
    assert (q @ (c @ up.T).T - (q @ up) @ c.T).abs().max() < 1e-12, "without a rotation it is right"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("posenc=shaw", "posenc=shaw: cannot be combined with attention=mla"),
        ("attention.qk_norm=true", "attention.qk_norm=true"),
        ("attention.n_kv_heads=2", "attention.n_kv_heads=2: mla has 4"),
    ],
)
def test_what_it_cannot_be_combined_with_is_said(small, override, said):
    with pytest.raises(UserError, match=said):
        small("attention=mla", override)


def test_an_odd_rotated_width_is_said(small):
    with pytest.raises(UserError, match=r"attention\.d_rope=5"):
        small("attention=mla", "posenc=rope", "attention.d_rope=5")
    with pytest.raises(UserError, match=r"posenc\.width=2"):
        small("attention=mla", "posenc=rope", "posenc.width=2")
