"""Documents end to end, evaluated by position, against block after block done by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lecture04.config import RopeScaling, Stream
from lecture04.data.stream import Blocks
from lecture04.nn.init import build
from lecture04.records.metrics import METRICS
from lecture04.training.evaluate import evaluate, ranges

BLOCK, LENGTH = 16, 60


@pytest.fixture(scope="module")
def asked(small_request):
    return small_request("recipe=llama", "layout=stream", "posenc=rope", f"eval.length={LENGTH}")


@pytest.fixture(scope="module")
def packed(tiny_corpus):
    return replace(tiny_corpus, layout=Blocks(Stream(name="stream", length=BLOCK)))


@pytest.fixture(scope="module")
def model(asked):
    return build(asked.run)


def by_hand(model, split, length):
    """NLL and true NLL of every token in stream order, each from its block's own beginning."""
    words = [split.tokens[a + 1 : b] for a, b in zip(split.offsets[:-1], split.offsets[1:], strict=True)]
    true = np.concatenate(
        [-split.facts["log_prob"][a + 1 : b] for a, b in zip(split.offsets[:-1], split.offsets[1:], strict=True)]
    )
    stream = np.concatenate([[2], *words]).astype(np.int64)  # <eos> in front
    nll = []
    for start in range(0, len(stream) - 1, length):
        block = torch.from_numpy(stream[start : start + length + 1])
        with torch.no_grad():
            log_probs = model(block[None, :-1])[0].double().log_softmax(-1)
        nll += (-log_probs.gather(1, block[1:, None])[:, 0]).tolist()
    return np.array(nll), true


def test_positions_are_those_of_blocks_cut_by_hand(model, packed, asked):
    nll, true = by_hand(model, packed.test, LENGTH)
    found = evaluate(model, packed, asked.run, asked.evaluation)
    position = np.arange(len(nll)) % LENGTH
    for start, end in ((0, 16), (16, 32), (32, 60)):
        here = (position >= start) & (position < end)
        assert found.metrics[f"test/nll@{start}-{end - 1}"] == pytest.approx(nll[here].mean(), abs=1e-5)
        excess = (nll - true)[here].mean()
        assert found.metrics[f"test/excess@{start}-{end - 1}"] == pytest.approx(excess, abs=1e-5)
    assert found.metrics["test/nll"] == pytest.approx(nll.mean(), abs=1e-5)
    assert found.curves["position"] == list(range(LENGTH))
    for at in (0, 17, LENGTH - 1):
        assert found.curves["nll"][at] == pytest.approx(nll[position == at].mean(), abs=1e-5)
        assert found.curves["excess"][at] == pytest.approx((nll - true)[position == at].mean(), abs=1e-5)
    assert all(name in METRICS for name in found.metrics)


def test_training_and_validation_keep_the_length_of_training(model, packed, asked):
    nll, _ = by_hand(model, packed.val, BLOCK)
    assert evaluate(model, packed, asked.run, asked.evaluation).metrics["val/nll"] == pytest.approx(
        nll.mean(), abs=1e-5
    )


def test_without_a_length_the_test_has_that_of_training(model, packed, asked):
    found = evaluate(model, packed, asked.run, replace(asked.evaluation, length=None))
    assert found.metrics["test/nll"] == pytest.approx(by_hand(model, packed.test, BLOCK)[0].mean(), abs=1e-5)
    assert len(found.curves["nll"]) == BLOCK


@pytest.mark.parametrize("name", ["linear", "ntk", "yarn"])
def test_a_scaling_at_test_time_is_that_of_a_model_built_with_it(model, packed, asked, name):
    run = asked.run
    scaling = replace(run.posenc.scaling, name=RopeScaling[name], factor=4.0, n_original=BLOCK)
    longer = build(replace(run, posenc=replace(run.posenc, scaling=scaling)))
    nll, _ = by_hand(longer, packed.test, LENGTH)
    found = evaluate(model, packed, run, replace(asked.evaluation, scaling=scaling)).metrics
    assert found["test/nll"] == pytest.approx(nll.mean(), abs=1e-5)
    plain = evaluate(model, packed, asked.run, asked.evaluation).metrics
    assert found["test/nll"] != pytest.approx(plain["test/nll"], abs=1e-6)
    assert found["val/nll"] == plain["val/nll"]


@pytest.mark.parametrize(
    ("block", "length", "expected"),
    [
        (64, 512, [(0, 64), (64, 128), (128, 256), (256, 512)]),
        (64, 64, [(0, 64)]),
        (64, 20, [(0, 20)]),
        (64, 300, [(0, 64), (64, 128), (128, 256), (256, 300)]),
    ],
)
def test_ranges_double(block, length, expected):
    assert ranges(block, length) == expected


def test_documents_as_a_whole_have_no_curve(tiny_corpus, small_request):
    asked = small_request()
    found = evaluate(build(asked.run), tiny_corpus, asked.run, asked.evaluation)
    assert not found.curves
    assert not any("@" in name for name in found.metrics)
    assert not math.isnan(found.metrics["ffn/zeros"])


def test_zeros_and_dead_units_are_those_of_the_validation_documents(tiny_corpus, small_request):
    asked, gelu = small_request("ffn=relu"), small_request("ffn=gelu")
    model = build(asked.run)
    with torch.no_grad():
        model.blocks[1].ffn.up.bias[:3] = -1e6  # three units that never fire
    found = evaluate(model, tiny_corpus, asked.run, asked.evaluation).metrics
    assert found["ffn/dead"] == 3
    assert 0.3 < found["ffn/zeros"] < 0.7
    assert evaluate(build(gelu.run), tiny_corpus, gelu.run, gelu.evaluation).metrics["ffn/zeros"] < 0.001
