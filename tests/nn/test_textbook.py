"""Our models against plain ones written from the equations alone, under the same parameters."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lecture04.nn.attention import AttentionContext
from lecture04.nn.init import build

TOKENS = torch.randint(15, (3, 13), generator=torch.Generator().manual_seed(0))
N_HEADS, N_KV_HEADS = 4, 2


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def by_hand(q, k, v):
    """softmax(q k^T / sqrt(d_head)) v over the keys up to the query's own."""
    n = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = torch.where(torch.ones(n, n).tril() == 1, scores, torch.tensor(-math.inf))
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return weights @ v


def split_heads(x, n_heads):
    batch, n, width = x.shape
    return x.view(batch, n, n_heads, width // n_heads).permute(0, 2, 1, 3)


def join_heads(x):
    batch, n_heads, n, d_head = x.shape
    return x.permute(0, 2, 1, 3).reshape(batch, n, n_heads * d_head)


def sinusoids(n, d):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i + 1) = cos(p / 10000^(2i/d)), one number at a time."""
    table = torch.empty(n, d)
    for p in range(n):
        for i in range(0, d, 2):
            table[p, i] = math.sin(p / 10000 ** (i / d))
            table[p, i + 1] = math.cos(p / 10000 ** (i / d))
    return table


def textbook_2017(w, tokens, attend, *, pre):
    """The Transformer of Vaswani et al. 2017, as a decoder alone: w holds the parameters by name."""
    d = w["embed.weight"].shape[1]

    def linear(name, x):
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(name, x):
        return F.layer_norm(x, (d,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    def attention(name, x):
        q, k, v = (split_heads(linear(f"{name}.{part}", x), N_HEADS) for part in "qkv")
        return linear(f"{name}.output", join_heads(attend(q, k, v)))

    def ffn(name, x):
        return linear(f"{name}.down", linear(f"{name}.up", x).clamp(min=0))

    x = w["embed.weight"][tokens] * math.sqrt(d) + sinusoids(tokens.shape[1], d)
    for i in range(2):
        for name, sublayer in (("attention", attention), ("ffn", ffn)):
            path = f"blocks.{i}.{name}"
            norm_here = partial(norm, f"{path}_norm")
            x = x + sublayer(path, norm_here(x)) if pre else norm_here(x + sublayer(path, x))
    if pre:
        x = norm("final_norm", x)
    return x @ w["embed.weight"].T


def textbook_llama(w, tokens, attend):
    """Llama: pre-norm RMSNorm, SwiGLU, RoPE on neighbouring pairs as complex numbers, GQA, no biases."""
    d = w["embed.weight"].shape[1]

    def norm(name, x):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * w[f"{name}.weight"]

    def rope(x):
        d_head = x.shape[-1]
        theta = 10000 ** (-2 * torch.arange(d_head // 2, dtype=torch.float64) / d_head)
        turn = torch.polar(torch.ones(()).double(), torch.arange(x.shape[-2]).double()[:, None] * theta)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], d_head // 2, 2))
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

    def attention(name, x):
        q = rope(split_heads(x @ w[f"{name}.q.weight"].T, N_HEADS))
        k = rope(split_heads(x @ w[f"{name}.k.weight"].T, N_KV_HEADS))
        v = split_heads(x @ w[f"{name}.v.weight"].T, N_KV_HEADS)
        k, v = (t.repeat_interleave(N_HEADS // N_KV_HEADS, dim=1) for t in (k, v))
        return join_heads(attend(q, k, v)) @ w[f"{name}.output.weight"].T

    def ffn(name, x):
        gate, up = x @ w[f"{name}.gate.weight"].T, x @ w[f"{name}.up.weight"].T
        return (gate / (1 + (-gate).exp()) * up) @ w[f"{name}.down.weight"].T

    x = w["embed.weight"][tokens] * math.sqrt(d)
    for i in range(2):
        x = x + attention(f"blocks.{i}.attention", norm(f"blocks.{i}.attention_norm", x))
        x = x + ffn(f"blocks.{i}.ffn", norm(f"blocks.{i}.ffn_norm", x))
    return norm("final_norm", x) @ w["embed.weight"].T


def shaken(model):
    """The same model with no gain left at 1 and no bias at 0, where a part could be missing unseen."""
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.empty(parameter.shape).normal_(generator=g))
    return model


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_2017_model_is_the_textbooks_bit_for_bit(small, placement):
    model = shaken(build(small("recipe=transformer_2017", f"placement={placement}")))
    w = dict(model.named_parameters())
    with torch.no_grad():
        ours = model(TOKENS)
        assert (ours - textbook_2017(w, TOKENS, fused, pre=placement == "pre")).abs().max() == 0.0
        assert (ours - textbook_2017(w, TOKENS, by_hand, pre=placement == "pre")).abs().max() < 1e-5


@pytest.mark.parametrize("attend", [fused, by_hand])
def test_llama_is_the_textbooks(small, attend):
    model = shaken(build(small("recipe=llama", "model.bias=false")))
    with torch.no_grad():
        theirs = textbook_llama(dict(model.named_parameters()), TOKENS, attend)
        torch.testing.assert_close(model(TOKENS), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_block_is_torchs_encoder_layer(small, placement):
    cfg = small("recipe=transformer_2017", f"placement={placement}")
    block = shaken(build(cfg)).blocks[0]
    layer = nn.TransformerEncoderLayer(
        cfg.model.d_model,
        cfg.model.n_heads,
        cfg.ffn.d_ff,
        dropout=0.0,
        activation="relu",
        layer_norm_eps=cfg.norm.eps,
        batch_first=True,
        norm_first=placement == "pre",
    )
    ours, a = block.state_dict(), "attention"
    layer.load_state_dict(
        {
            **{f"self_attn.in_proj_{x}": torch.cat([ours[f"{a}.{p}.{x}"] for p in "qkv"]) for x in ("weight", "bias")},
            **{f"self_attn.out_proj.{x}": ours[f"{a}.output.{x}"] for x in ("weight", "bias")},
            **{f"linear1.{x}": ours[f"ffn.up.{x}"] for x in ("weight", "bias")},
            **{f"linear2.{x}": ours[f"ffn.down.{x}"] for x in ("weight", "bias")},
            **{f"norm1.{x}": ours[f"attention_norm.{x}"] for x in ("weight", "bias")},
            **{f"norm2.{x}": ours[f"ffn_norm.{x}"] for x in ("weight", "bias")},
        }
    )
    x = torch.randn(2, 9, cfg.model.d_model, generator=torch.Generator().manual_seed(2))
    later = nn.Transformer.generate_square_subsequent_mask(9)
    pos = torch.arange(9)
    y, _ = block(x, AttentionContext(pos, pos, mask=None, is_causal=True, rotate=lambda t: t))
    torch.testing.assert_close(y, layer(x, src_mask=later, is_causal=True), atol=1e-5, rtol=0)
