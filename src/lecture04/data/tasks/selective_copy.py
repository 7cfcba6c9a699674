"""`data=selective_copy`: which tokens are to be copied depends on what they are, not on where they stand.

Shapes: D documents, L places of a problem, M symbols in it.
"""

from pathlib import Path

import numpy as np

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.tasks.problems import Problems, beside, column, prepared
from lecture04.data.types import Splits

BLANK, ANSWER, FIRST_SYMBOL = 0, 1, 2


@register("data", "selective_copy", options=config.SelectiveCopy)
def selective_copy(options: config.SelectiveCopy, cache: Path) -> Splits:
    """Selective copy: the symbols among blanks, in their order (Gu and Dao 2023, Mamba).

    . c . . a . b . <answer> c a b: Mamba has filler where the answer is given; here it stands there, as in a text.
    """
    symbols = [f"s{i}" for i in range(options.n_symbols)]
    return prepared(options, cache, selective_copy_problems, ["<blank>", "<answer>", *symbols])


def selective_copy_problems(options: config.SelectiveCopy, rng: np.random.Generator, length_D: np.ndarray) -> Problems:
    """Symbols, independent and equally likely, at places of which every set is equally likely."""
    n_docs = len(length_D)
    symbols_DM = rng.integers(FIRST_SYMBOL, FIRST_SYMBOL + options.n_symbols, size=(n_docs, options.n_data))
    place_DM = np.sort(np.argsort(rng.random((n_docs, options.length)), axis=1)[:, : options.n_data], axis=1)
    problem_DL = np.full((n_docs, options.length), BLANK)
    np.put_along_axis(problem_DL, place_DM, symbols_DM, axis=1)
    return beside((problem_DL, False), (column(ANSWER, n_docs), False), (symbols_DM, True))
