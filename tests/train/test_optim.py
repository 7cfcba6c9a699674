"""The learning rate's course and AdamW, each against another way to compute it."""

import math
from dataclasses import replace

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from lecture04 import registry
from lecture04.config import AdamW, Schedule
from lecture04.train.optim import adamw, lr_factor

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


def test_adamw_is_its_equations():
    """Loshchilov & Hutter 2019, algorithm 2, on float64 tensors over several steps with a changing rate."""
    options = AdamW(name="adamw", lr=0.1, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.2)
    g = torch.Generator().manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(3, 4, generator=g, dtype=torch.float64))
    x, m, v = parameter.detach().clone(), torch.zeros(3, 4).double(), torch.zeros(3, 4).double()
    optimiser = adamw(options, [parameter])
    for t in range(1, 6):
        gradient = torch.randn(3, 4, generator=g, dtype=torch.float64)
        rate = optimiser.param_groups[0]["lr"] = 0.1 / t
        parameter.grad = gradient.clone()
        optimiser.step()
        m = 0.8 * m + 0.2 * gradient
        v = 0.95 * v + 0.05 * gradient**2
        x = x - rate * 0.2 * x
        x = x - rate * (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-3)
        torch.testing.assert_close(parameter.detach(), x, atol=1e-12, rtol=0)


@pytest.mark.parametrize("changed", [{"lr": 0.2}, {"beta1": 0.5}, {"beta2": 0.5}, {"eps": 0.1}, {"weight_decay": 0.5}])
def test_every_option_of_adamw_reaches_it(changed):
    def after_two_steps(options):
        parameter = torch.nn.Parameter(torch.ones(2))
        optimiser = adamw(options, [parameter])
        for gradient in (1.0, -0.25):
            parameter.grad = torch.tensor([gradient, 0.5])
            optimiser.step()
        return parameter.detach()

    options = AdamW(name="adamw", lr=0.1)
    assert not torch.equal(after_two_steps(options), after_two_steps(replace(options, **changed)))


@pytest.mark.parametrize("name", registry.names("optim"))
def test_an_optimiser_lowers_a_quadratic(compose, name):
    options = compose(f"optim={name}", "optim.lr=0.05").optim
    parameter = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimiser = registry.lookup("optim", name)(options, [parameter])
    for _ in range(200):
        optimiser.zero_grad()
        parameter.square().sum().backward()
        optimiser.step()
    assert parameter.square().sum() < 1e-2
