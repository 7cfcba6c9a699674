"""The decoding step of a model without Python between its operations, which is most of its time in a small batch.

    step = fast_step(model)
    logits_B1V, cache = step(token_B1, cache)           # model.decode(token_B1, cache), bit for bit

Shapes: B rows, V vocabulary.
"""

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.jit import TracerWarning, optimized_execution  # pyright: ignore[reportPrivateImportUsage]

from lecture04.nn.kv_cache import KVCache
from lecture04.nn.model import Cache, LanguageModel

Step: TypeAlias = Callable[[Tensor, Cache], tuple[Tensor, Cache]]
Program: TypeAlias = Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""A traced step: new tokens, the tensors of the cache and those of the model -> logits and the tensors of the cache."""

PAYS_AFTER = 64
"""Steps that a model takes by itself before one is traced: tracing takes about as long as so many."""
OURS = Path(__file__).parent


@dataclass
class _Known:
    """What is kept of a model: its steps so far, its traced step, and whether it can have none."""

    n_steps: int = 0
    program: Program | None = None
    is_refused: bool = False


_KNOWN = WeakKeyDictionary[LanguageModel, _Known]()


def fast_step(model: LanguageModel) -> Step:
    """`model.decode` for one new token in each row, while nobody changes the model.

    A model that has taken PAYS_AFTER steps has its operations recorded (torch.jit.trace); from then on they run without
    the Python of its parts. The same operations on the same numbers: parameters are read anew by each `fast_step`, and
    nothing is fused. A trace is used only if it gives the model's own logits and cache bit for bit, at two lengths when
    it is made and at the first step of each `fast_step`, and if no part from outside read a value that may be another
    at another length (torch warns of it). Otherwise the model itself takes every step, so that any part will do.
    """
    known = _KNOWN.setdefault(model, _Known())
    state = state_of(model)
    program: Program | None = None

    def step(token_B1: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        nonlocal program
        if program is not None:
            try:
                return run(program, token_B1, cache, state)
            except RuntimeError:  # the model says itself what is wrong: a position beyond its table, say
                return model.decode(token_B1, cache)
        expected = model.decode(token_B1, cache)
        known.n_steps += 1
        if known.n_steps > PAYS_AFTER and not known.is_refused:
            if known.program is None or not _gives(expected, known.program, token_B1, cache, state):
                known.program = traced(model, token_B1, cache)
            program, known.is_refused = known.program, known.program is None
        return expected

    return step


def traced(model: LanguageModel, token_B1: Tensor, cache: Cache) -> Program | None:
    """The model's operations for these tokens behind this cache, for any number of rows and of cached tokens.

    None where they cannot be recorded, or where what is recorded would not do for another length.
    """
    if any(type(layer) is not KVCache for layer in cache):
        return None
    state = state_of(model)
    given = [(model, [id(t) for t in state])]

    def decode(token_B1: Tensor, cached: Sequence[Tensor], state_now: Sequence[Tensor]) -> tuple[Tensor, ...]:
        ((model, names),) = given
        same = deepcopy(model, dict(zip(names, state_now, strict=True)))
        logits_B1V, grown = same.decode(token_B1, _cache(cached))
        return logits_B1V, *_tensors(grown)

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = cast(Program, torch.jit.trace(decode, (token_B1, _tensors(cache), state), check_trace=False))
    except Exception:  # whatever a part of anybody's does that is no operation on tensors
        return None
    given.clear()  # the program keeps `decode`, which must not keep the model
    # Our own parts read nothing but the sizes of their weights.
    if any(issubclass(w.category, TracerWarning) and Path(w.filename).parent != OURS for w in caught):
        return None
    half = tuple(KVCache(*(t[:, :, : t.shape[2] // 2] for t in (layer.k, layer.v))) for layer in cache)
    is_right = (_gives(model.decode(token_B1, c), program, token_B1, c, state) for c in (cache, half))
    return program if all(is_right) else None


def _gives(
    expected: tuple[Tensor, Cache], program: Program, token_B1: Tensor, cache: Cache, state: Sequence[Tensor]
) -> bool:
    """Whether a trace gives these logits and this cache, bit for bit."""
    try:
        found = run(program, token_B1, cache, state)
    except RuntimeError:
        return False
    (logits_B1V, grown), (found_B1V, found_grown) = expected, found
    return torch.equal(logits_B1V, found_B1V) and all(map(torch.equal, _tensors(grown), _tensors(found_grown)))


def run(program: Program, token_B1: Tensor, cache: Cache, state: Sequence[Tensor]) -> tuple[Tensor, Cache]:
    """A traced step with the tensors of the model, `state_of` it."""
    with optimized_execution(False):  # its optimiser takes as long as a trace, and gains nothing here
        logits_B1V, *grown = program(token_B1, _tensors(cache), state)
    return logits_B1V, _cache(grown)


def state_of(model: LanguageModel) -> list[Tensor]:
    """A model's parameters and buffers."""
    return [*model.parameters(), *model.buffers()]


def _tensors(cache: Cache) -> list[Tensor]:
    return [t for layer in cache for t in (layer.k, layer.v)]


def _cache(tensors: Sequence[Tensor]) -> Cache:
    return tuple(KVCache(k, v) for k, v in zip(tensors[::2], tensors[1::2], strict=True))
