"""The first edition's language, against readers written by hand without the grammar."""

import itertools
import math

import numpy as np
import pytest

from lecture04.data.garden.garden1 import WORDS, language
from lecture04.data.garden.words import (
    ADJECTIVES,
    ANIMALS,
    CONJUNCTIONS,
    EOS,
    FEMALE,
    MALE,
    MAX_LENGTH,
    NOUNS,
    OBJECTS,
    POSSESSIVES,
    PREPOSITIONS,
)

GENDER = dict.fromkeys(MALE, "his") | dict.fromkeys(FEMALE, "her") | dict.fromkeys(ANIMALS, "its")
KIND = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}


@pytest.fixture(scope="module")
def documents():
    world, rng = language(0), np.random.default_rng(7)
    return [world.sample(rng) for _ in range(1000)]


def words(document):
    return [WORDS[token] for token in document.tokens]


def owners(text):
    """[(position of a possessive, position of the noun it belongs to)] of one document, read by hand: a second reader,
    written without the grammar, that keeps a pile of the clauses still open."""
    pairs, sentence_start = [], 0
    for end in (i for i, word in enumerate(text) if word == "."):
        i = sentence_start
        while i < end:
            if text[i] in CONJUNCTIONS:
                i += 1
            i, found = read_clause(text, i, gap=None)
            pairs += found
        sentence_start = end + 1
    return pairs


def read_clause(text, i, *, gap):
    """Reads a clause from its "the" on: where it ends, and its pairs."""
    assert text[i] == "the"
    i = read_noun(text, i + 1)
    subject, pairs = i - 1, []
    if text[i] in ("who", "that"):
        if text[i + 1] in OBJECTS:
            i, found = read_predicate(text, i + 1, subject, gap=None)
        else:
            i, found = read_clause(text, i + 1, gap="being")
        pairs += found
    i, found = read_predicate(text, i, subject, gap=gap)
    return i, pairs + found


def read_predicate(text, i, subject, *, gap):
    pairs, kinds = [], list(OBJECTS[text[i]])
    if gap:
        assert kinds.pop(0) == gap
    i += 1
    for kind in kinds:
        i, found = read_phrase(text, i, subject)
        assert KIND[text[i - 1]] == kind
        pairs += found
    if text[i] in PREPOSITIONS:
        i, found = read_phrase(text, i + 1, subject)
        assert KIND[text[i - 1]] == "place"
        pairs += found
    elif text[i] == "that":
        i, found = read_clause(text, i + 1, gap=kinds[-1])
        pairs += found
    return i, pairs


def read_phrase(text, i, subject):
    pairs = [(i, subject)] if text[i] in POSSESSIVES else []
    assert pairs or text[i] == "the"
    return read_noun(text, i + 1), pairs


def read_noun(text, i):
    i += text[i] in ADJECTIVES
    assert text[i] in KIND
    return i + 1


def test_possessives_agree_with_the_subject_of_their_clause_and_give_its_distance(documents):
    for document in documents:
        text = words(document)
        pairs = owners(text)
        assert all(text[pronoun] == GENDER[text[noun]] for pronoun, noun in pairs)
        distances = np.zeros(len(text), dtype=int)
        for pronoun, noun in pairs:
            distances[pronoun] = pronoun - noun
        np.testing.assert_array_equal(document.subject_distance, distances)
        assert [i for i, word in enumerate(text) if word in POSSESSIVES] == [pronoun for pronoun, _ in sorted(pairs)]


def test_far_possessives_are_common_and_have_distractors(documents):
    far = misled = 0
    for document in documents:
        text = words(document)
        for pronoun, noun in owners(text):
            if pronoun - noun > 4:
                far += 1
                between = {GENDER[word] for word in text[noun + 1 : pronoun] if word in GENDER}
                misled += bool(between - {text[pronoun]})
    assert far * 2000 / len(documents) > 400
    assert misled > far / 4


def test_documents_are_of_the_length_and_the_entropy_that_they_should_be(documents):
    n_tokens = [len(document.tokens) for document in documents]
    assert 24 <= np.mean(n_tokens) <= 26
    assert max(n_tokens) <= MAX_LENGTH
    assert np.mean(np.array(n_tokens) > MAX_LENGTH - 4) < 0.05  # the limit is not felt by ordinary documents
    perplexity = math.exp(-sum(document.log_prob.sum() for document in documents) / sum(n_tokens))
    assert 3.60 <= perplexity <= 3.72


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


def test_each_word_is_drawn_for_the_word_that_a_reader_finds(documents):
    for document in documents[:400]:
        expected = Reader(words(document)).given
        assert [WORDS[given] if given >= 0 else "" for given in document.given] == expected


def test_no_pairing_is_impossible():
    world = language(0)
    for noun, verb in itertools.product(NOUNS["being"], OBJECTS):
        world.log_prob([world.ids[word] for word in ("the", noun, verb)])
