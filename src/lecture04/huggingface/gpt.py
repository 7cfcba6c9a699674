"""GPT-2, GPT-NeoX and MPT: LayerNorm, plain feed-forward layers, q, k and v in one matrix."""

from dataclasses import replace
from typing import Any

from lecture04 import config
from lecture04.huggingface.mapping import (
    K_HALVES,
    Q_HALVES,
    SAME,
    Layout,
    Row,
    Stacked,
    Table,
    Transposed,
    WithoutBias,
    d_head,
    d_model,
    n_heads,
    row,
)
from lecture04.huggingface.settings import (
    Architecture,
    Theirs,
    read_rope,
    read_sizes,
    refuse,
    require,
    write_rope,
    write_sizes,
)

QKV = ("blocks.{i}.attention.q.*", "blocks.{i}.attention.k.*", "blocks.{i}.attention.v.*")


def rows(theirs: str, qkv: str, output: str, up: str, down: str, layout: tuple[Layout, Layout]) -> tuple[Row, ...]:
    """The Linear layers of a block; `layout` is that of q, k and v together, and of the others."""
    together, alone = layout
    return (
        row(QKV, f"{theirs}{qkv}.*", together),
        row("blocks.{i}.attention.output.*", f"{theirs}{output}.*", alone),
        row("blocks.{i}.ffn.up.*", f"{theirs}{up}.*", alone),
        row("blocks.{i}.ffn.down.*", f"{theirs}{down}.*", alone),
    )


