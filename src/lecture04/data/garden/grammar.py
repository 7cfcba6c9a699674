"""Weighted context-free grammars that know the exact distribution of the next word after any prefix.

A grammar is a start symbol and a function `rules(symbol)` that lists the symbol's alternatives, each a weight and a
body: a tuple of symbols and `Terminal`s, expanded left to right. An alternative's probability is its weight over the
sum of the weights. Bodies may be empty and derivations ambiguous; left recursion is not allowed.

The length limit belongs to the grammar. A state carries its slack, the number of words that may still be added to the
shortest way to end the text, and an alternative is offered only while the slack can pay for it; the weights of those
offered are normalised among themselves. So no text is longer than the limit, nothing is rejected, and every probability
stays exact.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import numpy as np

Symbol = Any  # hashable
Body = tuple[Any, ...]
Rule = tuple[float, Body]
Rules = Callable[[Symbol], Sequence[Rule]]


class Terminal(NamedTuple):
    """A word of the text, with a note for whoever reads derivations (the grammar itself ignores it)."""

    word: str
    note: Hashable = None


class State(NamedTuple):
    """Where a derivation stands: what is still to be expanded, first symbol first, and the words to spare."""

    stack: Body
    slack: float


class Branch(NamedTuple):
    """One way to emit the next word: its probability, the word, what is left to expand, the slack it costs."""

    prob: float
    terminal: Terminal
    stack: Body
    cost: int


@dataclass(frozen=True)
class _Expansion:
    branches: tuple[Branch, ...]

    @cached_property
    def by_word(self) -> dict[str, list[Branch]]:
        words: dict[str, list[Branch]] = {}
        for branch in self.branches:
            words.setdefault(branch.terminal.word, []).append(branch)
        return words

    @cached_property
    def probs(self) -> dict[str, float]:
        return {word: sum(branch.prob for branch in branches) for word, branches in self.by_word.items()}

    @cached_property
    def cumulative(self) -> list[float]:
        return [*accumulate(branch.prob for branch in self.branches[:-1]), 1.0]

    @cached_property
    def dearest(self) -> int:
        return max((branch.cost for branch in self.branches), default=0)


Belief = Mapping[State, float]
"""P(state | prefix) over the states that the prefix can have led to."""


class Grammar:
    """A weighted grammar whose texts are closed by the word `end` and have at most `limit` words, `end` counted.

    Raises:
        ValueError: a symbol has no alternative of positive weight, or cannot end, or no text fits into the limit.
    """

    def __init__(self, rules: Rules, start: Symbol, *, end: str, limit: int) -> None:
        self._rules = _reachable(rules, start)
        self._shortest = _shortest(self._rules)
        self._may_be_empty = {symbol for symbol, length in self._shortest.items() if length == 0}
        self._cache: dict[tuple[Body, float], _Expansion] = {}
        stack = (start, Terminal(end))
        if self._length(stack) > limit:
            raise ValueError(f"the shortest text has {self._length(stack)} words, the limit is {limit}")
        self.start: Belief = {State(stack, limit - self._length(stack)): 1.0}

    def next_words(self, belief: Belief) -> dict[str, float]:
        """P(word | prefix) for every word that can follow; empty where the text has ended."""
        probs: dict[str, float] = {}
        for state, weight in belief.items():
            for word, prob in self._expand(state)[0].probs.items():
                probs[word] = probs.get(word, 0.0) + weight * prob
        return probs

    def next_terminals(self, belief: Belief) -> dict[Terminal, float]:
        """P(terminal | prefix) for every terminal that can follow: a word, with what its derivation notes of it."""
        probs: dict[Terminal, float] = {}
        for state, weight in belief.items():
            for branch in self._expand(state)[0].branches:
                probs[branch.terminal] = probs.get(branch.terminal, 0.0) + weight * branch.prob
        return probs

    def advance(self, belief: Belief, word: str) -> tuple[float, Belief]:
        """P(word | prefix), and the belief after the word; (0.0, {}) where the word cannot follow."""
        joint: dict[State, float] = {}
        for state, weight in belief.items():
            expansion, rest = self._expand(state)
            for branch in expansion.by_word.get(word, ()):
                after = State(branch.stack + rest, state.slack - branch.cost)
                joint[after] = joint.get(after, 0.0) + weight * branch.prob
        total = sum(joint.values())
        return total, {state: prob / total for state, prob in joint.items()}

    def sample(self, rng: np.random.Generator) -> list[Terminal]:
        """One text, drawn as a derivation: one uniform number a word."""
        (state,) = self.start
        text = []
        while state.stack:
            expansion, rest = self._expand(state)
            branch = expansion.branches[bisect_right(expansion.cumulative, rng.random())]
            text.append(branch.terminal)
            state = State(branch.stack + rest, state.slack - branch.cost)
        return text

    def _expand(self, state: State) -> tuple[_Expansion, Body]:
        """The ways to emit the next word, and the part of the stack that they leave alone."""
        stack, slack = state
        # Only the symbols up to the first that cannot be empty have a say in the next word: few such heads to cache.
        n_head = 1
        while n_head < len(stack) and stack[n_head - 1] in self._may_be_empty:
            n_head += 1
        head, rest = stack[:n_head], stack[n_head:]
        # Nearly always the slack pays for every alternative, and then it does not matter how much there is.
        free = self._expansion(head, inf)
        return (free if slack >= free.dearest else self._expansion(head, slack)), rest

    def _expansion(self, head: Body, slack: float) -> _Expansion:
        found = self._cache.get((head, slack))
        if found is None:
            found = self._cache[head, slack] = _Expansion(tuple(self._branches(1.0, head, slack, cost=0)))
        return found

    def _branches(self, prob: float, stack: Body, slack: float, *, cost: int) -> Iterator[Branch]:
        if not stack:
            return
        first, rest = stack[0], stack[1:]
        if isinstance(first, Terminal):
            yield Branch(prob, first, rest, cost)
            return
        base = cost - self._shortest[first]
        offered = [(w, body) for w, body in self._rules[first] if base + self._length(body) <= slack]
        total = sum(weight for weight, _ in offered)
        for weight, body in offered:
            yield from self._branches(prob * weight / total, body + rest, slack, cost=base + self._length(body))

    def _length(self, body: Body) -> int:
        return sum(1 if isinstance(part, Terminal) else self._shortest[part] for part in body)


def _reachable(rules: Rules, start: Symbol) -> dict[Symbol, tuple[Rule, ...]]:
    """The alternatives of positive weight of every symbol that `start` can lead to."""
    found: dict[Symbol, tuple[Rule, ...]] = {}
    waiting = [start]
    while waiting:
        symbol = waiting.pop()
        if symbol in found:
            continue
        found[symbol] = tuple((float(weight), body) for weight, body in rules(symbol) if weight > 0)
        if not found[symbol]:
            raise ValueError(f"the symbol {symbol!r} has no alternative of positive weight")
        waiting.extend(part for _, body in found[symbol] for part in body if not isinstance(part, Terminal))
    return found


def _shortest(rules: dict[Symbol, tuple[Rule, ...]]) -> dict[Symbol, int]:
    """The fewest words that each symbol can become: the least fixed point of its alternatives' lengths."""
    shortest = dict.fromkeys(rules, inf)
    changed = True
    while changed:
        changed = False
        for symbol, alternatives in rules.items():
            length = min(
                sum(1 if isinstance(part, Terminal) else shortest[part] for part in body) for _, body in alternatives
            )
            if length < shortest[symbol]:
                shortest[symbol], changed = length, True
    if endless := [symbol for symbol, length in shortest.items() if length == inf]:
        raise ValueError(f"the symbol {endless[0]!r} cannot end")
    return {symbol: int(length) for symbol, length in shortest.items()}
