"""The decoder of T5 without its encoder: relative biases in buckets, scores that are not scaled.

Not one of the ARCHITECTURES: as a model of its own Hugging Face has no such decoder. It is here to compare with.
"""

from lecture04 import config
from lecture04.huggingface.mapping import NameMap, rule
from lecture04.huggingface.settings import Theirs, read_sizes, refuse, resolved

BLOCK = "decoder.block.{i}.layer."
DECODER = NameMap(
    "decoder.embed_tokens.weight",
    "lm_head.weight",
    (
        *(
            rule(f"blocks.{{i}}.attention.{ours}.weight", f"{BLOCK}0.SelfAttention.{theirs}.weight")
            for ours, theirs in (("q", "q"), ("k", "k"), ("v", "v"), ("output", "o"))
        ),
        rule("posenc.table", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
        *(
            rule(f"blocks.{{i}}.ffn.{ours}.weight", f"{BLOCK}2.DenseReluDense.{theirs}.weight")
            for ours, theirs in (("up", "wi"), ("gate", "wi_0"), ("up", "wi_1"), ("down", "wo"))
        ),
        rule("blocks.{i}.attention_norm.weight", f"{BLOCK}0.layer_norm.weight"),
        rule("blocks.{i}.ffn_norm.weight", f"{BLOCK}2.layer_norm.weight"),
        rule("final_norm.weight", "decoder.final_layer_norm.weight"),
    ),
    ignored=(r"\.layer\.1\.",),  # what attends to the encoder
)
FFN = {"relu": "relu", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}


def read_decoder(theirs: Theirs, n_ctx: int) -> config.Architecture:
    """T5's decoder (Raffel et al. 2020), and that of T5 1.1, whose feed-forward layer is gated; an untied head.

    `n_ctx` is the length of a row: theirs has none of its own.
    """
    refuse(theirs, feed_forward_proj=tuple(FFN), d_kv=theirs["d_model"] // theirs["num_heads"])
    usual = {
        "hidden_size": theirs["d_model"],
        "num_attention_heads": theirs["num_heads"],
        "num_hidden_layers": theirs["num_layers"],
        "max_position_embeddings": n_ctx,
        "vocab_size": theirs["vocab_size"],
    }
    return resolved(
        read_sizes(usual),
        ffn=config.asked(config.FFN, name=FFN[theirs["feed_forward_proj"]], d_ff=theirs["d_ff"], bias=False),
        norm=config.asked(config.Norm, name="rmsnorm", eps=theirs["layer_norm_epsilon"]),
        placement=config.asked(config.Placement, name="pre"),
        attention=config.asked(config.Attention, name="mha", bias=False, scale=1.0),
        posenc=config.asked(
            config.T5,
            name="t5",
            n_buckets=theirs["relative_attention_num_buckets"],
            max_distance=theirs["relative_attention_max_distance"],
        ),
    )
