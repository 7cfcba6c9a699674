"""RoPE's frequencies and factors against transformers' `ROPE_INIT_FUNCTIONS`."""

import itertools

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from lecture04.nn.rope_scaling import dynamic, linear, llama3, ntk, yarn

SIZES = list(itertools.product((10_000.0, 500_000.0), (16, 64, 128), (1.0, 2.5, 8.0, 32.0)))  # base, width, factor
LENGTHS = (64, 4096, 32_768)


@pytest.fixture
def theirs(harness, dtype):
    """Their frequencies and factor for a head of `width`; they take the base and the rest from a model's config."""

    def init(kind, base, width, *, seq_len=None, **options):
        cfg = LlamaConfig(hidden_size=2 * width, num_attention_heads=2, max_position_embeddings=4096)
        cfg.rope_parameters = {"rope_type": kind, "rope_theta": base, **options}
        with harness.float32_is(dtype):
            return ROPE_INIT_FUNCTIONS[kind](cfg, "cpu", seq_len=seq_len)

    return init


def off(ours, others):
    """The largest difference of the frequencies, relative to each, and of the factor."""
    return max(((ours[0].double() - others[0]) / others[0]).abs().max().item(), abs(ours[1] - others[1]))


@pytest.fixture
def check(figures, dtype):
    """`check("linear", pairs of ours and theirs)`."""
    return lambda kind, pairs: figures.check(
        f"RoPE's frequencies, {kind}", {"frequencies": max(off(*pair) for pair in pairs)}, dtype
    )


def test_linear(theirs, check):
    check("linear", [(linear(*size), theirs("linear", *size[:2], factor=size[2])) for size in SIZES])


def test_ntk_is_dynamic_at_a_fixed_length(theirs, check):
    """Dynamic NTK of factor 1 at a length of `factor` times what was trained on has the fixed form's base."""
    length = {size: int(4096 * size[2]) for size in SIZES}
    check("ntk", [(ntk(*s), theirs("dynamic", *s[:2], seq_len=length[s], factor=1.0)) for s in SIZES])


def test_dynamic(theirs, check):
    pairs = []
    for (base, width, factor), n in itertools.product(SIZES, (5, 4096, 10_000)):
        f, on_vectors = dynamic(base, width, factor, 4096, torch.arange(n))
        pairs.append(((f[0], on_vectors), theirs("dynamic", base, width, seq_len=n, factor=factor)))
    check("dynamic", pairs)


def test_llama3(theirs, check):
    pairs = []
    for (base, width, factor), n, (high, low) in itertools.product(SIZES, LENGTHS, ((4.0, 1.0), (8.0, 2.0))):
        options = {"high_freq_factor": high, "low_freq_factor": low, "original_max_position_embeddings": n}
        pairs.append(
            (llama3(base, width, factor, n, high, low), theirs("llama3", base, width, factor=factor, **options))
        )
    check("llama3", pairs)


def test_yarn(theirs, check):
    pairs = []
    for (base, width, factor), n, betas in itertools.product(
        SIZES, LENGTHS, ({}, {"beta_fast": 16.0, "beta_slow": 2.0})
    ):
        others = theirs("yarn", base, width, factor=factor, original_max_position_embeddings=n, **betas)
        pairs.append((yarn(base, width, factor, n, **betas), others))
    check("yarn", pairs)


@pytest.mark.parametrize(
    "wrong",
    [
        yarn(10_000.0, 64, 8.0, 4096, beta_fast=16.0),
        yarn(10_000.0, 64, 8.0, 4095 * 2),
        yarn(10_000.0, 64, 8.1, 4096),
        (yarn(10_000.0, 64, 8.0, 4096)[0], 1.0),
        llama3(10_000.0, 64, 8.0, 4096, 32.0, 1.0),
    ],
)
def test_a_wrong_setting_is_caught(theirs, wrong):
    others = theirs("yarn", 10_000.0, 64, factor=8.0, original_max_position_embeddings=4096)
    assert off(yarn(10_000.0, 64, 8.0, 4096), others) < 1e-5 < 1e-3 < off(wrong, others)
