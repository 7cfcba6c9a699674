"""Llama and its family: pre-norm RMSNorm, gated feed-forward layers, grouped-query attention, RoPE in halves."""

import math
from dataclasses import replace
from typing import Any

from lecture04 import config
from lecture04.huggingface.mapping import K_HALVES, ONE_HEAD, Q_HALVES, SAME, NameMap, Rule, Shifted, TensorLayout, rule
from lecture04.huggingface.settings import (
    Conversion,
    Theirs,
    read_rope,
    read_sizes,
    refuse,
    require,
    resolved,
    write_rope,
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

NO_WINDOW = {"use_sliding_window": (False, None), "attn_logit_softcapping": None, "final_logit_softcapping": None}


def _read(
    theirs: Theirs,
    *,
    ffn: str,
    biases: tuple[bool, bool],
    tied: bool = False,
    embed_scale: float | None = 1.0,
    placement: str = "pre",
    scale: float | None = None,
    qk_norm: bool = False,
) -> config.Architecture:
    """What the family shares; `biases` are those of q, k and v, and of the attention's output."""
    sizes, (bias, output_bias) = read_sizes(theirs, tied=tied, embed_scale=embed_scale), biases
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
        posenc=read_rope(theirs, "rope_half", sizes.d_head),
    )


def _own_biases(theirs: Theirs) -> tuple[bool, bool]:
    """One setting for q, k and v and for the output."""
    bias = bool(theirs.get("attention_bias"))
    return bias, bias


def read_llama(theirs: Theirs) -> config.Architecture:
    """Llama 1 to 3 and Mistral without its window (Touvron et al. 2023; Dubey et al. 2024; Jiang et al. 2023)."""
    refuse(theirs, hidden_act="silu", sliding_window=None, **NO_WINDOW)
    return _read(theirs, ffn="swiglu", biases=_own_biases(theirs))


def read_qwen2(theirs: Theirs) -> config.Architecture:
    """Qwen 2 and 2.5: biases on q, k and v alone (Yang et al. 2024)."""
    refuse(theirs, hidden_act="silu", **NO_WINDOW)
    return _read(theirs, ffn="swiglu", biases=(True, False))


def read_qwen3(theirs: Theirs) -> config.Architecture:
    """Qwen 3: norms on queries and keys (Yang et al. 2025)."""
    refuse(theirs, hidden_act="silu", **NO_WINDOW)
    return _read(theirs, ffn="swiglu", biases=_own_biases(theirs), qk_norm=True)


GEMMA_FFN = {"gelu": "geglu", "gelu_pytorch_tanh": "geglu_tanh"}


def read_gemma(theirs: Theirs) -> config.Architecture:
    """Gemma: GEGLU, embeddings multiplied by sqrt(D) (Gemma Team 2024). Its "gelu" has always meant the tanh form."""
    refuse(theirs, hidden_act=tuple(GEMMA_FFN))
    return _read(theirs, ffn="geglu_tanh", biases=_own_biases(theirs), tied=True, embed_scale=None)


def read_gemma2(theirs: Theirs) -> config.Architecture:
    """Gemma 2 without its windows and caps on logits: norms on both sides of a sublayer, a scale of its own."""
    windows = {**theirs, "layer_types": sorted(set(theirs.get("layer_types") or ()))}
    refuse(windows, layer_types=(["full_attention"],), use_bidirectional_attention=(None, False), **NO_WINDOW)
    refuse(theirs, hidden_activation=tuple(GEMMA_FFN))
    return _read(
        theirs,
        ffn=GEMMA_FFN[theirs["hidden_activation"]],
        biases=_own_biases(theirs),
        tied=True,
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
    scalar = round(scale**-2)
    if abs(scalar**-0.5 - scale) > 1e-9 * scale:
        raise ValueError(f"attention.scale={scale}: gemma2 has 1/sqrt of a whole number.")
    own = {"placement__name": ("sandwich",), "attention__scale": (scale,)}
    return _write_gemma(c, "gemma2", GEMMA2, tuple(GEMMA_FFN.values()), **own) | {
        "hidden_activation": next(act for act, ffn in GEMMA_FFN.items() if ffn == c.ffn.name),
        "query_pre_attn_scalar": scalar,
        "layer_types": ["full_attention"] * c.model.n_layers,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    }


ARCHITECTURES = (
    Conversion("llama", "LlamaForCausalLM", LLAMA, read_llama, write_llama),
    Conversion(
        "mistral",
        "MistralForCausalLM",
        LLAMA,
        read_llama,
        write_mistral,
        {"sliding_window": 4096, "num_key_value_heads": 8},
    ),
    Conversion("qwen2", "Qwen2ForCausalLM", LLAMA, read_qwen2, write_qwen2, {"num_key_value_heads": 32}),
    Conversion(
        "qwen3", "Qwen3ForCausalLM", LLAMA, read_qwen3, write_qwen3, {"num_key_value_heads": 32, "head_dim": 128}
    ),
    Conversion(
        "gemma", "GemmaForCausalLM", GEMMA, read_gemma, write_gemma, {"num_key_value_heads": 16, "head_dim": 256}
    ),
    Conversion(
        "gemma2",
        "Gemma2ForCausalLM",
        GEMMA2,
        read_gemma2,
        write_gemma2,
        {
            "num_key_value_heads": 4,
            "head_dim": 256,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
    ),
)
