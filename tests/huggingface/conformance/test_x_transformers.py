"""x-transformers, a second reference, by other hands than transformers: its decoder, its loss and its cache.

Theirs is built from our config, so that a comparison is a list of overrides; parameters are read by TABLE. Its
conventions are not ours:

- gains are kept as their distance from 1; norms have no biases, and RMSNorm no epsilon
- attention has no biases; query head h meets key head h modulo their number, where ours has neighbours in a group
- a gated layer's first half is the factor, its second what the activation meets
- RoPE turns neighbouring dimensions
- learned positions are divided by sqrt(D), T5's biases multiplied by sqrt(K); scores are scaled under T5's biases too
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch
import x_transformers.attend
from torch import nn
from torch.nn.utils.parametrize import register_parametrization
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

from lecture04.config import RopeScaling
from lecture04.huggingface.mapping import (
    NameMap,
    Rotated,
    Shifted,
    d_head,
    d_model,
    d_rotated,
    n_heads,
    n_kv_heads,
    rule,
)
from lecture04.nn import posenc
from lecture04.nn.posenc import T5


@dataclass(frozen=True)
class Read:
    """A layout that is read alone: a function of their parameter and our config."""

    of: Callable

    def read(self, theirs, cfg):
        return self.of(theirs, cfg)


def gain(theirs, cfg):
    """A norm's gain, and where ours has one a bias of 0."""
    weight = theirs + 1
    return (weight, torch.zeros_like(weight)) if cfg.norm.name == "layernorm" else (weight,)


def grouped(theirs, cfg):
    """Rows of query heads that take turns with the key heads: those that share one put side by side."""
    return theirs.unflatten(0, (-1, n_kv_heads(cfg), d_head(cfg))).transpose(0, 1).flatten(0, 2)


def queries(theirs, cfg):
    return Rotated(in_halves=False, heads=n_heads, width=d_rotated).read(grouped(theirs, cfg), cfg)


def halves(theirs, cfg):
    """What is multiplied (`up`), then the gate."""
    return theirs.chunk(2)


def biases(theirs, cfg):
    """T5's, of heads in our order."""
    return ((theirs * d_head(cfg) ** 0.5).unflatten(1, (-1, n_kv_heads(cfg))).mT.flatten(1),)


def turned(theirs, cfg):
    """A gain of queries or keys, whose dimensions are in the order that RoPE wants."""
    return Rotated(in_halves=False, heads=lambda cfg: 1, width=d_rotated).read(theirs, cfg)


def norms(i, sublayer, where, ours):
    """A norm of either kind, at one of its three places."""
    theirs = f"net.attn_layers.layers.{2 * i + sublayer}.0.{where}"
    return (
        rule((f"blocks.{i}.{ours}.weight", f"blocks.{i}.{ours}.bias"), f"{theirs}.gamma", Read(gain)),
        rule(f"blocks.{i}.{ours}.weight", f"{theirs}.g", Shifted(1)),
    )


