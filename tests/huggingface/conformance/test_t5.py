"""T5's decoder by itself: relative biases in causal buckets, one table for all layers, scores that are not scaled."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.t5.modeling_t5 import T5Stack

from lecture04.huggingface.t5 import DECODER, read_decoder
from lecture04.nn.posenc import T5

SIZES = {"d_model": 16, "d_kv": 4, "num_layers": 2, "num_heads": 4, "d_ff": 24, "dropout_rate": 0.0}


class Decoder(nn.Module):
    """T5's decoder stack, which attends to no encoder where none is given, and an untied head."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.decoder = T5Stack(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, input_ids, labels=None, cache=None, use_cache=False):
        logits = self.lm_head(self.decoder(input_ids=input_ids, cache=cache, use_cache=use_cache).last_hidden_state)
        if labels is None:
            return SimpleNamespace(logits=logits)
        return SimpleNamespace(
            logits=logits, loss=F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        )


@pytest.fixture(scope="session")
def decoder_pair(harness):
    def make(dtype, **options):
        options = {**SIZES, "is_decoder": True, "is_encoder_decoder": False, **options}
        theirs = harness.their_config("t5", **options)
        with harness.float32_is(dtype):
            model = harness.randomised(Decoder(theirs).to(dtype)).eval()
        return harness.Pair(model, read_decoder(theirs.to_dict(), n_ctx=64), DECODER)

    return make


BUCKETS = [(32, 128), (8, 20)]


@pytest.mark.parametrize("ffn", ["relu", "gated-gelu"])
@pytest.mark.parametrize(("n_buckets", "max_distance"), BUCKETS)
def test_t5(decoder_pair, harness, figures, dtype, ffn, n_buckets, max_distance):
    buckets = {"relative_attention_num_buckets": n_buckets, "relative_attention_max_distance": max_distance}
    found = harness.compare(decoder_pair(dtype, feed_forward_proj=ffn, **buckets), dtype)
    title = f"T5 decoder, {ffn}, {n_buckets} buckets up to {max_distance}"
    figures.check(title, found, dtype, "no encoder; relative bias, RMSNorm, scores not scaled, untied")


@pytest.mark.parametrize(("n_buckets", "max_distance"), [*BUCKETS, (10, 64), (32, 1000)])
def test_every_distance_has_its_bucket(n_buckets, max_distance):
    """Theirs rounds logarithms in float32 and ours in float64: a distance at an edge may differ, and none does here."""
    from transformers.models.t5.modeling_t5 import T5Attention

    from lecture04 import config

    ours = T5(
        config.T5(name="t5", n_buckets=n_buckets, max_distance=max_distance), config.Model(n_heads=4, embed_scale=1.0)
    )
    back = torch.arange(4 * max_distance)
    theirs = T5Attention._relative_position_bucket(
        -back, bidirectional=False, num_buckets=n_buckets, max_distance=max_distance
    )
    assert torch.equal(ours.bucket(back), theirs)


def test_a_scaled_score_is_caught(decoder_pair, is_caught):
    is_caught(
        decoder_pair(torch.float64),
        lambda cfg: replace(cfg, attention=replace(cfg.attention, scale=cfg.model.d_head**-0.5)),
    )


@pytest.mark.parametrize("by", [-1, 1])
def test_a_bucket_off_by_one_is_caught(decoder_pair, is_caught, monkeypatch, by):
    right = T5.bucket

    def planted(cfg):
        monkeypatch.setattr(T5, "bucket", lambda self, back: right(self, back + by))
        return cfg

    is_caught(decoder_pair(torch.float64), planted)


def test_a_boundary_between_buckets_off_by_one_is_caught(decoder_pair, is_caught):
    pair = decoder_pair(torch.float64, relative_attention_num_buckets=8, relative_attention_max_distance=20)
    is_caught(pair, lambda cfg: replace(cfg, posenc=replace(cfg.posenc, max_distance=19)))
