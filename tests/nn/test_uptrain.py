"""Merging key and value heads."""

import pytest
import torch

from lecture04.config import Merge
from lecture04.nn.init import build
from lecture04.nn.uptrain import merge_heads, start_from


def head(i, like):
    """A head of two dimensions, three inputs wide, full of one number."""
    return torch.full((2, *like), float(i))


@pytest.mark.parametrize("like", [(3,), ()], ids=["weight", "bias"])
def test_a_group_becomes_its_mean_its_first_or_a_new_head(like):
    source = torch.cat([head(i, like) for i in (1, 2, 5, 7)])
    new = torch.cat([head(i, like) for i in (-1, -2)])
    for merge, expected in ((Merge.mean, (1.5, 6)), (Merge.first, (1, 5)), (Merge.random, (-1, -2))):
        assert torch.equal(merge_heads(source, new, merge, 2), torch.cat([head(i, like) for i in expected]))


def test_all_heads_into_one():
    source, new = torch.cat([head(i, (3,)) for i in (1, 2, 5, 8)]), head(-1, (3,))
    assert torch.equal(merge_heads(source, new, Merge.mean, 2), head(4, (3,)))
    assert torch.equal(merge_heads(source, new, Merge.first, 2), head(1, (3,)))


@pytest.fixture
def grown(small):
    """A source whose biases are not zero."""
    source = build(small("attention=mha", "seed=1"))
    with torch.no_grad():
        for p in source.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return source


@pytest.mark.parametrize("attention", ["gqa", "mqa"])
@pytest.mark.parametrize("merge", list(Merge))
def test_only_keys_and_values_are_changed(small, grown, attention, merge):
    cfg = small(f"attention={attention}")
    model, untouched = build(cfg), build(cfg).state_dict()
    source = grown.state_dict()
    start_from(model, source, merge, cfg.model.d_head)
    for name, value in model.state_dict().items():
        if ".attention.k." in name or ".attention.v." in name:
            assert value.shape != source[name].shape
            assert torch.equal(value, untouched[name]) == (merge is Merge.random)
        else:
            assert torch.equal(value, source[name]), name


def test_merging_equal_heads_changes_no_output(small, grown):
    """Where a group's heads are alike, sharing one of them is the same function."""
    cfg = small("attention=gqa")
    with torch.no_grad():
        for block in grown.blocks:
            for linear in (block.attention.k, block.attention.v):
                for p in linear.parameters():
                    heads = p.unflatten(0, (2, 2, cfg.model.d_head))
                    heads[:, 1] = heads[:, 0]
    tokens_BT = torch.randint(15, (2, 9))
    for merge in (Merge.mean, Merge.first):
        model = build(cfg)
        start_from(model, grown.state_dict(), merge, cfg.model.d_head)
        assert torch.allclose(model(tokens_BT), grown(tokens_BT), atol=1e-5)


def test_as_many_heads_as_the_source_is_the_source(small, grown):
    model = build(small("attention=mha"))
    start_from(model, grown.state_dict(), Merge.random, small().model.d_head)
    tokens_BT = torch.randint(15, (2, 9))
    assert torch.equal(model(tokens_BT), grown(tokens_BT))
