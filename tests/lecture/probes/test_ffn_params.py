"""Section 1.2 and exercise 2: each claim by its id, from the formula and from what is built."""

import pytest

from lecture04.lecture.probes import ffn_params


def test_ffn_counts(value):
    """ffn_plain_256, ffn_swiglu_256, ffn_swiglu_171."""
    for claim, expected in (("ffn_plain_256", 33088), ("ffn_swiglu_256", 49728), ("ffn_swiglu_171", 33238)):
        assert [value("ffn_params", claim=claim, by=by) for by in ("formula", "model")] == [expected] * 2


@pytest.mark.parametrize("d_model", [64, 80])
def test_eight_thirds(ask, d_model):
    table = ask("ffn_params", f"model.d_model={d_model}")
    assert table[table.claim == "eight_thirds"].value.tolist() == [8 * (3 * d_model) ** 2] * 5


def test_bilinear_quadratic(value):
    assert value("ffn_params", claim="bilinear_quadratic") == 0.0


def test_llama_d_ff(ask):
    d_ff, over = ask("ffn_params").query("claim == 'llama_d_ff'").value
    assert d_ff == 11008 == 43 * 256
    assert over == pytest.approx(11008 / (8 / 3 * 4096) - 1)
    assert round(100 * over, 1) == 0.8


def test_rounding_goes_up_to_a_multiple():
    assert [ffn_params.rounded_up(size, 256) for size in (512, 512.1, 1)] == [512, 768, 256]


def test_llama2_7b(value):
    assert [value("ffn_params", claim="llama2_7b", by=by) for by in ("formula", "model")] == [6_738_415_616] * 2


def test_llama2_7b_is_the_published_shape():
    c = ffn_params.llama_2_7b()
    assert (c.model.d_model, c.model.n_layers, c.model.n_heads, c.model.tied) == (4096, 32, 32, False)
    assert (c.ffn.d_ff, c.vocab_size, c.norm.name, c.ffn.name) == (11008, 32000, "rmsnorm", "swiglu")
    assert (c.model.bias, c.ffn.bias, c.attention.bias) == (False, False, False)
