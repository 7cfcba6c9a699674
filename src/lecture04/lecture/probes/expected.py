"""The excess that is to be expected of a model on the Garden World's test documents, by how often training showed a
pairing: at each position the sum over words of p log(p / q), of the true p and the model's q, in nats.

The excess of the words that stand in the documents says the same with chance in it, and with a bias where words are
picked by how rare they are: a word that stands there once by chance and hardly ever elsewhere has a NLL above the true
one or below it for that reason alone. Where a word can be drawn for several others, its probability is divided among
them by the grammar.

Shapes: N tokens of the test split's flat arrays, M pairings that could stand at one of them, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lecture04 import config
from lecture04.data.garden import garden, garden1
from lecture04.data.garden.language import Language
from lecture04.data.types import Corpus, Split


def language_of(options: config.Garden) -> Language:
    """The language that the test split is drawn from."""
    return garden1.language(options.world_seed) if options.name == "garden1" else garden.language(options.world_seed)


def pairing_counts(split: Split, n_words: int) -> np.ndarray:
    """How often each pairing occurs in a split, int64 [V * V], at given * V + token."""
    has_one = split.facts["given"] >= 0
    pairings = split.facts["given"][has_one].astype(np.int64) * n_words + split.tokens[has_one]
    return np.bincount(pairings, minlength=n_words**2)


@dataclass(frozen=True)
class Pairings:
    """What could stand at each token of the test split, token after token.

    Attributes:
        start_N: where the pairings of each token begin, int64 [N + 1].
        token_M: the word.
        prob_M: the true P(pairing | prefix).
        log_word_M: log P(word | prefix), over all words that it can have been drawn for.
        seen_M: how often the pairing stands in training, -1 where the word is drawn for none.
    """

    start_N: np.ndarray
    token_M: np.ndarray
    prob_M: np.ndarray
    log_word_M: np.ndarray
    seen_M: np.ndarray


def pairings(corpus: Corpus, language: Language) -> Pairings:
    """Those of the test split; seconds of work."""
    test, n_words = corpus.test, corpus.vocab_size
    count = pairing_counts(corpus.train, n_words)
    length, given, token, prob = [], list[int](), list[int](), list[float]()
    for begin, end in zip(test.offsets[:-1], test.offsets[1:], strict=True):
        length.append(0)  # <bos> is not predicted
        for found in language.next_pairings(test.tokens[begin + 1 : end].tolist()):
            length.append(len(found))
            given += [g for g, _ in found]
            token += [t for _, t in found]
            prob += found.values()
    given_M, token_M, prob_M = np.array(given), np.array(token), np.array(prob)
    start_N = np.cumsum([0, *length])
    place_M = np.repeat(np.arange(len(length)), length)
    word_M = place_M * n_words + token_M
    word = np.bincount(word_M, prob_M, minlength=len(length) * n_words)
    seen_M = np.where(given_M < 0, -1, count[np.maximum(given_M, 0) * n_words + token_M])
    return Pairings(start_N, token_M, prob_M, np.log(word[word_M]), seen_M)


class ExpectedExcess:
    """The sum over words of p log(p / q), added up for each pairing of `found`; a measure of `token_nll`."""

    def __init__(self, found: Pairings) -> None:
        self.found = found
        self.nats_M = np.zeros(len(found.token_M))

    def add(self, logits_NV: Tensor, place_N: np.ndarray) -> None:
        """See `Measure`."""
        start, length = self.found.start_N[place_N], np.diff(self.found.start_N)[place_N]
        row = np.repeat(np.arange(len(place_N)), length)
        m = np.arange(length.sum()) + np.repeat(start - np.cumsum(length) + length, length)
        log_q = torch.log_softmax(logits_NV.double(), dim=-1).numpy()[row, self.found.token_M[m]]
        self.nats_M[m] = self.found.prob_M[m] * (self.found.log_word_M[m] - log_q)

    def metrics(self) -> dict[str, float]:
        """Nats a predicted token."""
        return {"test/expected_excess": float(self.nats_M.sum() / (np.diff(self.found.start_N) > 0).sum())}
