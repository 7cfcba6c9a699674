"""Configs of published models, as their config.json says them: read, and counted to the last parameter."""

import pytest

from lecture04.config import sizes
from lecture04.huggingface import ARCHITECTURES


def llama(d, d_ff, n_layers, n_heads, n_kv_heads, vocab, **own):
    return {
        "hidden_size": d,
        "intermediate_size": d_ff,
        "num_hidden_layers": n_layers,
        "num_attention_heads": n_heads,
        "num_key_value_heads": n_kv_heads,
        "vocab_size": vocab,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 4096,
        **own,
    }


LLAMA31 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}
# Name -> architecture, what its config.json says, parameters.
PUBLISHED = {
    "Llama 2 7B": ("llama", llama(4096, 11008, 32, 32, 32, 32_000), 6_738_415_616),
    "Llama 3.1 8B": (
        "llama",
        llama(4096, 14336, 32, 32, 8, 128_256, rope_theta=500_000.0, rope_scaling=LLAMA31),
        8_030_261_248,
    ),
    "Mistral 7B 0.3": ("mistral", llama(4096, 14336, 32, 32, 8, 32_768, sliding_window=None), 7_248_023_552),
    "Qwen2.5 0.5B": ("qwen2", llama(896, 4864, 24, 14, 2, 151_936, tie_word_embeddings=True), 494_032_768),
    "Qwen3 8B": ("qwen3", llama(4096, 12288, 36, 32, 8, 151_936, head_dim=128), 8_190_735_360),
    "Gemma 2B": (
        "gemma",
        llama(2048, 16384, 18, 8, 1, 256_000, head_dim=256, hidden_act="gelu"),
        2_506_172_416,
    ),
    "GPT-2": (
        "gpt2",
        {
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_positions": 1024,
            "vocab_size": 50_257,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
        },
        124_439_808,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_model_has_its_parameters(name):
    model_type, theirs, n_params = PUBLISHED[name]
    assert sizes.params(ARCHITECTURES[model_type].read(theirs)) == n_params


def test_llama_31_has_its_scaling():
    scaling = ARCHITECTURES["llama"].read(PUBLISHED["Llama 3.1 8B"][1]).posenc.scaling
    assert (scaling.name.name, scaling.factor, scaling.n_original) == ("llama3", 8.0, 8192)
    assert (scaling.beta_fast, scaling.beta_slow) == (4.0, 1.0)


def test_a_model_with_experts_is_refused():
    theirs = llama(2048, 10944, 27, 16, 16, 102_400, qk_nope_head_dim=128, v_head_dim=128, first_k_dense_replace=1)
    theirs |= {"q_lora_rank": None, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    with pytest.raises(ValueError, match="first_k_dense_replace=1: there are no experts"):
        ARCHITECTURES["deepseek_v2"].read(theirs)
