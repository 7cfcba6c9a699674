import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from lecture04.data.garden import world as garden
from lecture04.data.garden.world import MAX_LENGTH, NOUNS, OBJECTS, POSSESSIVES, TOKEN_ID, VOCAB, Garden

GENDER = {noun: "his" for noun in garden.MALE} | {noun: "her" for noun in garden.FEMALE}
GENDER |= {noun: "its" for noun in garden.ANIMALS}
KIND = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}


@pytest.fixture(scope="module")
def world():
    return Garden(0)


@pytest.fixture(scope="module")
def documents(world):
    rng = np.random.default_rng(7)
    return [world.sample(rng) for _ in range(3000)]


def words(document):
    return [VOCAB[token] for token in document.tokens]


def test_the_vocabulary_has_92_different_words_and_begins_with_the_special_tokens():
    assert len(VOCAB) == len(set(VOCAB)) == 92
    assert VOCAB[:3] == ("<pad>", "<bos>", "<eos>")


def test_next_token_probabilities_sum_to_one_after_any_prefix(world, documents):
    for document in documents[:25]:
        for end in range(len(document.tokens)):
            assert world.next_token_probs(document.tokens[:end]).sum() == pytest.approx(1, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):  # prefixes that are possible but not likely: the length limit is met with clauses still open
        prefix = []
        while not prefix or VOCAB[prefix[-1]] != "<eos>":
            probs = world.next_token_probs(prefix)
            assert probs.sum() == pytest.approx(1, abs=1e-12)
            prefix.append(int(rng.choice(np.flatnonzero(probs))))
        assert len(prefix) <= MAX_LENGTH
        assert not world.next_token_probs(prefix).any()


def test_log_prob_is_that_of_the_next_token_distributions(world, documents):
    document = documents[0]
    stepwise = [world.next_token_probs(document.tokens[:i])[token] for i, token in enumerate(document.tokens)]
    np.testing.assert_allclose(np.exp(document.log_prob), stepwise, rtol=1e-12)
    np.testing.assert_array_equal(world.log_prob(document.tokens), document.log_prob)


def test_sampled_words_follow_the_next_token_distributions(world, documents):
    # After each of the commonest prefixes, chi-square of the words that came next against the distribution.
    following = {}
    for document in documents:
        for end in range(min(6, len(document.tokens))):
            following.setdefault(tuple(document.tokens[:end]), []).append(document.tokens[end])
    tested = [(prefix, drawn) for prefix, drawn in following.items() if len(drawn) >= 100]
    assert len(tested) >= 10
    for prefix, drawn in tested:
        expected = world.next_token_probs(prefix) * len(drawn)
        counts = np.bincount(drawn, minlength=len(VOCAB))
        assert not counts[expected == 0].any()
        pooled = expected < 5
        cells = [*zip(counts[~pooled], expected[~pooled], strict=True), (counts[pooled].sum(), expected[pooled].sum())]
        chi_square = sum((n - e) ** 2 / e for n, e in cells if e > 0)
        assert chi_square < len(cells) + 5 * math.sqrt(2 * len(cells)), [VOCAB[t] for t in prefix]


def test_mean_surprise_is_the_entropy_of_the_distributions(world, documents):
    # The samples' surprise less the entropy after each prefix is a martingale: a sampler that draws by other
    # probabilities than those it reports drifts away from zero.
    differences = []
    for document in documents[:150]:
        for end, log_prob in enumerate(document.log_prob):
            probs = world.next_token_probs(document.tokens[:end])
            probs = probs[probs > 0]
            differences.append(-log_prob + (probs * np.log(probs)).sum())
    standard_error = np.std(differences) / math.sqrt(len(differences))
    assert abs(np.mean(differences)) < 4 * standard_error
    assert standard_error < 0.03


@pytest.mark.parametrize(
    ("text", "position", "word"),
    [
        ("the waters", 1, "waters"),
        ("the boy rests . . <eos>", 4, "."),
        ("the <pad>", 1, "<pad>"),
        ("her boy", 0, "her"),
    ],
)
def test_an_impossible_prefix_is_refused_by_word_and_position(world, text, position, word):
    tokens = [TOKEN_ID[w] for w in text.split()]
    for ask in (world.next_token_probs, world.log_prob):
        with pytest.raises(ValueError, match=f"'{word}'.* at position {position}"):
            ask(tokens)


@pytest.mark.parametrize("token", [-1, len(VOCAB)])
def test_a_token_outside_the_vocabulary_is_refused(world, token):
    with pytest.raises(ValueError, match=f"token {token}"):
        world.next_token_probs([token])


def owners(text):
    """[(position of a possessive, position of the noun it belongs to)] of one document, read by hand: a second reader,
    written without the grammar, that keeps a pile of the clauses still open."""
    pairs, sentence_start = [], 0
    for end in (i for i, word in enumerate(text) if word == "."):
        i = sentence_start
        while i < end:
            if text[i] in garden.CONJUNCTIONS:
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
    if text[i] in garden.PREPOSITIONS:
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
    i += text[i] in garden.ADJECTIVES
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


def test_a_world_has_its_own_collocations_and_a_seed_its_own_documents():
    first, again, other = Garden(0), Garden(0), Garden(1)
    prefix = [TOKEN_ID["the"], TOKEN_ID["boy"]]
    assert first == again != other
    np.testing.assert_array_equal(first.next_token_probs(prefix), again.next_token_probs(prefix))
    assert np.abs(first.next_token_probs(prefix) - other.next_token_probs(prefix)).sum() > 0.1
    texts = [tuple(first.sample(np.random.default_rng(seed)).tokens) for seed in range(20)]
    assert len(set(texts)) > 15


def test_no_pairing_is_impossible(world):
    for noun, verb in itertools.product(NOUNS["being"], OBJECTS):
        world.log_prob([TOKEN_ID[word] for word in ("the", noun, verb)])


def test_the_command_shows_documents_with_their_probabilities():
    command = [sys.executable, "-m", "lecture04.cli.main", "sample", "3", "--seed", "1"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.count("<eos>") == shown.count("perplexity") == 3
