"""`data=mqar`, `data=induction`: what stood beside a token before has to be found again.

Shapes: D documents, P pairs, L tokens of a problem, S places of a question.
"""

from pathlib import Path

import numpy as np

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.tasks.problems import Problems, prepared
from lecture04.data.types import Splits

BLANK = 0
TRIGGER, FIRST_SYMBOL = 1, 2


@register("data", "mqar", options=config.MQAR)
def mqar(options: config.MQAR, cache: Path) -> Splits:
    """Multi-query associative recall: the values of several keys, each asked for once (Arora et al. 2023, Zoology).

    k1 v1 k2 v2 . . k2 v2 . . k1 v1: the pairs, then each key again with its value as the answer. Zoology has filler in
    the value's place; here it stands there, as in a text, and is predicted before it is seen.
    """
    n_keys = options.n_keys
    keys = [f"k{i}" for i in range(n_keys)]
    values = [f"v{i}" for i in range(options.vocab_size - 1 - n_keys)]
    return prepared(options, cache, mqar_problems, ["<blank>", *keys, *values])


def mqar_problems(options: config.MQAR, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Keys and values without repetition; questions by a power law of how far they are behind the pairs.

    Question places are two tokens apart. The i-th has the weight i^(power - 1) and none is taken twice; the first key
    draws first.
    """
    n_docs, n_pairs, n_keys = len(length_D), options.n_pairs, options.n_keys
    keys_DP = 1 + first_of_shuffled(rng, np.zeros(n_keys), n_docs, n_pairs)
    n_values = options.vocab_size - 1 - n_keys
    values_DP = 1 + n_keys + first_of_shuffled(rng, np.zeros(n_values), n_docs, n_pairs)
    pairs_DL = np.stack([keys_DP, values_DP], axis=2).reshape(n_docs, 2 * n_pairs)
    n_places = (options.length - 2 * n_pairs) // 2
    log_weight_S = (options.power - 1) * np.log(np.arange(1, n_places + 1))
    question_DP = 2 * n_pairs + 2 * first_of_shuffled(rng, log_weight_S, n_docs, n_pairs)

    shape = n_docs, options.length
    tokens_DL = rng.integers(options.vocab_size, size=shape) if options.random_filler else np.full(shape, BLANK)
    answer_DL = np.zeros(shape, dtype=bool)
    tokens_DL[:, : 2 * n_pairs] = pairs_DL
    np.put_along_axis(tokens_DL, question_DP, keys_DP, axis=1)
    np.put_along_axis(tokens_DL, question_DP + 1, values_DP, axis=1)
    np.put_along_axis(answer_DL, question_DP + 1, True, axis=1)
    return Problems(tokens_DL, answer_DL)


def first_of_shuffled(rng: np.random.Generator, log_weight_S: np.ndarray, n_docs: int, n: int) -> np.ndarray:
    """For each document the first n of all places, drawn one after the other by weight without repetition.

    The order of log weights with Gumbel noise added is that of such draws (Vieira 2014).
    """
    noisy_DS = log_weight_S + rng.gumbel(size=(n_docs, len(log_weight_S)))
    return np.argsort(-noisy_DS, axis=1)[:, :n]


@register("data", "induction", options=config.Induction)
def induction(options: config.Induction, cache: Path) -> Splits:
    """Induction heads: the token that followed the trigger the first time (Olsson et al. 2022; as Fu et al. 2023, H3).

    a c <trigger> b d c <trigger> b: random symbols, with the trigger somewhere and again before the last.
    """
    symbols = [f"s{i}" for i in range(options.n_symbols)]
    return prepared(options, cache, induction_problems, ["<pad>", "<trigger>", *symbols])


def induction_problems(options: config.Induction, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Random symbols; the first trigger stands at any place from which the last two are not reached."""
    n_docs, length = len(length_D), options.length
    tokens_DL = rng.integers(FIRST_SYMBOL, FIRST_SYMBOL + options.n_symbols, size=(n_docs, length))
    document, place = np.arange(n_docs), rng.integers(length - 3, size=n_docs)
    tokens_DL[document, place] = TRIGGER
    tokens_DL[:, -2] = TRIGGER
    tokens_DL[:, -1] = tokens_DL[document, place + 1]
    answer_DL = np.zeros(tokens_DL.shape, dtype=bool)
    answer_DL[:, -1] = True
    return Problems(tokens_DL, answer_DL)
