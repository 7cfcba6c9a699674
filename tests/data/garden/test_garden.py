"""The Garden World: against a reader written by hand without the grammar, and what is the same in every world."""

import math

import numpy as np
import pytest

from lecture04.data.garden.garden import OBJECTS, VERB_SHARE, WITHHELD, WORDS, language
from lecture04.data.garden.words import (
    ADJECTIVES,
    ANIMALS,
    CONJUNCTIONS,
    EOS,
    FEMALE,
    MALE,
    MAX_LENGTH,
    NOUNS,
    POSSESSIVES,
    PREPOSITIONS,
)

GENDER = dict.fromkeys(MALE, "his") | dict.fromkeys(FEMALE, "her") | dict.fromkeys(ANIMALS, "its")
KIND = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}
WORLDS = (0, 1, 2)


class Reader:
    """Reads a document clause by clause: the word that each word was drawn for, and how far back a pronoun's subject
    stands."""

    def __init__(self, text):
        self.text, self.given, self.distance = text, [""] * len(text), [0] * len(text)
        i = 0
        while text[i] != EOS:
            i += text[i] in CONJUNCTIONS
            i = self.clause(i)
            i += text[i] == "."

    def noun(self, i, given):
        if self.text[i] in ADJECTIVES:
            self.given[i] = self.text[i + 1]
            i += 1
        self.given[i] = given
        return i + 1

    def clause(self, i):
        assert self.text[i] == "the"
        i = self.noun(i + 1, "")
        self.subject = i - 1
        self.given[i] = self.text[self.subject]
        i = self.predicate(i)
        while self.text[i] == "and":
            i = self.predicate(i + 1)
        return i

    def predicate(self, i):
        verb, last = self.text[i], self.text[i]
        i += 1
        for kind in OBJECTS[verb]:
            i = self.noun(self.determiner(i), verb)
            last = self.text[i - 1]
            assert KIND[last] == kind
        if self.text[i] in PREPOSITIONS:
            preposition = self.text[i]
            self.given[i] = last
            i = self.noun(self.determiner(i + 1), preposition)
            assert KIND[self.text[i - 1]] == "place"
        return i

    def determiner(self, i):
        if self.text[i] in POSSESSIVES:
            self.distance[i] = i - self.subject
            assert self.text[i] == GENDER[self.text[self.subject]]
        else:
            assert self.text[i] in ("the", "this")
        return i + 1


def words(document):
    return [WORDS[token] for token in document.tokens]


@pytest.fixture(scope="module")
def documents():
    world, rng = language(0), np.random.default_rng(7)
    return [world.sample(rng) for _ in range(1000)]


def test_documents_read_as_a_reader_reads_them(documents):
    for document in documents:
        read = Reader(words(document))
        assert [WORDS[given] if given >= 0 else "" for given in document.given] == read.given
        assert document.subject_distance == read.distance


def test_far_possessives_have_distractors_of_another_gender(documents):
    far = misled = 0
    for document in documents:
        text = words(document)
        for i, distance in enumerate(document.subject_distance):
            if distance > 4:
                far += 1
                between = {GENDER[word] for word in text[i - distance + 1 : i] if word in GENDER}
                misled += bool(between - {text[i]})
    assert far > 150
    assert misled > far / 4


def ranked(world, *prefix, among):
    """The words that can follow, the likeliest first."""
    probs = world.next_token_probs([world.ids[word] for word in prefix])
    return sorted((word for word in among if probs[world.ids[word]] > 0), key=lambda w: -probs[world.ids[w]])


@pytest.mark.parametrize("world_seed", WORLDS)
def test_training_lacks_one_verb_of_each_subject_and_one_object_of_each_verb(world_seed):
    whole, training = language(world_seed), language(world_seed, withhold=True)
    for subject in NOUNS["being"]:
        all_verbs = ranked(whole, "the", subject, among=OBJECTS)
        assert len(all_verbs) == len(OBJECTS), "the whole language lacks none"
        shown = ranked(training, "the", subject, among=OBJECTS)
        assert shown == [verb for rank, verb in enumerate(all_verbs) if rank != WITHHELD]
    subject = {}
    for noun in NOUNS["being"]:
        subject |= {verb: noun for verb in ranked(training, "the", noun, among=OBJECTS)}
    for verb, kinds in OBJECTS.items():
        for kind in kinds[:1]:
            prefix = "the", subject[verb], verb, "the"
            objects = ranked(whole, *prefix, among=NOUNS[kind])
            assert len(objects) == len(NOUNS[kind])
            assert len(ranked(training, *prefix, among=NOUNS[kind])) == len(objects) - 1


@pytest.mark.slow
def test_no_split_but_test_shows_a_withheld_pairing():
    whole, training = language(0), language(0, withhold=True)
    withheld = {
        (subject, verb)
        for subject in NOUNS["being"]
        for verb in set(OBJECTS) - set(ranked(training, "the", subject, among=OBJECTS))
    }
    rng, shown = np.random.default_rng(3), {}
    for name, drawn_from in (("test", whole), ("training", training)):
        words = [word for _ in range(3000) for word in drawn_from.grammar.sample(rng) if word.word in OBJECTS]
        pairs = [(verb.note.given, verb.word) for verb in words if verb.note]
        shown[name] = sum(pair in withheld for pair in pairs) / len(pairs)
    assert shown["training"] == 0
    probs = VERB_SHARE ** np.arange(len(OBJECTS))
    assert shown["test"] == pytest.approx(probs[WITHHELD] / probs.sum(), rel=0.1)


@pytest.mark.slow
def test_worlds_have_one_shape():
    """Entropy and mean length differ by a few per cent, and so does how even the words are; who does what differs."""
    entropy, length, verbs = [], [], []
    for world_seed in WORLDS:
        world, rng = language(world_seed), np.random.default_rng(1)
        documents = [world.sample(rng) for _ in range(500)]
        n_tokens = sum(len(document.tokens) for document in documents)
        length.append(n_tokens / len(documents))
        entropy.append(-sum(document.log_prob.sum() for document in documents) / n_tokens)
        verbs.append(tuple(ranked(world, "the", "boy", among=OBJECTS)))
    assert max(entropy) - min(entropy) < 0.08
    assert max(length) / min(length) < 1.1
    assert len(set(verbs)) == len(WORLDS)


def test_each_verb_takes_each_rank_about_equally_often():
    """18 subjects and 18 verbs: each verb is the likeliest of one subject, the second of one, and so on."""
    world = language(0)
    ranks = {verb: [] for verb in OBJECTS}
    for subject in NOUNS["being"]:
        for rank, verb in enumerate(ranked(world, "the", subject, among=OBJECTS)):
            ranks[verb].append(rank)
    assert all(sorted(of) == list(range(len(OBJECTS))) for of in ranks.values())


def test_documents_are_of_the_length_and_the_entropy_that_they_should_be(documents):
    n_tokens = [len(document.tokens) for document in documents]
    assert 24 <= np.mean(n_tokens) <= 26
    assert max(n_tokens) <= MAX_LENGTH
    assert np.mean(np.array(n_tokens) > MAX_LENGTH - 4) < 0.07  # the limit is not felt by ordinary documents
    perplexity = math.exp(-sum(document.log_prob.sum() for document in documents) / sum(n_tokens))
    assert 3.55 <= perplexity <= 3.72
