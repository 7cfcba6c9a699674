"""Optimisers and the learning rate's course."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from lecture04 import config
from lecture04.config import Schedule
from lecture04.registry import register


@register("optim", "adamw")
def adamw(options: config.AdamW, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019), torch's fused kernel."""
    return torch.optim.AdamW(
        parameters,
        lr=options.lr,
        betas=(options.beta1, options.beta2),
        eps=options.eps,
        weight_decay=options.weight_decay,
        fused=True,
    )


def lr_factor(options: config.Optim, step: int, n_steps: int) -> float:
    """The share of `lr` at step 0, 1, ..., n_steps - 1.

    Warm-up: (step + 1) / warmup_steps, so that the first step already moves. Then, with t from 0 to 1 over the steps
    that are left, 1 (constant), 1 - t (linear) or (1 + cos(pi t)) / 2 (cosine).
    """
    if step < options.warmup_steps:
        return (step + 1) / options.warmup_steps
    t = (step - options.warmup_steps) / max(1, n_steps - options.warmup_steps)
    match options.schedule:
        case Schedule.constant:
            return 1.0
        case Schedule.linear:
            return 1 - t
        case Schedule.cosine:
            return (1 + math.cos(math.pi * t)) / 2
