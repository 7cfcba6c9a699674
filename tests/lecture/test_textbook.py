"""The standard model against the textbook's, written apart from it in tests/nn/test_textbook.py, on the test documents.

`make lecture` runs this file with a trained run in LECTURE04_RUN, and reads what it records; without one the parameters
are drawn, and the documents are fewer.
"""

import importlib.util
import os
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from lecture04.data.types import load
from lecture04.nn.init import build
from lecture04.records.config_file import read_run
from lecture04.training import checkpoint

TEXTBOOK = Path(__file__).parents[1] / "nn" / "test_textbook.py"
RUN = os.environ.get("LECTURE04_RUN")


@pytest.fixture(scope="module")
def textbook():
    spec = importlib.util.spec_from_file_location("textbook", TEXTBOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model_and_test_split(compose, textbook, tmp_path):
    if RUN:
        run = read_run(Path(RUN))
        return checkpoint.load(run, Path(RUN)), load(run, Path(RUN).parents[1]).test
    run = compose("data.n_train=10", "data.n_val=10", "data.n_test=200")
    return textbook.shaken(build(run)), load(run, tmp_path).test


def test_the_textbooks_model_with_our_parameters_has_our_outputs(
    model_and_test_split, textbook, record_testsuite_property
):
    """Bit for bit, one document after the other, so that both see the same shapes."""
    model, split = model_and_test_split
    w = dict(model.named_parameters())
    largest, nats, n_tokens = 0.0, [0.0, 0.0], 0
    with torch.no_grad():
        for start, end in zip(split.offsets, split.offsets[1:], strict=False):
            document_T = torch.from_numpy(split.tokens[start:end].astype("int64"))
            tokens_BT, targets_T = document_T[None, :-1], document_T[1:]
            both = (model(tokens_BT), textbook.textbook_2017(w, tokens_BT, textbook.fused, pre=True))
            largest = max(largest, (both[0] - both[1]).abs().max().item())
            for i, logits_BTV in enumerate(both):
                nats[i] += F.cross_entropy(logits_BTV[0], targets_T, reduction="sum").item()
            n_tokens += len(targets_T)
    ours, theirs = (torch.tensor(total / n_tokens).double().exp().item() for total in nats)
    found = {
        "largest_difference": largest,
        "perplexity_ours": ours,
        "perplexity_theirs": theirs,
        "trained": int(bool(RUN)),
    }
    for name, figure in found.items():
        record_testsuite_property(name, figure)
    assert largest == 0.0
    assert ours == theirs
    assert n_tokens > 3000
