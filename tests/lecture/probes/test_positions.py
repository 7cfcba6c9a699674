"""Section 4 and exercises 4 and 9: each claim by its id."""

import math

import pytest

from lecture04.lecture.probes import t5_buckets
from lecture04.lecture.probes.rope import DISTANCES, PAIRS
from lecture04.nn.posenc import POSENCS


def test_t5_buckets(ask):
    bucket = ask("t5_buckets").set_index("distance").bucket
    assert [bucket[d] for d in range(16)] == list(range(16))
    assert [bucket[d] for d in (20, 32, 64, 100, 128, 256)] == [17, 21, 26, 30, 31, 31]
    assert bucket.is_monotonic_increasing


def test_t5_buckets_as_ranges_hold_every_distance_once(ask):
    (ranges,) = t5_buckets.shown(ask("t5_buckets")).values()
    assert ranges["from"].tolist()[1:] == [last + 1 for last in ranges["to"].tolist()[:-1]]
    assert ranges["to"].iloc[-1] == "and beyond"


def test_t5_buckets_follow_the_config_where_it_chose_t5(ask):
    assert ask("t5_buckets", "posenc=t5", "posenc.n_buckets=16").bucket.max() == 15


def at_pairs(value, quantity):
    return [value("rope", quantity=quantity, q_pos=m, k_pos=n) for m, n in PAIRS]


def test_rope_relative(value):
    assert PAIRS == ((3, 1), (10, 8), (100, 98), (1000, 998))
    assert at_pairs(value, "rope_score") == pytest.approx([-1.8956] * 4, abs=1e-4)


def test_additive_absolute(value):
    assert at_pairs(value, "added_score") == pytest.approx([9.26, 10.76, 13.38, 8.26], abs=0.01)


def test_rope_length(ask):
    lengths = ask("rope").query("claim == 'rope_length'").value.tolist()
    assert len(lengths) == 5
    assert lengths == pytest.approx([3.6594] * 5, abs=1e-4)


def test_rope_rotations(value):
    assert value("rope", quantity="identity_gap") < 1e-12
    assert value("rope", quantity="output_change", variant="qk") < 1e-12
    assert value("rope", quantity="output_change", variant="qkv") > 0.1
    assert value("rope", quantity="n_params") == 0
    assert value("rope", quantity="wave_gap") == 0.0


def test_rope_decay(value):
    scores = [value("rope", claim="rope_decay", q_pos=d) for d in DISTANCES]
    assert scores == pytest.approx([64, 61.8, 56.6, 47.0, 42.1, 37.8, 31.3, 35.7, 22.9, 12.8, 17.9], abs=0.05)
    formula = [sum(2 * math.cos(d * 10000 ** (-2 * i / 64)) for i in range(32)) for d in DISTANCES]
    assert scores == pytest.approx(formula, abs=1e-3)


def test_rope_layouts(value):
    assert value("rope", claim="rope_layouts", variant="permuted") < 1e-5
    assert value("rope", claim="rope_layouts", variant="plain") > 0.1


def test_rope_takes_the_configs_base(value):
    wider = value("rope", "posenc=rope", "posenc.base=1e6", claim="rope_decay", q_pos=100)
    assert wider > value("rope", claim="rope_decay", q_pos=100)


DISTANCES_COUNT = {"t5", "alibi", "shaw", "rope", "rope_half", "none"}
PLACES_COUNT = {"sinusoidal", "learned"}


def test_shift_invariance(value):
    """A new encoding must be put in one of the two sets."""
    assert set(POSENCS.names()) == DISTANCES_COUNT | PLACES_COUNT
    for posenc in POSENCS.names():
        for what in ("scores", "logits"):
            change = value("position_shift", posenc=posenc, quantity=f"{what}_change")
            size = value("position_shift", posenc=posenc, quantity=f"{what}_largest")
            if posenc in DISTANCES_COUNT:
                assert change < 1e-12 * size, posenc
            else:
                assert change > 1e-3 * size, posenc


def test_a_shift_beyond_the_documents_lengthens_the_learned_table(value):
    change = value("position_shift", "probe.shift=100", posenc="learned", quantity="scores_change")
    assert change > 0


def test_an_encoding_that_the_model_cannot_have_has_no_row(ask):
    found = set(ask("position_shift", "model.n_heads=64", "probe.n_tokens=4").posenc)
    assert "alibi" in found
    assert not found & {"rope", "rope_half"}


def test_order_blind(ask):
    table = ask("order_blind").set_index(["posenc", "causal"]).value
    assert table["none", False] < 1e-12
    assert (table.drop(("none", False)) > 1e-3).all(), "a position encoding, or the causal mask, tells the order"
    missing = {p for p in POSENCS.names() if (p, False) not in table.index}
    assert missing == {"t5"}
