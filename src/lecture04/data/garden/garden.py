"""`data=garden`: people and animals in a garden, a probabilistic grammar whose next-word distribution is exact.

    when the man waters this rose near his wall the cat sees the queen and rests by its old pond .

A document is a few such sentences and `<eos>`, at most `MAX_LENGTH` tokens. Three things are to be learnt from it: the
grammar, which has few rules; the collocations (who does what, to what, what it looks like, where), of which some are
withheld from training; and agreement: a possessive pronoun agrees with the subject of its own clause, the nearest one
before it, which may stand far back, beyond people and animals of another gender.

Nothing but the pronoun depends on a word far back: a verb is drawn for its subject (after "and" any verb is as likely
as another), an object for its verb, a preposition for the word before it, a place for its preposition.

How likely a word's partners are is the same for every word and in every world: the likeliest, the next, and so on, each
a fixed share of the one before. Who is whose likeliest partner is drawn by `world_seed`, so that each word of a kind is
the likeliest, the next, ... equally often. So worlds differ in their collocations, and hardly in their entropy, their
lengths and their frequencies of words. docs/garden.md says what was set by which sentence of the lecture.

    lecture04 sample garden
"""

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from lecture04.data.garden import words
from lecture04.data.garden.grammar import Rule, Symbol, Terminal
from lecture04.data.garden.language import Language, Note
from lecture04.data.garden.sentences import Sentences
from lecture04.data.garden.words import (
    ADJECTIVES,
    NOUNS,
    PREPOSITIONS,
    PRONOUN_OF,
    vocabulary,
)

WORDS = vocabulary("and", "this")
OBJECTS = words.OBJECTS | {"finds": ("being",), "hides": ("being",)}
"""The verbs, and the kinds of noun that each takes, in order."""

# The shape of the language: each share is that of a partner in the one before it, the likeliest first.
SUBJECT_SHARE = 0.97
VERB_SHARE = 0.53
NOUN_SHARE = 0.42  # of objects, places and adjectives
PREPOSITION_SHARE = 0.2
WITHHELD = 3  # the partners that training never shows, of a subject its fourth verb, of a verb its fourth object
P_AND = 0.45  # after a predicate: "and" with another one of the same subject
MAX_PREDICATES = 4
P_POSSESSIVE = 0.16  # before an object or a place
P_THIS = (0.03, 0.97)  # there, where no possessive stands: after one half of the words, and after the other
P_PLACE = (0.1, 0.9)  # after a verb without object, or after its last object: of a word, the lowest and the highest
P_ADJECTIVE = (0.02, 0.85)  # of most nouns, and of one in five

THE, THIS, AND = Terminal("the"), Terminal("this"), Terminal("and")


