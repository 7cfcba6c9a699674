"""Scales: the judged value, its inverse, the shown difference, and the floor of an accuracy's noise."""

import math

import numpy as np
import pytest

from lecture04.stats import Identity, Log, Logit, judged_values, noise_pool, percent


def test_perplexities_are_judged_as_nll_and_shown_in_percent():
    scale = Log()
    assert scale.judged(math.e) == pytest.approx(1)
    assert scale.difference(scale.judged(42.0) - scale.judged(40.0)) == pytest.approx(5)
    assert percent(math.log(0.5)) == pytest.approx(-50)
    assert percent(1e4) == math.inf


def test_accuracies_are_judged_as_the_empirical_logit():
    scale = Logit(1000)
    assert scale.judged(0.5) == 0
    assert scale.judged(0.997) == pytest.approx(math.log(997.5 / 3.5))
    assert scale.judged(1.0) == pytest.approx(math.log(1000.5 / 0.5)) == pytest.approx(-scale.judged(0.0))


@pytest.mark.parametrize("scale", [Identity(), Log(), Logit(7)])
@pytest.mark.parametrize("raw", [1 / 7, 0.5, 1.0])
def test_raw_undoes_judged(scale, raw):
    assert scale.raw(scale.judged(raw)) == pytest.approx(raw)


@pytest.mark.parametrize("scale", [Identity(), Log(), Logit(7)])
@pytest.mark.parametrize("raw", [math.nan, math.inf])
def test_a_diverged_value_becomes_nan(scale, raw):
    assert math.isnan(scale.judged(raw))


def test_the_floor_is_one_item_over_sqrt_12_at_the_median_count():
    """Rounding a count uniformly to whole items has this spread on the logit, away from the ends."""
    scale = Logit(1000)
    values = judged_values({"a": {0: 0.3, 1: 0.3}, "b": {0: 0.3, 1: 1.0}}, scale)
    share = np.random.default_rng(0).uniform(299.5, 300.5, 100_000) / 1000
    spread = np.std([scale.judged(p) for p in share])
    assert scale.floor(values) == pytest.approx(spread, rel=0.01)
    for any_scale in (scale, Identity()):
        assert any_scale.floor({}) == any_scale.floor({"a": {0: math.nan}}) == 0


@pytest.mark.parametrize("size", [1e-3, 1.0, 250.0])
def test_the_floor_of_a_measured_figure_is_the_spread_of_rounding_to_steps_of_eight_floats(size):
    raw = np.linspace(0.5 * size, 1.5 * size, 100_001)
    step = 8 * float(np.spacing(np.float32(1.0)))
    rounded = np.random.default_rng(0).uniform(-0.5, 0.5, raw.size) * step
    for scale, values in ((Identity(), raw * (1 + rounded) - raw), (Log(), np.log(raw * (1 + rounded)) - np.log(raw))):
        judged = judged_values({"a": dict(enumerate(raw.tolist()))}, scale)
        assert scale.floor(judged) == pytest.approx(float(np.std(values)), rel=0.05)


def test_three_equal_accuracies_get_the_floor():
    scale = Logit(200)
    values = judged_values({row: {seed: 0.9 for seed in range(3)} for row in "ab"}, scale)
    assert noise_pool(values).s == 0
    assert noise_pool(values, floor=scale.floor(values)).s == scale.floor(values) > 0


def test_rows_of_counts_are_too_close_where_two_items_lie_between_their_means():
    scale = Logit(500)
    two, three = ([scale.judged((450 + n) / 500)] * 3 for n in (2, 3))
    reference = [scale.judged(450 / 500)] * 3
    assert scale.too_close(two, reference)
    assert not scale.too_close(three, reference)
    assert not scale.too_close([math.nan], reference)
    assert not scale.too_close([], reference)


@pytest.mark.parametrize("scale", [Identity(), Log()])
def test_rows_are_too_close_where_two_steps_of_rounding_lie_between_their_means(scale):
    reference = [scale.judged(3.8)] * 3
    near, far = ([scale.judged(3.8 * (1 + steps * 2**-20))] * 3 for steps in (1.9, 2.1))
    assert scale.too_close(near, reference)
    assert not scale.too_close(far, reference)
    assert not scale.too_close([], reference)


@pytest.mark.parametrize(
    ("scale", "rows", "still"),
    [
        (Log(), [[3.8, 3.8], [3.9, 3.9]], True),
        (Log(), [[3.8, 3.8], [3.9, 3.900001]], True),
        (Log(), [[3.8, 3.8], [3.9, 3.901]], False),
        (Log(), [[3.8], [3.9]], False),
        (Log(), [[3.8, math.nan], [3.9, 3.9]], True),
        (Identity(), [[0.2, 0.2], [0.3, 0.3]], True),
        (Identity(), [[0.2, 0.2], [0.3, 0.31]], False),
        (Identity(), [], False),
        (Logit(500), [[0.9, 0.9], [0.8, 0.8]], False),
    ],
)
def test_seeds_that_change_nothing_are_noticed(scale, rows, still):
    values = {str(i): dict(enumerate(row)) for i, row in enumerate(rows)}
    assert scale.is_still(judged_values(values, scale)) is still


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Logit(0), "n_items"),
        (lambda: Logit(9).judged(1.5), r"1\.5"),
        (lambda: Log().judged(0.0), "positive"),
    ],
)
def test_impossible_values_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
