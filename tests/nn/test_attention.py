"""Grouped attention between its two ends, and the cache as a value."""

import dataclasses

import pytest
import torch

from lecture04 import config
from lecture04.nn.attention import Attention, AttentionContext
from lecture04.nn.init import build
from lecture04.nn.kv_cache import KVCache
from lecture04.nn.norm import RMSNorm
from lecture04.nn.posenc import NoPE

MODEL = config.Model(d_model=16, n_heads=4, embed_scale=4.0)
POSENC = NoPE(config.PosEnc(name="none"), MODEL)


def context(mask=None):
    """Without positions: the attention itself does not ask for them."""
    pos = torch.arange(0)
    return AttentionContext(pos, pos, mask, is_causal=mask is None, rotate=lambda x: x)


PLAIN = context()


def attention(n_kv_heads, bias=True, seed=0, scale=0.5, qk_norm=False):
    torch.manual_seed(seed)
    options = config.Attention(
        name="gqa", n_kv_heads=n_kv_heads, bias=bias, output_bias=bias, scale=scale, qk_norm=qk_norm
    )
    return Attention(options, MODEL, POSENC, lambda width: RMSNorm(config.Norm(name="rmsnorm"), width))


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_names_of_one_class_are_one_attention(small):
    """mha, gqa and mqa differ in the number of KV heads and in nothing else."""
    tokens = torch.arange(6)[None]
    for name, n in (("mha", 4), ("mqa", 1)):
        named = build(small(f"attention={name}"))
        grouped = build(small("attention=gqa", f"attention.n_kv_heads={n}"))
        assert torch.equal(named(tokens), grouped(tokens))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_gqa_is_mha_with_its_key_and_value_heads_repeated(n_kv_heads, bias):
    grouped, full = attention(n_kv_heads, bias), attention(4, bias)
    state = grouped.state_dict()
    for name in list(state):
        if name.startswith(("k.", "v.")):
            by_head = state[name].unflatten(0, (n_kv_heads, MODEL.d_head))
            state[name] = by_head.repeat_interleave(4 // n_kv_heads, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    x = random(2, 7, 16)
    torch.testing.assert_close(grouped(x, PLAIN)[0], full(x, PLAIN)[0], atol=1e-6, rtol=0)


def test_neighbouring_query_heads_share_a_kv_head():
    """Heads 0 and 1 read KV head 0: with its values at zero their outputs are zero, those of heads 2 and 3 are not."""
    part = attention(2, bias=False)
    with torch.no_grad():
        part.v.weight[: MODEL.d_head] = 0
        part.output.weight.copy_(torch.eye(16))
        y = part.heads(part(random(1, 5, 16), PLAIN)[0])
    assert (y[:, :2] == 0).all()
    assert (y[:, 2:].abs().amax(dim=(0, 2, 3)) > 0).all()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cache_reports_the_bytes_of_its_kv_heads_alone(n_kv_heads, dtype):
    part = attention(n_kv_heads).to(dtype)
    _, cache = part(random(3, 5, 16).to(dtype), context(torch.zeros(5, 5, dtype=dtype)), part.empty_cache(3))
    assert cache.n_bytes == cache.k.nbytes + cache.v.nbytes == 2 * n_kv_heads * MODEL.d_head * 3 * 5 * dtype.itemsize


def test_one_kv_head_takes_one_hth_of_the_bytes():
    sizes = []
    for n_kv_heads in (4, 1):
        part = attention(n_kv_heads)
        _, cache = part(random(1, 8, 16), PLAIN, part.empty_cache(1))
        sizes.append(cache.n_bytes)
    assert sizes[0] == 4 * sizes[1]


def test_appending_leaves_the_old_cache_as_it_was():
    old = KVCache(random(1, 2, 3, 4), random(1, 2, 3, 4, seed=1))
    k, v = old.k.clone(), old.v.clone()
    new = old.append(random(1, 2, 2, 4, seed=2), random(1, 2, 2, 4, seed=3))
    assert (old.n_tokens, new.n_tokens) == (3, 5)
    new.k.zero_()
    new.v.zero_()
    assert torch.equal(old.k, k)
    assert torch.equal(old.v, v)


def test_appending_puts_new_tokens_last():
    first, second = random(1, 2, 3, 4), random(1, 2, 2, 4, seed=2)
    cache = KVCache(first, -first).append(second, -second)
    assert torch.equal(cache.k, torch.cat([first, second], dim=2))
    assert torch.equal(cache.v, -cache.k)


def test_a_cache_cannot_be_assigned_to():
    cache = KVCache(random(1, 2, 3, 4), random(1, 2, 3, 4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        cache.k = cache.v


def test_an_empty_cache_holds_nothing():
    cache = attention(2).empty_cache(3)
    assert (cache.n_tokens, cache.n_bytes) == (0, 0)


def test_the_causal_mask_written_out_gives_what_the_fused_kernel_knows():
    part, x = attention(2), random(2, 6, 16)
    mask = torch.full((6, 6), -torch.inf).triu(1)
    masked = part(x, context(mask))[0]
    torch.testing.assert_close(part(x, PLAIN)[0], masked, atol=1e-6, rtol=0)


def test_a_bias_is_added_after_the_scaling():
    """softmax(s + log w) weighs value j by w_j, whatever d_head is."""
    part, x = attention(4, bias=False), random(1, 2, 16)
    with torch.no_grad():
        part.q.weight.zero_()
        part.output.weight.copy_(torch.eye(16))
        mask = torch.tensor([[0.0, -torch.inf], [0.0, 3.0]]).log_softmax(-1)
        y, v = part(x, context(mask))[0], part.v(x)
    weight = torch.tensor([0.0, 3.0]).softmax(-1)
    torch.testing.assert_close(y[0, 1], weight @ v[0], atol=1e-6, rtol=0)


def test_without_a_cache_none_comes_back():
    assert attention(2)(random(1, 3, 16), PLAIN)[1] is None


def test_scale_multiplies_the_scores():
    """Scores scaled by c are those of queries scaled by c / (1/sqrt(d_head))."""
    scaled, plain = attention(2, bias=False, scale=0.7), attention(2, bias=False)
    scaled.load_state_dict(plain.state_dict())
    x = random(2, 5, 16)
    with torch.no_grad():
        expected = scaled(x, PLAIN)[0]
        plain.q.weight.mul_(0.7 * MODEL.d_head**0.5)
    torch.testing.assert_close(expected, plain(x, PLAIN)[0], atol=1e-6, rtol=0)


def test_normalised_queries_and_keys_do_not_see_their_length():
    part, x = attention(2, bias=False, qk_norm=True), random(2, 5, 16)
    before = part(x, PLAIN)[0]
    with torch.no_grad():
        part.q.weight.mul_(5.0)
        part.k.weight.mul_(3.0)
    torch.testing.assert_close(before, part(x, PLAIN)[0], atol=1e-4, rtol=0)
    assert {name for name, _ in part.named_parameters()} >= {"q_norm.weight", "k_norm.weight"}
