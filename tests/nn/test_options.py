"""Options of a family that one of the known models needs: biases of single projections, a scale of the embeddings."""

import itertools
import math

import pytest
import torch

from lecture04.config import UserError, registry
from lecture04.config import sizes as counts
from lecture04.nn.init import build


def overrides(attention, bias, output_bias):
    return (f"attention={attention}", f"attention.bias={bias}".lower(), f"attention.output_bias={output_bias}".lower())


@pytest.mark.parametrize(("bias", "output_bias"), list(itertools.product((True, False), repeat=2)))
@pytest.mark.parametrize("attention", registry.names("attention"))
def test_the_outputs_bias_is_set_apart_and_counted(small, attention, bias, output_bias):
    cfg = small(*overrides(attention, bias, output_bias))
    model = build(cfg)
    names = {name.rpartition("attention.")[2] for name, _ in model.blocks[0].named_parameters(prefix="attention.")}
    assert any(name.endswith("output.bias") for name in names) == output_bias
    first = "kv_down" if attention == "mla" else "k"
    assert any(name.endswith(f"{first}.bias") for name in names) == bias
    assert counts.params(cfg) == sum(p.numel() for p in model.parameters())
    assert counts.flops_per_token(cfg) == counts.flops_per_token(small(*overrides(attention, False, False)))


@pytest.mark.parametrize("bias", [True, False])
def test_the_outputs_bias_follows_the_others_unless_set(small, bias):
    cfg = small(f"attention.bias={str(bias).lower()}")
    assert cfg.attention.output_bias is bias


@pytest.mark.parametrize(("set_to", "expected"), [("null", math.sqrt(16)), ("1", 1.0), ("2.5", 2.5)])
def test_embeddings_enter_multiplied_by_their_scale(small, set_to, expected):
    """With the blocks' outputs at 0 and no norm after them the logits are those of the embedding by itself."""
    model = build(small(f"model.embed_scale={set_to}", "posenc=none")).double()
    tokens = torch.tensor([[3, 9, 10]])
    with torch.no_grad():
        for block in model.blocks:
            for last in (block.attention.output, block.ffn.down):
                last.weight.zero_()
        model.final_norm = torch.nn.Identity()
        logits = expected * model.embed.weight[tokens] @ model.embed.weight.T
    torch.testing.assert_close(model(tokens), logits, atol=1e-12, rtol=0)


def test_a_scale_of_nothing_is_said(small):
    with pytest.raises(UserError, match=r"model\.embed_scale=0\.0: must be above 0"):
        small("model.embed_scale=0")
