"""Other parts in a run: what was chosen stays, what null stood for follows."""

import pytest

from lecture04.config import UserError
from lecture04.lecture.probes.common import open_attention, open_part, opened, stacked, with_parts

CHOSEN = ("posenc=rope", "posenc.base=500", "attention=gqa", "attention.n_kv_heads=1", "norm.eps=1e-3")


@pytest.fixture
def run(resolved):
    """`run("posenc=rope")`: the run of a probe's command line."""
    return lambda *overrides: resolved("probe=models", *overrides)[0].run


@pytest.mark.parametrize("overrides", [(), CHOSEN, ("posenc=learned", "ffn=swiglu", "placement=sandwich")])
def test_opened_and_resolved_again_is_the_same(run, overrides):
    asked = run(*overrides)
    assert with_parts(asked, {}) == asked
    assert with_parts(asked, {"posenc": open_part(asked, "posenc", asked.posenc.name)}) == asked


def test_what_was_left_open_follows(run):
    learned = with_parts(run("posenc=learned"), {}, n_ctx=200)
    assert (learned.n_ctx, learned.posenc.n_positions) == (200, 200)
    rope = run("posenc=rope")
    latent = with_parts(rope, {"attention": open_attention(rope, "mla")})
    assert (rope.posenc.width, latent.posenc.width, latent.attention.scale) == (16, 8, 24**-0.5)


def test_what_was_chosen_stays(run):
    asked = run(*CHOSEN)
    assert with_parts(asked, {"posenc": open_part(asked, "posenc", "rope")}, n_ctx=99).posenc.base == 500
    assert with_parts(asked, {"attention": open_attention(asked, "gqa")}).attention.n_kv_heads == 1
    assert with_parts(asked, {"attention": open_attention(asked, "mha")}).attention.n_kv_heads == 4
    assert open_part(asked, "posenc", "rope_half").base == 10000
    assert stacked(asked, "post", 3).norm.eps == 1e-3
    assert (stacked(asked, "post", 3).placement.name, stacked(asked, "post", 3).model.n_layers) == ("post", 3)


def test_gqa_has_half_the_heads_unless_told(run):
    asked = run()
    assert with_parts(asked, {"attention": open_attention(asked, "gqa")}).attention.n_kv_heads == 2
    assert with_parts(asked, {"attention": open_attention(asked, "gqa", 4)}).attention.n_kv_heads == 4


def test_what_cannot_be_is_one_sentence(run):
    asked = run("posenc=shaw")
    with pytest.raises(UserError, match=r"^posenc=shaw: cannot be combined with attention=mla\.$"):
        with_parts(asked, {"attention": open_attention(asked, "mla")})


def test_nested_options_are_opened_too(run):
    asked = run("posenc=rope")
    assert opened(asked.posenc, asked).scaling.n_original is None
    assert with_parts(asked, {}, n_ctx=128).posenc.scaling.n_original == 128
