"""What holds of each language: exact next-word probabilities, and samples that follow them."""

import math
import subprocess
import sys

import numpy as np
import pytest

from lecture04.data.garden import garden, garden1
from lecture04.data.garden.words import MAX_LENGTH

LANGUAGES = {
    "garden": lambda seed: garden.language(seed),
    "garden, training": lambda seed: garden.language(seed, withhold=True),
    "garden1": garden1.language,
}


@pytest.fixture(scope="module", params=LANGUAGES)
def world(request):
    return LANGUAGES[request.param](0)


@pytest.fixture(scope="module")
def documents(world):
    rng = np.random.default_rng(7)
    return [world.sample(rng) for _ in range(1000)]


def test_the_vocabulary_has_92_different_words_and_begins_with_the_special_tokens(world):
    assert len(world.words) == len(set(world.words)) == 92
    assert world.words[:3] == ("<pad>", "<bos>", "<eos>")


def test_next_token_probabilities_sum_to_one_after_any_prefix(world, documents):
    for document in documents[:25]:
        for end in range(len(document.tokens)):
            assert world.next_token_probs(document.tokens[:end]).sum() == pytest.approx(1, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):  # prefixes that are possible but not likely: the length limit is met with clauses still open
        prefix = []
        while not prefix or world.words[prefix[-1]] != "<eos>":
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


def test_pairings_divide_the_probability_of_each_word(world, documents):
    """At each token of a document: over the words that it can be drawn for they sum to that token's probability."""
    for document in documents[:25]:
        for position, found in enumerate(world.next_pairings(document.tokens)):
            by_token = np.zeros(len(world.words))
            for (_, token), prob in found.items():
                by_token[token] += prob
            np.testing.assert_allclose(by_token, world.next_token_probs(document.tokens[:position]), atol=1e-12)
            own = document.given[position], document.tokens[position]
            assert found[own] > 0, "what was drawn could be drawn"
        assert position == len(document.tokens) - 1


def test_sampled_words_follow_the_next_token_distributions(world, documents):
    # After each of the commonest prefixes, chi-square of the words that came next against the distribution.
    following = {}
    for document in documents:
        for end in range(min(6, len(document.tokens))):
            following.setdefault(tuple(document.tokens[:end]), []).append(document.tokens[end])
    tested = [(prefix, drawn) for prefix, drawn in following.items() if len(drawn) >= 60]
    assert len(tested) >= 3
    for prefix, drawn in tested:
        expected = world.next_token_probs(prefix) * len(drawn)
        counts = np.bincount(drawn, minlength=len(world.words))
        assert not counts[expected == 0].any()
        pooled = expected < 5
        cells = [*zip(counts[~pooled], expected[~pooled], strict=True), (counts[pooled].sum(), expected[pooled].sum())]
        chi_square = sum((n - e) ** 2 / e for n, e in cells if e > 0)
        assert chi_square < len(cells) + 5 * math.sqrt(2 * len(cells)), [world.words[t] for t in prefix]


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
    tokens = [world.ids[w] for w in text.split()]
    if text.startswith("the boy rests") and "rests" not in _possible(world, "the", "boy"):
        pytest.skip("withheld in this world")
    for ask in (world.next_token_probs, world.log_prob):
        with pytest.raises(ValueError, match=f"'{word}'.* at position {position}"):
            ask(tokens)


def _possible(world, *prefix):
    probs = world.next_token_probs([world.ids[word] for word in prefix])
    return {world.words[token] for token in np.flatnonzero(probs)}


@pytest.mark.parametrize("token", [-1, 92])
def test_a_token_outside_the_vocabulary_is_refused(world, token):
    with pytest.raises(ValueError, match=f"token {token}"):
        world.next_token_probs([token])


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_world_has_its_own_collocations_and_a_seed_its_own_documents(name):
    first, other = LANGUAGES[name](0), LANGUAGES[name](1)
    assert first is LANGUAGES[name](0), "it is made once"
    prefix = [first.ids["the"], first.ids["boy"]]
    assert np.abs(first.next_token_probs(prefix) - other.next_token_probs(prefix)).sum() > 0.1
    texts = [tuple(first.sample(np.random.default_rng(seed)).tokens) for seed in range(20)]
    assert len(set(texts)) > 15


@pytest.mark.parametrize("world", ["garden", "garden1"])
def test_the_command_shows_documents_with_their_probabilities(world):
    command = [sys.executable, "-m", "lecture04.cli.main", "sample", world, "-n", "3", "--seed", "1"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.count("<eos>") == shown.count("perplexity") == 3