END_TO_END = Stacked((d_model,) * 3, (SAME,) * 3)
GPT2 = Table(
    "transformer.wte.weight",
    "lm_head.weight",
    (
        *rows(
            "transformer.h.{i}.",
            "attn.c_attn",
            "attn.c_proj",
            "mlp.c_fc",
            "mlp.c_proj",
            (Transposed(END_TO_END), Transposed()),
        ),
        row("blocks.{i}.attention_norm.*", "transformer.h.{i}.ln_1.*"),
        row("blocks.{i}.ffn_norm.*", "transformer.h.{i}.ln_2.*"),
        row("final_norm.*", "transformer.ln_f.*"),
        row("posenc.table", "transformer.wpe.weight"),
    ),
    ignored=(r"\.attn\.(masked_)?bias$",),
)
BY_HEAD = Stacked((d_head,) * 3, (Q_HALVES, K_HALVES, SAME), heads=n_heads)
NEOX = Table(
    "gpt_neox.embed_in.weight",
    "lm_head.weight",
    (
        *rows(
            "gpt_neox.layers.{i}.",
            "attention.query_key_value",
            "attention.dense",
            "mlp.dense_h_to_4h",
            "mlp.dense_4h_to_h",
            (BY_HEAD, SAME),
        ),
        row("blocks.{i}.attention_norm.*", "gpt_neox.layers.{i}.input_layernorm.*"),
        row("blocks.{i}.ffn_norm.*", "gpt_neox.layers.{i}.post_attention_layernorm.*"),
        row("final_norm.*", "gpt_neox.final_layer_norm.*"),
    ),
    ignored=(r"\.attention\.(masked_)?bias$", r"rotary_emb\.inv_freq$"),
    head_on_disk="embed_out.weight",
)
MPT = Table(
    "transformer.wte.weight",
    "lm_head.weight",
    (
        *rows(
            "transformer.blocks.{i}.",
            "attn.Wqkv",
            "attn.out_proj",
            "ffn.up_proj",
            "ffn.down_proj",
            (END_TO_END, SAME),
        ),
        *(
            row((f"{ours}.weight", f"{ours}.bias"), f"transformer.{theirs}.weight", WithoutBias())
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


def _parts(ffn: str, d_ff: int, eps: float, cfg: config.Root, bias: bool) -> dict[str, Any]:
    """What the three share."""
    return {
        "ffn": config.FFN(name=ffn, d_ff=d_ff, bias=bias),
        "norm": config.Norm(name="layernorm", eps=eps),
        "placement": config.Placement(name="pre"),
        "attention": config.Attention(name="mha", n_kv_heads=cfg.model.n_heads, bias=bias, output_bias=bias),
    }


def read_gpt2(theirs: Theirs, base: config.Root) -> config.Root:
    """GPT-2: learned positions, GELU's tanh approximation, biases (Radford et al. 2019)."""
    refuse(
        theirs,
        activation_function=tuple(FFNS),
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        add_cross_attention=False,
    )
    names = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
    }
    cfg = read_sizes({**theirs, **{usual: theirs[own] for usual, own in names.items()}}, base, tied=True, bias=True)
    d_ff = theirs.get("n_inner") or 4 * cfg.model.d_model
    parts = _parts(FFNS[theirs["activation_function"]], d_ff, theirs["layer_norm_epsilon"], cfg, bias=True)
    return replace(cfg, posenc=config.Learned(name="learned", n_positions=theirs["n_positions"]), **parts)


def read_neox(theirs: Theirs, base: config.Root) -> config.Root:
    """GPT-NeoX and Pythia with sublayers one after the other: part of each head rotated (Black et al. 2022)."""
    refuse(theirs, hidden_act=tuple(FFNS), use_parallel_residual=False, attention_bias=True)
    cfg = read_sizes(theirs, base, tied=False, bias=True)
    ffn, eps = FFNS[theirs["hidden_act"]], theirs["layer_norm_eps"]
    parts = _parts(ffn, theirs["intermediate_size"], eps, cfg, bias=True)
    return replace(cfg, posenc=read_rope(theirs, "rope_half", cfg.model.d_head), **parts)


def read_mpt(theirs: Theirs, base: config.Root) -> config.Root:
    """MPT: ALiBi, no biases, not even of norms: ours are 0 (MosaicML 2023)."""
    refuse(theirs, norm_type="low_precision_layernorm", no_bias=True, expansion_ratio=4)
    attn = theirs["attn_config"]
    attn = attn if isinstance(attn, dict) else attn.to_dict()
    refuse(
        attn, alibi=True, alibi_bias_max=8, clip_qkv=None, qk_ln=False, prefix_lm=False, attn_type="multihead_attention"
    )
    names = {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "max_position_embeddings": "max_seq_len",
    }
    cfg = read_sizes({**theirs, **{usual: theirs[own] for usual, own in names.items()}}, base, tied=True)
    parts = _parts("gelu", 4 * cfg.model.d_model, theirs["layer_norm_epsilon"], cfg, bias=False)
    attention = replace(parts["attention"], scale=attn.get("softmax_scale"))
    return replace(cfg, posenc=config.PosEnc(name="alibi"), **parts | {"attention": attention})


def _require(cfg: config.Root, name: str, *, bias: bool, ffns: tuple[str, ...], posencs: tuple[str, ...]) -> None:
    require(
        cfg,
        name,
        ffn__name=ffns,
        ffn__bias=(bias,),
        norm__name=("layernorm",),
        placement__name=("pre",),
        attention__n_kv_heads=(cfg.model.n_heads,),
        attention__bias=(bias,),
        attention__has_output_bias=(bias,),
        attention__causal=(True,),
        attention__qk_norm=(False,),
        posenc__name=posencs,
    )


def write_gpt2(cfg: config.Root) -> dict[str, Any]:
    """Learned positions, as many as the table has."""
    _require(cfg, "gpt2", bias=True, ffns=tuple(WRITTEN), posencs=("learned",))
    require(cfg, "gpt2", attention__scale=(None, cfg.model.d_head**-0.5))
    assert isinstance(cfg.posenc, config.Learned)
    usual = write_sizes(cfg, GPT2)
    return {
        "n_embd": usual["hidden_size"],
        "n_layer": usual["num_hidden_layers"],
        "n_head": usual["num_attention_heads"],
        "n_positions": cfg.posenc.n_positions,
        "n_inner": cfg.ffn.d_ff,
        "activation_function": WRITTEN[cfg.ffn.name],
        "layer_norm_epsilon": cfg.norm.eps,
        "tie_word_embeddings": usual["tie_word_embeddings"],
        "vocab_size": usual["vocab_size"],
    }


def write_neox(cfg: config.Root) -> dict[str, Any]:
    """Sublayers one after the other."""
    _require(cfg, "gpt_neox", bias=True, ffns=tuple(WRITTEN), posencs=("rope", "rope_half"))
    require(cfg, "gpt_neox", attention__scale=(None, cfg.model.d_head**-0.5))
    assert isinstance(cfg.posenc, config.Rope)
    rope, share = write_rope(cfg), (cfg.posenc.width or cfg.model.d_head) / cfg.model.d_head
    return {
        **write_sizes(cfg, NEOX),
        "rotary_emb_base": rope["rope_theta"],
        "rotary_pct": share,
        **rope,
        "use_parallel_residual": False,
        "attention_bias": True,
        "intermediate_size": cfg.ffn.d_ff,
        "hidden_act": WRITTEN[cfg.ffn.name],
        "layer_norm_eps": cfg.norm.eps,
    }


def write_mpt(cfg: config.Root) -> dict[str, Any]:
    """ALiBi, a feed-forward layer of 4 D."""
    _require(cfg, "mpt", bias=False, ffns=("gelu",), posencs=("alibi",))
    require(cfg, "mpt", ffn__d_ff=(4 * cfg.model.d_model,))
    usual = write_sizes(cfg, MPT)
    return {
        "d_model": usual["hidden_size"],
        "n_layers": usual["num_hidden_layers"],
        "n_heads": usual["num_attention_heads"],
        "max_seq_len": usual["max_position_embeddings"],
        "tie_word_embeddings": usual["tie_word_embeddings"],
        "vocab_size": usual["vocab_size"],
        "layer_norm_epsilon": cfg.norm.eps,
        "attn_config": {"alibi": True, "softmax_scale": cfg.attention.scale},
    }


ARCHITECTURES = (
    Architecture("gpt2", "GPT2LMHeadModel", GPT2, read_gpt2, write_gpt2),
    Architecture(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        NEOX,
        read_neox,
        write_neox,
        {"use_parallel_residual": True, "rotary_pct": 0.25},
    ),
    Architecture("mpt", "MptForCausalLM", MPT, read_mpt, write_mpt),
)
