"""Generation: against the whole sequence computed anew for each token, and against probabilities that are known."""

import numpy as np
import pytest
import torch

from lecture04.config import Attention, registry
from lecture04.nn import decode
from lecture04.nn.generate import Sampling, drawn, generate, uniform, warped
from lecture04.nn.init import build

GREEDY = Sampling(temperature=0)
PAIRS = [
    (f"attention={attention}", f"posenc={posenc}")
    for attention in registry.names("attention")
    for posenc in registry.names("posenc")
    if posenc not in registry.options_of("attention", attention, Attention).refuses
]


def lively(run, seed=0):
    """A model in float64 whose texts are not one word again and again."""
    model, g = build(run).double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=g))
    return model


def anew(model, prompt, n_tokens, choose):
    """The tokens behind a prompt, without a cache; `choose` takes the step and the logits of the next token."""
    tokens = list(prompt)
    for step in range(n_tokens):
        with torch.no_grad():
            tokens.append(int(choose(step, model(torch.tensor([tokens]))[0, -1])))
    return tokens[len(prompt) :]


def by_numbers(numbers, how):
    """The first token up to which the probabilities sum to more than a step's number; the likeliest where greedy."""

    def choose(step, logits):
        if how == GREEDY:
            return logits.argmax()
        probs = warped(logits[None], how)[0].softmax(-1)
        return min(i for i in range(len(probs)) if probs[: i + 1].sum() > numbers[step])

    return choose


@pytest.mark.parametrize("overrides", PAIRS, ids=" ".join)
def test_every_attention_and_position_encoding_generates_what_it_does_without_a_cache(small, overrides, monkeypatch):
    model, prompt = lively(small(*overrides)), [1, 5, 9]
    for how in (GREEDY, Sampling(temperature=5, top_k=10)):
        expected = anew(model, prompt, 11, by_numbers(uniform(7, [3], 11)[0], how))
        for pays_after in (10**9, 0):  # by the model itself, and traced
            monkeypatch.setattr(decode, "PAYS_AFTER", pays_after)
            (text,) = generate(model, prompt, n_tokens=11, how=how, seed=7, rows=[3])
            assert text == expected
    assert len(set(text)) > 2, "the model says one word alone, so nothing was tried"


@pytest.mark.parametrize("size", [1, 3, 10])
def test_a_text_does_not_depend_on_those_beside_it(small, size):
    model, how = lively(small("attention=gqa", "posenc=rope")), Sampling(temperature=3)
    kwargs = {"n_tokens": 9, "how": how, "seed": 1, "ends": (2,)}
    together = generate(model, [1], rows=range(10), **kwargs)
    apart = [
        text for first in range(0, 10, size) for text in generate(model, [1], rows=range(first, 10)[:size], **kwargs)
    ]
    assert apart == together
    assert len({tuple(text) for text in together}) > 5
    assert generate(model, [1], rows=range(10), **(kwargs | {"seed": 2})) != together


def test_a_row_stops_at_its_end_and_the_others_go_on(small):
    model, kwargs = lively(small()), {"n_tokens": 15, "how": Sampling(temperature=3), "seed": 0, "rows": range(12)}
    free, ended = generate(model, [1], **kwargs), generate(model, [1], ends=(2, 4), **kwargs)
    assert ended == [next((text[: i + 1] for i, token in enumerate(text) if token in (2, 4)), text) for text in free]
    assert len({len(text) for text in ended}) > 3


def test_tokens_are_heard_as_they_are_drawn(small):
    """Each one before the next is computed."""
    model, heard, seen = lively(small()), list[int](), list[int]()
    decode = model.decode

    def decoding(tokens_BT, cache):
        seen.append(len(heard))
        return decode(tokens_BT, cache)

    model.decode = decoding
    texts = generate(model, [1], n_tokens=6, how=Sampling(), seed=0, rows=range(3), hear=heard.append)
    assert heard == texts[0]
    assert seen == [0, 1, 2, 3, 4, 5], "one step for the prompt and one for each token but the last"


def test_the_last_position_of_a_table_is_used_and_none_beyond(small):
    model = lively(small("posenc=learned", "posenc.n_positions=16"))
    assert len(generate(model, [1, 5], n_tokens=15, how=GREEDY, seed=0, rows=[0])[0]) == 15
    with pytest.raises(IndexError):
        generate(model, [1, 5], n_tokens=16, how=GREEDY, seed=0, rows=[0])


def test_a_model_that_sees_what_follows_is_refused(small):
    with pytest.raises(ValueError, match="attention.causal=false"):
        generate(build(small("attention.causal=false")), [1], n_tokens=1, how=GREEDY, seed=0, rows=[0])


def test_tokens_are_drawn_by_their_probabilities():
    """Of n numbers that lie evenly in [0, 1) each token gets its share, to within one."""
    n, logits = 10_000, torch.randn(13, generator=torch.Generator().manual_seed(0)) * 2
    logits[[0, 5, 12]] = -torch.inf
    tokens = drawn(logits.expand(n, -1), (torch.arange(n, dtype=torch.float64) + 0.5) / n)
    counts = torch.bincount(tokens, minlength=13)
    assert (counts - n * logits.double().softmax(-1)).abs().max() <= 1
    assert counts[[0, 5, 12]].sum() == 0


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_outermost_numbers_draw_a_token_that_can_be(number):
    logits = torch.tensor([[-torch.inf, 0.3, 0.1, -0.2, -torch.inf]]) * 3
    assert drawn(logits, torch.tensor([number], dtype=torch.float64)).item() in (1, 2, 3)


def test_a_rows_numbers_are_its_own():
    numbers = uniform(5, range(4), 20)
    assert torch.equal(uniform(5, [2], 7)[0], numbers[2, :7])
    assert len(numbers.unique()) == 80
    assert not torch.equal(uniform(6, [2], 20)[0], numbers[2])
    many = uniform(0, range(50), 400).numpy()
    assert abs(many.mean() - 0.5) < 4 * np.sqrt(1 / 12 / many.size)
