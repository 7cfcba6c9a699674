"""DeepSeek-V2 and -V3 without experts: multi-head latent attention, RoPE on interleaved pairs."""

from dataclasses import replace
from typing import Any

from lecture04 import config
from lecture04.config import RopeScaling
from lecture04.huggingface.mapping import SAME, NameMap, Rotated, Stacked, d_head, n_heads, rule
from lecture04.huggingface.rope import ABSENT as ROPE
from lecture04.huggingface.rope import attention_factor, plain, read_whole_rope, scaling_of, write_rope
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


def d_latent(c: config.Architecture) -> int:
    """L."""
    assert isinstance(c.attention, config.MLA)
    return c.attention.d_latent


def d_rope(c: config.Architecture) -> int:
    """R."""
    assert isinstance(c.attention, config.MLA)
    return c.attention.d_rope


Q = Rotated(in_halves=False, heads=n_heads, width=d_rope, offset=d_head)
K_ROPE = Rotated(in_halves=False, heads=lambda c: 1, width=d_rope)
DEEPSEEK = NameMap(
    "model.embed_tokens.weight",
    "lm_head.weight",
    (
        rule("blocks.{i}.attention.q.*", "model.layers.{i}.self_attn.q_proj.*", Q),
        rule(
            ("blocks.{i}.attention.kv_down.*", "blocks.{i}.attention.k_rope.*"),
            "model.layers.{i}.self_attn.kv_a_proj_with_mqa.*",
            Stacked((d_latent, d_rope), (SAME, K_ROPE)),
        ),
        rule("blocks.{i}.attention.kv_norm.weight", "model.layers.{i}.self_attn.kv_a_layernorm.weight"),
        rule(
            ("blocks.{i}.attention.k_up.weight", "blocks.{i}.attention.v_up.weight"),
            "model.layers.{i}.self_attn.kv_b_proj.weight",
            Stacked((d_head, d_head), (SAME, SAME), heads=n_heads),
        ),
        rule("blocks.{i}.attention.output.*", "model.layers.{i}.self_attn.o_proj.*"),
        *(
            rule(f"blocks.{{i}}.ffn.{name}.*", f"model.layers.{{i}}.mlp.{name}_proj.*")
            for name in ("gate", "up", "down")
        ),
        rule("blocks.{i}.attention_norm.weight", "model.layers.{i}.input_layernorm.weight"),
        rule("blocks.{i}.ffn_norm.weight", "model.layers.{i}.post_attention_layernorm.weight"),
        rule("final_norm.weight", "model.norm.weight"),
    ),
    ignored=(r"rotary_emb\.inv_freq$",),
)

# The norm of the latent has this epsilon, whatever rms_norm_eps is; here all norms have one.
LATENT_EPS = 1e-6


def read_deepseek(theirs: Theirs) -> config.Architecture:
    """DeepSeek-V2 and -V3 of dense layers, queries not compressed (DeepSeek-AI 2024).

    YaRN's temperature is theirs: with mscale_all_dim on all scores, (0.1 mscale_all_dim ln(factor) + 1)^2.
    """
    heads, rope = theirs["num_attention_heads"], theirs["qk_rope_head_dim"]
    width = theirs["hidden_size"] // heads
    refuse(
        theirs,
        hidden_act="silu",
        q_lora_rank=None,
        qk_nope_head_dim=width,
        v_head_dim=width,
        rope_interleave=True,
        attention_bias=False,
        mlp_bias=False,
        rms_norm_eps=LATENT_EPS,
        num_key_value_heads=(None, heads),
        head_dim=(None, rope),
        qk_head_dim=(None, width + rope),
    )
    if theirs["first_k_dense_replace"] < theirs["num_hidden_layers"]:
        raise ValueError(f"{as_said(theirs, 'first_k_dense_replace')}: there are no experts here.")
    sizes, latent, (_, given) = read_sizes(theirs), theirs["kv_lora_rank"], scaling_of(theirs)
    posenc = replace(read_whole_rope(theirs, "rope", rope, sizes.n_ctx), width=rope)
    if m := given.get("mscale_all_dim"):
        if (factor := attention_factor(given)) != 1:
            raise ValueError(
                f"mscale_all_dim={m}, mscale={given.get('mscale')}: multiply the rotated queries and keys by "
                f"{factor:g} beside all scores; here mscale must be mscale_all_dim."
            )
        posenc = replace(posenc, scaling=replace(posenc.scaling, on_scores=True, temperature=plain(0.1 * m)))
    return resolved(
        sizes,
        ffn=config.asked(config.FFN, name="swiglu", d_ff=theirs["intermediate_size"], bias=False),
        norm=config.asked(config.Norm, name="rmsnorm", eps=theirs["rms_norm_eps"]),
        placement=config.asked(config.Placement, name="pre"),
        attention=config.asked(config.MLA, name="mla", bias=False, d_latent=latent, d_rope=rope),
        posenc=posenc,
    )