def layer(i):
    """The rules of block i: a layer of theirs is attention or feed-forward, by turns."""
    attention, ffn = (f"net.attn_layers.layers.{2 * i + sublayer}.1." for sublayer in (0, 1))
    ours = f"blocks.{i}."
    up = f"{ours}ffn.up."
    for sublayer, name in ((0, "attention"), (1, "ffn")):
        for where, ending in enumerate(("_norm", "_output_norm", "_norm")):
            yield from norms(i, sublayer, where, name + ending)
    yield rule(f"{ours}attention.q.weight", f"{attention}to_q.weight", Read(queries))
    yield rule(f"{ours}attention.k.weight", f"{attention}to_k.weight", Rotated(False, n_kv_heads, d_rotated))
    yield rule(f"{ours}attention.v.weight", f"{attention}to_v.weight")
    output = Read(lambda theirs, cfg: (grouped(theirs.mT, cfg).mT,))
    yield rule(f"{ours}attention.output.weight", f"{attention}to_out.weight", output)
    for x in "qk":
        norm, rms = f"{ours}attention.{x}_norm.weight", f"{attention}{x}_rmsnorm.parametrizations.gamma.original"
        yield rule(norm, rms, Read(lambda theirs, cfg: turned(theirs + 1, cfg)))
        cosine = f"{attention}parametrizations.qk_norm_{x}_scale.original"
        yield rule(norm, cosine, Read(lambda theirs, cfg: turned(theirs * d_head(cfg) ** -0.5, cfg)))
    for kind in ("weight", "bias"):
        yield rule(up + kind, f"{ffn}ff.0.0.{kind}")
        yield rule((up + kind, f"{ours}ffn.gate.{kind}"), f"{ffn}ff.0.proj.{kind}", Read(lambda t, cfg: halves(t, cfg)))
        yield rule(f"{ours}ffn.down.{kind}", f"{ffn}ff.2.{kind}")


TABLE = NameMap(
    "net.token_emb.emb.weight",
    "net.to_logits.weight",
    (
        *(r for i in range(2) for r in layer(i)),
        rule(("final_norm.weight", "final_norm.bias"), "net.attn_layers.final_norm.gamma", Read(gain)),
        rule("final_norm.weight", "net.attn_layers.final_norm.g", Shifted(1)),
        rule("posenc.table", "net.pos_emb.emb.weight", Read(lambda t, cfg: (t * d_model(cfg) ** -0.5,))),
        rule(
            "posenc.table",
            "net.attn_layers.rel_pos.relative_attention_bias.weight",
            Read(lambda t, cfg: biases(t, cfg)),
        ),
    ),
    ignored=(r"pos_emb\.theirs\.scale",),
)

FFN = {
    "gelu": {},
    "relu": {"ff_custom_activation": nn.ReLU()},
    "relu2": {"ff_relu_squared": True},
    "silu": {"ff_swish": True},
    "glu": {"ff_glu": True, "ff_custom_activation": nn.Sigmoid()},
    "bilinear": {"ff_glu": True, "ff_custom_activation": nn.Identity()},
    "reglu": {"ff_glu": True, "ff_custom_activation": nn.ReLU()},
    "geglu": {"ff_glu": True},
    "swiglu": {"ff_glu": True, "ff_swish": True},
}
SCALING = {RopeScaling.linear: "rotary_interpolation_factor", RopeScaling.ntk: "rotary_base_rescale_factor"}


def positions(options):
    """What their layers are told of positions."""
    match options.name:
        case "rope" | "rope_half":
            factor = {SCALING[options.scaling.name]: options.scaling.factor} if options.scaling.factor > 1 else {}
            return {"rotary_pos_emb": True, "rotary_emb_dim": options.width, **factor}
        case "alibi":
            return {"alibi_pos_bias": True}
        case "t5":
            sizes = {"rel_pos_num_buckets": options.n_buckets, "rel_pos_max_distance": options.max_distance}
            return {"rel_pos_bias": True, **sizes}
    return {}


class Interleaved(nn.Module):
    """Their sinusoidal positions, every cosine beside its sine; unscaled."""

    def __init__(self, theirs):
        super().__init__()
        self.theirs = theirs

    def forward(self, *inputs, **options):
        return self.theirs(*inputs, **options).unflatten(-1, (2, -1)).mT.flatten(-2)


