"""What every model must hold to (nn/contracts.py), over every registered part: a new one is covered by itself."""

import itertools

import pytest
import torch
from torch import nn

from lecture04.config import Attention, registry
from lecture04.nn import contracts
from lecture04.nn.contracts import CHECKS
from lecture04.nn.ffn import ReLU

# A part of the standard model is tried once, with the others of its kind: the model as it is.
STANDARD = {"ffn": "relu", "norm": "layernorm", "placement": "pre", "attention": "mha", "posenc": "sinusoidal"}
ALONE = [(), *((f"{f}={name}",) for f, own in STANDARD.items() for name in registry.names(f) if name != own)]
INITS = [(f"init={name}",) for name in registry.names("init")]
TOGETHER = [
    ("recipe=transformer_2017",),
    ("recipe=llama",),
    ("recipe=llama", "placement=post", "model.tied=false"),
    ("ffn=swiglu", "attention=mqa", "posenc=none", "model.bias=false"),
    ("posenc=rope", "posenc.scaling.name=yarn", "posenc.scaling.factor=4", "posenc.scaling.n_original=6"),
    (
        "attention=mla",
        "attention.output_bias=false",
        "posenc=rope_half",
        "posenc.scaling.name=yarn",
        "posenc.scaling.factor=4",
        "posenc.scaling.on_scores=true",
    ),
    ("recipe=llama", "model.embed_scale=1", "posenc.scaling.name=llama3", "posenc.scaling.factor=4"),
]
PLACEMENTS = registry.names("placement")
# Every two of an attention, a position encoding and a placement that go together.
PAIRS = [
    (f"attention={attention}", f"posenc={posenc}", f"placement={PLACEMENTS[(i + j) % len(PLACEMENTS)]}")
    for i, attention in enumerate(registry.names("attention"))
    for j, posenc in enumerate(registry.names("posenc"))
    if posenc not in registry.options_of("attention", attention, Attention).refuses
]


def test_every_two_parts_are_tried_together():
    tried = {frozenset(two) for row in PAIRS for two in itertools.combinations(row, 2)}
    names = {f: [f"{f}={name}" for name in registry.names(f)] for f in ("attention", "posenc", "placement")}
    wanted = {
        frozenset(two) for f, g in itertools.combinations(names, 2) for two in itertools.product(names[f], names[g])
    }
    assert wanted - tried == {frozenset({"attention=mla", "posenc=shaw"})}


def some_fast(checks, models, *, of):
    """Every check of every model; one in so many in the normal suite, so that each check and each model is there."""
    return [
        pytest.param(
            check, overrides, id=f"{check} {' '.join(overrides)}", marks=[pytest.mark.slow] * ((i + j) % of > 0)
        )
        for i, check in enumerate(checks)
        for j, overrides in enumerate(models)
    ]


@pytest.mark.parametrize(("check", "overrides"), some_fast(CHECKS, ALONE + TOGETHER, of=4))
def test_every_model_holds_to(small, check, overrides):
    CHECKS[check](small(*overrides))


OF_CACHES = ("cached_decoding_equals_full_recomputation", "a_cache_can_be_continued_twice")


@pytest.mark.parametrize(
    ("check", "overrides"), some_fast([*OF_CACHES, "the_declared_count_is_that_of_the_model"], PAIRS, of=3)
)
def test_every_two_parts_hold_to(small, check, overrides):
    CHECKS[check](small(*overrides))


@pytest.mark.parametrize("overrides", INITS, ids=" ".join)
def test_every_init_gives_every_parameter_a_gradient(small, overrides):
    contracts.every_parameter_gets_a_finite_nonzero_gradient(small(*overrides))


# -- and the checks see a fault where there is one


class LooksAhead(ReLU):
    def forward(self, x_BTD):
        return super().forward(x_BTD) + x_BTD.mean(1, keepdim=True)


class LooksAtOtherRows(ReLU):
    def forward(self, x_BTD):
        return super().forward(x_BTD) + x_BTD.mean(0)


class LooksBack(ReLU):
    """One token back, whatever document that is of, and whatever a cache has seen."""

    def forward(self, x_BTD):
        return super().forward(x_BTD) + x_BTD.cumsum(1)


class KeepsAState(ReLU):
    def __init__(self, options, model):
        super().__init__(options, model)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x_BTD):
        self.seen += 1
        return super().forward(x_BTD)


class IsRandom(ReLU):
    def forward(self, x_BTD):
        return super().forward(x_BTD) + torch.rand_like(x_BTD)


class HasOneParameterTooMany(ReLU):
    def __init__(self, options, model):
        super().__init__(options, model)
        self.weight = nn.Parameter(torch.ones(()))


class MakesItsOwnTensor(ReLU):
    def forward(self, x_BTD):
        return super().forward(x_BTD) * torch.ones(x_BTD.shape[-1], device="cpu", dtype=torch.float32)


class NamesALevel(ReLU):
    def __init__(self, options, model):
        super().__init__(options, model)
        self.inner0 = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("part", "check"),
    [
        (LooksAhead, "a_later_token_never_changes_an_earlier_logit"),
        (LooksAtOtherRows, "rows_of_a_batch_are_independent"),
        (LooksBack, "documents_in_one_row_give_what_each_gives_alone"),
        (LooksBack, "cached_decoding_equals_full_recomputation"),
        (LooksBack, "a_cache_can_be_continued_twice"),
        (KeepsAState, "a_forward_leaves_the_model_as_it_was"),
        (IsRandom, "a_forward_leaves_the_model_as_it_was"),
        (IsRandom, "float64_gives_the_logits_of_float32"),
        (HasOneParameterTooMany, "every_parameter_gets_a_finite_nonzero_gradient"),
        (HasOneParameterTooMany, "the_declared_count_is_that_of_the_model"),
        (MakesItsOwnTensor, "it_runs_on_another_device"),
        (NamesALevel, "names_are_roles"),
    ],
)
def test_a_check_sees_what_is_wrong(small, monkeypatch, part, check):
    run = small()
    CHECKS[check](run)
    monkeypatch.setitem(registry._registered, ("ffn", "relu"), part)
    with pytest.raises((AssertionError, RuntimeError)):
        CHECKS[check](run)
