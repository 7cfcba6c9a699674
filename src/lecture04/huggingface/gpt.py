"""GPT-2, GPT-NeoX and MPT: LayerNorm, plain feed-forward layers, q, k and v in one matrix."""

import math
from typing import Any

from lecture04 import config
from lecture04.huggingface.known import INERT, unknown
from lecture04.huggingface.mapping import (
    K_HALVES,
    Q_HALVES,
    SAME,
    NameMap,
    Rule,
    Stacked,
    TensorLayout,
    Transposed,
    WithoutBias,
    d_head,
    d_model,
    n_heads,
    rule,
)
from lecture04.huggingface.rope import ABSENT as ROPE
from lecture04.huggingface.rope import read_rope, scaling_of, write_rope
from lecture04.huggingface.settings import (
    Complete,
    Conversion,
    Sizes,
    Theirs,
    read_sizes,
    refuse,
    require,
    resolved,
    write_sizes,
)

QKV = ("blocks.{i}.attention.q.*", "blocks.{i}.attention.k.*", "blocks.{i}.attention.v.*")


def rules(
    theirs: str, qkv: str, output: str, up: str, down: str, layout: tuple[TensorLayout, TensorLayout]
) -> tuple[Rule, ...]:
    """The Linear layers of a block; `layout` is that of q, k and v together, and of the others."""
    together, alone = layout
    return (
        rule(QKV, f"{theirs}{qkv}.*", together),
        rule("blocks.{i}.attention.output.*", f"{theirs}{output}.*", alone),
        rule("blocks.{i}.ffn.up.*", f"{theirs}{up}.*", alone),
        rule("blocks.{i}.ffn.down.*", f"{theirs}{down}.*", alone),
    )


END_TO_END = Stacked((d_model,) * 3, (SAME,) * 3)
GPT2 = NameMap(
    "transformer.wte.weight",
    "lm_head.weight",
    (
        *rules(
            "transformer.h.{i}.",
            "attn.c_attn",
            "attn.c_proj",
            "mlp.c_fc",
            "mlp.c_proj",
            (Transposed(END_TO_END), Transposed()),
        ),
        rule("blocks.{i}.attention_norm.*", "transformer.h.{i}.ln_1.*"),
        rule("blocks.{i}.ffn_norm.*", "transformer.h.{i}.ln_2.*"),
        rule("final_norm.*", "transformer.ln_f.*"),
        rule("posenc.table", "transformer.wpe.weight"),
    ),
    ignored=(r"\.attn\.(masked_)?bias$",),
)
BY_HEAD = Stacked((d_head,) * 3, (Q_HALVES, K_HALVES, SAME), heads=n_heads)
NEOX = NameMap(
    "gpt_neox.embed_in.weight",
    "lm_head.weight",
    (
        *rules(
            "gpt_neox.layers.{i}.",
            "attention.query_key_value",
            "attention.dense",
            "mlp.dense_h_to_4h",
            "mlp.dense_4h_to_h",
            (BY_HEAD, SAME),
        ),
        rule("blocks.{i}.attention_norm.*", "gpt_neox.layers.{i}.input_layernorm.*"),
        rule("blocks.{i}.ffn_norm.*", "gpt_neox.layers.{i}.post_attention_layernorm.*"),
        rule("final_norm.*", "gpt_neox.final_layer_norm.*"),
    ),
    ignored=(r"\.attention\.(masked_)?bias$", r"rotary_emb\.inv_freq$"),
    head_on_disk="embed_out.weight",
)
MPT = NameMap(
    "transformer.wte.weight",
    "lm_head.weight",
    (
        *rules(
            "transformer.blocks.{i}.",
            "attn.Wqkv",
            "attn.out_proj",
            "ffn.up_proj",
            "ffn.down_proj",
            (END_TO_END, SAME),
        ),
        *(
            rule((f"{ours}.weight", f"{ours}.bias"), f"transformer.{theirs}.weight", WithoutBias())
            for ours, theirs in (
                ("blocks.{i}.attention_norm", "blocks.{i}.norm_1"),
                ("blocks.{i}.ffn_norm", "blocks.{i}.norm_2"),
                ("final_norm", "norm_f"),
            )
        ),
    ),
)

FFNS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu"}

WRITTEN = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu", "silu": "silu"}