class SharedByHeads(nn.Module):
    """One gain for all heads, as ours has; theirs has one for each."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, gain_K):
        return gain_K.expand(self.heads, 1, -1)

    def right_inverse(self, gain_H1K):
        return gain_H1K[0, 0]


class Theirs(nn.Module):
    """Their model for a config of ours, called as the suite calls."""

    def __init__(self, cfg, **options):
        super().__init__()
        model, name = cfg.model, cfg.posenc.name
        layers = Decoder(
            dim=model.d_model,
            depth=model.n_layers,
            heads=model.n_heads,
            attn_dim_head=model.d_head,
            attn_kv_heads=cfg.attention.n_kv_heads,
            ff_mult=cfg.ffn.d_ff / model.d_model,
            use_rmsnorm=cfg.norm.name == "rmsnorm",
            pre_norm=cfg.placement.name != "post",
            sandwich_norm=cfg.placement.name == "sandwich",
            verbose=False,
            **FFN[cfg.ffn.name],
            **positions(cfg.posenc),
            **options,
        )
        self.net = TransformerWrapper(
            num_tokens=cfg.vocab_size,
            max_seq_len=cfg.n_ctx,
            attn_layers=layers,
            use_abs_pos_emb=name in ("learned", "sinusoidal"),
            scaled_sinu_pos_emb=name == "sinusoidal",
            tie_embedding=model.tied,
            tie_embedding_scale=1.0,
        )
        if name == "sinusoidal":
            self.net.pos_emb = Interleaved(self.net.pos_emb)
        for _, attention, _ in layers.layers[::2]:
            for x, heads in (("q", attention.heads), ("k", attention.kv_heads)):
                if norm := getattr(attention, f"{x}_rmsnorm"):
                    register_parametrization(norm, "gamma", SharedByHeads(heads))
                if isinstance(getattr(attention, f"qk_norm_{x}_scale"), nn.Parameter):
                    register_parametrization(attention, f"qk_norm_{x}_scale", SharedByHeads(heads))

    def forward(self, input_ids, labels=None, use_cache=False):
        return SimpleNamespace(logits=self.net(input_ids), loss=AutoregressiveWrapper(self.net)(labels))

    def step(self, chunk, cache):
        """Logits of new tokens, and their cache, grown."""
        new = {"input_not_include_cache": True, "cache_age": chunk.shape[1]}
        return self.net(chunk, cache=cache, return_intermediates=True, **new)


@contextmanager
def built_in(harness, dtype):
    """Their parameters, frequencies, slopes and softmax in this type; the softmax would be in float32 else."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with pytest.MonkeyPatch.context() as patch, harness.float32_is(dtype):
            if dtype is torch.float64:
                patch.setattr(x_transformers.attend, "torch", harness.InFloat64())
            yield
    finally:
        torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def pair(small, harness):
    """`pair(torch.float64, "posenc=alibi")`: their model for these overrides, random, and our config."""
    usual = ("data.vocab_size=17", "data.max_len=32", "model.tied=false", "model.embed_scale=1")
    parts = ("attention.bias=false", "ffn=gelu", "posenc=none")

    def make(dtype, *overrides, **options):
        cfg = small(*usual, *parts, *overrides)
        with built_in(harness, dtype):
            theirs = harness.randomised(Theirs(cfg, **options)).eval()
        if cfg.posenc.name == "sinusoidal":
            theirs.net.pos_emb.theirs.scale.requires_grad_(False).fill_(1)
        return harness.Pair(theirs, cfg, TABLE)

    return make


def decoding(harness, pair, dtype):
    """The difference of decoding in chunks, each from its own cache."""
    model, state, _ = pair.ours()
    model.load_state_dict(state)
    with torch.no_grad(), harness.float32_is(dtype):
        ours = harness.decoded(model.decode, model.empty_cache(2))
        return harness.difference(ours, harness.decoded(pair.theirs.step, None))


@pytest.fixture
def agree(pair, harness, figures, dtype):
    """`agree("ALiBi", "posenc=alibi")`: both are one function, at this type."""

    def check(title, *overrides, remark="", **options):
        both = pair(dtype, *overrides, **options)
        found = harness.compare(both, dtype, decoding=False)
        found["decoding"] = decoding(harness, both, dtype)
        figures.check(f"x-transformers, {title}", found, dtype, remark)

    return check


