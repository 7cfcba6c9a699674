"""Llama's family: grouped-query attention, RMSNorm, SwiGLU or GEGLU, RoPE in halves and its scalings."""

from dataclasses import replace

import pytest
import torch

from lecture04.huggingface.mapping import Rotated

LLAMA = {"num_key_value_heads": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
ROPE = {"rope_theta": 10_000.0}
# Fewer positions trained on than the 24 tokens compared, so that every scaling is at work.
SCALINGS = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 4.0, "beta_slow": 0.25},
    "llama3": {
        "factor": 4.0,
        "original_max_position_embeddings": 8,
        "low_freq_factor": 0.25,
        "high_freq_factor": 1.0,
    },
}
GEMMA = {"num_key_value_heads": 1, "head_dim": 4, "rms_norm_eps": 1e-6}
GEMMA2 = {
    **GEMMA,
    "layer_types": ["full_attention"] * 2,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "query_pre_attn_scalar": 7,
}


def test_llama(hold):
    hold("Llama", "llama", remark="GQA 4:2, RMSNorm, SwiGLU, RoPE in halves, untied", **LLAMA)


@pytest.mark.parametrize("n_kv_heads", [1, 4])
def test_llama_with_other_kv_heads(hold, n_kv_heads):
    hold(f"Llama, {n_kv_heads} KV heads", "llama", **{**LLAMA, "num_key_value_heads": n_kv_heads})


def test_llama_interleaved(hold):
    """Our interleaved pairs are theirs in halves, under the permutation that reading makes."""
    hold("Llama, read into interleaved pairs", "llama", posenc="rope", **LLAMA)


def test_llama_with_biases_and_a_tied_head(hold):
    options = {**LLAMA, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}
    hold("Llama, biases, tied", "llama", **options)


@pytest.mark.parametrize("kind", SCALINGS)
def test_llama_with_scaled_rope(hold, kind):
    remark = "cached keys are stale in both alike" if kind == "dynamic" else ""
    rope = {"rope_type": kind, **ROPE, **SCALINGS[kind]}
    longest = {"max_position_embeddings": 8} if kind == "dynamic" else {}
    hold(f"Llama, RoPE scaled: {kind}", "llama", remark=remark, rope_parameters=rope, **longest, **LLAMA)


def test_mistral(hold):
    hold("Mistral", "mistral", remark="its window off", sliding_window=None, **LLAMA)


def test_qwen2(hold):
    hold("Qwen2", "qwen2", remark="biases on q, k and v alone", **LLAMA)


def test_qwen3(hold):
    hold("Qwen3", "qwen3", remark="norms on queries and keys", head_dim=4, **LLAMA)


def test_gemma(hold):
    hold("Gemma", "gemma", remark="MQA, GEGLU (tanh), gains 1 + w, embeddings times sqrt(D), tied", **GEMMA)


@pytest.mark.parametrize("act", ["gelu", "gelu_pytorch_tanh"])
def test_gemma2(hold, act):
    remark = "sandwich norms, a scale of its own; windows and caps off"
    hold(f"Gemma 2, {act}", "gemma2", remark=remark, hidden_activation=act, **GEMMA2)


def bin_packed():
    """Positions and documents of rows that hold several end to end: 24 tokens as 7, 12 and 5, and as 20 and 4."""
    lengths = [[7, 12, 5], [20, 4]]
    pos = [torch.cat([torch.arange(n) for n in row]) for row in lengths]
    document = [torch.repeat_interleave(torch.arange(len(row)), torch.tensor(row)) for row in lengths]
    return torch.stack(pos), torch.stack(document)


@pytest.mark.parametrize("leaks", [False, True])
def test_bin_packed_documents(make_pair, harness, figures, dtype, leaks):
    """Theirs is given the positions and a mask of blocks; where ours is told of one document alone, that is seen."""
    pair, (pos, document) = make_pair("llama", dtype, **LLAMA), bin_packed()
    model, state, _ = pair.ours()
    model.load_state_dict(state)
    hidden = (document[:, None, :] != document[:, :, None]) | torch.ones(24, 24, dtype=torch.bool).triu(1)
    mask = torch.zeros(2, 1, 24, 24, dtype=dtype).masked_fill(hidden[:, None], torch.finfo(dtype).min)
    with torch.no_grad(), harness.float32_is(dtype):
        theirs = pair.theirs(input_ids=harness.tokens(), position_ids=pos, attention_mask=mask).logits
        ours = model(harness.tokens(), pos, document * (not leaks))
    off = harness.difference(ours, theirs)
    if leaks:
        assert off > 0.01
    else:
        figures.check(
            "Llama, bin-packed documents", {"logits": off}, dtype, "positions and a block mask given to theirs"
        )


def with_scaling(cfg, **changes):
    return replace(cfg, posenc=replace(cfg.posenc, scaling=replace(cfg.posenc.scaling, **changes)))


FAULTS = {
    "a wrong scale": lambda cfg: replace(cfg, attention=replace(cfg.attention, scale=0.51)),
    "a wrong base": lambda cfg: replace(cfg, posenc=replace(cfg.posenc, base=10_001.0)),
    "no rotation": lambda cfg: replace(cfg, posenc=replace(cfg.posenc, name="none")),
    "half a rotation": lambda cfg: replace(cfg, posenc=replace(cfg.posenc, width=2)),
    "a wrong epsilon": lambda cfg: replace(cfg, norm=replace(cfg.norm, eps=1.1e-5)),
    "a mask that leaks": lambda cfg: replace(cfg, attention=replace(cfg.attention, causal=False)),
    "another gate": lambda cfg: replace(cfg, ffn=replace(cfg.ffn, name="geglu")),
    "scaled embeddings": lambda cfg: replace(cfg, model=replace(cfg.model, embed_scale=cfg.model.d_model**0.5)),
    "a scaling too much": lambda cfg: with_scaling(cfg, temperature=0.11),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_llama_is_caught(is_caught, fault):
    rope = {"rope_type": "yarn", **ROPE, **SCALINGS["yarn"]}
    is_caught("llama", FAULTS[fault], rope_parameters=rope, **LLAMA)


def test_a_missing_permutation_is_caught(is_caught, monkeypatch):
    """Rows of halves taken for those of neighbouring pairs: where reading forgets what `posenc=rope` asks of it."""

    def planted(cfg):
        monkeypatch.setattr(Rotated, "_permuted", lambda self, x, cfg, **layouts: x)
        return cfg

    is_caught("qwen2", planted, posenc="rope", **LLAMA)
    monkeypatch.undo()
    is_caught("qwen3", planted, posenc="rope", head_dim=4, **LLAMA)


def test_another_epsilon_in_mistral_is_caught(is_caught):
    change = FAULTS["a wrong epsilon"]
    is_caught("mistral", change, sliding_window=None, **LLAMA)


def test_a_fault_in_gemma_is_caught(is_caught):
    is_caught("gemma", lambda cfg: replace(cfg, ffn=replace(cfg.ffn, name="geglu")), **GEMMA)
    is_caught(
        "gemma2", lambda cfg: replace(cfg, attention=replace(cfg.attention, scale=cfg.model.d_head**-0.5)), **GEMMA2
    )