def _resolved(
    sizes: Sizes, posenc: Any, *, ffn: str, d_ff: int, eps: float, bias: bool, scale: float | None = None
) -> config.Architecture:
    """With what the three share."""
    return resolved(
        sizes,
        ffn=config.asked(config.FFN, name=ffn, d_ff=d_ff, bias=bias),
        norm=config.asked(config.Norm, name="layernorm", eps=eps),
        placement=config.asked(config.Placement, name="pre"),
        attention=config.asked(config.Attention, name="mha", bias=bias, scale=scale),
        posenc=posenc,
    )


def read_gpt2(theirs: Theirs) -> config.Architecture:
    """GPT-2: learned positions, GELU's tanh approximation, biases (Radford et al. 2019)."""
    refuse(
        theirs,
        activation_function=tuple(FFNS),
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
    )
    return _resolved(
        read_sizes(theirs, ("n_embd", "n_head", "n_layer", "n_positions"), bias=True),
        config.asked(config.Learned, name="learned", n_positions=theirs["n_positions"]),
        ffn=FFNS[theirs["activation_function"]],
        d_ff=theirs.get("n_inner") or 4 * theirs["n_embd"],
        eps=theirs["layer_norm_epsilon"],
        bias=True,
    )


def read_neox(theirs: Theirs) -> config.Architecture:
    """GPT-NeoX and Pythia with sublayers one after the other: part of each head rotated (Black et al. 2022)."""
    refuse(theirs, hidden_act=tuple(FFNS), use_parallel_residual=False, attention_bias=True)
    sizes, (_, given) = read_sizes(theirs, bias=True), scaling_of(theirs)
    share, base = theirs["rotary_pct"], theirs["rotary_emb_base"]
    # The names of other architectures are not looked at, so that they must say the same.
    refuse(
        theirs,
        rope_theta=(None, given.get("rope_theta", base)),
        partial_rotary_factor=(None, given.get("partial_rotary_factor", share)),
    )
    return _resolved(
        sizes,
        read_rope(theirs, "rope_half", sizes.d_head, sizes.n_ctx, share, base),
        ffn=FFNS[theirs["hidden_act"]],
        d_ff=theirs["intermediate_size"],
        eps=theirs["layer_norm_eps"],
        bias=True,
    )


def read_mpt(theirs: Theirs) -> config.Architecture:
    """MPT: ALiBi, no biases, not even of norms: ours are 0 (MosaicML 2023)."""
    refuse(theirs, norm_type="low_precision_layernorm", no_bias=True, expansion_ratio=4, logit_scale=None)
    said = theirs["attn_config"] or {}
    if foreign := list(unknown(said, MPT_ATTENTION, INERT.union(MPT_INERT), "attn_config.")):
        raise ValueError("\n".join(foreign))
    attn = Complete(said, MPT_ATTENTION)
    refuse(
        attn, alibi=True, alibi_bias_max=8, clip_qkv=None, qk_ln=False, prefix_lm=False, attn_type="multihead_attention"
    )
    return _resolved(
        read_sizes(theirs, ("d_model", "n_heads", "n_layers", "max_seq_len")),
        config.asked(config.PosEnc, name="alibi"),
        ffn="gelu",
        d_ff=4 * theirs["d_model"],
        eps=theirs["layer_norm_epsilon"],
        bias=False,
        scale=attn["softmax_scale"],
    )


def _require(c: config.Architecture, name: str, *, bias: bool, ffns: tuple[str, ...], posencs: tuple[str, ...]) -> None:
    require(
        c,
        name,
        ffn__name=ffns,
        ffn__bias=(bias,),
        norm__name=("layernorm",),
        placement__name=("pre",),
        attention__name=("mha", "gqa", "mqa"),
        attention__n_kv_heads=(c.model.n_heads,),
        attention__bias=(bias,),
        attention__output_bias=(bias,),
        attention__causal=(True,),
        attention__qk_norm=(False,),
        posenc__name=posencs,
    )