RMS = ("norm=rmsnorm", "norm.eps=1e-30")  # theirs has none; ours wants one above 0
LLAMA = (*RMS, "ffn=swiglu", "attention=gqa", "attention.n_kv_heads=2")
FULL = ("posenc=rope", "posenc.width=4")
HALF = ("model.d_model=32", *FULL)  # of heads of 8; a width of 2 it divides by 0
NORMED = {
    "RMSNorm": {"attn_qk_rmsnorm": True},
    "cosine": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
}
BUCKETS = [(32, 128), (8, 20)]


def t5(n_buckets, max_distance):
    return "posenc=t5", f"posenc.n_buckets={n_buckets}", f"posenc.max_distance={max_distance}"


def scaled(kind, factor=4.0):
    return f"posenc.scaling.name={kind}", f"posenc.scaling.factor={factor}"


def test_llama(agree):
    remark = f"version {version('x-transformers')}; rotary, GQA 4:2, RMSNorm, SwiGLU, biases in it, untied"
    agree("as Llama", *LLAMA, *FULL, remark=remark)


@pytest.mark.parametrize("n_kv_heads", [1, 4])
def test_other_kv_heads(agree, n_kv_heads):
    agree(f"{n_kv_heads} KV heads", *LLAMA, *FULL, f"attention.n_kv_heads={n_kv_heads}")


@pytest.mark.parametrize("width", [4, 8])
def test_rotary(agree, width):
    remark = "pre-norm LayerNorm without biases, GELU, neighbouring pairs"
    agree(f"rotary, {width / 8:.0%} of a head", *HALF, f"posenc.width={width}", remark=remark)


@pytest.mark.parametrize("width", [4, 8])
def test_rotary_read_into_halves(agree, width):
    title = f"rotary, {width / 8:.0%} of a head, read into halves"
    agree(title, *LLAMA, *HALF, "posenc=rope_half", f"posenc.width={width}")


@pytest.mark.parametrize("kind", ["linear", "ntk"])
def test_scaled_rotary(agree, kind):
    remark = {"linear": "its interpolation factor", "ntk": "its rescaled base"}[kind]
    agree(f"rotary, scaled: {kind}", *FULL, *scaled(kind), remark=remark)


@pytest.mark.parametrize(("n_heads", "d_model"), [(1, 8), (3, 12), (4, 16), (6, 24), (16, 32)])
def test_alibi(agree, n_heads, d_model):
    sizes = f"model.n_heads={n_heads}", f"model.d_model={d_model}"
    agree(f"ALiBi, {n_heads} heads", "posenc=alibi", *sizes, attn_project_out=True)


@pytest.mark.parametrize(("n_buckets", "max_distance"), BUCKETS)
def test_t5(agree, n_buckets, max_distance):
    remark = "its biases times sqrt(d_head), scores scaled too"
    agree(f"T5's bias, {n_buckets} buckets up to {max_distance}", *t5(n_buckets, max_distance), remark=remark)


def test_t5_with_grouped_heads(agree):
    agree("T5's bias, 2 KV heads", *LLAMA, *t5(32, 128))


def test_learned_positions(agree):
    agree("learned positions", "posenc=learned", remark="divided by sqrt(D) there")


def test_sinusoidal_positions(agree):
    agree("sinusoidal positions", "posenc=sinusoidal", remark="its sines and cosines interleaved here, its scale 1")


def test_no_positions_and_a_tied_head(agree):
    agree("no positions, tied", "model.tied=true", remark="its scale of the head 1")


@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize("placement", ["pre", "post", "sandwich"])
def test_placements(agree, placement, norm):
    agree(f"{placement}-norm, {norm}", *FULL, f"placement={placement}", *(RMS if norm == "RMSNorm" else ()))


@pytest.mark.parametrize("name", FFN)
def test_feed_forward_layers(agree, name):
    agree(f"{name}", *FULL, f"ffn={name}")


