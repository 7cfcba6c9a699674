"""Section 2.3's level of a model without context."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from lecture04.data.types import load
from lecture04.lecture.probes import unigram


@pytest.mark.slow
def test_unigram(value, whole_corpus):
    assert 42 < value("unigram", whole_corpus, claim="unigram") < 47
    assert value("unigram", whole_corpus, claim="unigram") == value(
        "unigram", whole_corpus, split="val", model="unigram", quantity="perplexity"
    )


@pytest.fixture
def few(tmp_path):
    return ("data.n_train=60", "data.n_val=20", "data.n_test=30", f"paths.outputs={tmp_path}")


def test_the_figures_are_counted_words(value, resolved, few):
    """Counted here token by token, on a corpus where words that training never saw stand in the other splits."""
    request, _ = resolved("probe=unigram", *few)
    corpus = load(request.run, request.session.outputs)
    train, val = (
        [t for t in getattr(corpus, split).tokens.tolist() if corpus.tokenizer.id_to_token(t) != "<bos>"]
        for split in ("train", "val")
    )
    count, total = Counter(train), len(train) + corpus.vocab_size
    nats = -sum(math.log((count[t] + 1) / total) for t in val) / len(val)
    assert value("unigram", *few, split="val", model="unigram", quantity="nats") == pytest.approx(nats)
    assert value("unigram", *few, split="val", model="unigram", quantity="perplexity") == pytest.approx(math.exp(nats))


def test_between_the_uniform_model_and_the_truth(value, few):
    for split in ("train", "val", "test"):
        true, context_free, none = (
            value("unigram", *few, split=split, model=model, quantity="nats")
            for model in ("true", "unigram", "uniform")
        )
        assert true < context_free < none == math.log(92)


def test_shown(ask, few):
    frames = unigram.shown(ask("unigram", *few))
    assert [list(frame.columns) for frame in frames.values()] == [["split", "uniform", "unigram", "true"]] * 2
    assert [frame.split.tolist() for frame in frames.values()] == [["train", "val", "test"]] * 2


def test_without_a_true_distribution_there_is_no_bound_below(resolved, tiny_corpus, monkeypatch):
    splits = {name: replace(getattr(tiny_corpus, name), facts={}) for name in ("train", "val", "test")}
    monkeypatch.setattr(unigram, "load", lambda run, outputs: replace(tiny_corpus, **splits))
    table = unigram.unigram(*resolved("probe=unigram"))
    assert list(unigram.shown(table)["Perplexity"].columns) == ["split", "uniform", "unigram"]
