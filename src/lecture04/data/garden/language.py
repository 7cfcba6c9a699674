"""A language of the Garden World: its words, its grammar, and what a derivation says of each word of a document."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lecture04.data.garden.grammar import Belief, Grammar, Terminal
from lecture04.data.garden.words import POSSESSIVES


class Note(NamedTuple):
    """What a derivation says of a word: the subject that it names or refers to, and the word that it was drawn for."""

    subject: Hashable = None
    given: str = ""


@dataclass(frozen=True)
class Document:
    """One document, without <bos> and with <eos>; four values a token.

    Attributes:
        tokens: token ids.
        log_prob: the true log p(token | prefix) in nats, float64.
        subject_distance: at a possessive pronoun, how many tokens back the head noun of its subject stands; 0 at any
            other token.
        given: id of the word that the token was drawn for, -1 where none. It is that of the derivation that made
            the text; another one of the same words, where there is any, may say otherwise.
    """

    tokens: list[int]
    log_prob: np.ndarray
    subject_distance: list[int]
    given: list[int]


@dataclass(frozen=True)
class Language:
    """The documents of one grammar, whose words are `words` in the order of their ids."""

    words: tuple[str, ...]
    grammar: Grammar = field(repr=False, compare=False)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The id of each word."""
        return {word: token for token, word in enumerate(self.words)}

    def next_token_probs(self, prefix: Sequence[int]) -> np.ndarray:
        """P(token | prefix), float64 [vocabulary], for a prefix of token ids after <bos>; all zero after <eos>.

        Raises:
            ValueError: no document begins so.
        """
        belief = self.grammar.start
        for _, after in self._read(prefix):
            belief = after
        probs = np.zeros(len(self.words))
        for word, prob in self.grammar.next_words(belief).items():
            probs[self.ids[word]] = prob
        return probs

    def log_prob(self, tokens: Sequence[int]) -> np.ndarray:
        """log P(token | the tokens before it) in nats, float64 [len(tokens)], for a document or the beginning of one.

        Raises:
            ValueError: no document begins so.
        """
        return np.log([prob for prob, _ in self._read(tokens)])

    def next_pairings(self, document: Sequence[int]) -> Iterator[dict[tuple[int, int], float]]:
        """At each token of a document {(given, token): probability} of what could stand there; given -1 where none.

        Raises:
            ValueError: no document begins so.
        """
        belief = self.grammar.start
        for _, after in self._read(document):
            found: dict[tuple[int, int], float] = {}
            for terminal, prob in self.grammar.next_terminals(belief).items():
                pairing = self._given(terminal), self.ids[terminal.word]
                found[pairing] = found.get(pairing, 0.0) + prob
            yield found
            belief = after

    def sample(self, rng: np.random.Generator) -> Document:
        """One document; as many uniform numbers are drawn from `rng` as it has tokens."""
        text = self.grammar.sample(rng)
        tokens = [self.ids[terminal.word] for terminal in text]
        given = [self._given(terminal) for terminal in text]
        return Document(tokens, self.log_prob(tokens), _subject_distance(text), given)

    def _read(self, tokens: Sequence[int]) -> Iterator[tuple[float, Belief]]:
        """The probability of each token, and what is believed after it."""
        belief = self.grammar.start
        for position, token in enumerate(tokens):
            word = self.words[token] if 0 <= token < len(self.words) else "not in the vocabulary"
            prob, belief = self.grammar.advance(belief, word)
            if not prob:
                raise ValueError(f"no document goes on with token {token} ({word!r}) at position {position}")
            yield prob, belief

    def _given(self, terminal: Terminal) -> int:
        return self.ids[terminal.note.given] if isinstance(terminal.note, Note) and terminal.note.given else -1


def _subject_distance(text: Sequence[Terminal]) -> list[int]:
    # A subject is named before anything is said of it; of those alike, the one named last has the clause still open.
    named_at: dict[Hashable, int] = {}
    distances = [0] * len(text)
    for position, terminal in enumerate(text):
        if not isinstance(terminal.note, Note) or terminal.note.subject is None:
            continue
        if terminal.word in POSSESSIVES:
            distances[position] = position - named_at[terminal.note.subject]
        else:
            named_at[terminal.note.subject] = position
    return distances