def test_feed_forward_layers_without_biases(agree):
    agree("gelu without biases", *FULL, "ffn.bias=false", ff_no_bias=True, remark="its gated layers always have some")


@pytest.mark.parametrize("kind", NORMED)
@pytest.mark.parametrize("layout", ["rope", "rope_half"])
def test_normed_queries_and_keys(agree, kind, layout):
    remark = {"RMSNorm": "gains shared by heads", "cosine": "its qk_norm_dim_scale, gains shared by heads"}[kind]
    title = f"norms on queries and keys, {kind}, {layout}"
    agree(title, *LLAMA, f"posenc={layout}", "posenc.width=4", "attention.qk_norm=true", remark=remark, **NORMED[kind])


def of(part, **changes):
    """A fault: our config with one part changed."""
    return lambda cfg: replace(cfg, **{part: replace(getattr(cfg, part), **changes)})


BIN_PACKED = {"rotary": FULL, "ALiBi": ("posenc=alibi",), "learned positions": ("posenc=learned",)}


@pytest.mark.parametrize("leaks", [False, True])
@pytest.mark.parametrize("kind", BIN_PACKED)
def test_bin_packed_documents(pair, harness, figures, dtype, kind, leaks):
    """Theirs is given the positions and a mask of blocks; where ours is told of one document alone, that is seen."""
    both, lengths = pair(dtype, *BIN_PACKED[kind]), ([7, 12, 5], [20, 4])
    pos = torch.stack([torch.cat([torch.arange(n) for n in row]) for row in lengths])
    document = torch.stack([torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in lengths])
    model, state, _ = both.ours()
    model.load_state_dict(state)
    seen = document[:, None, :, None] == document[:, None, None, :]
    with torch.no_grad(), harness.float32_is(dtype):
        theirs = both.theirs.net(harness.tokens(), pos=pos, attn_mask=seen)
        ours = model(harness.tokens(), pos, document * (not leaks))
    off = harness.difference(ours, theirs)
    if leaks:
        assert off > 0.01
    else:
        title = f"x-transformers, bin-packed documents, {kind}"
        figures.check(title, {"logits": off}, dtype, "positions and a block mask given to theirs")