def write_gpt2(c: config.Architecture) -> dict[str, Any]:
    """Learned positions, as many as the table has."""
    _require(c, "gpt2", bias=True, ffns=tuple(WRITTEN), posencs=("learned",))
    require(c, "gpt2", attention__scale=(c.model.d_head**-0.5,))
    assert isinstance(c.posenc, config.Learned)
    usual = write_sizes(c, GPT2)
    return {
        "n_embd": usual["hidden_size"],
        "n_layer": usual["num_hidden_layers"],
        "n_head": usual["num_attention_heads"],
        "n_positions": c.posenc.n_positions,
        "n_inner": c.ffn.d_ff,
        "activation_function": WRITTEN[c.ffn.name],
        "layer_norm_epsilon": c.norm.eps,
        "tie_word_embeddings": usual["tie_word_embeddings"],
        "vocab_size": usual["vocab_size"],
    }


def write_neox(c: config.Architecture) -> dict[str, Any]:
    """Sublayers one after the other."""
    _require(c, "gpt_neox", bias=True, ffns=tuple(WRITTEN), posencs=("rope", "rope_half"))
    require(c, "gpt_neox", attention__scale=(c.model.d_head**-0.5,))
    assert isinstance(c.posenc, config.Rope)
    rope, width, d_head = write_rope(c), c.posenc.width, c.model.d_head
    share = width / d_head
    if int(d_head * share) != width:  # theirs rounds down, and a quotient may lie below
        share = math.nextafter(share, 2)
    return {
        **write_sizes(c, NEOX),
        "rotary_emb_base": rope["rope_theta"],
        "rotary_pct": share,
        **rope,
        "use_parallel_residual": False,
        "attention_bias": True,
        "intermediate_size": c.ffn.d_ff,
        "hidden_act": WRITTEN[c.ffn.name],
        "layer_norm_eps": c.norm.eps,
    }


def write_mpt(c: config.Architecture) -> dict[str, Any]:
    """ALiBi, a feed-forward layer of 4 D."""
    _require(c, "mpt", bias=False, ffns=("gelu",), posencs=("alibi",))
    require(c, "mpt", ffn__d_ff=(4 * c.model.d_model,))
    usual = write_sizes(c, MPT)
    return {
        "d_model": usual["hidden_size"],
        "n_layers": usual["num_hidden_layers"],
        "n_heads": usual["num_attention_heads"],
        "max_seq_len": usual["max_position_embeddings"],
        "tie_word_embeddings": usual["tie_word_embeddings"],
        "vocab_size": usual["vocab_size"],
        "layer_norm_epsilon": c.norm.eps,
        "attn_config": {"alibi": True, "softmax_scale": c.attention.scale},
    }


MPT_ATTENTION = {
    "alibi": True,
    "alibi_bias_max": 8,
    "clip_qkv": None,
    "qk_ln": False,
    "prefix_lm": False,
    "attn_type": "multihead_attention",
    "softmax_scale": None,
}
MPT_INERT = ("attn_pdrop", "attn_impl", "attn_uses_sequence_id")
ARCHITECTURES = (
    Conversion(
        "gpt2",
        "GPT2LMHeadModel",
        GPT2,
        read_gpt2,
        write_gpt2,
        ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size"),
        {
            "n_inner": None,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "tie_word_embeddings": True,
        },
        (
            *("resid_pdrop", "embd_pdrop", "attn_pdrop", "reorder_and_upcast_attn", "n_ctx"),
            *("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
            "summary_first_dropout",
        ),
        {
            "n_embd": "hidden_size",
            "n_layer": "num_hidden_layers",
            "n_head": "num_attention_heads",
            "n_positions": "max_position_embeddings",
        },
    ),
    Conversion(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        NEOX,
        read_neox,
        write_neox,
        (
            *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"),
            "max_position_embeddings",
        ),
        {
            **ROPE,
            "rotary_pct": 0.25,
            "rotary_emb_base": 10_000.0,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-5,
            "use_parallel_residual": True,
            "attention_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    Conversion(
        "mpt",
        "MptForCausalLM",
        MPT,
        read_mpt,
        write_mpt,
        ("d_model", "n_layers", "n_heads", "max_seq_len", "vocab_size"),
        {
            "attn_config": None,
            "norm_type": "low_precision_layernorm",
            "no_bias": True,
            "expansion_ratio": 4,
            "logit_scale": None,
            "layer_norm_epsilon": 1e-5,
            "tie_word_embeddings": True,
        },
        ("resid_pdrop", "emb_pdrop", "learned_pos_emb", "embedding_fraction"),
        {"d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads"},
    ),
)