class _Rules(Sentences):
    """The grammar of one world."""

    clause_symbol = ("clause",)
    p_stop = 0.53
    p_subordinate = 0.15

    def __init__(self, world_seed: int, *, withhold: bool) -> None:
        rng = np.random.default_rng(world_seed)
        withheld = WITHHELD if withhold else None

        def partners(
            of: Iterable[str], among: Iterable[str], share: float, without: int | None = None
        ) -> dict[str, dict[str, float]]:
            """For each word the weights of its partners; over all, each partner takes each rank about equally often."""
            of, among = list(of), list(among)
            n = len(among)
            weights = share ** np.arange(n)
            if without is not None:
                weights[without] = 0
            start = rng.permutation(-(-len(of) // n) * n)[: len(of)]
            names, order = rng.permutation(among).tolist(), rng.permutation(n)
            return {
                word: {names[(first + order[rank]) % n]: float(weights[rank]) for rank in range(n)}
                for word, first in zip(of, start, strict=True)
            }

        def dealt(to: Sequence[str], values: np.ndarray) -> dict[str, float]:
            """One of as many values to each word."""
            return dict(zip(to, rng.permutation(values).tolist(), strict=True))

        def some(to: Sequence[str], low_high: tuple[float, float], share: float) -> dict[str, float]:
            """The high value to a share of the words, the low one to the others."""
            n_high = round(share * len(to))
            return dealt(to, np.repeat(low_high, (len(to) - n_high, n_high)))

        nouns = [noun for kind in NOUNS.values() for noun in kind]
        last = (*OBJECTS, *NOUNS["being"], *NOUNS["plant"], *NOUNS["thing"])
        self.subjects = dealt(NOUNS["being"], SUBJECT_SHARE ** np.arange(len(NOUNS["being"])))
        self.verbs = partners(NOUNS["being"], OBJECTS, VERB_SHARE, withheld)
        self.objects = {
            kind: partners([v for v, kinds in OBJECTS.items() if kind in kinds], NOUNS[kind], NOUN_SHARE, withheld)
            for kind in ("plant", "thing", "being")
        }
        self.prepositions = partners(last, PREPOSITIONS, PREPOSITION_SHARE)
        self.places = partners(PREPOSITIONS, NOUNS["place"], NOUN_SHARE)
        self.adjectives = partners(nouns, ADJECTIVES, NOUN_SHARE)
        self.p_place = dealt(last, np.linspace(*P_PLACE, len(last)))
        self.p_this = some((*OBJECTS, *PREPOSITIONS), P_THIS, 0.5)
        self.p_adjective: dict[str, float] = {}
        for kind in NOUNS.values():
            self.p_adjective |= some(kind, P_ADJECTIVE, 0.2)

    def clause(self) -> list[Rule]:
        return [(1, (THE, ("subject",)))]

    def subject(self) -> list[Rule]:
        rules: list[Rule] = []
        for noun, weight in self.subjects.items():
            after = ("predicate", noun)
            pronoun = PRONOUN_OF[noun]  # stands for the subject: of the nouns that it can mean, the last one is meant
            rules += [(weight * p, (*phrase, after)) for p, phrase in self._phrases(noun, Note(subject=pronoun))]
        return rules

    def predicate(self, subject: str) -> list[Rule]:
        pronoun = PRONOUN_OF[subject]
        return [
            (weight, (Terminal(verb, Note(given=subject)), *self._after(pronoun, verb), ("more", pronoun, 1)))
            for verb, weight in self.verbs[subject].items()
        ]

    def more(self, pronoun: str, n_predicates: int) -> list[Rule]:
        if n_predicates == MAX_PREDICATES:
            return [(1, ())]
        return [(1 - P_AND, ()), (P_AND, (AND, ("another", pronoun, n_predicates + 1)))]

    def another(self, pronoun: str, n_predicates: int) -> list[Rule]:
        return [(1, (Terminal(verb), *self._after(pronoun, verb), ("more", pronoun, n_predicates))) for verb in OBJECTS]

    def object(self, pronoun: str, verb: str, nth: int) -> list[Rule]:
        kinds = OBJECTS[verb]
        rules: list[Rule] = []
        for noun, weight in self.objects[kinds[nth]][verb].items():
            after = (
                (("determiner", pronoun, verb), ("object", pronoun, verb, nth + 1))
                if nth + 1 < len(kinds)
                else (("place", pronoun, noun),)
            )
            rules += [(weight * p, (*phrase, *after)) for p, phrase in self._phrases(noun, Note(given=verb))]
        return rules

    def place(self, pronoun: str, last: str) -> list[Rule]:
        p_place = self.p_place[last]
        return [
            (1 - p_place, ()),
            *(
                (p_place * p, (Terminal(word, Note(given=last)), ("determiner", pronoun, word), ("where", word)))
                for word, p in _normalised(self.prepositions[last])
            ),
        ]

    def where(self, preposition: str) -> list[Rule]:
        return [
            (weight * p, phrase)
            for noun, weight in self.places[preposition].items()
            for p, phrase in self._phrases(noun, Note(given=preposition))
        ]

    def determiner(self, pronoun: str, before: str) -> list[Rule]:
        p_this = (1 - P_POSSESSIVE) * self.p_this[before]
        return [
            (P_POSSESSIVE, (Terminal(pronoun, Note(subject=pronoun)),)),
            (p_this, (THIS,)),
            (1 - P_POSSESSIVE - p_this, (THE,)),
        ]

    def _after(self, pronoun: str, verb: str) -> tuple[Symbol, ...]:
        if not OBJECTS[verb]:
            return (("place", pronoun, verb),)
        return ("determiner", pronoun, verb), ("object", pronoun, verb, 0)

    def _phrases(self, noun: str, note: Note) -> list[Rule]:
        """The noun alone, and with each adjective: the noun is drawn first, and an adjective only hints at it."""
        word, p_adjective = Terminal(noun, note), self.p_adjective[noun]
        described = ((Terminal(adjective, Note(given=noun)), p) for adjective, p in _normalised(self.adjectives[noun]))
        return [(1 - p_adjective, (word,)), *((p_adjective * p, (adjective, word)) for adjective, p in described)]


def _normalised(weights: dict[str, float]) -> Iterable[tuple[str, float]]:
    total = sum(weights.values())
    return ((word, weight / total) for word, weight in weights.items())


@cache
def language(world_seed: int, *, withhold: bool = False) -> Language:
    """The language of one world; that of training, `withhold`, lacks the withheld pairings."""
    rules = _Rules(world_seed, withhold=withhold)
    return Language(WORDS, rules.grammar())
