"""From what was asked for to what will be run: every error at once, then every open size settled. Pure, no torch."""

import math
from dataclasses import replace

from lecture04 import counts
from lecture04.config import Match, Root

MISMATCH_WARNING = 0.02
"""The share of parameters off the matched number from which on a table says so."""


def validate(cfg: Root) -> list[str]:
    """Every error of a config, each as one sentence with the field, the value and what would do; empty when sound."""
    model, trainer, optim = cfg.model, cfg.trainer, cfg.optim
    least = {
        "model.d_model": (model.d_model, 1),
        "model.n_layers": (model.n_layers, 1),
        "model.n_heads": (model.n_heads, 1),
        "model.budget": (model.budget, 1),
        "ffn.d_ff": (cfg.ffn.d_ff, 1),
        "attention.n_kv_heads": (cfg.attention.n_kv_heads, 1),
        "trainer.steps": (trainer.steps, 1),
        "trainer.batch_size": (trainer.batch_size, 1),
        "trainer.threads": (trainer.threads, 1),
        "trainer.log_every": (trainer.log_every, 1),
        "optim.warmup_steps": (optim.warmup_steps, 0),
        "eval.window": (cfg.eval.window, 0),
        "data.n_train": (cfg.data.n_train, 1),
    }
    errors = [f"{k}={v}: must be at least {low}." for k, (v, low) in least.items() if v is not None and v < low]
    above_zero = {"optim.lr": optim.lr, "optim.clip": optim.clip, "norm.eps": cfg.norm.eps}
    if trainer.steps is None:
        above_zero["trainer.epochs"] = trainer.epochs
        if trainer.epochs is None:
            errors.append("trainer.steps=null, trainer.epochs=null: one of them must say how long to train.")
    errors += [
        f"{k}={v}: must be a finite number above 0."
        for k, v in above_zero.items()
        if v is not None and not 0 < v < math.inf
    ]
    return errors or _shape_errors(cfg)


def _shape_errors(cfg: Root) -> list[str]:
    """Errors between fields; the single fields are known to be sound."""
    model, errors = cfg.model, list[str]()
    if model.d_model % model.n_heads:
        divisors = [n for n in range(1, model.d_model + 1) if model.d_model % n == 0]
        errors.append(
            f"model.n_heads={model.n_heads}: must divide model.d_model={model.d_model}. "
            f"Choices: {', '.join(map(str, divisors))}."
        )
        return errors
    own = counts.fact("attention", cfg.attention.name, "n_kv_heads", model.n_heads)
    n_kv, grouped = cfg.attention.n_kv_heads, counts.fact("attention", cfg.attention.name, "grouped", False)
    if n_kv is not None and not grouped and n_kv != own:
        errors.append(f"attention.n_kv_heads={n_kv}: {cfg.attention.name} has {own}; choose attention=gqa to set it.")
    elif n_kv is not None and model.n_heads % n_kv:
        divisors = [n for n in range(1, model.n_heads + 1) if model.n_heads % n == 0]
        errors.append(
            f"attention.n_kv_heads={n_kv}: must divide model.n_heads={model.n_heads}. "
            f"Choices: {', '.join(map(str, divisors))}."
        )
    if counts.fact("posenc", cfg.posenc.name, "rotates", False) and model.d_head % 2:
        errors.append(
            f"model.n_heads={model.n_heads}: posenc={cfg.posenc.name} rotates pairs and needs an even d_head, "
            f"but model.d_model / model.n_heads is {model.d_head}."
        )
    if not errors and cfg.ffn.d_ff is None and _matched_d_ff(cfg) < 1:
        errors.append(
            f"ffn.match={cfg.ffn.match.name}: the other parts leave nothing for the FFN of a budget of "
            f"{_budget(cfg)} parameters; set ffn.d_ff or a larger model.budget."
        )
    return errors


def _budget(cfg: Root) -> int:
    """The parameters that `ffn.match` aims at: of one FFN, or of the whole model."""
    if cfg.ffn.match is Match.ffn:
        return counts.ffn_params(cfg.model.d_model, 4 * cfg.model.d_model, gated=False, bias=cfg.ffn.bias)
    return cfg.model.budget or counts.standard_params(cfg.model, cfg.data.vocab_size)


def _matched_params(cfg: Root, d_ff: int) -> int:
    """The parameters that are compared with the budget, at one d_ff."""
    if cfg.ffn.match is Match.ffn:
        return counts.ffn_params(cfg.model.d_model, d_ff, gated=counts.is_gated(cfg.ffn), bias=cfg.ffn.bias)
    return counts.params(replace(cfg, ffn=replace(cfg.ffn, d_ff=d_ff)))


def _matched_d_ff(cfg: Root) -> int:
    """The d_ff that comes nearest to the budget; parameters grow by the same number with each unit."""
    one, two = _matched_params(cfg, 1), _matched_params(cfg, 2)
    return 1 + round((_budget(cfg) - one) / (two - one))


def mismatch(cfg: Root) -> float:
    """What the settled d_ff leaves of the budget, as a share of it: 0.01 is one per cent too many parameters."""
    assert cfg.ffn.d_ff is not None, "settle the config first"
    budget = _budget(cfg)
    return (_matched_params(cfg, cfg.ffn.d_ff) - budget) / budget


def steps_per_epoch(cfg: Root) -> int:
    """Optimiser steps that see every training document once."""
    return math.ceil(cfg.data.n_train / cfg.trainer.batch_size)


def settle(cfg: Root) -> Root:
    """The same config with nothing left open: d_ff, n_kv_heads and trainer.steps are numbers.

    Raises ValueError with every error where the config is not sound. Settling twice changes nothing.
    """
    if errors := validate(cfg):
        raise ValueError("\n".join(errors))
    ffn = replace(cfg.ffn, d_ff=_matched_d_ff(cfg) if cfg.ffn.d_ff is None else cfg.ffn.d_ff)
    attention = replace(cfg.attention, n_kv_heads=counts.n_kv_heads(cfg.attention, cfg.model))
    trainer = cfg.trainer
    if trainer.steps is None:
        assert trainer.epochs is not None
        trainer = replace(trainer, steps=max(1, round(trainer.epochs * steps_per_epoch(cfg))))
    return replace(cfg, ffn=ffn, attention=attention, trainer=replace(trainer, epochs=None))
