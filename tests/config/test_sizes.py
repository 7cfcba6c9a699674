"""Every formula of the parts against the model that it speaks of."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lecture04.config import FFN, Attention, GatedFFN, Model, registry
from lecture04.config import sizes as counts
from lecture04.config.resolve import architecture
from lecture04.nn.ffn import FFNS
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel

FAMILIES = ("ffn", "norm", "placement", "attention", "posenc")
NORMS, PLACEMENTS = registry.names("norm"), registry.names("placement")
# Every attention with every position encoding; of the others every two together, and each FFN once below.
COMBINATIONS = [
    (("relu", "swiglu")[(i // 2 + j) % 2], NORMS[(i + j // 2) % 2], PLACEMENTS[(i + j) % 3], attention, posenc)
    for i, attention in enumerate(registry.names("attention"))
    for j, posenc in enumerate(registry.names("posenc"))
    if posenc not in registry.options_of("attention", attention, Attention).refuses
]


def on_meta(cfg):
    with torch.device("meta"):
        return LanguageModel(cfg)


def built_by_part(model):
    """Parameters of each family, by the roles in their names."""
    total = Counter(dict.fromkeys(("embed", "attention", "ffn", "norm", "head", "posenc"), 0))
    for name, parameter in model.named_parameters():
        pieces = [piece for piece in name.split(".") if piece != "blocks" and not piece.isdigit()]
        norm, relative = any(piece.endswith("norm") for piece in pieces), "relative" in pieces
        total["norm" if norm else "posenc" if relative else pieces[0]] += parameter.numel()
    return total


def hold_params_to_the_model(settings, parts, *, ffn_bias, attention_bias, tied):
    """No two sizes are equal, so that a wrong one cannot hide."""
    asked = settings()
    for family, name in parts.items():
        setattr(asked, family, getattr(settings(f"{family}={name}"), family))
    asked.ffn.d_ff, asked.ffn.bias, asked.attention.bias = 29, ffn_bias, attention_bias
    asked.model.d_model, asked.model.n_layers, asked.model.tied = 24, 3, tied
    cfg = architecture(asked, vocab_size=37, n_ctx=8)
    built = on_meta(cfg)
    assert counts.params(cfg) == sum(p.numel() for p in built.parameters())
    by_part = {part: n for part, n in counts.params_by_part(cfg).items() if n}
    assert by_part == {part: n for part, n in built_by_part(built).items() if n}


@pytest.mark.parametrize("parts", COMBINATIONS, ids="-".join)
def test_params_equal_the_built_model(settings, parts):
    parts = dict(zip(FAMILIES, parts, strict=True))
    for on in (True, False):
        hold_params_to_the_model(settings, parts, ffn_bias=on, attention_bias=on, tied=on)


@pytest.mark.parametrize(("ffn_bias", "attention_bias", "tied"), [*itertools.product((True, False), repeat=3)])
def test_params_equal_the_built_model_with_any_biases_and_head(settings, ffn_bias, attention_bias, tied):
    standard = {"ffn": "relu", "norm": "layernorm", "placement": "pre", "attention": "mha", "posenc": "sinusoidal"}
    swaps = [{**standard, family: name} for family in FAMILIES for name in registry.names(family)]
    for parts in swaps:
        hold_params_to_the_model(settings, parts, ffn_bias=ffn_bias, attention_bias=attention_bias, tied=tied)


@pytest.mark.parametrize("bias", ["true", "false"])
@pytest.mark.parametrize("tied", ["true", "false"])
@pytest.mark.parametrize("d_model", [32, 64])
def test_standard_params_are_those_of_the_standard_parts(compose, bias, tied, d_model):
    """The standard has biases whether the model at hand has them or not."""
    mine = compose(f"model.bias={bias}", f"model.tied={tied}", f"model.d_model={d_model}", "recipe=llama", "seed=1")
    standard = compose(f"model.tied={tied}", f"model.d_model={d_model}", f"ffn.d_ff={4 * d_model}")
    assert counts.standard_params(mine.model, mine.vocab_size) == counts.params(standard)


@pytest.mark.parametrize("n_tokens", [7, 24])
@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("ffn=swiglu", "norm=rmsnorm", "posenc=rope"),
        ("attention=gqa", "placement=post"),
        ("attention=mqa", "model.bias=false", "model.tied=false"),
        ("recipe=llama", "model.d_model=48", "model.n_layers=3", "ffn.d_ff=40"),
    ],
    ids=" ".join,
)
def test_flops_equal_those_that_torch_counts(compose, overrides, n_tokens):
    """On the meta device, where attention runs as the two products that it is.

    On a CPU it runs as one fused kernel that torch's counter does not know and counts as nothing.
    """
    cfg = compose(*overrides)
    model = on_meta(cfg)
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, n_tokens, dtype=torch.long, device="meta"))
    attention = cfg.model.n_layers * 2 * 2 * n_tokens * n_tokens * cfg.model.d_model
    seen = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    assert seen["aten.bmm"] == attention, "the scores and the values, each over all pairs of tokens"
    assert counts.flops_per_token(cfg, n_tokens) * n_tokens == counter.get_total_flops()


def test_flops_are_counted_at_the_corpus_longest_document_by_default(compose):
    cfg = compose("data.max_len=48")
    assert counts.flops_per_token(cfg) == counts.flops_per_token(cfg, 48) != counts.flops_per_token(cfg, 64)


@pytest.mark.parametrize("attention", registry.names("attention"))
@pytest.mark.parametrize("n_layers", [1, 3])
def test_kv_numbers_equal_those_that_the_cache_holds(small, attention, n_layers):
    cfg = small(f"attention={attention}", f"model.n_layers={n_layers}", "posenc=rope")
    model = build(cfg)
    batch, n_tokens = 2, 5
    with torch.no_grad():
        _, cache = model.decode(torch.zeros(batch, n_tokens, dtype=torch.long), model.empty_cache(batch))
    held = sum(layer.k.numel() + layer.v.numel() for layer in cache)
    assert counts.kv_per_token(cfg) * batch * n_tokens == held
    assert sum(layer.n_bytes for layer in cache) == 4 * held


@pytest.mark.parametrize(
    ("name", "d_ff", "expected"), [("relu", 256, 33_088), ("swiglu", 256, 49_728), ("swiglu", 171, 33_238)]
)
def test_the_lectures_ffn_parameters(compose, name, d_ff, expected):
    cfg = compose(f"ffn={name}", f"ffn.d_ff={d_ff}", "model.d_model=64", "model.n_layers=1")
    assert counts.params_by_part(cfg)["ffn"] == expected
    part = FFNS.lookup(name)(cfg.ffn, cfg.model)
    assert sum(p.numel() for p in part.parameters()) == expected


@pytest.mark.parametrize("d_model", [3, 12, 48, 96, 768])
def test_gated_at_two_thirds_has_the_plain_ffns_parameters(compose, d_model):
    c = replace(compose(), model=Model(d_model=d_model, n_heads=1, embed_scale=1.0))
    plain = FFN(name="relu", d_ff=4 * d_model, bias=False).params(c)
    assert plain == GatedFFN(name="swiglu", d_ff=8 * d_model // 3, bias=False).params(c) == 8 * d_model**2


@pytest.mark.parametrize(("recipe", "expected"), [("transformer_2017", 256), ("llama", 128)])
def test_the_lectures_kv_numbers_per_token(compose, recipe, expected):
    assert counts.kv_per_token(compose(f"recipe={recipe}")) == expected


@pytest.mark.parametrize(("n_kv_heads", "expected"), [(4, 1.0), (2, 0.5), (1, 0.25)])
def test_kv_numbers_shrink_with_the_kv_heads_alone(compose, n_kv_heads, expected):
    cfg = compose("attention=gqa", f"attention.n_kv_heads={n_kv_heads}")
    assert counts.kv_per_token(cfg) == expected * counts.kv_per_token(compose())


@pytest.mark.parametrize(("name", "asked", "expected"), [("mha", "null", 8), ("mqa", "null", 1), ("gqa", "2", 2)])
def test_kv_heads_left_open_are_what_the_name_says(compose, name, asked, expected):
    cfg = compose(f"attention={name}", "model.n_heads=8", f"attention.n_kv_heads={asked}")
    assert cfg.attention.n_kv_heads == expected
