"""`data=garden` and `data=garden1`: documents as arrays, what is known of each token, and pronoun accuracy.

Facts of a token, beside the true `log_prob` (of the language that its split is drawn from):

    subject_distance   int16; at a possessive pronoun, how many tokens back its subject's noun stands; 0 at any other
                       token
    given              int16; the id of the word that the token was drawn for (a verb for its subject, an object for its
                       verb), -1 where there is none; by the derivation that made the document, one of several perhaps
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lecture04 import config
from lecture04.config.registry import PACKAGE, register
from lecture04.data.cache import Arrays, cached, code_of
from lecture04.data.garden import garden as present
from lecture04.data.garden import garden1 as first
from lecture04.data.garden.language import Language
from lecture04.data.garden.words import BOS, EOS, PAD
from lecture04.data.tokenizer import of_words
from lecture04.data.types import Split, Splits

if TYPE_CHECKING:
    from torch import Tensor

SEEDS = {"train": 1, "val": 2, "test": 3}
FACTS = ("log_prob", "subject_distance", "given")


@register("data", "garden", options=config.Garden)
def garden(options: config.Garden, cache: Path) -> Splits:
    """The Garden World: a synthetic language whose true distribution is known (people, animals and plants).

    Some pairings of words (a subject's fourth verb, a verb's fourth object) are withheld from the training and the
    validation split and stand in the test split at their true rate: two languages, both exact. A larger split begins
    with the documents of a smaller one.
    """
    return _splits(options, cache, lambda split: present.language(options.world_seed, withhold=split != "test"))


@register("data", "garden1", options=config.Garden1)
def garden1(options: config.Garden1, cache: Path) -> Splits:
    """The Garden World of the first edition: every split from one language, of which training shows nearly all.

    A larger split begins with the documents of a smaller one.
    """
    return _splits(options, cache, lambda split: first.language(options.world_seed))


def _splits(options: config.Garden, cache: Path, language: Callable[[str], Language]) -> Splits:
    sizes = {"train": options.n_train, "val": options.n_val, "test": options.n_test}
    settings = {
        "sizes": sizes,
        "world_seed": options.world_seed,
        "seeds": SEEDS,
        "code": code_of_the_language(options.name),
    }
    arrays = cached(cache, options.name, settings, lambda: _make(sizes, options.world_seed, language))
    splits = {
        name: Split(
            arrays[f"{name}.tokens"], arrays[f"{name}.offsets"], {fact: arrays[f"{name}.{fact}"] for fact in FACTS}
        )
        for name in sizes
    }
    whole = language("test")
    return Splits(
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        vocab_size=len(whole.words),
        tokenizer=of_words(whole.words, unknown=PAD),
        measures=(PronounAccuracy,),
        bos=whole.ids[BOS],
        eos=whole.ids[EOS],
        pad=whole.ids[PAD],
        fault=lambda document: fault(whole, document),
    )


def fault(language: Language, document: Sequence[int]) -> str:
    """Why a language has no document that begins so, token ids without <bos>; empty where it has."""
    try:
        language.log_prob(document)
    except ValueError as e:
        return str(e)
    return ""


def _make(sizes: dict[str, int], world_seed: int, language: Callable[[str], Language]) -> Arrays:
    arrays = Arrays()
    for name, n_docs in sizes.items():
        drawn_from, rng = language(name), np.random.default_rng([SEEDS[name], world_seed])
        documents = [drawn_from.sample(rng) for _ in range(n_docs)]
        bos = drawn_from.ids[BOS]
        arrays |= {
            f"{name}.tokens": np.array([t for doc in documents for t in (bos, *doc.tokens)], dtype=np.int16),
            f"{name}.offsets": np.cumsum([0, *(1 + len(doc.tokens) for doc in documents)], dtype=np.int64),
            f"{name}.log_prob": np.concatenate([part for doc in documents for part in ([0.0], doc.log_prob)]),
            f"{name}.subject_distance": np.array(
                [d for doc in documents for d in (0, *doc.subject_distance)], dtype=np.int16
            ),
            f"{name}.given": np.array([g for doc in documents for g in (-1, *doc.given)], dtype=np.int16),
        }
    return arrays


def code_of_the_language(name: str, package: Path = PACKAGE) -> str:
    """A hash of the code that makes documents; comments, docstrings and layout do not count."""
    return code_of((f"lecture04.data.garden.{name}", "language"), package=package)


class PronounAccuracy:
    """How often the right one of the possessive pronouns ranks first among them, and at how many places.

    The places are pronouns whose subject stands more than `eval.window` tokens back. NaN where there are none, or where
    the model's outputs are not numbers.
    """

    def __init__(self, split: Split, evaluation: config.Evaluation) -> None:
        distance = split.facts["subject_distance"]
        self.tokens, self.is_place = split.tokens, distance > evaluation.window
        self.choices = np.unique(split.tokens[distance > 0])
        self.n_right, self.is_finite = 0, True

    def add(self, logits_NV: Tensor, place_N: np.ndarray) -> None:
        """Count the places among these tokens."""
        here = self.is_place[place_N]
        logits = logits_NV.numpy()[here]
        if not len(logits):
            return
        self.is_finite = self.is_finite and bool(np.isfinite(logits).all())
        guessed = self.choices[logits[:, self.choices].argmax(axis=1)]
        self.n_right += int((guessed == self.tokens[place_N[here]]).sum())

    def metrics(self) -> dict[str, float]:
        """The share of right ones, and the number of places."""
        n = int(self.is_place.sum())
        accuracy = self.n_right / n if n and self.is_finite else math.nan
        return {"pronouns/accuracy": accuracy, "pronouns/n": n}
