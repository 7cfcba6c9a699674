"""Sections 3.1 to 3.3 and exercise 3: each claim by its id."""

import itertools

import pytest

from lecture04.config import sizes
from lecture04.config.registry import options_of
from lecture04.config.schema import PARTS
from lecture04.lecture.probes import kv_cache
from lecture04.lecture.probes.common import llama_like, published
from lecture04.lecture.probes.options import DType, KVCache
from lecture04.nn.attention import ATTENTIONS
from lecture04.nn.posenc import POSENCS

PAIRS = [
    (attention, posenc)
    for attention, posenc in itertools.product(ATTENTIONS.names(), POSENCS.names())
    if posenc not in options_of("attention", attention, PARTS["attention"]).refuses
]


def found(model, attention, quantity, **asked):
    """One figure by its quantity: of a published model and an attention, at the options asked for."""
    rows = kv_cache.accounted(KVCache(name="kv_cache", **asked))
    (figure,) = [row[-1] for row in rows if (row[2], row[3], row[6]) == (model, attention, quantity)]
    return figure


@pytest.fixture
def own(value):
    """One figure of our own cache, by attention and position encoding."""

    def own(attention, posenc, quantity, *overrides):
        return value("kv_cache", *overrides, part="own", attention=attention, posenc=posenc, quantity=quantity)

    return own


@pytest.fixture
def group(value):
    """One figure of gqa against the attention that is the same."""
    return lambda same, quantity: value("kv_cache", part="groups", attention=same, quantity=quantity)


def test_kv_formula():
    """Every model that the claim names, at 32K tokens in bf16."""
    expected = {  # numbers per token and layer, KiB per token, GiB at 32K
        ("Llama 2 7B", "mha"): (2 * 32 * 128, 512, 16),
        ("Llama 2 70B", "gqa"): (2 * 8 * 128, 320, 10),
        ("Llama 2 70B", "mha"): (2 * 64 * 128, 2560, 80),
        ("Llama 3 8B", "gqa"): (2 * 8 * 128, 128, 4),
        ("Llama 3 70B", "gqa"): (2 * 8 * 128, 320, 10),
        ("Mistral 7B", "gqa"): (2 * 8 * 128, 128, 4),
        ("DeepSeek-V2", "mla"): (512 + 64, 576 * 60 * 2 / 1024, 576 * 60 * 2 * 32768 / 2**30),
        ("DeepSeek-V2", "mha"): (2 * 128 * 128, 3840, 120),
    }
    quantities = ("numbers", "kib_per_token", "cache_gib")
    for case, figures in expected.items():
        assert tuple(found(*case, quantity) for quantity in quantities) == figures


def test_kv_formula_at_other_lengths_batches_and_types():
    one = found("Llama 2 7B", "mha", "cache_gib")
    assert found("Llama 2 7B", "mha", "cache_gib", n_ctx=4096) == one / 8
    assert found("Llama 2 7B", "mha", "cache_gib", batch=3) == 3 * one
    assert found("Llama 2 7B", "mha", "cache_gib", dtype=DType.fp32) == 2 * one
    assert found("Llama 2 7B", "mha", "weights_gib", dtype=DType.fp8) == found("Llama 2 7B", "mha", "weights_gib") / 2


def test_llama2_70b_mha():
    assert found("Llama 2 70B", "mha", "cache_gib") == 80
    assert found("Llama 2 70B", "gqa", "cache_gib") == 10
    assert found("Llama 2 70B", "gqa", "weights_gib") == pytest.approx(128.5, abs=0.05)


def test_mistral_kv():
    eight = {"batch": 8}
    assert found("Mistral 7B", "gqa", "kib_per_token", **eight) == 128
    assert found("Mistral 7B", "gqa", "cache_gib", **eight) == 32
    assert found("Mistral 7B", "mha", "kib_per_token", **eight) == 512
    assert found("Mistral 7B", "mha", "cache_gib", **eight) == 128
    assert found("Mistral 7B", "gqa", "weights_gib", **eight) == pytest.approx(13.5, abs=0.05)


def test_mla_576():
    assert found("DeepSeek-V2", "mla", "numbers") == 576
    assert round(1 / found("DeepSeek-V2", "mla", "share_of_mha")) == 57


def test_published_shapes_come_to_the_released_parameters():
    released = {
        "Llama 2 7B": 6_738_415_616,
        "Llama 2 70B": 68_976_648_192,
        "Llama 3 8B": 8_030_261_248,
        "Llama 3 70B": 70_553_706_496,
        "Mistral 7B": 7_241_732_096,
    }
    assert {name: sizes.params(llama_like(published("shapes.yaml")[name])) for name in released} == released


def test_deepseek_v2s_parameters_are_those_of_its_released_config():
    """config.json: 60 layers of 5120, the first with a dense FFN, else 160 + 2 experts; MLA with a latent for q too."""
    d, n_layers, h, latent, latent_q, rope, nope, v = 5120, 60, 128, 512, 1536, 64, 128, 128
    queries = d * latent_q + latent_q + latent_q * h * (nope + rope)
    attention = queries + d * (latent + rope) + latent + latent * h * (nope + v) + h * v * d
    experts = (160 + 2) * 3 * d * 1536 + 160 * d
    whole = n_layers * (attention + 2 * d) + 3 * d * 12288 + (n_layers - 1) * experts + 2 * 102400 * d + d
    assert published("shapes.yaml")["DeepSeek-V2"]["params"] == whole


def test_every_shape_names_its_source():
    assert all("arXiv" in shape["source"] for shape in published("shapes.yaml").values())


def test_cached_equals_full(own):
    for pair in PAIRS:
        assert own(*pair, "cached_gap") < 1e-5, pair
        n_bytes = own(*pair, "bytes_measured")
        assert n_bytes == own(*pair, "bytes_formula"), pair
        heads = {"mha": 4, "gqa": 2, "mqa": 1}
        if pair[0] in heads:
            assert n_bytes == 48 * 2 * 2 * heads[pair[0]] * 16 * 4, pair  # keys and values, 2 layers, fp32


def test_groups_are_heads(group):
    for same, share in (("mha", 1), ("mqa", 1 / 4)):
        assert group(same, "output_gap") == 0.0
        assert group(same, "cache_share") == share
        assert group(same, "bytes_gqa") == group(same, "bytes_other")
    # Two products of all 48 keys with 64 dimensions, 2 FLOPs each, in 2 layers.
    assert group("mha", "attention_flops") == group("mqa", "attention_flops") == 2 * 2 * 2 * 48 * 64


def test_more_tokens_than_the_documents_have_can_be_decoded(own):
    few = "model.d_model=16"
    assert own("mha", "learned", "bytes_measured", "probe.n_tokens=70", few) == 70 * 2 * 2 * 16 * 4


def test_shown_has_a_row_for_every_case(ask):
    frames = kv_cache.shown(ask("kv_cache"))
    assert [len(frame) for frame in frames.values()] == [11, len(PAIRS), 2]
    published, own, groups = (frame.case.tolist() for frame in frames.values())
    assert published[:3] == ["Llama 2 7B, MHA", "Llama 2 70B, GQA", "Llama 2 70B, as if MHA"]
    assert "mha, none" in own
    assert groups == ["gqa, 4 of 4 KV heads, and mha", "gqa, 1 of 4 KV heads, and mqa"]
