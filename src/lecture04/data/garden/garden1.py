"""`data=garden1`: the Garden World of the first edition, in which training shows nearly every pairing of words.

    when the old man that the queen follows waters his rose the cat rests near its wall .

A document is a few such sentences and `<eos>`, at most `MAX_LENGTH` tokens. Three things are to be learnt from it: the
grammar; the collocations (who does what, to what, what it looks like, where), which `world_seed` draws sparse, so that
many pairings are rare and some are never seen in training; and agreement: a possessive pronoun agrees with the subject
of its own clause, which may stand far back, beyond a relative clause or people and animals of another gender.

    lecture04 sample garden1
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from lecture04.data.garden.grammar import Rule, Terminal
from lecture04.data.garden.language import Language, Note
from lecture04.data.garden.sentences import Sentences
from lecture04.data.garden.words import (
    ADJECTIVES,
    ANIMALS,
    NOUNS,
    OBJECTS,
    PREPOSITIONS,
    PRONOUN_OF,
    vocabulary,
)

WORDS = vocabulary("who", "that")

# The shape of the language. A probability that belongs to a word is the mean over the words (see `_Rules`).
CONCENTRATION = 0.2  # of the collocations' Dirichlet weights: the smaller, the sparser
SUBJECT_CONCENTRATION = 5.0  # of the subjects' frequencies
FLOOR = 1e-4  # added to every weight, so that no pairing is impossible
P_RELATIVE = 0.12  # after a subject
P_GAP = 0.15  # of these, those that say what another does to the subject: "the boy that the dog follows"
P_OBJECT_RELATIVE = 0.08  # after the last object, where no place follows: "waters the rose that the boy plants"
P_PLACE = 0.4  # at a clause's end, of the verb
P_POSSESSIVE = 0.5  # before an object or a place, of the verb
P_ADJECTIVE = 0.25  # of the noun

THE, THAT, WHO = Terminal("the"), Terminal("that"), Terminal("who")


class Subject(NamedTuple):
    """The subject of a clause: its noun, and how many clauses enclose it, which tells apart the clauses still open."""

    noun: str
    depth: int


@cache
def language(world_seed: int) -> Language:
    """The language of one world; every split is drawn from it."""
    return Language(WORDS, _Rules(world_seed).grammar())


class _Rules(Sentences):
    """The grammar of one world."""

    clause_symbol = ("clause", 0, None)
    p_stop = 0.41
    p_subordinate = 0.22

    def __init__(self, world_seed: int) -> None:
        rng = np.random.default_rng(world_seed)

        def weights(words: Sequence[str], concentration: float = CONCENTRATION) -> dict[str, float]:
            drawn = rng.dirichlet(np.full(len(words), concentration)) + FLOOR
            return dict(zip(words, (drawn / drawn.sum()).tolist(), strict=True))

        def leaning(words: Iterable[str], mean: float) -> dict[str, float]:
            """A probability for each word, most of them near 0 or 1."""
            return {word: min(max(rng.beta(mean, 1 - mean), FLOOR), 1 - FLOOR) for word in words}

        nouns = [noun for kind in NOUNS.values() for noun in kind]
        self.subjects = weights(NOUNS["being"], SUBJECT_CONCENTRATION)
        self.verbs = {noun: weights(tuple(OBJECTS)) for noun in NOUNS["being"]}
        self.objects = {(verb, kind): weights(NOUNS[kind]) for verb, kinds in OBJECTS.items() for kind in kinds}
        self.places = {verb: weights(NOUNS["place"]) for verb in OBJECTS}
        self.prepositions = {verb: weights(PREPOSITIONS) for verb in OBJECTS}
        self.adjectives = {noun: weights(ADJECTIVES) for noun in nouns}
        self.p_place = leaning(OBJECTS, P_PLACE)
        self.p_possessive = leaning(OBJECTS, P_POSSESSIVE)
        self.p_adjective = leaning(nouns, P_ADJECTIVE)

    def clause(self, depth: int, gap: str | None) -> list[Rule]:
        """With a gap, a relative clause that lacks its first object, of the kind `gap`: "that the dog follows"."""
        return [(1, (THE, ("subject", depth, gap)))]

    def subject(self, depth: int, gap: str | None) -> list[Rule]:
        rules = []
        for noun, weight in self.subjects.items():
            subject = Subject(noun, depth)
            after = (("relative", subject), ("predicate", subject, gap))
            rules += [(weight * p, (*phrase, *after)) for p, phrase in self._phrases(noun, Note(subject))]
        return rules

    def relative(self, head: Subject) -> list[Rule]:
        if head.depth > 0:
            return [(1, ())]
        return [
            (1 - P_RELATIVE, ()),
            (P_RELATIVE * (1 - P_GAP), (THAT if head.noun in ANIMALS else WHO, ("predicate", head, None))),
            (P_RELATIVE * P_GAP, (THAT, ("clause", head.depth + 1, "being"))),
        ]

    def predicate(self, subject: Subject, gap: str | None) -> list[Rule]:
        rules = []
        for verb, weight in self.verbs[subject.noun].items():
            kinds = OBJECTS[verb]
            if gap is not None:
                if kinds[:1] != (gap,):
                    continue
                kinds = kinds[1:]
            objects = [part for kind in kinds for part in (("determiner", subject, verb), ("object", verb, kind))]
            end = ("end", subject, verb, kinds[-1] if kinds else None)
            rules.append((weight, (Terminal(verb, Note(given=subject.noun)), *objects, end)))
        return rules

    def determiner(self, subject: Subject, verb: str) -> list[Rule]:
        p_possessive = self.p_possessive[verb]
        return [(1 - p_possessive, (THE,)), (p_possessive, (Terminal(PRONOUN_OF[subject.noun], Note(subject)),))]

    def object(self, verb: str, kind: str) -> list[Rule]:
        return self._choice(self.objects[verb, kind], verb)

    def end(self, subject: Subject, verb: str, last_object: str | None) -> list[Rule]:
        p_place = self.p_place[verb]
        p_relative = P_OBJECT_RELATIVE if last_object and subject.depth == 0 else 0
        place = (("preposition", verb), ("determiner", subject, verb), ("place", verb))
        rules = [((1 - p_place) * (1 - p_relative), ()), (p_place, place)]
        if p_relative:
            rules.append(((1 - p_place) * p_relative, (THAT, ("clause", subject.depth + 1, last_object))))
        return rules

    def preposition(self, verb: str) -> list[Rule]:
        return [(weight, (Terminal(word, Note(given=verb)),)) for word, weight in self.prepositions[verb].items()]

    def place(self, verb: str) -> list[Rule]:
        return self._choice(self.places[verb], verb)

    def _choice(self, nouns: dict[str, float], given: str) -> list[Rule]:
        return [
            (weight * p, phrase)
            for noun, weight in nouns.items()
            for p, phrase in self._phrases(noun, Note(given=given))
        ]

    def _phrases(self, noun: str, note: Note) -> list[Rule]:
        """The noun alone, and with each adjective: the noun is drawn first, and an adjective only hints at it."""
        word, p_adjective = Terminal(noun, note), self.p_adjective[noun]
        described = (
            (Terminal(adjective, Note(given=noun)), weight) for adjective, weight in self.adjectives[noun].items()
        )
        return [(1 - p_adjective, (word,)), *((p_adjective * weight, (adj, word)) for adj, weight in described)]
