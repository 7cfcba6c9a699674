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
    assert Identity().floor(values) == Log().floor(values) == 0
    assert scale.floor({}) == scale.floor({"a": {0: math.nan}}) == 0


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
    assert not Log().too_close(reference, reference)


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
