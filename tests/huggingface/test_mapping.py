"""Layouts are inverses, keep every number, and what has no place is said; without transformers."""

from dataclasses import replace

import pytest
import torch

from lecture04.huggingface import ARCHITECTURES, deepseek, gpt, llama, read_state, write_state
from lecture04.huggingface.mapping import Rotated, Stacked, Transposed, WithoutBias, expanded
from lecture04.nn.init import build

HALVES = Rotated(in_halves=True, heads=lambda cfg: 2, width=lambda cfg: 4, offset=lambda cfg: 1)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LAYOUTS = [
    (llama.Shifted(1.0), (5,)),
    (Transposed(), (5, 7)),
    (Transposed(), (5,)),
    (HALVES, (12, 3)),
    (HALVES, (12,)),
    (Stacked((lambda cfg: 2, lambda cfg: 3), (llama.SAME, llama.SAME)), (5, 4)),
    (Stacked((lambda cfg: 1, lambda cfg: 5), (llama.SAME, replace(HALVES)), heads=lambda cfg: 2), (12, 3)),
    (WithoutBias(), (5,)),
]


@pytest.mark.parametrize("posenc", ["rope", "rope_half"])
@pytest.mark.parametrize(("layout", "shape"), LAYOUTS, ids=lambda x: type(x).__name__)
def test_writing_undoes_reading(small, posenc, layout, shape):
    cfg, theirs = small(f"posenc={posenc}"), random(*shape)
    ours = layout.read(theirs, cfg)
    torch.testing.assert_close(layout.write(ours, cfg), theirs, atol=1e-15, rtol=0)
    again = layout.read(layout.write(ours, cfg), cfg)
    assert all(torch.allclose(a, b, atol=1e-15) for a, b in zip(ours, again, strict=True))


def test_halves_are_read_into_neighbours_of_each_head(small):
    """Row i of the first half becomes row 2i of the pairs, that of the second 2i + 1; what is not turned stays."""
    theirs = torch.arange(12)
    (ours,) = HALVES.read(theirs, small("posenc=rope"))
    assert ours.tolist() == [0, 1, 3, 2, 4, 5, 6, 7, 9, 8, 10, 11]
    assert torch.equal(HALVES.read(theirs, small("posenc=rope_half"))[0], theirs)


def test_parts_of_a_stack_are_taken_within_each_head(small):
    layout = Stacked((lambda cfg: 1, lambda cfg: 2), (llama.SAME, llama.SAME), heads=lambda cfg: 2)
    first, second = layout.read(torch.arange(6), small())
    assert (first.tolist(), second.tolist()) == ([0, 3], [1, 2, 4, 5])


@pytest.mark.parametrize("table", [llama.LLAMA, llama.GEMMA2, gpt.GPT2, gpt.NEOX, gpt.MPT, deepseek.DEEPSEEK])
def test_no_parameter_is_named_twice(table):
    rules = list(expanded(table.rules, 2))
    theirs = [rule.theirs for rule in rules]
    assert len(theirs) == len(set(theirs))
    ours = [name for rule in rules for name in rule.ours]
    assert len(ours) == len(set(ours))


def test_a_gradient_flows_through_reading(small):
    cfg = small("recipe=llama", "model.embed_scale=1")
    written = write_state(llama.LLAMA, build(cfg).state_dict(), cfg)
    leaves = {name: p.clone().requires_grad_() for name, p in written.items()}
    sum(p.sum() for p in read_state(llama.LLAMA, leaves, cfg).values()).backward()
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in leaves.values())


def test_what_has_no_place_is_said(small):
    cfg = small("recipe=llama", "model.embed_scale=1")
    state = build(cfg).state_dict()
    with pytest.raises(ValueError, match=r"no place for blocks\.0\.attention\.strange"):
        write_state(llama.LLAMA, state | {"blocks.0.attention.strange": random(1)}, cfg)
    written = write_state(llama.LLAMA, state, cfg)
    with pytest.raises(ValueError, match=r"no place for model\.layers\.7\.mlp"):
        read_state(llama.LLAMA, written | {"model.layers.7.mlp.up_proj.weight": random(1)}, cfg)
    buffers = {"model.layers.0.self_attn.rotary_emb.inv_freq": random(1)}
    assert read_state(llama.LLAMA, written | buffers, cfg).keys() == state.keys()


