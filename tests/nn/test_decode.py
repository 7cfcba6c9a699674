"""The traced step: the model's own logits and cache to the last bit, or none."""

import gc
import itertools
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from lecture04 import config
from lecture04.config import registry
from lecture04.nn import Attention, KVCache, decode
from lecture04.nn.decode import fast_step, run, state_of, traced
from lecture04.nn.ffn import ReLU
from lecture04.nn.generate import Sampling, generate
from lecture04.nn.init import build

ALONE = [(f"{f}={name}",) for f in ("ffn", "norm", "placement") for name in registry.names(f)]
PAIRS = [
    (f"attention={attention}", f"posenc={posenc}")
    for attention in registry.names("attention")
    for posenc in registry.names("posenc")
    if posenc not in registry.options_of("attention", attention, config.Attention).refuses
]
SCALED = [
    ("posenc=rope", f"posenc.scaling.name={name}", "posenc.scaling.factor=4", "posenc.scaling.n_original=6")
    for name in ("linear", "ntk", "dynamic", "yarn", "llama3")
]
OTHERS = [("recipe=llama",), ("posenc=rope", "posenc.width=2"), ("attention=gqa", "attention.qk_norm=true")]


def after(model, batch, n_tokens, seed=0):
    """Tokens behind random ones that are cached."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(15, (batch, n_tokens + 1), generator=g)
    return tokens[:, -1:], model.decode(tokens[:, :-1], model.empty_cache(batch))[1]


def tensors(result):
    logits, cache = result
    return [logits, *itertools.chain.from_iterable((layer.k, layer.v) for layer in cache)]


def same(a, b):
    return all(map(torch.equal, tensors(a), tensors(b)))


def block_of(model):
    """Its first block."""
    return next(iter(model.blocks))


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


@pytest.fixture
def at_once(monkeypatch):
    """A step is traced the first time that it is taken."""
    monkeypatch.setattr(decode, "PAYS_AFTER", 0)


def taken_by_itself(model, monkeypatch):
    """The list that grows with each step that the model takes by itself."""
    taken, own = [], type(model).decode
    monkeypatch.setattr(type(model), "decode", lambda self, *a: taken.append(self is model) or own(self, *a))
    return taken


@pytest.mark.parametrize("overrides", [*ALONE, *PAIRS, *SCALED, *OTHERS], ids=" ".join)
def test_every_part_is_traced_once_for_all_lengths_and_batches(small, overrides):
    model = build(small(*overrides))
    program = traced(model, *after(model, 2, 3))
    assert program is not None
    for batch, n_tokens in ((1, 1), (2, 3), (5, 2), (1, 15), (3, 14)):
        token_B1, cache = after(model, batch, n_tokens, seed=n_tokens)
        assert same(run(program, token_B1, cache, state_of(model)), model.decode(token_B1, cache))


def test_a_text_is_the_same_and_the_model_takes_no_step_but_the_first(small, monkeypatch):
    model, kwargs = build(small("recipe=llama")), {"how": Sampling(temperature=3), "seed": 1, "rows": range(3)}
    own = generate(model, [1, 5], n_tokens=14, **kwargs)
    monkeypatch.setattr(decode, "PAYS_AFTER", 13)  # the steps so far
    assert generate(model, [1, 5], n_tokens=14, **kwargs) == own
    taken = taken_by_itself(model, monkeypatch)
    assert generate(model, [1, 5], n_tokens=14, **kwargs) == own
    assert taken == [True, True], "the prompt, and the step that the trace is compared with"


def test_a_step_is_traced_when_it_has_been_taken_so_often(small, monkeypatch):
    model = build(small())
    monkeypatch.setattr(decode, "PAYS_AFTER", 5)
    made = []
    monkeypatch.setattr(decode, "traced", lambda *a: made.append(1) or traced(*a))
    for n_made in (0, 0, 1, 1, 1):  # two steps each, and the third trace would be the sixth step
        generate(model, [1], n_tokens=3, how=Sampling(), seed=0, rows=[0])
        assert len(made) == n_made


@pytest.mark.usefixtures("at_once")
def test_parameters_are_those_of_now(small):
    model = build(small())
    token_B1, cache = after(model, 2, 3)
    before = fast_step(model)(token_B1, cache)
    program = decode._KNOWN[model].program
    for parameter in model.parameters():
        parameter.mul_(1.5)
    step = fast_step(model)
    for _ in range(2):
        assert same(step(token_B1, cache), model.decode(token_B1, cache))
    assert not same(before, step(token_B1, cache))
    assert decode._KNOWN[model].program is program, "one trace for all values"
    model.double()
    step, cache = fast_step(model), tuple(KVCache(c.k.double(), c.v.double()) for c in cache)
    for _ in range(2):
        assert same(step(token_B1, cache), model.decode(token_B1, cache))
    assert decode._KNOWN[model].program not in (program, None), "and another for another type"


@pytest.mark.usefixtures("at_once")
def test_a_model_with_another_part_is_traced_anew(small):
    run_ = small("ffn=swiglu")
    model, other = build(run_), build(small("ffn=swiglu", "seed=1"))
    token_B1, cache = after(model, 1, 3)
    fast_step(model)(token_B1, cache)
    program = decode._KNOWN[model].program
    block_of(model).ffn = nn.Sequential(block_of(other).ffn, nn.Tanh())
    step = fast_step(model)
    for _ in range(2):
        assert same(step(token_B1, cache), model.decode(token_B1, cache))
    assert decode._KNOWN[model].program not in (program, None)


class ByLength(Attention):
    """Does another thing where more is cached."""

    def forward(self, x_BTD, context, cache=None):
        y_BTD, cache = super().forward(x_BTD, context, cache)
        return (y_BTD if cache is None or cache.n_tokens < 8 else 2 * y_BTD), cache


class ByNumbers(Attention):
    """Reads a number out of its input."""

    def forward(self, x_BTD, context, cache=None):
        y_BTD, cache = super().forward(x_BTD, context, cache)
        return y_BTD * (2 if x_BTD[0, 0, 0].item() > 0 else 1), cache


class OwnCache(KVCache):
    """Keeps its last two tokens alone."""

    def append(self, k_BGTK, v_BGTK):
        grown = super().append(k_BGTK, v_BGTK)
        return OwnCache(grown.k[:, :, -2:], grown.v[:, :, -2:])


class WithItsOwnCache(Attention):
    def forward(self, x_BTD, context, cache=None):
        context = replace(context, mask=None)
        return super().forward(x_BTD, context, None if cache is None else OwnCache(cache.k, cache.v))


class Uncopied(Attention):
    def __deepcopy__(self, memo):
        raise TypeError("not I")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("part", [ByLength, ByNumbers, WithItsOwnCache, Uncopied])
def test_a_part_that_no_trace_does_justice_takes_every_step_itself(small, part):
    model = build(small("attention=gqa"))
    for block in model.blocks:
        block.attention.__class__ = part
    token_B1, cache = after(model, 2, 2)
    _, cache = model.decode(token_B1, cache)
    assert traced(model, token_B1, cache) is None
    step = fast_step(model)
    for _ in range(12):
        expected = model.decode(token_B1, cache)
        assert same(step(token_B1, cache), expected)
        cache = expected[1]
    assert decode._KNOWN[model].is_refused


class Counting(ReLU):
    """Does another thing each time, as no part should."""

    times = 0

    def forward(self, x_BTD):
        Counting.times += 1
        return super().forward(x_BTD) * Counting.times


def test_a_trace_that_gives_another_number_is_none(small):
    model = build(small())
    block_of(model).ffn.__class__ = Counting
    assert traced(model, *after(model, 1, 4)) is None


@pytest.mark.usefixtures("at_once")
def test_what_is_wrong_is_said_by_the_model(small):
    model = build(small("posenc=learned", "posenc.n_positions=16"))
    kwargs = {"how": Sampling(), "seed": 0, "rows": [0]}
    generate(model, [1], n_tokens=16, **kwargs)
    assert decode._KNOWN[model].program is not None
    with pytest.raises(IndexError):
        generate(model, [1], n_tokens=17, **kwargs)


@pytest.mark.usefixtures("at_once")
def test_nothing_keeps_a_model_that_is_no_longer_used(small):
    model = build(small())
    generate(model, [1], n_tokens=4, how=Sampling(), seed=0, rows=[0])
    assert decode._KNOWN[model].program is not None
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
