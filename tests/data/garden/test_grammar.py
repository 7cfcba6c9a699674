import math
from collections import Counter

import numpy as np
import pytest

from lecture04.data.garden.grammar import Grammar, Terminal

END = "<end>"
A, B, C = Terminal("a"), Terminal("b"), Terminal("c")

# Ambiguous on purpose: "a a" is one X or two, X may be empty, and the tail is right-recursive.
AMBIGUOUS = {
    "S": [(2.0, ("X", "T")), (1.0, (A, "S")), (1.0, ("X", "X"))],
    "X": [(1.0, ()), (2.0, (A,)), (1.0, (A, A)), (1.0, (B,))],
    "T": [(3.0, ()), (1.0, (C, "T")), (0.0, (C, C, C, C))],
}
LIMIT = 6


def grammar(limit=LIMIT):
    return Grammar(AMBIGUOUS.__getitem__, "S", end=END, limit=limit)


def brute_force(limit):
    """{text: probability} over all leftmost derivations, by the definition.

    Every symbol may be empty here: a form can end in time if the words in it, done or waiting, are within the limit.
    """
    texts = Counter()

    def words(form):
        return sum(isinstance(part, Terminal) for part in form)

    def derive(prob, done, form):
        if not form:
            texts[done] += prob
            return
        first, rest = form[0], form[1:]
        if isinstance(first, Terminal):
            derive(prob, (*done, first.word), rest)
            return
        fitting = [(w, body) for w, body in AMBIGUOUS[first] if w and len(done) + words((*body, *rest)) <= limit]
        total = sum(w for w, _ in fitting)
        for w, body in fitting:
            derive(prob * w / total, done, (*body, *rest))

    derive(1.0, (), ("S", Terminal(END)))
    return texts


def prob(grammar, text):
    belief, total = grammar.start, 1.0
    for word in text:
        p, belief = grammar.advance(belief, word)
        total *= p
    return total


@pytest.mark.parametrize("limit", [1, 2, 4, 6])
def test_texts_have_the_probabilities_of_all_their_derivations(limit):
    texts = brute_force(limit)
    assert math.fsum(texts.values()) == pytest.approx(1)
    for text, expected in texts.items():
        assert prob(grammar(limit), text) == pytest.approx(expected, rel=1e-12)


def test_next_words_are_the_conditionals_of_the_enumeration():
    texts, world = brute_force(LIMIT), grammar()
    for prefix in {text[:i] for text in texts for i in range(len(text))}:
        belief = world.start
        for word in prefix:
            _, belief = world.advance(belief, word)
        extensions = Counter()
        for text, p in texts.items():
            if text[: len(prefix)] == prefix:
                extensions[text[len(prefix)]] += p
        total = sum(extensions.values())
        assert world.next_words(belief) == pytest.approx({word: p / total for word, p in extensions.items()})


def test_samples_follow_the_enumeration():
    texts, world, rng, n = brute_force(LIMIT), grammar(), np.random.default_rng(0), 20_000
    drawn = Counter(tuple(terminal.word for terminal in world.sample(rng)) for _ in range(n))
    assert set(drawn) <= set(texts)
    common = [text for text, p in texts.items() if p * n >= 10]
    chi_square = sum((drawn[text] - texts[text] * n) ** 2 / (texts[text] * n) for text in common)
    assert chi_square < len(common) + 4 * math.sqrt(2 * len(common))


def test_a_text_that_has_ended_has_no_next_word():
    world = grammar()
    _, belief = world.advance(world.start, END)
    assert world.next_words(belief) == {}
    assert world.advance(belief, "a") == (0, {})


def test_a_word_that_cannot_follow_has_probability_zero():
    assert grammar().advance(grammar().start, "d") == (0, {})


@pytest.mark.parametrize(
    ("rules", "limit", "message"),
    [
        ({"S": [(0.0, (A,))]}, 5, "'S' has no alternative"),
        ({"S": [(1.0, ("T",))], "T": [(1.0, (A, "T"))]}, 5, "cannot end"),
        ({"S": [(1.0, (A, A))]}, 2, "shortest text has 3 words, the limit is 2"),
    ],
)
def test_a_grammar_without_texts_is_refused(rules, limit, message):
    with pytest.raises(ValueError, match=message):
        Grammar(rules.__getitem__, "S", end=END, limit=limit)