def test_a_head_that_is_not_the_embedding_it_is_tied_to_is_said(small):
    cfg = small("recipe=llama", "model.embed_scale=1")
    written = write_state(llama.LLAMA, build(cfg).state_dict(), cfg)
    assert read_state(llama.LLAMA, written | {"lm_head.weight": written["model.embed_tokens.weight"]}, cfg)
    with pytest.raises(ValueError, match=r"lm_head\.weight is not model\.embed_tokens\.weight"):
        read_state(llama.LLAMA, written | {"lm_head.weight": written["model.embed_tokens.weight"] + 1}, cfg)


def test_a_norms_bias_that_is_not_zero_cannot_be_left_out(small):
    with pytest.raises(ValueError, match="the bias is not 0"):
        WithoutBias().write((random(3), random(3)), small())


def test_a_scale_of_tied_embeddings_goes_into_an_embedding_of_its_own(small):
    """Theirs does not scale: the embedding takes the scale up, and the head is written beside it, as it was."""
    cfg = small("recipe=llama")
    state = build(cfg).state_dict()
    written = write_state(llama.LLAMA, state, cfg)
    assert torch.equal(written["model.embed_tokens.weight"], 4 * state["embed.weight"])
    assert torch.equal(written["lm_head.weight"], state["embed.weight"])
    assert ARCHITECTURES["llama"].write_config(cfg)["tie_word_embeddings"] is False
    assert ARCHITECTURES["llama"].write_config(small("recipe=llama", "model.embed_scale=1"))["tie_word_embeddings"]


@pytest.mark.parametrize(
    ("model_type", "overrides", "said"),
    [
        ("llama", ("norm=layernorm",), r"norm\.name=layernorm: llama has none\. Choices: rmsnorm\."),
        ("llama", ("attention.qk_norm=true",), r"attention\.qk_norm=True: llama has none"),
        ("llama", ("attention.scale=1",), r"attention\.scale=1\.0: llama has none"),
        ("llama", ("posenc=alibi",), r"posenc\.name=alibi: llama has none\. Choices: rope, rope_half\."),
        ("mistral", ("attention.bias=true",), r"attention\.bias=True: mistral has none"),
        ("gemma", (), r"ffn\.name=swiglu: gemma has none\. Choices: geglu_tanh\."),
        ("gpt2", ("recipe=gpt2", "posenc=rope"), r"posenc\.name=rope: gpt2 has none"),
        ("deepseek_v3", ("attention=mla",), r"norm\.eps=1e-05: deepseek has none"),
        ("llama", ("posenc.scaling.name=dynamic",), None),
        (
            "llama",
            ("posenc.scaling.name=dynamic", "posenc.scaling.n_original=5"),
            r"n_original=5: theirs is the length of a row, 16",
        ),
        ("llama", ("posenc=rope_half", "posenc.width=2"), r"posenc\.width=2: llama has none\. Choices: 4\."),
        ("llama", ("posenc.scaling.name=yarn", "posenc.scaling.on_scores=true"), None),
        ("llama", ("posenc.scaling.name=yarn", "posenc.scaling.temperature=0.3"), None),
    ],
)
def test_what_they_have_no_setting_for_is_said(small, model_type, overrides, said):
    cfg = small("recipe=llama", *overrides)
    if said is None:
        assert ARCHITECTURES[model_type].write_config(cfg)
    else:
        with pytest.raises(ValueError, match=said):
            ARCHITECTURES[model_type].write_config(cfg)


THEIRS = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 24,
    "vocab_size": 17,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_act": "relu"}, "hidden_act=relu: there is no part for it"),
        ({"sliding_window": 8}, "sliding_window=8"),
        ({"head_dim": 8}, "head_dim=8: here it is hidden_size / num_attention_heads, 4"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type=longrope"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "truncate": False}}, "truncate=False"),
    ],
)
def test_what_we_have_no_part_for_is_said(changes, said):
    with pytest.raises(ValueError, match=said):
        ARCHITECTURES["llama"].read({**THEIRS, **changes})


def test_both_forms_of_rotary_settings_are_read_alike():
    old = {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}}
    new = {"rope_parameters": {"rope_theta": 500.0, "rope_type": "linear", "factor": 2.0}}
    read = [ARCHITECTURES["llama"].read({**THEIRS, **form}).posenc for form in (old, new)]
    assert read[0] == read[1]
    assert (read[0].base, read[0].scaling.factor, read[0].scaling.n_original) == (500.0, 2.0, 64)
