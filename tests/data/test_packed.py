"""Documents end to end, cut into blocks."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from lecture04.config import resolve as settle
from lecture04.data.batches import IGNORE, order
from lecture04.data.corpus import load
from lecture04.data.packed import Blocks, stream

EOS = 2


def flat(split, documents):
    return np.concatenate([split.tokens[split.offsets[i] + 1 : split.offsets[i + 1]] for i in documents])


def test_the_stream_is_the_documents_without_bos(tiny_corpus):
    split = tiny_corpus.val
    for documents in (np.arange(split.n_docs), np.array([5, 0, 3])):
        assert np.array_equal(split.tokens[stream(split, documents)], flat(split, documents))


def test_a_training_epoch_is_the_stream_of_its_order_in_blocks(tiny_corpus):
    split, length = tiny_corpus.train, 10
    expected = flat(split, order(split.n_docs, seed=3, epoch=0))
    n_blocks = len(expected) // length
    batches = list(islice(Blocks(length).training(split, seed=3, batch_size=4), -(-n_blocks // 4)))
    targets = torch.cat([batch.targets_BT for batch in batches]).flatten().numpy()
    inputs = torch.cat([batch.tokens_BT for batch in batches]).flatten().numpy()
    assert np.array_equal(targets, expected[: n_blocks * length])
    assert np.array_equal(inputs, np.concatenate([[EOS], expected])[: n_blocks * length])
    assert {batch.tokens_BT.shape for batch in batches[:-1]} == {(4, length)}
    assert sum(batch.n_predicted for batch in batches) == n_blocks * length


def test_the_next_epoch_has_another_order(tiny_corpus):
    split, length = tiny_corpus.train, 10
    n_batches = len(flat(split, range(split.n_docs))) // length  # of one block each
    blocks = list(islice(Blocks(length).training(split, seed=3, batch_size=1), n_batches + 1))
    expected = flat(split, order(split.n_docs, seed=3, epoch=1))[:length]
    assert np.array_equal(blocks[-1].targets_BT[0].numpy(), expected)


def test_evaluation_predicts_every_word_once(tiny_corpus):
    split = tiny_corpus.test
    for length in (7, 64, 10_000):
        batches = list(Blocks(length).evaluation(split))
        source = torch.cat([batch.source_BT[batch.source_BT >= 0] for batch in batches]).numpy()
        assert np.array_equal(source, np.flatnonzero(split.predicted))
        assert sum(batch.n_predicted for batch in batches) == split.n_predicted
        for batch in batches:
            real = batch.source_BT >= 0
            assert (batch.targets_BT[~real] == IGNORE).all()
            assert np.array_equal(batch.targets_BT[real].numpy(), split.tokens[batch.source_BT[real].numpy()])


def test_each_input_is_the_target_before_it_across_blocks_and_documents(tiny_corpus):
    batches = list(Blocks(9).evaluation(tiny_corpus.test))
    inputs = torch.cat([b.tokens_BT.flatten() for b in batches])
    targets = torch.cat([b.targets_BT.flatten() for b in batches])
    n = tiny_corpus.test.n_predicted
    assert inputs[0] == EOS
    assert torch.equal(inputs[1:n], targets[: n - 1])


def test_documents_shorter_than_a_block_are_said(tiny_corpus):
    with pytest.raises(ValueError, match=r"data.max_len=100000: the 64 training documents have \d+ tokens"):
        next(Blocks(100_000).training(tiny_corpus.train, seed=0, batch_size=1))


def test_an_epoch_of_packed_documents_is_settled_from_their_mean_length(compose, tmp_path):
    cfg = compose("data=garden_packed", "data.n_train=2000")
    corpus = load(
        tmp_path, n_train=2000, n_val=1, n_test=1, world_seed=cfg.data.world_seed, layout=Blocks(cfg.data.max_len)
    )
    n_blocks = corpus.train.n_predicted / cfg.data.max_len
    assert settle.steps_per_epoch(cfg) == pytest.approx(n_blocks / cfg.trainer.batch_size, rel=0.03)
    assert settle.steps_per_epoch(replace(cfg, data=compose().data)) == 250
