"""Position encodings against their formulas and what the formulas promise."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture04 import config
from lecture04.nn.init import build
from lecture04.nn.posenc import NoPE, Sinusoidal
from lecture04.nn.rope import RoPE

UNSCALED = config.Scaling(n_original=64, beta_fast=32.0)


def model(d_model, n_heads=1):
    return config.Model(d_model=d_model, n_heads=n_heads, embed_scale=1.0)


def rope(width=16, base=10000.0):
    return RoPE(config.Rope(name="rope", base=base, width=width, scaling=UNSCALED), model(width))


def turned(module, x_TK, pos):
    """x_TK with row t turned to position pos[t]."""
    return module.rotate(x_TK[None, None], module.rotation(torch.tensor(pos)))[0, 0]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("d", [8, 7, 64])
def test_sinusoidal_adds_its_formula(d):
    module = Sinusoidal(config.PosEnc(name="sinusoidal"), model(d))
    x, positions = random(2, 4, d), [0, 1, 17, 500]
    added = module.embed(x, torch.tensor(positions)) - x
    for t, p in enumerate(positions):
        for j in range(d):
            angle = p / 10000 ** (2 * (j // 2) / d)
            expected = math.sin(angle) if j % 2 == 0 else math.cos(angle)
            assert added[0, t, j].item() == pytest.approx(expected, abs=1e-6)
    torch.testing.assert_close(added[0], added[1], atol=1e-6, rtol=0)


def test_sinusoidal_takes_positions_of_each_row():
    module = Sinusoidal(config.PosEnc(name="sinusoidal"), model(8))
    x, pos = torch.zeros(2, 3, 8), torch.tensor([[0, 1, 2], [5, 0, 1]])
    together = module.embed(x, pos)
    for row in range(2):
        assert torch.equal(together[row], module.embed(x[row : row + 1], pos[row])[0])


def test_a_shift_of_position_is_a_linear_map_of_the_sinusoids():
    """PE(p + k) is a linear function of PE(p) that depends on k alone: what the 2017 paper chose it for."""
    d = 8
    module = Sinusoidal(config.PosEnc(name="sinusoidal"), model(d))
    table = module.embed(torch.zeros(1, 40, d), torch.arange(40))[0].double()
    for k in (1, 9):
        step = torch.linalg.lstsq(table[:-k], table[k:]).solution
        torch.testing.assert_close(table[:-k] @ step, table[k:], atol=1e-5, rtol=0)


def test_the_lectures_score_at_four_pairs_two_apart():
    torch.manual_seed(0)
    q, k = torch.randn(16), torch.randn(16)
    for m, n in ((3, 1), (10, 8), (100, 98), (1000, 998)):
        score = turned(rope(), q[None], [m]) @ turned(rope(), k[None], [n]).T
        assert score.item() == pytest.approx(-1.8956, abs=1e-4)


@given(m=st.integers(0, 2000), n=st.integers(0, 2000), shift=st.integers(0, 2000), seed=st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_a_rope_score_depends_on_the_distance_alone(m, n, shift, seed):
    q, k = random(2, 1, 16, seed=seed).double()
    here = turned(rope(), q, [m]) @ turned(rope(), k, [n]).T
    there = turned(rope(), q, [m + shift]) @ turned(rope(), k, [n + shift]).T
    torch.testing.assert_close(here, there, atol=1e-4, rtol=0)


@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_rope_turns_neighbouring_pairs_by_its_formula(base):
    x, positions = random(3, 8), [0, 5, 321]
    y = turned(rope(8, base), x, positions)
    for t, p in enumerate(positions):
        for i in range(4):
            angle = p * base ** (-2 * i / 8)
            a, b = x[t, 2 * i].item(), x[t, 2 * i + 1].item()
            assert y[t, 2 * i].item() == pytest.approx(a * math.cos(angle) - b * math.sin(angle), abs=1e-5)
            assert y[t, 2 * i + 1].item() == pytest.approx(a * math.sin(angle) + b * math.cos(angle), abs=1e-5)


def test_rope_preserves_the_norm_of_every_pair():
    x = random(5, 16)
    y = turned(rope(), x, [0, 1, 10, 100, 1000])
    torch.testing.assert_close(y.unflatten(-1, (-1, 2)).norm(dim=-1), x.unflatten(-1, (-1, 2)).norm(dim=-1))


def test_rope_leaves_position_zero_as_it_is():
    x = random(1, 16)
    assert torch.equal(turned(rope(), x, [0]), x)


def test_rope_takes_positions_of_each_row():
    module, x = rope(8), random(2, 3, 4, 8)
    pos = torch.tensor([[0, 1, 2, 3], [2, 0, 1, 9]])
    together = module.rotate(x, module.rotation(pos))
    for row in range(2):
        assert torch.equal(together[row : row + 1], module.rotate(x[row : row + 1], module.rotation(pos[row])))


@pytest.mark.parametrize("module", [NoPE, Sinusoidal, RoPE])
def test_an_encoding_does_nothing_at_the_places_of_the_others(module):
    rotated = config.Rope(name="rope", width=4, scaling=UNSCALED)
    options = rotated if module is RoPE else config.PosEnc(name="any")
    part, pos = module(options, model(8, n_heads=2)), torch.arange(3)
    x = random(1, 3, 8)
    if module is not Sinusoidal:
        assert torch.equal(part.embed(x, pos), x)
    if module is not RoPE:
        heads = random(1, 2, 3, 4)
        assert part.rotation(pos) is None
        assert torch.equal(part.rotate(heads, None), heads)
    assert part.bias(pos, pos) is None
    assert not list(part.parameters())
    assert not part.state_dict(), "what follows from the config is not for the checkpoint"


def test_without_positions_attention_is_blind_to_the_order_of_what_it_sees(small):
    """One layer, so that the causal mask tells nothing apart: the last token's logits do not see the others' order."""
    tokens = torch.tensor([[3, 4, 5, 6, 7]])
    permuted = tokens[:, [2, 0, 3, 1, 4]]
    with torch.no_grad():
        for posenc in ("none", "sinusoidal", "rope"):
            built = build(small(f"posenc={posenc}", "model.n_layers=1"))
            difference = (built(tokens)[:, -1] - built(permuted)[:, -1]).abs().max()
            assert (difference < 1e-6) == (posenc == "none")


def test_a_models_logits_with_rope_do_not_move_with_the_documents_place(small):
    built = build(small("posenc=rope"))
    tokens = torch.tensor([[3, 4, 5, 6, 7]])
    document = torch.zeros_like(tokens)
    with torch.no_grad():
        here, there = (built(tokens, torch.arange(5)[None] + start, document) for start in (0, 40))
    torch.testing.assert_close(here, there, atol=1e-5, rtol=0)
