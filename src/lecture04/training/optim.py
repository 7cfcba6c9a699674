"""Optimisers and the learning rate's course."""

import math
from typing import Any, Protocol

import torch
from torch import nn

from lecture04 import config
from lecture04.config import Schedule
from lecture04.config.registry import Family, register


class MakeOptimiser(Protocol):
    """An optimiser of a model's parameters."""

    def __call__(self, options: Any, model: nn.Module) -> torch.optim.Optimizer: ...


OPTIMISERS: Family[MakeOptimiser] = Family("optim")


def decays(name: str) -> bool:
    """Whether weight decay applies to a parameter: to matrices and embeddings, not to biases, norms and positions.

    Told by its name, not by its number of dimensions: the norms of seeds that are trained stacked are matrices too.
    """
    owner, _, kind = name.rpartition(".")
    return kind == "weight" and not owner.endswith("norm") and not owner.startswith("posenc")


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The model's parameters in two groups for torch's optimisers: with weight decay and without."""
    named = list(model.named_parameters())
    return [
        {"params": [p for name, p in named if decays(name)], "weight_decay": weight_decay},
        {"params": [p for name, p in named if not decays(name)], "weight_decay": 0.0},
    ]


@register("optim", "adamw", options=config.AdamW)
def adamw(options: config.AdamW, model: nn.Module) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Kingma & Ba 2015; Loshchilov & Hutter 2019), torch's fused kernel."""
    return torch.optim.AdamW(
        decay_groups(model, options.weight_decay),
        lr=options.lr,
        betas=(options.beta1, options.beta2),
        eps=options.eps,
        fused=True,
    )


@register("optim", "sgd", options=config.SGD)
def sgd(options: config.SGD, model: nn.Module) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum (Polyak 1964), or Nesterov's (`optim.nesterov`)."""
    return torch.optim.SGD(
        decay_groups(model, options.weight_decay),
        lr=options.lr,
        momentum=options.momentum,
        nesterov=options.nesterov,
        fused=True,
    )


def lr_factor(options: config.Optim, step: int, n_steps: int) -> float:
    """The share of `lr` at step 0, 1, ..., n_steps - 1.

    Warm-up: (step + 1) / warmup_steps, so that the first step already moves. Then, with t from 0 to 1 over the steps
    that are left, 1 (constant), or from 1 to `final` as 1 - t (linear) and (1 + cos(pi t)) / 2 (cosine) go to 0.
    """
    if step < options.warmup_steps:
        return (step + 1) / options.warmup_steps
    t = (step - options.warmup_steps) / max(1, n_steps - options.warmup_steps)
    match options.schedule:
        case Schedule.constant:
            return 1.0
        case Schedule.linear:
            left = 1 - t
        case Schedule.cosine:
            left = (1 + math.cos(math.pi * t)) / 2
    return left + options.final * (1 - left)
