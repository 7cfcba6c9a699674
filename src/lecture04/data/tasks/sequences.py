"""`data=copy`, `reverse`, `sort` and `addition`: trained on short problems and tested on longer ones.

The tasks of the table of length generalisation in Kazemnejad et al. (2023), with one token a symbol. Problems of one
length or another lie in the same matrix, with holes.

Shapes: D documents, L symbols of the longest problem.
"""

from pathlib import Path

import numpy as np

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.tasks.problems import HOLE, Problems, beside, column, prepared
from lecture04.data.types import Splits

BOS, EOS, ANSWER, FIRST_SYMBOL = 1, 2, 3, 4
PLUS, EQUALS, ZERO = 3, 4, 5


@register("data", "copy", options=config.Sequences)
def copy(options: config.Sequences, cache: Path) -> Splits:
    """Copy: the same symbols again, tested on longer sequences than it is trained on (Kazemnejad et al. 2023).

    <bos> c a b <answer> c a b <eos>
    """
    return prepared(options, cache, copy_problems, words(options))


@register("data", "reverse", options=config.Sequences)
def reverse(options: config.Sequences, cache: Path) -> Splits:
    """Reverse: the symbols from the last to the first, tested on longer sequences (Kazemnejad et al. 2023).

    <bos> c a b <answer> b a c <eos>
    """
    return prepared(options, cache, reverse_problems, words(options))


@register("data", "sort", options=config.Sequences)
def sort(options: config.Sequences, cache: Path) -> Splits:
    """Sort: the symbols in their order, s0 first, tested on longer sequences (Kazemnejad et al. 2023).

    <bos> c a b <answer> a b c <eos>
    """
    return prepared(options, cache, sort_problems, words(options))


def words(options: config.Sequences) -> list[str]:
    """The tokens as text."""
    return ["<pad>", "<bos>", "<eos>", "<answer>", *(f"s{i}" for i in range(options.n_symbols))]


def copy_problems(options: config.Sequences, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Random symbols, and the same ones."""
    symbols_DL = random_symbols(rng, length_D, FIRST_SYMBOL, FIRST_SYMBOL + options.n_symbols)
    return _problems(symbols_DL, symbols_DL)


def reverse_problems(options: config.Sequences, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Random symbols, and the same ones backwards."""
    symbols_DL = random_symbols(rng, length_D, FIRST_SYMBOL, FIRST_SYMBOL + options.n_symbols)
    return _problems(symbols_DL, symbols_DL[:, ::-1])


def sort_problems(options: config.Sequences, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Random symbols, and the same ones in order. Holes are less than every symbol, and stand first."""
    symbols_DL = random_symbols(rng, length_D, FIRST_SYMBOL, FIRST_SYMBOL + options.n_symbols)
    return _problems(symbols_DL, np.sort(symbols_DL, axis=1))


def random_symbols(rng: np.random.Generator, length_D: np.ndarray, low: int, high: int) -> np.ndarray:
    """Symbols from low to high - 1, independent and equally likely; so many in each row, then holes."""
    symbols_DL = rng.integers(low, high, size=(len(length_D), int(length_D.max())))
    return np.where(np.arange(symbols_DL.shape[1]) < length_D[:, None], symbols_DL, HOLE)


def _problems(symbols_DL: np.ndarray, answer_DL: np.ndarray) -> Problems:
    n_docs = len(symbols_DL)
    return beside(
        (column(BOS, n_docs), False),
        (symbols_DL, False),
        (column(ANSWER, n_docs), False),
        (answer_DL, True),
        (column(EOS, n_docs), True),
    )


@register("data", "addition", options=config.Addition)
def addition(options: config.Addition, cache: Path) -> Splits:
    """Addition: the sum of two numbers of equally many digits, tested on longer numbers (Kazemnejad et al. 2023).

    <bos> 2 7 + 9 4 = 1 2 1 <eos>: a token a digit, the highest first; the sum has one digit more, which may be 0.
    """
    return prepared(options, cache, addition_problems, ["<pad>", "<bos>", "<eos>", "+", "=", *map(str, range(10))])


def addition_problems(options: config.Addition, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Random digits, leading zeros among them; the sum by carrying from the lowest digit, in all problems at once."""
    n_docs = len(length_D)
    # Turned so that holes stand first and the lowest digits below each other.
    a_DL, b_DL = (random_symbols(rng, length_D, 0, 10)[:, ::-1] for _ in range(2))
    there_DL = a_DL != HOLE
    total_DL = np.full((n_docs, a_DL.shape[1] + 1), HOLE)
    carry_D = np.zeros(n_docs, dtype=int)
    for i in range(a_DL.shape[1] - 1, -1, -1):
        sum_D = a_DL[:, i] + b_DL[:, i] + carry_D
        total_DL[:, i + 1] = np.where(there_DL[:, i], sum_D % 10, total_DL[:, i + 1])
        carry_D = np.where(there_DL[:, i], sum_D // 10, carry_D)
    total_DL[np.arange(n_docs), a_DL.shape[1] - length_D] = carry_D
    return beside(
        (column(BOS, n_docs), False),
        (_digits(a_DL), False),
        (column(PLUS, n_docs), False),
        (_digits(b_DL), False),
        (column(EQUALS, n_docs), False),
        (_digits(total_DL), True),
        (column(EOS, n_docs), True),
    )


def _digits(number_DL: np.ndarray) -> np.ndarray:
    """The tokens of digits; holes stay."""
    return np.where(number_DL == HOLE, HOLE, ZERO + number_DL)
