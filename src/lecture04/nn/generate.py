"""Text from a model, a token at a time through its KV cache.

Shapes: B rows, N tokens to be drawn, V vocabulary.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lecture04.nn.decode import fast_step
from lecture04.nn.kv_cache import KVCache
from lecture04.nn.model import Cache, LanguageModel


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen: the logits are divided by `temperature`, then all but the `top_k` likeliest tokens are
    left out, then all but the fewest that together have the probability `top_p`; from the rest it is drawn.

    A temperature of 0 takes the likeliest token; a top_k of None leaves none out.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0


def warped(logits_BV: Tensor, how: Sampling) -> Tensor:
    """The logits as `how` has them, -inf for tokens left out; the temperature must be above 0.

    Each step is as in transformers, ties included: tokens as likely as the last of the top_k stay, and the likeliest
    token always stays (Fan et al. 2018 for top-k; Holtzman et al. 2020 for top-p).
    """
    logits_BV = logits_BV / how.temperature
    if how.top_k is not None:
        kept_BK = logits_BV.topk(min(how.top_k, logits_BV.shape[-1])).values
        logits_BV = logits_BV.masked_fill(logits_BV < kept_BK[:, -1:], -torch.inf)
    if how.top_p < 1:
        rising_BV, token_BV = logits_BV.sort()
        is_out_BV = rising_BV.softmax(-1).cumsum(-1) <= 1 - how.top_p
        is_out_BV[:, -1] = False
        logits_BV = logits_BV.masked_fill(is_out_BV.scatter(-1, token_BV, is_out_BV), -torch.inf)
    return logits_BV


def drawn(logits_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """token_B by these logits: the first token up to which the probabilities sum to more than a number in [0, 1)."""
    sum_BV = logits_BV.double().softmax(-1).cumsum(-1)
    # The sum of all is 1 but for rounding, and a product with it may be rounded up to it.
    token_B1 = torch.searchsorted(sum_BV, uniform_B[:, None] * sum_BV[:, -1:], right=True)
    return token_B1[:, 0].clamp(max=logits_BV.shape[-1] - 1)


def chooser(how: Sampling) -> Callable[[Tensor, Tensor], Tensor]:
    """What takes (logits_BV, a uniform number for each row) to token_B."""
    if how.temperature == 0:
        return lambda logits_BV, uniform_B: logits_BV.argmax(-1)
    return lambda logits_BV, uniform_B: drawn(warped(logits_BV, how), uniform_B)


def uniform(seed: int, rows: Sequence[int], n_tokens: int) -> Tensor:
    """The numbers in [0, 1) that rows draw their tokens with, float64 uniform_BN; a row's depend on (seed, row) alone.

    The first of more tokens are those of fewer.
    """
    return torch.from_numpy(np.stack([np.random.default_rng([seed, row]).random(n_tokens) for row in rows]))


def unheard(token: int) -> None:
    """Nobody hears of a token before all are there."""


@torch.inference_mode()
def generate(
    model: LanguageModel,
    prompt: Sequence[int],
    *,
    n_tokens: int,
    how: Sampling,
    seed: int,
    rows: Sequence[int],
    ends: Collection[int] = (),
    hear: Callable[[int], None] = unheard,
) -> list[list[int]]:
    """What follows the prompt in each row: at most `n_tokens` tokens, the last one of `ends` where the row came so far.

    A row is one sample, known by its number: the same seed and number draw the same text whatever rows stand beside it
    (but for the order of float sums, which may differ between batch sizes and decide between tokens that are as likely
    to the last bits). `hear` is told each token of the first row as soon as it is drawn.

    The prompt has at least one token; it is read once for all rows. A model with a table of positions has to have one
    for each token but the last.
    """
    device, choose, decode = model.embed.weight.device, chooser(how), fast_step(model)
    uniform_BN = uniform(seed, rows, n_tokens).to(device)
    logits_1TV, cache = model.decode(torch.tensor([list(prompt)], device=device), model.empty_cache(1))
    logits_BV, cache = logits_1TV[:, -1].expand(len(rows), -1), _for_each(len(rows), cache)
    texts = [list[int]() for _ in rows]
    going = list(enumerate(texts))  # the rows that have not ended
    for step in range(1, n_tokens + 1):
        token_B = choose(logits_BV, uniform_BN[:, step - 1])
        tokens = token_B.tolist()
        for row, text in going:
            text.append(tokens[row])
            if not row:
                hear(tokens[row])
        if ends:
            going = [(row, text) for row, text in going if text[-1] not in ends]
        if step == n_tokens or not going:
            break
        logits_B1V, cache = decode(token_B[:, None], cache)
        logits_BV = logits_B1V[:, -1]
    return texts


def _for_each(n_rows: int, cache: Cache) -> Cache:
    """One sequence's cache as that of as many rows."""
    return tuple(KVCache(*(t.expand(n_rows, -1, -1, -1) for t in (layer.k, layer.v))) for layer in cache)
