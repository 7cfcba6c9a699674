"""Parameters, FLOPs and KV numbers of a settled config, by formula. No torch; tests hold them to the built models."""

from dataclasses import replace

from lecture04.config import FFN, MLA, T5, Attention, Data, Learned, Model, Root, Shaw
from lecture04.config.registry import fact


def linear(d_in: int, d_out: int, bias: bool) -> int:
    """Parameters of a Linear layer."""
    return d_in * d_out + bias * d_out


def ffn_params(d_model: int, d_ff: int, *, gated: bool, bias: bool) -> int:
    """Parameters of one feed-forward layer: up (two of them where gated) and down."""
    return (2 if gated else 1) * linear(d_model, d_ff, bias) + linear(d_ff, d_model, bias)


def n_kv_heads(attention: Attention, model: Model) -> int:
    """The number of key and value heads; null means what the attention's name says."""
    return attention.n_kv_heads or fact("attention", attention.name, "n_kv_heads", model.n_heads)


def attention_params(attention: Attention, model: Model) -> int:
    """Parameters of one attention layer: q and output of d_model, k and v of n_kv_heads d_head. q/k norms apart."""
    d, bias = model.d_model, attention.bias
    output = linear(d, d, attention.has_output_bias)
    if isinstance(attention, MLA):
        latent, rope = attention.d_latent, attention.d_rope
        down = linear(d, d + model.n_heads * rope, bias) + linear(d, latent, bias) + linear(d, rope, bias)
        return down + 2 * linear(latent, d, False) + output
    d_kv = n_kv_heads(attention, model) * model.d_head
    return linear(d, d, bias) + 2 * linear(d, d_kv, bias) + output


def n_positions(posenc: Learned, data: Data) -> int:
    """The length of a learned table."""
    return data.max_len if posenc.n_positions is None else posenc.n_positions


def n_distances(posenc: Shaw, attention: Attention) -> int:
    """The distances with an embedding of their own: 0 .. max, and -1 .. -max where tokens see what comes after."""
    return posenc.max_distance * (1 if attention.causal else 2) + 1


def posenc_params(cfg: Root) -> int:
    """Parameters of the position encoding over the whole model."""
    match cfg.posenc:
        case Learned():
            return n_positions(cfg.posenc, cfg.data) * cfg.model.d_model
        case T5():
            return cfg.posenc.n_buckets * cfg.model.n_heads
        case Shaw():  # keys' and values' in each layer
            return cfg.model.n_layers * 2 * n_distances(cfg.posenc, cfg.attention) * cfg.model.d_head
        case _:
            return 0


def norm_params(cfg: Root) -> int:
    """Parameters of all norms: those of each sublayer, of queries and keys, and the last one where there is one."""
    per_sublayer = fact("placement", cfg.placement.name, "norms_per_sublayer", 1)
    places = 2 * cfg.model.n_layers * per_sublayer + fact("placement", cfg.placement.name, "final_norm", False)
    widths = places * cfg.model.d_model + cfg.attention.qk_norm * 2 * cfg.model.n_layers * cfg.model.d_head
    if isinstance(cfg.attention, MLA):
        widths += cfg.model.n_layers * cfg.attention.d_latent
    return fact("norm", cfg.norm.name, "n_vectors", 1) * widths


def is_gated(ffn: FFN) -> bool:
    """Whether the feed-forward layer has two up-projections."""
    return fact("ffn", ffn.name, "gated", False)


def params_by_part(cfg: Root) -> dict[str, int]:
    """Parameters of each family over the whole model."""
    model, ffn = cfg.model, cfg.ffn
    assert ffn.d_ff is not None, "settle the config first"
    embed = cfg.data.vocab_size * model.d_model
    one_ffn = ffn_params(model.d_model, ffn.d_ff, gated=is_gated(ffn), bias=ffn.bias)
    return {
        "embed": embed,
        "attention": model.n_layers * attention_params(cfg.attention, model),
        "ffn": model.n_layers * one_ffn,
        "norm": norm_params(cfg),
        "posenc": posenc_params(cfg),
        "head": 0 if model.tied else embed,
    }


def params(cfg: Root) -> int:
    """Parameters of the whole model; a tied embedding counts once."""
    return sum(params_by_part(cfg).values())


def standard_params(model: Model, vocab_size: int) -> int:
    """Parameters of the same sizes built of the standard parts.

    Pre-norm LayerNorm, a plain FFN of 4 d_model, MHA, sinusoidal positions, biases in every Linear layer.
    """
    d = model.d_model
    block = 4 * linear(d, d, True) + ffn_params(d, 4 * d, gated=False, bias=True) + 2 * 2 * d
    return vocab_size * d * (1 if model.tied else 2) + model.n_layers * block + 2 * d


def flops_per_token(cfg: Root, n_ctx: int | None = None) -> int:
    """Forward FLOPs for one of `n_ctx` tokens in a whole sequence (data.max_len where not given).

    Matrix products only, a multiply and an add counted as two, and the attention's products over all n_ctx keys: what a
    dense kernel does, mask or not. A training step costs about three times as much.
    """
    model, ffn = cfg.model, cfg.ffn
    assert ffn.d_ff is not None, "settle the config first"
    n_ctx = cfg.data.max_len if n_ctx is None else n_ctx
    d = model.d_model
    weights_alone = replace(cfg.attention, bias=False, output_bias=False)
    projections = attention_params(weights_alone, model)  # a weight is used once a token
    scores_and_values = 2 * n_ctx * d  # GQA shares keys, not work: every query head meets every key
    if isinstance(cfg.attention, MLA):
        scores_and_values += n_ctx * model.n_heads * cfg.attention.d_rope
    if isinstance(cfg.posenc, Shaw):  # every query meets every distance, every distance's weight its value
        scores_and_values += 2 * n_distances(cfg.posenc, cfg.attention) * d
    layer = projections + scores_and_values + (3 if is_gated(ffn) else 2) * d * ffn.d_ff
    return 2 * (model.n_layers * layer + d * cfg.data.vocab_size)


def kv_per_token(cfg: Root) -> int:
    """Numbers that the KV cache keeps for each token: 2 n_kv_heads d_head a layer, MLA's d_latent + d_rope."""
    if isinstance(cfg.attention, MLA):
        return cfg.model.n_layers * (cfg.attention.d_latent + cfg.attention.d_rope)
    return cfg.model.n_layers * 2 * n_kv_heads(cfg.attention, cfg.model) * cfg.model.d_head
