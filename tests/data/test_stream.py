"""Documents end to end, cut into blocks."""

from itertools import islice

import numpy as np
import pytest
import torch

from lecture04.config import Stream
from lecture04.data import stream as module
from lecture04.data.documents import order
from lecture04.data.stream import Concatenated
from lecture04.data.types import IGNORE, load
from lecture04.records.identity import identity

EOS = 2


def blocks(length):
    return module.Blocks(Stream(name="stream", length=length))


def flat(split, documents):
    return np.concatenate([split.tokens[split.offsets[i] + 1 : split.offsets[i + 1]] for i in documents])


def test_the_stream_is_the_documents_without_bos(tiny_corpus):
    split = tiny_corpus.val
    for documents in (np.arange(split.n_docs), np.array([5, 0, 3])):
        expected = flat(split, documents)
        places = Concatenated(split, documents).places(np.arange(-1, len(expected) + 1))
        assert np.array_equal(split.tokens[places[1:-1]], expected)
        assert places[0] == places[-1] == -1


def test_a_training_epoch_is_the_stream_of_its_order_in_blocks(tiny_corpus):
    split, length = tiny_corpus.train, 10
    expected = flat(split, order(split.n_docs, seed=3, epoch=0))
    n_blocks = len(expected) // length
    batches = list(islice(blocks(length).training(split, seed=3, batch_size=4), -(-n_blocks // 4)))
    targets = torch.cat([batch.targets_BT for batch in batches]).flatten().numpy()
    inputs = torch.cat([batch.tokens_BT for batch in batches]).flatten().numpy()
    assert np.array_equal(targets, expected[: n_blocks * length])
    assert np.array_equal(inputs, np.concatenate([[EOS], expected])[: n_blocks * length])
    assert {batch.tokens_BT.shape for batch in batches[:-1]} == {(4, length)}
    assert sum(batch.n_predicted for batch in batches) == n_blocks * length


def test_the_next_epoch_has_another_order(tiny_corpus):
    split, length = tiny_corpus.train, 10
    n_batches = len(flat(split, range(split.n_docs))) // length  # of one block each
    found = list(islice(blocks(length).training(split, seed=3, batch_size=1), n_batches + 1))
    expected = flat(split, order(split.n_docs, seed=3, epoch=1))[:length]
    assert np.array_equal(found[-1].targets_BT[0].numpy(), expected)


def test_evaluation_predicts_every_word_once(tiny_corpus):
    split = tiny_corpus.test
    for length in (7, 64, 10_000):
        batches = list(blocks(length).evaluation(split))
        source = torch.cat([batch.source_BT[batch.source_BT >= 0] for batch in batches]).numpy()
        assert np.array_equal(source, np.flatnonzero(split.predicted))
        assert sum(batch.n_predicted for batch in batches) == split.n_predicted
        for batch in batches:
            real = batch.source_BT >= 0
            assert (batch.targets_BT[~real] == IGNORE).all()
            assert np.array_equal(batch.targets_BT[real].numpy(), split.tokens[batch.source_BT[real].numpy()])


def test_each_input_is_the_target_before_it_across_blocks_and_documents(tiny_corpus):
    batches = list(blocks(9).evaluation(tiny_corpus.test))
    inputs = torch.cat([b.tokens_BT.flatten() for b in batches])
    targets = torch.cat([b.targets_BT.flatten() for b in batches])
    n = tiny_corpus.test.n_predicted
    assert inputs[0] == EOS
    assert torch.equal(inputs[1:n], targets[: n - 1])


def test_documents_shorter_than_a_block_are_said(tiny_corpus):
    with pytest.raises(ValueError, match=r"layout.length=100000: the 64 training documents have \d+ tokens"):
        next(blocks(100_000).training(tiny_corpus.train, seed=0, batch_size=1))


def test_an_epoch_of_blocks_is_resolved_from_the_documents_mean_length(compose, tmp_path):
    run = compose("layout=stream", "data.n_train=2000", "data.n_val=1", "data.n_test=1")
    n_blocks = load(run, tmp_path).train.n_predicted / run.layout.length
    assert run.steps_per_epoch == pytest.approx(n_blocks / run.trainer.batch_size, rel=0.03)
    assert compose("data.n_train=8000").steps_per_epoch == 250


def test_a_layout_is_a_setting_of_its_own(compose):
    """And the name that chose both before is the same run."""
    asked = compose("data=garden", "layout=stream")
    assert compose("data=garden_packed") == asked
    assert identity(compose("data=garden_packed")) == identity(asked) != identity(compose())
    assert compose("data=garden_packed", "layout=documents") == compose()
    assert compose("data=garden_packed", "layout.length=32") == compose("layout=stream", "layout.length=32")
    assert (compose("layout=stream").data, compose("layout.length=70").layout.length) == (compose().data, 70)


def test_a_corpus_has_the_layout_that_its_run_names(small, compose, tmp_path):
    sizes = ("data.n_train=3", "data.n_val=2", "data.n_test=1")
    documents, ends = (load(compose(*sizes, f"layout={name}"), tmp_path) for name in ("documents", "stream"))
    assert type(documents.layout).__name__ == "Documents"
    assert type(ends.layout).__name__ == "Blocks"
    assert len(list((tmp_path / "data").glob("*.npz"))) == 1, "the documents are the same"
    with pytest.raises(ValueError, match="data=garden has 92 tokens, and the model 15"):
        load(small(), tmp_path)
