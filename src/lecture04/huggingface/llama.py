"""Llama and its family: pre-norm RMSNorm, gated feed-forward layers, grouped-query attention, RoPE in halves."""

import math
from dataclasses import replace
from typing import Any

from lecture04 import config
from lecture04.huggingface.mapping import K_HALVES, ONE_HEAD, Q_HALVES, SAME, NameMap, Rule, Shifted, TensorLayout, rule
from lecture04.huggingface.rope import ABSENT as ROPE
from lecture04.huggingface.rope import read_whole_rope, write_rope
from lecture04.huggingface.settings import (
    Conversion,
    Theirs,
    as_said,
    read_sizes,
    refuse,
    require,
    resolved,
    write_sizes,
)

ATTENTIONS, ROPES = ("mha", "gqa", "mqa"), ("rope", "rope_half")


def rules(norm: TensorLayout, norms: dict[str, str]) -> tuple[Rule, ...]:
    """The rules of every model of the family; `norms` are a block's, ours -> theirs."""
    ours, theirs = "blocks.{i}.", "model.layers.{i}."
    attention, ffn = f"{theirs}self_attn.", f"{theirs}mlp."
    return (
        rule(f"{ours}attention.q.*", f"{attention}q_proj.*", Q_HALVES),
        rule(f"{ours}attention.k.*", f"{attention}k_proj.*", K_HALVES),
        rule(f"{ours}attention.v.*", f"{attention}v_proj.*"),
        rule(f"{ours}attention.output.*", f"{attention}o_proj.*"),
        rule(f"{ours}attention.q_norm.weight", f"{attention}q_norm.weight", ONE_HEAD),
        rule(f"{ours}attention.k_norm.weight", f"{attention}k_norm.weight", ONE_HEAD),
        *(rule(f"{ours}ffn.{name}.*", f"{ffn}{name}_proj.*") for name in ("gate", "up", "down")),
        *(rule(f"{ours}{name}.weight", f"{theirs}{other}.weight", norm) for name, other in norms.items()),
        rule("final_norm.weight", "model.norm.weight", norm),
    )


