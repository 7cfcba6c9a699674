"""Which settings a config.json may hold, and of which kind: every one is read, changes no logit, or is refused.

A setting that nobody here knows may change the model, so it is refused by its name.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

COUNTS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"),
    *("intermediate_size", "n_embd", "n_layer", "n_head", "n_positions", "d_model", "n_layers", "n_heads"),
    *("max_seq_len", "kv_lora_rank", "qk_rope_head_dim", "original_max_position_embeddings"),
)
COUNTS_OR_NULL = ("num_key_value_heads", "head_dim", "n_inner")
FROM_0 = ("first_k_dense_replace",)
NUMBERS = (
    *("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "rope_theta", "rotary_pct", "rotary_emb_base"),
    *("factor", "low_freq_factor", "high_freq_factor", "query_pre_attn_scalar"),
)
NUMBERS_OR_NULL = ("beta_fast", "beta_slow", "softmax_scale", "attention_factor", "partial_rotary_factor")
NUMBERS_FROM_0 = ("mscale", "mscale_all_dim")
FLAGS = ("tie_word_embeddings", "attention_bias", "mlp_bias")
BELOW = ("rope_scaling", "rope_parameters", "attn_config")
"""Settings that are settings of their own."""

INERT = frozenset(
    (
        # who wrote the file, and with what
        *("model_type", "architectures", "auto_map", "transformers_version", "written_by", "name_or_path"),
        *("unsloth_version", "unsloth_fixed"),
        # types and devices: what is read becomes float32
        *("dtype", "torch_dtype", "use_bfloat16", "torchscript", "init_device"),
        # how the same numbers are computed
        *("use_cache", "cache_implementation", "pretraining_tp", "chunk_size_feed_forward", "gradient_checkpointing"),
        *("attn_implementation", "experts_implementation"),
        # what is returned, and what other heads than a language model's do
        *("output_attentions", "output_hidden_states", "return_dict", "problem_type", "num_labels", "finetuning_task"),
        *("id2label", "label2id", "task_specific_params", "classifier_dropout", "is_decoder", "tie_encoder_decoder"),
        *("cross_attention_hidden_size", "tf_legacy_loss", "tie_last_hidden_states"),
        # training
        *("initializer_range", "attention_dropout", "hidden_dropout", "router_aux_loss_coef"),
        # tokens
        *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id"),
        *("tokenizer_class", "prefix", "model_max_length"),
        # how texts are generated
        *("assistant_confidence_threshold", "assistant_lookbehind", "bad_words_ids", "begin_suppress_tokens"),
        *("diversity_penalty", "do_sample", "early_stopping", "encoder_no_repeat_ngram_size"),
        *("encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff", "exponential_decay_length_penalty"),
        *("forced_bos_token_id", "forced_eos_token_id", "length_penalty", "max_length", "min_length"),
        *("no_repeat_ngram_size", "num_assistant_tokens", "num_assistant_tokens_schedule", "num_beam_groups"),
        *("num_beams", "num_return_sequences", "output_scores", "remove_invalid_values", "repetition_penalty"),
        *("return_dict_in_generate", "suppress_tokens", "target_lookbehind", "temperature", "top_k", "top_p"),
        "typical_p",
    )
)
"""What changes no logit in any architecture. Nor does a name that begins with an underscore: a library's own note."""

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({},),
    "use_mrope": (False,),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "use_sliding_window": (False,),
    "use_bidirectional_attention": (False,),
}
"""What stands in files of architectures that do not look at it, with the values that change nothing, as null does."""


def unknown(said: Mapping[str, Any], known: Iterable[str], inert: Iterable[str], path: str) -> Iterator[str]:
    """A line for each setting that might change the model and is not read; `path` stands before its name."""
    for key, value in said.items():
        if value is None or key in known or key in inert or key.startswith("_") or value in NEUTRAL.get(key, ()):
            continue
        yield f"{path}{key}={value}: not known here, so it may change the model."


def badly_typed(said: Mapping[str, Any]) -> list[str]:
    """Values that are no numbers where numbers stand, also in the settings below settings."""
    wrong = list[str]()
    for key, value in said.items():
        if key in BELOW and value is not None:
            wrong += badly_typed(value) if isinstance(value, dict) else [f"{key}={value!r}: must be settings."]
        elif wanted := _unmet(key, value):
            wrong.append(f"{key}={value!r}: must be {wanted}.")
    return wrong


def _unmet(key: str, value: object) -> str:
    """What the value should be and is not; empty where it is."""
    is_whole = type(value) is int
    if key in COUNTS or (key in COUNTS_OR_NULL and value is not None):
        return "" if is_whole and value >= 1 else "a whole number, 1 or more"  # type: ignore[operator]
    if key in FROM_0:
        return "" if is_whole and value >= 0 else "a whole number, 0 or more"  # type: ignore[operator]
    if key in NUMBERS or (key in NUMBERS_OR_NULL and value is not None):
        return "" if _is_finite(value) and value > 0 else "a number above 0"  # type: ignore[operator]
    if key in NUMBERS_FROM_0 and value is not None:
        return "" if _is_finite(value) and value >= 0 else "a number, 0 or more"  # type: ignore[operator]
    if key in FLAGS:
        return "" if isinstance(value, bool) else "true or false"
    return ""


def _is_finite(value: object) -> bool:
    """Whether it is a number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
