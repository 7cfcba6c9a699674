"""Section 3.3's absorption: each claim by its id."""

import pytest
import torch

from lecture04.lecture.probes import mla
from lecture04.lecture.probes.mla import LARGEST, OUTPUTS, SCORES

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


@pytest.mark.parametrize("claim", ["mla_absorb", "mla_decoupled"])
def test_absorbed_is_restored(value, claim):
    for dtype, tolerance in TOLERANCE.items():
        for quantity in (SCORES, OUTPUTS):
            assert 0 < value("mla", claim=claim, dtype=dtype, quantity=quantity) < tolerance


def test_mla_rope_clash(value):
    """As large as the scores themselves; and no matter of rounding."""
    for dtype in TOLERANCE:
        wrong = value("mla", claim="mla_rope_clash", dtype=dtype, quantity=SCORES)
        size = value("mla", claim="mla_rope_clash", dtype=dtype, quantity=LARGEST)
        assert wrong > max(1, size / 2)


@pytest.mark.parametrize(
    "override", ["posenc=rope_half", "model.bias=false", "model.n_heads=2", "attention.d_latent=40"]
)
def test_other_sizes_and_layouts(value, override):
    asked = ("attention=mla", "posenc=rope", override) if "posenc" not in override else ("attention=mla", override)
    for claim in ("mla_absorb", "mla_decoupled"):
        assert value("mla", *asked, claim=claim, dtype="float64", quantity=SCORES) < 1e-12
    assert value("mla", *asked, claim="mla_rope_clash", dtype="float64", quantity=SCORES) > 1


@pytest.fixture
def layer(resolved):
    """The layer, in float64."""
    run = mla.parts(resolved("probe=mla")[0].run)
    with torch.no_grad():
        yield run, mla.layer(run, torch.float64)


def test_inputs_have_unit_variance(layer):
    run, at = layer
    assert run.model.d_head == 16
    for x in (at.q_BHTK, at.q_BHTR, at.c_B1SL, at.r_B1SR, at.k_BHSK):
        assert 0.7 < x.std().item() < 1.3


def test_the_clash_is_the_rotation_alone(layer, monkeypatch):
    """Where nothing is turned the same computation is exact, so the difference is RoPE's."""
    run, at = layer
    monkeypatch.setattr(mla.RoPE, "rotate", lambda self, x, rotation: x)
    assert mla.clash(run, at)[0] < 1e-12


def test_the_decoupled_part_carries_positions(layer):
    """It would be no way out if the shared key had no position in it: its scores move with the tokens' order."""
    _, at = layer
    assert at.r_B1SR.shape[1] == 1
    unturned = at.part.k_rope.weight.new_ones(1, 1, 24, at.part.d_rope)
    assert not torch.allclose(at.context.rotate(unturned)[..., 0, :], at.context.rotate(unturned)[..., 5, :])


def test_an_absorbed_output_matrix_is_the_product(layer):
    _, at = layer
    K = at.part.d_head
    for head in range(4):
        expected = at.part.output.weight[:, head * K : (head + 1) * K] @ at.part.v_up.weight[head * K : (head + 1) * K]
        torch.testing.assert_close(at.output_HDL[head], expected, atol=1e-12, rtol=0)


def test_a_wrong_absorption_is_seen(layer):
    """With another head's matrix the difference is as large as the scores: the small one is no matter of course."""
    _, at = layer
    rolled = (at.q_BHTK @ at.up_HKL.roll(1, 0)) @ at.c_B1SL.mT
    assert (rolled - at.q_BHTK @ at.k_BHSK.mT).abs().max() > 1


def test_shown_has_every_figure(ask):
    table = ask("mla")
    (frame,) = mla.shown(table).values()
    assert list(frame.columns) == ["positions", "dtype", *mla.LABELS.values()]
    assert frame.positions.tolist() == [text for text in mla.POSITIONS.values() for _ in range(2)]
    assert frame[list(mla.LABELS.values())].count().sum() == len(table)