def write_deepseek_v2(c: config.Architecture) -> dict[str, Any]:
    """As V3's, but for odd widths, at which transformers' rotation of pairs in one view fails."""
    theirs = write_deepseek(c)
    if d_latent(c) % 2:
        raise ValueError(f"attention.d_latent={d_latent(c)}: deepseek_v2 needs an even one.")
    if c.model.d_head % 2:
        raise ValueError(f"model.n_heads={c.model.n_heads}: deepseek_v2 needs an even d_head, not {c.model.d_head}.")
    return theirs


def write_deepseek(c: config.Architecture) -> dict[str, Any]:
    """Every layer dense."""
    is_latent = isinstance(c.attention, config.MLA)
    require(
        c,
        "deepseek",
        ffn__name=("swiglu",),
        ffn__bias=(False,),
        norm__name=("rmsnorm",),
        norm__eps=(LATENT_EPS,),
        placement__name=("pre",),
        attention__name=("mla",),
        attention__bias=(False,),
        attention__output_bias=(False,),
        attention__causal=(True,),
        attention__scale=((c.model.d_head + d_rope(c)) ** -0.5 if is_latent else c.attention.scale,),
        posenc__name=("rope", "rope_half"),
    )
    assert isinstance(c.posenc, config.Rope)
    scaling = c.posenc.scaling
    # On all scores in place of the rotated queries and keys: with a temperature of 0 on neither.
    off = replace(scaling, on_scores=False, temperature=0.0)
    rope = write_rope(replace(c, posenc=replace(c.posenc, scaling=off)) if scaling.on_scores else c)
    if scaling.name is RopeScaling.yarn and scaling.on_scores and scaling.temperature:
        rope["rope_scaling"] |= dict.fromkeys(("mscale", "mscale_all_dim"), plain(scaling.temperature / 0.1))
    return {
        **write_sizes(c, DEEPSEEK),
        **rope,
        "num_key_value_heads": c.model.n_heads,
        "q_lora_rank": None,
        "kv_lora_rank": d_latent(c),
        "qk_rope_head_dim": d_rope(c),
        "qk_nope_head_dim": c.model.d_head,
        "v_head_dim": c.model.d_head,
        "first_k_dense_replace": c.model.n_layers,
        "intermediate_size": c.ffn.d_ff,
        "hidden_act": "silu",
        "rms_norm_eps": c.norm.eps,
        "attention_bias": False,
    }


NEEDED = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"),
    *("max_position_embeddings", "kv_lora_rank", "qk_rope_head_dim"),
)
ABSENT = {
    **ROPE,
    "hidden_act": "silu",
    "rms_norm_eps": LATENT_EPS,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "head_dim": None,
    "qk_head_dim": None,
    "rope_interleave": True,
}
# What experts have, of which there are none here; and heads that predict more than the next token.
EXPERTS = (
    *("n_routed_experts", "n_shared_experts", "num_experts", "num_local_experts", "num_experts_per_tok"),
    *("moe_intermediate_size", "moe_layer_freq", "n_group", "topk_group", "topk_method", "norm_topk_prob"),
    *("routed_scaling_factor", "scoring_func", "seq_aux", "aux_loss_alpha", "ep_size", "output_router_logits"),
    *("num_nextn_predict_layers", "num_mtp_layers"),
)
ARCHITECTURES = (
    Conversion(
        "deepseek_v2",
        "DeepseekV2ForCausalLM",
        DEEPSEEK,
        read_deepseek,
        write_deepseek_v2,
        NEEDED,
        ABSENT | {"num_key_value_heads": None, "first_k_dense_replace": 0},
        EXPERTS,
    ),
    Conversion(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        DEEPSEEK,
        read_deepseek,
        write_deepseek,
        NEEDED,
        ABSENT | {"num_key_value_heads": 128, "first_k_dense_replace": 3},
        EXPERTS,
    ),
)
