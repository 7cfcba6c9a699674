"""Packed batches: nothing lost, little wasted, and the same loss as plain padding."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture04.data.documents import evaluation_batches, make_batch, order, pack, training_batches
from lecture04.data.types import IGNORE, PAD, Split
from lecture04.nn.init import build
from lecture04.training.loop import batch_loss

LENGTH = 64


def split_of(lengths, seed=0, n_words=15):
    """Documents that predict so many tokens each."""
    offsets = np.cumsum([0, *(n + 1 for n in lengths)])
    tokens = np.random.default_rng(seed).integers(1, n_words, offsets[-1]).astype(np.int16)
    return Split(tokens, offsets)


@pytest.fixture(scope="module")
def uneven():
    """Lengths from 8 to 64 with a mean of about 25, as the corpus has them."""
    lengths = np.clip(np.random.default_rng(0).gamma(4.0, 6.2, 2000).round().astype(int), 8, LENGTH)
    assert 24 < lengths.mean() < 26
    return split_of(lengths)


def documents_of(batch, split):
    """The documents found in a batch, each as (its inputs, its targets), read from the rows alone."""
    found = []
    for row in range(len(batch.tokens_BT)):
        for document in batch.document_BT[row].unique().tolist():
            if document != -1:
                here = batch.document_BT[row] == document
                assert torch.equal(batch.pos_BT[row, here], torch.arange(int(here.sum())))
                found.append((batch.tokens_BT[row, here].tolist(), batch.targets_BT[row, here].tolist()))
    return found


def document(split, i):
    tokens = split.tokens[split.offsets[i] : split.offsets[i + 1]].tolist()
    return tokens[:-1], tokens[1:]


@given(lengths=st.lists(st.integers(1, 20), max_size=40), capacity=st.integers(20, 40))
@settings(deadline=None)
def test_packing_loses_nothing_and_overfills_nothing(lengths, capacity):
    rows = pack(np.array(lengths, int), capacity)
    assert sorted(itertools.chain(*rows)) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= capacity for row in rows)
    assert all(rows)
    # First and best fit leave at most one row half empty: two such rows would have been one.
    assert sum(2 * sum(lengths[i] for i in row) <= capacity for row in rows) <= 1


def test_packing_refuses_what_fits_in_no_row():
    with pytest.raises(ValueError, match="layout.length=10: document 1 has 11 tokens"):
        pack(np.array([3, 11]), 10)


def test_a_document_longer_than_max_len_is_an_error():
    split = split_of([5, 9])
    make_batch(split, np.array([0, 1]), length=9)
    with pytest.raises(ValueError, match="layout.length=8"):
        make_batch(split, np.array([0, 1]), length=8)


def test_a_batch_holds_each_document_whole_and_once(uneven):
    chosen = np.array([7, 3, 1999, 0, 42, 5])
    batch = make_batch(uneven, chosen, LENGTH)
    assert sorted(documents_of(batch, uneven)) == sorted(document(uneven, i) for i in chosen)
    assert batch.n_predicted == sum(len(document(uneven, i)[0]) for i in chosen)


def test_padding_is_marked_as_such(uneven):
    batch = make_batch(uneven, np.arange(32), LENGTH)
    padding = batch.document_BT == -1
    assert padding.any()
    assert int((~padding).sum()) == batch.n_predicted
    assert torch.equal(padding, batch.source_BT == -1)
    assert torch.equal(padding, batch.targets_BT == IGNORE)
    assert (batch.tokens_BT[padding] == PAD).all()


def test_source_is_the_targets_place_in_the_split(uneven):
    batch = make_batch(uneven, np.array([11, 4, 900]), LENGTH)
    real = batch.source_BT >= 0
    assert (uneven.tokens[batch.source_BT[real].numpy()] == batch.targets_BT[real].numpy()).all()
    assert (uneven.tokens[batch.source_BT[real].numpy() - 1] == batch.tokens_BT[real].numpy()).all()
    places = np.concatenate([np.arange(uneven.offsets[i] + 1, uneven.offsets[i + 1]) for i in (4, 11, 900)])
    assert sorted(batch.source_BT[real].tolist()) == places.tolist()


def test_little_is_padding_where_plain_batches_waste_a_lot(uneven):
    lengths = np.diff(uneven.offsets) - 1
    packed = plain = real = 0
    for documents in np.split(order(uneven.n_docs, seed=0, epoch=0)[:1984], 62):
        batch = make_batch(uneven, documents, LENGTH)
        assert batch.tokens_BT.shape[1] <= LENGTH
        packed += batch.tokens_BT.numel()
        plain += len(documents) * lengths[documents].max()
        real += batch.n_predicted
    assert 1 - real / packed < 0.10
    assert 1 - real / plain > 0.25


@pytest.mark.parametrize("overrides", [("recipe=transformer_2017",), ("recipe=llama",), ("posenc=none",)], ids=" ".join)
def test_the_packed_loss_and_gradient_are_those_of_plain_padding(small, overrides):
    split = split_of([3, 9, 12, 5, 5, 7, 2, 16])
    model = build(small(*overrides))
    documents = np.arange(split.n_docs)
    batch = make_batch(split, documents, length=16)
    assert len(batch.tokens_BT) < split.n_docs
    packed = batch_loss(model, batch)
    of_packed = torch.autograd.grad(packed, list(model.parameters()))

    tokens, targets = torch.full((8, 16), PAD), torch.full((8, 16), IGNORE)
    for i in documents:
        inputs, outputs = document(split, i)
        tokens[i, : len(inputs)], targets[i, : len(inputs)] = torch.tensor(inputs), torch.tensor(outputs)
    plain = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    of_plain = torch.autograd.grad(plain, list(model.parameters()))

    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)
    for ours, theirs in zip(of_packed, of_plain, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_the_order_depends_on_seed_and_epoch_alone():
    orders = {(seed, epoch): tuple(order(50, seed=seed, epoch=epoch)) for seed in (0, 1, 11) for epoch in (0, 1, 11)}
    assert len(set(orders.values())) == len(orders)
    assert all(sorted(o) == list(range(50)) for o in orders.values())
    np.random.default_rng(0).random(3)
    torch.manual_seed(5)
    assert tuple(order(50, seed=0, epoch=0)) == orders[0, 0]


def test_an_epoch_covers_every_document_once_and_the_next_in_another_order(tiny_corpus):
    split = tiny_corpus.train
    batches = training_batches(split, seed=0, batch_size=10, length=16)
    per_epoch = -(-split.n_docs // 10)
    first, second = ([next(batches) for _ in range(per_epoch)] for _ in range(2))
    every_place = np.flatnonzero(split.predicted).tolist()
    for epoch in (first, second):
        source = torch.cat([batch.source_BT.flatten() for batch in epoch])
        assert sorted(source[source >= 0].tolist()) == every_place
    assert len(documents_of(first[-1], split)) == split.n_docs % 10
    assert not torch.equal(first[0].tokens_BT, second[0].tokens_BT)


def same(a, b):
    return torch.equal(a.tokens_BT, b.tokens_BT) and torch.equal(a.source_BT, b.source_BT)


def test_batches_follow_from_the_seed(tiny_corpus):
    def first(seed):
        return next(training_batches(tiny_corpus.train, seed=seed, batch_size=8, length=16))

    assert same(first(0), first(0))
    assert not same(first(0), first(1))


def test_how_wide_rows_are_does_not_change_what_is_in_a_batch(tiny_corpus):
    narrow, wide = (training_batches(tiny_corpus.train, seed=0, batch_size=8, length=n) for n in (12, 40))
    for a, b in itertools.islice(zip(narrow, wide, strict=True), 9):
        assert sorted(a.source_BT[a.source_BT >= 0].tolist()) == sorted(b.source_BT[b.source_BT >= 0].tolist())
        assert a.n_predicted == b.n_predicted


@pytest.mark.parametrize("n_docs", [1, 7, 64, 1000])
def test_evaluation_sees_every_token_once(tiny_corpus, n_docs):
    split = tiny_corpus.train
    batches = list(evaluation_batches(split, length=16, n_docs=n_docs))
    source = torch.cat([batch.source_BT.flatten() for batch in batches])
    assert sorted(source[source >= 0].tolist()) == np.flatnonzero(split.predicted).tolist()
    assert sum(batch.n_predicted for batch in batches) == split.n_predicted
