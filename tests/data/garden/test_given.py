"""The word that each word was drawn for, against a reader written by hand without the grammar."""

from collections import Counter

import numpy as np
import pytest

from lecture04.config import Garden as Options
from lecture04.data.garden.source import garden
from lecture04.data.garden.world import (
    ADJECTIVES,
    CONJUNCTIONS,
    EOS,
    NOUNS,
    OBJECTS,
    PREPOSITIONS,
    TOKEN_ID,
    VOCAB,
    Garden,
)

KIND = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}


class Reader:
    """Reads a document clause by clause and notes at each word the one it was drawn for."""

    def __init__(self, text):
        self.text, self.given = text, [""] * len(text)
        i = 0
        while text[i] != EOS:
            i += text[i] in CONJUNCTIONS
            i = self.clause(i, gap=False)
            i += text[i] == "."

    def noun(self, i, given):
        if self.text[i] in ADJECTIVES:
            self.given[i] = self.text[i + 1]
            i += 1
        self.given[i] = given
        return i + 1

    def clause(self, i, *, gap):
        i = self.noun(i + 1, "")
        subject = self.text[i - 1]
        if self.text[i] in ("who", "that"):
            i = (
                self.predicate(i + 1, subject, gap=False)
                if self.text[i + 1] in OBJECTS
                else self.clause(i + 1, gap=True)
            )
        return self.predicate(i, subject, gap=gap)

    def predicate(self, i, subject, *, gap):
        verb = self.text[i]
        self.given[i] = subject
        i += 1
        for _ in OBJECTS[verb][gap:]:
            i = self.noun(i + 1, verb)
        if self.text[i] in PREPOSITIONS:
            self.given[i] = verb
            return self.noun(i + 2, verb)
        return self.clause(i + 1, gap=True) if self.text[i] == "that" else i


@pytest.fixture(scope="module")
def documents():
    world, rng = Garden(0), np.random.default_rng(7)
    return [world.sample(rng) for _ in range(400)]


def test_each_word_is_drawn_for_the_word_that_a_reader_finds(documents):
    for document in documents:
        expected = Reader([VOCAB[token] for token in document.tokens]).given
        assert [VOCAB[given] if given >= 0 else "" for given in document.given] == expected


def test_only_words_of_content_and_prepositions_are_drawn_for_another(documents):
    """A subject is drawn for nothing; every other noun, every verb, adjective and preposition for something."""
    seen = Counter((VOCAB[t], g >= 0) for d in documents for t, g in zip(d.tokens, d.given, strict=True))
    for word, has_given in seen:
        if word in OBJECTS or word in ADJECTIVES or word in PREPOSITIONS:
            assert has_given
        elif word not in KIND:
            assert not has_given
        elif KIND[word] != "being":
            assert has_given, "plants, things and places are no subjects"


def test_the_pairings_are_those_that_the_world_makes_likely(documents):
    """Of the objects after a verb the one it goes with best is drawn most; a wrong array would not know it."""
    pairs = Counter((g, t) for d in documents for t, g in zip(d.tokens, d.given, strict=True) if g >= 0)
    waters = {token: n for (given, token), n in pairs.items() if VOCAB[given] == "waters" and VOCAB[token] in KIND}
    (favourite, n), *_ = sorted(waters.items(), key=lambda item: -item[1])
    prefix = [TOKEN_ID[word] for word in ("the", "boy", "waters", "the")]
    probs = Garden(0).next_token_probs(prefix)
    assert n > 5
    assert probs[favourite] == max(probs[TOKEN_ID[noun]] for noun in NOUNS["plant"])


def test_a_split_keeps_them_in_its_flat_arrays(tmp_path):
    options = Options(name="garden", n_train=30, n_val=5, n_test=5)
    splits = garden(options, tmp_path)
    for split in (splits.train, splits.val, splits.test):
        of_split = split.facts["given"]
        assert of_split.dtype == np.int16
        assert len(of_split) == len(split.tokens)
        assert (of_split[split.offsets[:-1]] == -1).all()
        for i in range(split.n_docs):
            here = slice(split.offsets[i] + 1, split.offsets[i + 1])
            expected = Reader([VOCAB[token] for token in split.tokens[here]]).given
            assert [VOCAB[given] if given >= 0 else "" for given in of_split[here]] == expected
        few = split.first(2)
        np.testing.assert_array_equal(few.facts["given"], of_split[: split.offsets[2]])
    again = garden(options, tmp_path)
    np.testing.assert_array_equal(again.test.facts["given"], splits.test.facts["given"])


def test_a_split_need_not_say(tiny_corpus):
    assert "given" not in tiny_corpus.val.facts
    assert tiny_corpus.val.first(3).facts.keys() == {"log_prob", "subject_distance"}
