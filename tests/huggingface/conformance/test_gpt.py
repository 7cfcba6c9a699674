"""GPT-2, GPT-NeoX and MPT: LayerNorm, plain feed-forward layers, learned positions, partial rotary, ALiBi."""

from dataclasses import replace

import pytest

from lecture04.nn import posenc

GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 24, "n_positions": 32}
NEOX = {"use_parallel_residual": False, "hidden_act": "gelu"}
MPT = {"n_layers": 2, "max_seq_len": 32}


def partly_rotated(share):
    return {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": share}


def test_gpt2(hold):
    hold("GPT-2", "gpt2", remark="learned positions, GELU (tanh), pre-norm LayerNorm, biases, tied", **GPT2)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_neox(hold, share):
    remark = "parallel residual off; GELU, biases, untied"
    title = f"GPT-NeoX, {share:.0%} of a head rotated"
    hold(title, "gpt_neox", remark=remark, rope_parameters=partly_rotated(share), **NEOX)


@pytest.mark.parametrize("act", ["relu", "silu", "gelu_new"])
def test_neox_with_other_activations(hold, act):
    hold(f"GPT-NeoX, {act}", "gpt_neox", rope_parameters=partly_rotated(0.5), **{**NEOX, "hidden_act": act})


def test_neox_interleaved(hold):
    rope = partly_rotated(0.5)
    hold("GPT-NeoX, read into interleaved pairs", "gpt_neox", posenc="rope", rope_parameters=rope, **NEOX)


@pytest.mark.parametrize(("n_heads", "d_model"), [(1, 8), (3, 12), (4, 16), (6, 24), (16, 32)])
def test_mpt(hold, n_heads, d_model):
    remark = "ALiBi, pre-norm LayerNorm; its norms have no biases, ours are 0"
    hold(f"MPT, {n_heads} heads", "mpt", remark=remark, n_heads=n_heads, d_model=d_model, **MPT)


FAULTS = {
    "a wrong scale": lambda cfg: replace(cfg, attention=replace(cfg.attention, scale=0.51)),
    "the exact GELU": lambda cfg: replace(cfg, ffn=replace(cfg.ffn, name="gelu")),
    "a mask that leaks": lambda cfg: replace(cfg, attention=replace(cfg.attention, causal=False)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_gpt2_is_caught(is_caught, fault):
    is_caught("gpt2", FAULTS[fault], **GPT2)


def test_positions_off_by_one_are_caught(is_caught, monkeypatch):
    def planted(cfg):
        monkeypatch.setattr(posenc.Learned, "embed", lambda self, x_BTD, pos: x_BTD + self.table[pos + 1])
        return cfg

    is_caught("gpt2", planted, **GPT2)


def test_a_fault_in_neox_is_caught(is_caught):
    wider = {"rope_parameters": partly_rotated(0.5), **NEOX}
    is_caught("gpt_neox", lambda cfg: replace(cfg, posenc=replace(cfg.posenc, width=cfg.model.d_head)), **wider)


def test_the_slopes_of_a_wrong_order_are_caught(is_caught, monkeypatch):
    def planted(cfg):
        right = posenc.alibi_exponents
        monkeypatch.setattr(posenc, "alibi_exponents", lambda n: sorted(right(n), reverse=True))
        return cfg

    is_caught("mpt", planted, n_heads=6, d_model=24, **MPT)
