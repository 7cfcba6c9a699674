"""Zeros and dead units of the FFN, against the hidden layer written out token by token."""

import numpy as np
import pytest
import torch
from torch import nn

from lecture04.config import registry
from lecture04.data.documents import make_batch
from lecture04.nn.init import build
from lecture04.training.activity import activity

DOCUMENTS = 11


def batches(corpus, n=DOCUMENTS, size=4, length=16):
    """The first n validation documents, `size` at a time: rows of several documents, with padding."""
    return [make_batch(corpus.val, np.arange(start, min(start + size, n)), length) for start in range(0, n, size)]


def written_out(model, corpus, layer, n=DOCUMENTS):
    """h_NF of a layer: the hidden layer's own function, a document alone, no padding."""
    kept = []

    def keep(module, inputs):
        kept.append(module.hidden(inputs[0])[0])

    hook = model.blocks[layer].ffn.register_forward_pre_hook(keep)
    with torch.no_grad():
        for i in range(n):
            tokens = corpus.val.tokens[corpus.val.offsets[i] : corpus.val.offsets[i + 1] - 1]
            model(torch.from_numpy(tokens.astype(np.int64))[None])
    hook.remove()
    return torch.cat(kept)


@pytest.mark.parametrize("ffn", registry.names("ffn"))
def test_the_shares_are_those_of_the_hidden_layer_without_padding(small, tiny_corpus, ffn):
    model = build(small(f"ffn={ffn}"))
    found = activity(model, batches(tiny_corpus))
    assert [layer.layer for layer in found] == [0, 1]
    for layer in found:
        h_NF = written_out(model, tiny_corpus, layer.layer)
        assert layer.d_ff == h_NF.shape[1] == 24
        assert len(h_NF) == tiny_corpus.val.offsets[DOCUMENTS] - DOCUMENTS
        assert layer.zeros == pytest.approx((h_NF == 0).double().mean().item(), abs=1e-12)
        assert layer.dead == (h_NF == 0).all(dim=0).sum().item()


def test_relu_has_zeros_and_gelu_none(small, tiny_corpus):
    assert all(0.2 < layer.zeros < 0.8 for layer in activity(build(small("ffn=relu")), batches(tiny_corpus)))
    assert all(layer.zeros == 0 for layer in activity(build(small("ffn=gelu")), batches(tiny_corpus)))


def test_dead_units_are_counted(small, tiny_corpus):
    """Units whose input is far below zero for every token; and a unit that fires at one token alone is not dead."""
    model = build(small("ffn=relu"))
    with torch.no_grad():
        model.blocks[1].ffn.up.bias[:5] = -1e3
    before, after = activity(build(small("ffn=relu")), batches(tiny_corpus)), activity(model, batches(tiny_corpus))
    assert before[1].dead == 0
    assert (after[0].dead, after[1].dead) == (before[0].dead, 5)
    h_NF = written_out(model, tiny_corpus, 1)
    assert after[1].zeros == pytest.approx((h_NF == 0).double().mean().item())
    with torch.no_grad():
        row = model.blocks[1].ffn.up
        row.weight[5] = 0
        row.bias[5] = -1.0
    assert activity(model, batches(tiny_corpus))[1].dead == 6


def test_zeros_at_padding_do_not_count(small, tiny_corpus):
    """One document a row: the same documents packed more tightly give the same figures."""
    model = build(small("ffn=relu"))
    wide = [make_batch(tiny_corpus.val, np.arange(DOCUMENTS), 16)]
    loose = [make_batch(tiny_corpus.val, np.array([i]), 16) for i in range(DOCUMENTS)]
    assert (wide[0].document_BT < 0).any()
    assert activity(model, wide) == activity(model, loose)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(small, tiny_corpus, training):
    model = build(small("ffn=relu")).train(training)
    before = {name: p.clone() for name, p in model.state_dict().items()}
    activity(model, batches(tiny_corpus))
    assert model.training is training
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_hooks_are_gone_after_an_error(small, tiny_corpus):
    model = build(small("ffn=relu"))
    broken = batches(tiny_corpus)[:1]
    broken[0].tokens_BT[0, 0] = 10_000
    with pytest.raises(IndexError):
        activity(model, broken)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_an_ffn_without_a_down_projection_is_left_out(small, tiny_corpus):
    model = build(small("ffn=relu"))
    model.blocks[0].ffn = nn.Identity()
    assert [layer.layer for layer in activity(model, batches(tiny_corpus))] == [1]


def test_no_batches(small):
    with pytest.raises(ValueError, match="no predicted token"):
        activity(build(small()), [])