NEXT = {
    "gelu": "gelu_tanh",
    "relu": "relu2",
    "relu2": "relu",
    "silu": "gelu",
    "glu": "swiglu",
    "bilinear": "glu",
    "reglu": "geglu",
    "geglu": "geglu_tanh",
    "swiglu": "geglu",
}
LEAK, SCALE = of("attention", causal=False), of("attention", scale=0.51)
FAULTS = {
    "rotary: a wrong scale": (FULL, SCALE),
    "rotary: a mask that leaks": (FULL, LEAK),
    "rotary: no rotation": (FULL, of("posenc", name="none")),
    "rotary: half a rotation": (FULL, of("posenc", width=2)),
    "rotary: more than half a rotation": (HALF, of("posenc", width=8)),
    "rotary: a wrong base": (FULL, of("posenc", base=10_001.0)),
    "rotary: linear for ntk": (
        (*FULL, *scaled("ntk")),
        lambda cfg: of("posenc", scaling=replace(cfg.posenc.scaling, name=RopeScaling.linear))(cfg),
    ),
    "rotary: another factor": (
        (*FULL, *scaled("linear")),
        lambda cfg: of("posenc", scaling=replace(cfg.posenc.scaling, factor=4.01))(cfg),
    ),
    "ALiBi: a wrong scale": (("posenc=alibi",), SCALE),
    "ALiBi: a mask that leaks": (("posenc=alibi",), LEAK),
    "ALiBi: no bias": (("posenc=alibi",), of("posenc", name="none")),
    "T5: scores not scaled": (t5(32, 128), of("attention", scale=1.0)),
    "T5: a boundary between buckets off by one": (t5(8, 20), of("posenc", max_distance=19)),
    "T5: a mask that leaks": (t5(8, 20), LEAK),
    "sinusoidal: none": (("posenc=sinusoidal",), of("posenc", name="none")),
    "no positions: some": (("posenc=none",), of("posenc", name="alibi")),
    "RMSNorm: an epsilon": ((*FULL, *RMS), of("norm", eps=1e-5)),
    "LayerNorm: another epsilon": ((*FULL, "placement=post"), of("norm", eps=1.1e-5)),
    "sandwich: an epsilon": ((*FULL, *RMS, "placement=sandwich"), of("norm", eps=1e-5)),
    "embeddings scaled": (FULL, of("model", embed_scale=4.0)),
    "embeddings scaled, tied": ((*FULL, "model.tied=true"), of("model", embed_scale=4.0)),
    **{f"{name}: {other}": ((*FULL, f"ffn={name}"), of("ffn", name=other)) for name, other in NEXT.items()},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(pair, is_caught, fault):
    overrides, change = FAULTS[fault]
    is_caught(pair(torch.float64, *overrides), change)


def planted(monkeypatch, where, name, value):
    """A fault that is no setting: set where our config is said to have it."""

    def change(cfg):
        monkeypatch.setattr(where, name, value)
        return cfg

    return change


def test_slopes_of_a_wrong_order_are_caught(pair, is_caught, monkeypatch):
    right = posenc.alibi_exponents
    fault = planted(monkeypatch, posenc, "alibi_exponents", lambda n: sorted(right(n), reverse=True))
    is_caught(pair(torch.float64, "posenc=alibi", "model.n_heads=6", "model.d_model=24"), fault)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_bucket_off_by_one_is_caught(pair, is_caught, monkeypatch, by):
    right = T5.bucket
    is_caught(
        pair(torch.float64, *t5(32, 128)),
        planted(monkeypatch, T5, "bucket", lambda self, back: right(self, back + by)),
    )


@pytest.mark.parametrize("name", ["Learned", "Sinusoidal"])
def test_positions_off_by_one_are_caught(pair, is_caught, monkeypatch, name):
    cls = getattr(posenc, name)
    right = cls.embed
    fault = planted(monkeypatch, cls, "embed", lambda self, x_BTD, pos: right(self, x_BTD, pos + 1))
    is_caught(pair(torch.float64, f"posenc={name.lower()}"), fault)


READ_WRONGLY = {
    "heads in their order": ("grouped", lambda theirs, cfg: theirs, FULL),
    "gates first": ("halves", lambda theirs, cfg: theirs.chunk(2)[::-1], FULL),
    "biases of heads in their order": ("biases", lambda theirs, cfg: (theirs * d_head(cfg) ** 0.5,), t5(32, 128)),
}


@pytest.mark.parametrize("fault", READ_WRONGLY)
def test_parameters_read_wrongly_are_caught(pair, is_caught, monkeypatch, fault):
    """What this file says of their layout is needed."""
    name, wrong, parts = READ_WRONGLY[fault]

    def change(cfg):
        monkeypatch.setitem(globals(), name, wrong)
        return cfg

    is_caught(pair(torch.float64, *LLAMA, *parts), change)


@pytest.mark.parametrize("kind", NORMED)
def test_a_missing_permutation_is_caught(pair, is_caught, monkeypatch, kind):
    fault = planted(monkeypatch, Rotated, "_permuted", lambda self, x, cfg, **layouts: x)
    layout = ("posenc=rope_half", "posenc.width=4", "attention.qk_norm=true")
    is_caught(pair(torch.float64, *LLAMA, *layout, **NORMED[kind]), fault)


@pytest.mark.parametrize("kind", NORMED)
def test_faults_in_normed_queries_and_keys_are_caught(pair, is_caught, kind):
    both = pair(torch.float64, *LLAMA, *FULL, "attention.qk_norm=true", **NORMED[kind])
    is_caught(both, SCALE)
    is_caught(both, of("norm", eps=1e-5))
