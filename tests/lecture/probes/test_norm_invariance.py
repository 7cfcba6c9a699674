"""Section 2.4: each claim by its id."""

import pytest

NORMS = ("layernorm", "rmsnorm")


@pytest.mark.parametrize("norm", NORMS)
def test_norm_scale(value, norm):
    assert 0 < value("norm_invariance", claim="norm_scale", norm=norm) < 1e-4


@pytest.mark.parametrize("norm", NORMS)
def test_a_larger_eps_shows_where_the_rest_comes_from(value, norm):
    asked = {"claim": "norm_scale", "norm": norm}
    ratio = value("norm_invariance", "norm.eps=1e-3", **asked) / value("norm_invariance", **asked)
    assert ratio == pytest.approx(100, rel=0.05)


def test_norm_shift(value):
    assert value("norm_invariance", claim="norm_shift", norm="layernorm") < 1e-4
    assert value("norm_invariance", claim="norm_shift", norm="rmsnorm") == pytest.approx(2.71, abs=0.005)


def test_rms_reference(ask):
    gaps = ask("norm_invariance").query("claim == 'rms_reference'").value.tolist()
    assert gaps == [0.0, 0.0]


def test_rms_centred(value):
    assert value("norm_invariance", claim="rms_centred") < 1e-4


def test_rms_params(value):
    at_one_place = {n: value("norm_invariance", quantity="params", norm=n) for n in NORMS}
    assert at_one_place == {"layernorm": 128, "rmsnorm": 64}
    whole = {n: value("norm_invariance", quantity="model_params", norm=n) for n in NORMS}
    assert whole["layernorm"] - whole["rmsnorm"] == 64 * 5  # two in each of two blocks, and the last
    assert value("norm_invariance", quantity="initial_weight", norm="layernorm") == 1
    assert value("norm_invariance", quantity="initial_bias", norm="layernorm") == 0
