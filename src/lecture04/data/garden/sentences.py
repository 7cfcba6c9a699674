"""What every Garden World has in common: a document is a few sentences, each a clause or two.

A world adds the alternatives of its clause, as methods.
"""

from typing import ClassVar

from lecture04.data.garden.grammar import Grammar, Rule, Symbol, Terminal
from lecture04.data.garden.words import CONJUNCTIONS, EOS, MAX_LENGTH

MAX_SENTENCES = 4
P_LEADING = 0.5  # of the subordinate clauses, those before the main clause


class Sentences:
    """Rules in which the alternatives of a symbol (name, *arguments) are what the method `name` returns.

    Attributes:
        clause_symbol: a main or a subordinate clause.
        p_stop: after a sentence.
        p_subordinate: in a sentence.
    """

    clause_symbol: ClassVar[Symbol]
    p_stop: ClassVar[float]
    p_subordinate: ClassVar[float]

    def __call__(self, symbol: Symbol) -> list[Rule]:
        """The alternatives of a symbol."""
        name, *arguments = symbol
        return getattr(self, name)(*arguments)

    def grammar(self) -> Grammar:
        """The grammar of whole documents."""
        return Grammar(self, ("sentences", MAX_SENTENCES), end=EOS, limit=MAX_LENGTH)

    def sentences(self, most: int) -> list[Rule]:
        """At most so many."""
        one = (("sentence",), Terminal("."))
        if most == 1:
            return [(1, one)]
        return [(self.p_stop, one), (1 - self.p_stop, (*one, ("sentences", most - 1)))]

    def sentence(self) -> list[Rule]:
        """A clause, or one with another before or after it."""
        clause, conjunction = self.clause_symbol, ("conjunction",)
        return [
            (1 - self.p_subordinate, (clause,)),
            (self.p_subordinate * P_LEADING, (conjunction, clause, clause)),
            (self.p_subordinate * (1 - P_LEADING), (clause, conjunction, clause)),
        ]

    def conjunction(self) -> list[Rule]:
        """Any, equally often."""
        return [(1, (Terminal(word),)) for word in CONJUNCTIONS]
