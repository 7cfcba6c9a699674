"""Section 1.1 and exercise 1: each claim by its id."""

import math

import pytest
import torch

from lecture04.lecture.probes import activations

CURVES = list(activations.CURVES)


def test_relu_dead_side(ask):
    table = ask("activations")
    grid = table[table.quantity.isin(["value", "derivative"])]
    assert len(grid) == 2 * 7 * 11
    assert set(grid.x) == {-5, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 5}
    below = grid[grid.x < 0]
    assert (below[below.function == "relu"].value == 0.0).all()
    for name in ("gelu", "gelu_tanh", "silu"):
        assert (below[below.function == name].value != 0.0).all()


def test_the_grids_derivatives_are_the_slopes_of_the_values():
    x, h = activations.points(-5, 5, 100), 1e-6  # 100 points: none of them at ReLU's corner
    for f in activations.CURVES.values():
        slope = (f(x + h) - f(x - h)) / (2 * h)
        torch.testing.assert_close(activations.derivative(f, x), slope, atol=1e-7, rtol=0)


def test_gelu_and_silu_are_their_formulas(value):
    def phi(x):
        return (1 + math.erf(x / math.sqrt(2))) / 2

    for x in (-3.0, -0.5, 2.0):
        assert value("activations", quantity="value", function="gelu", x=x) == pytest.approx(x * phi(x), abs=1e-12)
        silu = x / (1 + math.exp(-x))
        assert value("activations", quantity="value", function="silu", x=x) == pytest.approx(silu, abs=1e-12)
        assert value("activations", quantity="value", function="swish 1", x=x) == pytest.approx(silu, abs=1e-12)


def lowest(ask, name):
    table = ask("activations")
    ((x, y),) = table[(table.quantity == "minimum") & (table.function == name)][["x", "value"]].to_numpy()
    return x, y


def test_gelu_minimum(ask):
    assert lowest(ask, "gelu") == pytest.approx((-0.752, -0.170), abs=1e-3)


def test_silu_minimum(ask):
    x, y = lowest(ask, "silu")
    assert (x, y) == pytest.approx((-1.278, -0.278), abs=1e-3)
    sigmoid = 1 / (1 + math.exp(-x))
    assert 1 + x * (1 - sigmoid) == pytest.approx(0, abs=1e-9)


def test_a_minimum_is_the_lowest_point(ask):
    for name in activations.BRACKETS:
        x, y = lowest(ask, name)
        around = activations.points(2 * x, 0, 10_001)
        assert activations.CURVES[name](around).min().item() >= y, name


def test_gelu_tanh_gap(value):
    gap = value("activations", quantity="gap_to_gelu")
    assert gap == pytest.approx(4.73e-4, abs=0.02e-4)


def test_swish_limits(ask, value):
    assert value("activations", quantity="value", function="swish 0.1", x=-5.0) == pytest.approx(-1.888, abs=5e-4)
    table = ask("activations")
    half = table[table.quantity == "gap_to_half_x"].value.tolist()
    relu = table[table.quantity == "gap_to_relu"].value.tolist()
    for gaps in (half, relu):  # each is of a beta ten times nearer to its limit than the one before
        assert all(later < earlier / 8 for earlier, later in zip(gaps, gaps[1:], strict=False))
    assert half[-1] < 0.01
    assert relu[-1] < 0.001


def test_silu_derivative(value):
    assert value("activations", quantity="gap_to_autograd") < 1e-12


def test_the_plot_has_both_panels_with_every_curve(ask):
    figure = activations.plot(ask("activations"))
    drawn = [name for name in CURVES if name != "swish 1"]  # silu's own
    for axes in figure.axes:
        assert [line.get_label().split(",")[0] for line in axes.lines] == drawn
        assert axes.get_ylabel()
        # Told apart in grey.
        assert len({(line._unscaled_dash_pattern, line.get_linewidth()) for line in axes.lines}) == len(drawn)
    assert figure.axes[-1].get_xlabel()


def test_what_is_not_drawn_is_another_curve(ask):
    table = ask("activations")
    silu, swish = (table[table.function == name].dropna() for name in ("silu", "swish 1"))
    silu = silu[silu.quantity.isin(["value", "derivative"])]
    assert swish.value.tolist() == pytest.approx(silu.value.tolist(), abs=1e-15)
