"""The learning rate's course and the optimisers, each against another way to compute it."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from lecture04.config import SGD, AdamW, Schedule, registry
from lecture04.nn.init import build
from lecture04.training.optim import OPTIMISERS, adamw, decay_groups, decays, lr_factor, sgd

N_STEPS = 50


def course(schedule, warmup_steps=10, n_steps=N_STEPS):
    options = AdamW(name="adamw", schedule=schedule, warmup_steps=warmup_steps)
    return [lr_factor(options, step, n_steps) for step in range(n_steps)]


@pytest.mark.parametrize("schedule", Schedule)
def test_warm_up_rises_in_equal_parts_to_the_full_rate(schedule):
    factors = course(schedule)
    assert factors[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert factors[9] == factors[10] == 1.0


@pytest.mark.parametrize("schedule", Schedule)
def test_after_warm_up_the_rate_never_rises_and_stays_in_range(schedule):
    factors = course(schedule)
    assert all(later <= earlier for earlier, later in zip(factors[10:], factors[11:], strict=False))
    assert all(0 < factor <= 1 for factor in factors)


@pytest.mark.parametrize(
    ("schedule", "at_half", "at_end"),
    [(Schedule.constant, 1.0, 1.0), (Schedule.linear, 0.5, 1 / 40), (Schedule.cosine, 0.5, None)],
)
def test_the_course_at_half_way_and_at_the_end(schedule, at_half, at_end):
    factors = course(schedule)
    assert factors[30] == pytest.approx(at_half)
    assert factors[-1] == pytest.approx((1 + math.cos(math.pi * 39 / 40)) / 2 if at_end is None else at_end)


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("warmup_steps", [0, 1, 10])
def test_the_course_is_that_of_torchs_schedulers(schedule, warmup_steps):
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    left = N_STEPS - warmup_steps
    main = {
        Schedule.constant: lambda: LambdaLR(optimiser, lambda _: 1.0),
        Schedule.linear: lambda: LinearLR(optimiser, start_factor=1.0, end_factor=0.0, total_iters=left),
        Schedule.cosine: lambda: CosineAnnealingLR(optimiser, T_max=left),
    }[schedule]()
    if warmup_steps == 0:
        scheduler = main
    else:
        # LinearLR starts from 1/n, reaches 1 with its n-1-th step and stays there for the one that hands over.
        rise = LinearLR(optimiser, start_factor=1 / warmup_steps, total_iters=max(1, warmup_steps - 1))
        scheduler = SequentialLR(optimiser, [rise, main], milestones=[warmup_steps])
    theirs = []
    for _ in range(N_STEPS):
        theirs.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    assert course(schedule, warmup_steps) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("warmup_steps", [5, 6, 100])
def test_a_run_no_longer_than_its_warm_up_only_warms_up(schedule, warmup_steps):
    expected = [(i + 1) / warmup_steps for i in range(5)]
    assert course(schedule, warmup_steps, n_steps=5) == pytest.approx(expected)


class Layer(nn.Module):
    """One matrix, which decays, and one bias, which does not."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 4, generator=g, dtype=torch.float64))
        self.bias = nn.Parameter(torch.randn(3, generator=g, dtype=torch.float64))


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()


def follow(optimiser, model, update, rates=(0.1, 0.05, 0.03, 0.025)):
    """Hold each step of an optimiser to `update(x, gradient, decay, state, t, rate)`, for the matrix and the bias."""
    g = torch.Generator().manual_seed(1)
    parameters = {0.2: model.layer.weight, 0.0: model.layer.bias}
    expected = {decay: p.detach().clone() for decay, p in parameters.items()}
    state = {decay: {} for decay in parameters}
    for t, rate in enumerate(rates, start=1):
        for group in optimiser.param_groups:
            group["lr"] = rate
        for decay, p in parameters.items():
            p.grad = torch.randn(p.shape, generator=g, dtype=torch.float64)
            expected[decay] = update(expected[decay], p.grad.clone(), decay, state[decay], t, rate)
        optimiser.step()
        for decay, p in parameters.items():
            torch.testing.assert_close(p.detach(), expected[decay], atol=1e-12, rtol=0)


def test_adamw_is_its_equations():
    """Loshchilov & Hutter 2019, algorithm 2, over several steps with a changing rate."""
    options = AdamW(name="adamw", beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.2)

    def update(x, gradient, decay, state, t, rate):
        m = state["m"] = 0.8 * state.get("m", 0) + 0.2 * gradient
        v = state["v"] = 0.95 * state.get("v", 0) + 0.05 * gradient**2
        return x - rate * decay * x - rate * (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-3)

    model = Holder()
    follow(adamw(options, model), model, update)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_is_its_equations(nesterov):
    """Momentum as torch has it: b = mu b + g, and a step of b, or of g + mu b with Nesterov's."""
    options = SGD(name="sgd", momentum=0.7, nesterov=nesterov, weight_decay=0.2)

    def update(x, gradient, decay, state, t, rate):
        gradient = gradient + decay * x
        b = state["b"] = 0.7 * state.get("b", 0) + gradient
        return x - rate * (gradient + 0.7 * b if nesterov else b)

    model = Holder()
    follow(sgd(options, model), model, update)


@pytest.mark.parametrize("overrides", [("recipe=transformer_2017", "model.tied=false"), ("recipe=llama",)], ids=str)
def test_matrices_decay_and_vectors_do_not(small, overrides):
    """By name in the code; here, where no seeds are stacked, by the number of dimensions."""
    model = build(small(*overrides))
    groups = decay_groups(model, 0.3)
    by_decay = {group["weight_decay"]: {id(p) for p in group["params"]} for group in groups}
    assert by_decay[0.3] == {id(p) for p in model.parameters() if p.ndim == 2}
    assert by_decay[0.0] == {id(p) for p in model.parameters() if p.ndim == 1}


@pytest.mark.parametrize("family", ["ffn", "norm", "placement", "attention", "posenc"])
def test_decay_is_told_by_names_as_by_dimensions_for_every_part(small, family):
    for name in registry.names(family):
        for path, parameter in build(small(f"{family}={name}")).named_parameters():
            if not path.startswith("posenc.") and ".relative." not in path:
                assert decays(path) == (parameter.ndim == 2), path


@pytest.mark.parametrize("name", registry.names("optim"))
def test_an_optimiser_lowers_a_quadratic(compose, name):
    model = Holder()
    options = replace(compose(f"optim={name}").optim, lr=0.05)
    optimiser = OPTIMISERS.lookup(name)(options, model)
    for _ in range(300):
        optimiser.zero_grad()
        sum(p.square().sum() for p in model.parameters()).backward()
        optimiser.step()
    assert all(p.abs().max() < 0.05 for p in model.parameters())