PRE = {"attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
SANDWICH = {
    "attention_norm": "input_layernorm",
    "attention_output_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_output_norm": "post_feedforward_layernorm",
}
LLAMA = NameMap("model.embed_tokens.weight", "lm_head.weight", rules(SAME, PRE), ignored=(r"rotary_emb\.inv_freq$",))
# Gemma keeps its gains as distances from 1, and multiplies its embeddings by sqrt(D) as we do.
GEMMA = replace(LLAMA, rules=rules(Shifted(1.0), PRE), embed_scale=lambda c: math.sqrt(c.model.d_model))
GEMMA2 = replace(GEMMA, rules=rules(Shifted(1.0), SANDWICH))


def _read(
    theirs: Theirs,
    *,
    ffn: str,
    biases: tuple[bool, bool],
    embed_scale: float | None = 1.0,
    placement: str = "pre",
    scale: float | None = None,
    qk_norm: bool = False,
) -> config.Architecture:
    """What the family shares; `biases` are those of q, k and v, and of the attention's output."""
    sizes, (bias, output_bias) = read_sizes(theirs, embed_scale=embed_scale), biases
    width, heads = sizes.model.d_model, sizes.model.n_heads
    if (d_head := theirs.get("head_dim")) and d_head * heads != width:
        said = as_said(theirs, "head_dim")
        raise ValueError(f"{said}: here it is hidden_size / num_attention_heads, {width / heads:g}.")
    return resolved(
        sizes,
        ffn=config.asked(config.FFN, name=ffn, d_ff=theirs["intermediate_size"], bias=bool(theirs.get("mlp_bias"))),
        norm=config.asked(config.Norm, name="rmsnorm", eps=theirs["rms_norm_eps"]),
        placement=config.asked(config.Placement, name=placement),
        attention=config.asked(
            config.Attention,
            name="gqa",
            n_kv_heads=theirs.get("num_key_value_heads"),
            bias=bias,
            output_bias=output_bias,
            scale=scale,
            qk_norm=qk_norm,
        ),
        posenc=read_whole_rope(theirs, "rope_half", sizes.d_head, sizes.n_ctx),
    )


def _own_biases(theirs: Theirs) -> tuple[bool, bool]:
    """One setting for q, k and v and for the output."""
    bias = bool(theirs.get("attention_bias"))
    return bias, bias


def read_llama(theirs: Theirs) -> config.Architecture:
    """Llama 1 to 3 (Touvron et al. 2023; Dubey et al. 2024)."""
    refuse(theirs, hidden_act="silu", sliding_window=None)
    return _read(theirs, ffn="swiglu", biases=_own_biases(theirs))


def read_mistral(theirs: Theirs) -> config.Architecture:
    """Mistral without its window (Jiang et al. 2023)."""
    refuse(theirs, hidden_act="silu", sliding_window=None)
    return _read(theirs, ffn="swiglu", biases=(False, False))


def _refuse_windows(theirs: Theirs) -> None:
    """Qwen's windows are off by one setting, and some layers may be said to have them."""
    refuse(theirs, hidden_act="silu", use_sliding_window=(False, None))
    _refuse_layers(theirs)


def _refuse_layers(theirs: Theirs) -> None:
    """Layers of another kind than those that see everything before them."""
    kinds, n_layers = theirs["layer_types"], theirs["num_hidden_layers"]
    if kinds is None:
        return
    if kinds != ["full_attention"] * min(n_layers, 10**6):  # no list in a file is longer
        shown = (
            f"[{', '.join(map(str, kinds[:3]))}{', ...' if kinds[3:] else ''}]" if isinstance(kinds, list) else kinds
        )
        raise ValueError(f"layer_types={shown}: here all {n_layers} layers are full_attention.")


def read_qwen2(theirs: Theirs) -> config.Architecture:
    """Qwen 2 and 2.5: biases on q, k and v alone (Yang et al. 2024)."""
    _refuse_windows(theirs)
    return _read(theirs, ffn="swiglu", biases=(True, False))


def read_qwen3(theirs: Theirs) -> config.Architecture:
    """Qwen 3: norms on queries and keys (Yang et al. 2025)."""
    _refuse_windows(theirs)
    return _read(theirs, ffn="swiglu", biases=_own_biases(theirs), qk_norm=True)


TANH = "gelu_pytorch_tanh"
GEMMA_FFN = {"gelu": "geglu", TANH: "geglu_tanh"}
ONE_SIDE = (None, False)


def read_gemma(theirs: Theirs) -> config.Architecture:
    """Gemma: GEGLU, embeddings multiplied by sqrt(D) (Gemma Team 2024). Its "gelu" has always meant the tanh form."""
    refuse(theirs, hidden_act=tuple(GEMMA_FFN), hidden_activation=(None, TANH), use_bidirectional_attention=ONE_SIDE)
    return _read(theirs, ffn="geglu_tanh", biases=_own_biases(theirs), embed_scale=None)


def read_gemma2(theirs: Theirs) -> config.Architecture:
    """Gemma 2 without its windows and caps on logits: norms on both sides of a sublayer, a scale of its own."""
    act = theirs["hidden_activation"]
    refuse(
        theirs,
        hidden_activation=tuple(GEMMA_FFN),
        hidden_act=(None, act),
        use_bidirectional_attention=ONE_SIDE,
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
    )
    if theirs["layer_types"] is None:
        raise ValueError("layer_types: absent, which means attention windows in every other layer; no part here does.")
    _refuse_layers(theirs)
    return _read(
        theirs,
        ffn=GEMMA_FFN[act],
        biases=_own_biases(theirs),
        embed_scale=None,
        placement="sandwich",
        scale=theirs["query_pre_attn_scalar"] ** -0.5,
    )


def _write(
    c: config.Architecture, name: str, table: NameMap, *, ffns: tuple[str, ...], **allowed: Any
) -> dict[str, Any]:
    """What the family shares; the settings of ours that it has no place for are refused."""
    default: dict[str, Any] = {
        "ffn__name": ffns,
        "norm__name": ("rmsnorm",),
        "placement__name": ("pre",),
        "attention__name": ATTENTIONS,
        "attention__causal": (True,),
        "attention__scale": (c.model.d_head**-0.5,),
        "attention__qk_norm": (False,),
        "posenc__name": ROPES,
    }
    require(c, name, **default | allowed)
    require(c, name, posenc__width=(c.model.d_head,))
    return {
        **write_sizes(c, table),
        **write_rope(c),
        "num_key_value_heads": c.attention.n_kv_heads,
        "head_dim": c.model.d_head,
        "intermediate_size": c.ffn.d_ff,
        "rms_norm_eps": c.norm.eps,
    }


def write_llama(c: config.Architecture) -> dict[str, Any]:
    """Biases are of q, k, v and the output together, and of the feed-forward layer."""
    bias = c.attention.bias
    theirs = _write(c, "llama", LLAMA, ffns=("swiglu",), attention__output_bias=(bias,))
    return theirs | {"hidden_act": "silu", "attention_bias": bias, "mlp_bias": c.ffn.bias}


def write_mistral(c: config.Architecture) -> dict[str, Any]:
    """No biases, no window."""
    none = {"attention__bias": (False,), "attention__output_bias": (False,), "ffn__bias": (False,)}
    return _write(c, "mistral", LLAMA, ffns=("swiglu",), **none) | {"hidden_act": "silu", "sliding_window": None}


def write_qwen2(c: config.Architecture) -> dict[str, Any]:
    """Biases on q, k and v alone."""
    own = {"attention__bias": (True,), "attention__output_bias": (False,), "ffn__bias": (False,)}
    return _write(c, "qwen2", LLAMA, ffns=("swiglu",), **own) | {"hidden_act": "silu", "use_sliding_window": False}


def write_qwen3(c: config.Architecture) -> dict[str, Any]:
    """Norms on queries and keys."""
    bias = c.attention.bias
    own = {"attention__qk_norm": (True,), "attention__output_bias": (bias,), "ffn__bias": (False,)}
    theirs = _write(c, "qwen3", LLAMA, ffns=("swiglu",), **own)
    return theirs | {"hidden_act": "silu", "attention_bias": bias, "use_sliding_window": False}


def _write_gemma(
    c: config.Architecture, name: str, table: NameMap, ffns: tuple[str, ...], **own: Any
) -> dict[str, Any]:
    bias = c.attention.bias
    theirs = _write(c, name, table, ffns=ffns, ffn__bias=(False,), attention__output_bias=(bias,), **own)
    return theirs | {"attention_bias": bias}


def write_gemma(c: config.Architecture) -> dict[str, Any]:
    """GEGLU with GELU's tanh approximation."""
    return _write_gemma(c, "gemma", GEMMA, ("geglu_tanh",)) | {"hidden_act": "gelu_pytorch_tanh"}


def write_gemma2(c: config.Architecture) -> dict[str, Any]:
    """GEGLU with either GELU, norms on both sides of a sublayer; scores by 1/sqrt of any whole number."""
    scale = c.attention.scale
    scalar = max(1, round(scale**-2))
    if abs(scalar**-0.5 - scale) > 1e-9 * scale:
        raise ValueError(f"attention.scale={scale}: gemma2 has 1/sqrt of a whole number, such as {scalar**-0.5}.")
    own = {"placement__name": ("sandwich",), "attention__scale": (scale,)}
    return _write_gemma(c, "gemma2", GEMMA2, tuple(GEMMA_FFN.values()), **own) | {
        "hidden_activation": next(act for act, ffn in GEMMA_FFN.items() if ffn == c.ffn.name),
        "query_pre_attn_scalar": scalar,
        "layer_types": ["full_attention"] * c.model.n_layers,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    }


NEEDED = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"),
    "max_position_embeddings",
)
ABSENT = {
    **ROPE,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "num_key_value_heads": None,
    "head_dim": None,
    "tie_word_embeddings": False,
}
QWEN = ABSENT | {"num_key_value_heads": 32, "use_sliding_window": False, "layer_types": None}
# Windows that Qwen's use_sliding_window turns off.
OFF = ("sliding_window", "max_window_layers")
OF_GEMMA = {"head_dim": 256, "tie_word_embeddings": True, "attention_bias": False, "use_bidirectional_attention": None}
GEMMA_ABSENT = ABSENT | OF_GEMMA | {"hidden_act": TANH, "hidden_activation": None, "num_key_value_heads": 16}
GEMMA2_ABSENT = {
    **ABSENT,
    **OF_GEMMA,
    "hidden_act": None,
    "hidden_activation": TANH,
    "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256,
    "layer_types": None,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
}
ARCHITECTURES = (
    Conversion(
        "llama",
        "LlamaForCausalLM",
        LLAMA,
        read_llama,
        write_llama,
        NEEDED,
        ABSENT | {"attention_bias": False, "mlp_bias": False, "sliding_window": None},
    ),
    Conversion(
        "mistral",
        "MistralForCausalLM",
        LLAMA,
        read_mistral,
        write_mistral,
        NEEDED,
        ABSENT | {"num_key_value_heads": 8, "sliding_window": 4096},
    ),
    Conversion("qwen2", "Qwen2ForCausalLM", LLAMA, read_qwen2, write_qwen2, NEEDED, QWEN, OFF),
    Conversion(
        "qwen3",
        "Qwen3ForCausalLM",
        LLAMA,
        read_qwen3,
        write_qwen3,
        NEEDED,
        QWEN | {"head_dim": 128, "attention_bias": False},
        OFF,
    ),
    Conversion("gemma", "GemmaForCausalLM", GEMMA, read_gemma, write_gemma, NEEDED, GEMMA_ABSENT),
    Conversion(
        "gemma2",
        "Gemma2ForCausalLM",
        GEMMA2,
        read_gemma2,
        write_gemma2,
        NEEDED,
        GEMMA2_ABSENT,
        ("sliding_window",),
    ),
)
