"""From what was asked for to what will be run: every error at once, then every open size settled. Pure, no torch."""

import math
from dataclasses import fields, is_dataclass, replace

from lecture04.config import (
    MLA,
    SGD,
    T5,
    Eval,
    Garden,
    GardenPacked,
    Learned,
    Match,
    PosEnc,
    Root,
    Rope,
    RopeScaling,
    Uptrain,
    start_of,
)
from lecture04.config import sizes as counts
from lecture04.config.registry import fact, names

# Facts of the Garden World, held to data/garden.py by a test: importing it would load numpy on every command.
GARDEN_VOCAB, GARDEN_MAX_LEN = 92, 64
GARDEN_MEAN_LEN = 24.87
"""Tokens that are predicted in a training document, on average: an epoch of packed ones is so many blocks."""

LARGEST = 1e15
"""What no count of a run comes near; sizes beyond it could not be computed with."""

MISMATCH_WARNING = 0.02
"""The share of parameters off the matched number from which on a table says so."""


def validate(cfg: Root) -> list[str]:
    """Every error of a config, each as one sentence with the field, the value and what would do; empty when sound."""
    if missing := _missing_classes(cfg):
        return missing
    errors = bound_errors(cfg, "")
    if cfg.trainer.steps is None and cfg.trainer.epochs is None:
        errors.append("trainer.steps=null, trainer.epochs=null: one of them must say how long to train.")
    return errors or _shape_errors(cfg)


def _missing_classes(cfg: Root) -> list[str]:
    """Parts that a YAML names and no class answers to: one that is half added."""
    named = {f.name: getattr(getattr(cfg, f.name), "name", None) for f in fields(cfg)}
    return [
        f"{family}={name}: conf/{family}/{name}.yaml names it, but no class is registered as "
        f'@register("{family}", "{name}"). Choices: {", ".join(names(family))}.'
        for family, name in named.items()
        if name and names(family) and name not in names(family)
    ]


def training_errors(cfg: Root) -> list[str]:
    """What is sound as a model but cannot be trained, on these data or at all."""
    errors = list[str]()
    if not cfg.attention.causal:
        errors.append("attention.causal=false: a model that sees what it predicts learns nothing; for probes only.")
    if isinstance(cfg.data, Garden):
        if cfg.data.vocab_size != GARDEN_VOCAB:
            errors.append(f"data.vocab_size={cfg.data.vocab_size}: the Garden World has {GARDEN_VOCAB} words.")
        if not isinstance(cfg.data, GardenPacked) and cfg.data.max_len < GARDEN_MAX_LEN:
            errors.append(
                f"data.max_len={cfg.data.max_len}: must be at least {GARDEN_MAX_LEN}, "
                "the most tokens that are predicted in a document of the Garden World."
            )
    if cfg.trainer.steps == 0 and not isinstance(cfg.init, Uptrain):
        errors.append("trainer.steps=0: must be at least 1; init=uptrain alone can be evaluated as it is.")
    return errors + _test_errors(cfg)


def _test_errors(cfg: Root) -> list[str]:
    """What cannot be asked of the test split."""
    errors, length, posenc = list[str](), cfg.eval.length, cfg.posenc
    if length is not None and not isinstance(cfg.data, GardenPacked):
        errors.append(
            f"eval.length={length}: data={cfg.data.name} is tested on whole documents; see data=garden_packed."
        )
    elif length is not None and isinstance(posenc, Learned) and counts.n_positions(posenc, cfg.data) < length:
        errors.append(
            f"eval.length={length}: posenc=learned has no vector beyond posenc.n_positions="
            f"{counts.n_positions(posenc, cfg.data)}; set at least that."
        )
    if cfg.eval.scaling.name is not RopeScaling.none and not isinstance(posenc, Rope):
        errors.append(
            f"eval.scaling.name={cfg.eval.scaling.name.name}: posenc={posenc.name} rotates nothing that could be "
            "stretched; choose posenc=rope or rope_half."
        )
    elif isinstance(posenc, Rope):
        tested = replace(cfg, posenc=replace(posenc, scaling=_settled_eval(cfg).scaling))
        errors += [line.replace("posenc.scaling", "eval.scaling") for line in _scaling_errors(tested)]
    return errors


def source_errors(cfg: Root) -> list[str]:
    """Where a settled run cannot start from its source: all but the number of key and value heads must be the same."""
    if (source := start_of(cfg)) is None:
        return []
    named = "init.folder" if isinstance(cfg.init, Uptrain) and cfg.init.folder else "init.source"
    same = ("model", "ffn", "norm", "placement", "posenc", "data")
    errors = [
        f"{named}: its {family}.{f.name} is {theirs}, this run's {ours}; init=uptrain changes n_kv_heads alone."
        for family in same
        for f in fields(getattr(cfg, family))
        if f.name not in ("match", "budget")
        and (theirs := getattr(getattr(source, family), f.name, None))
        != (ours := getattr(getattr(cfg, family), f.name))
    ]
    own, n_kv_heads = source.attention.n_kv_heads, cfg.attention.n_kv_heads
    assert own is not None
    assert n_kv_heads is not None
    if isinstance(source.attention, MLA) or isinstance(cfg.attention, MLA):
        errors.append("attention=mla: init=uptrain merges key and value heads, and a latent has none.")
    elif own % n_kv_heads:
        errors.append(f"attention.n_kv_heads={n_kv_heads}: must divide its source's {own}. {_divisors(own)}")
    ours, theirs = (replace(part, name="", n_kv_heads=None) for part in (cfg.attention, source.attention))
    if not errors and ours != theirs:
        errors.append(f"{named}: its attention has other settings; init=uptrain changes n_kv_heads alone.")
    return errors


def bound_errors(settings: object, path: str) -> list[str]:
    """The fields outside the bounds that stand beside them in config.py, those of nested settings included."""
    errors: list[str] = []
    for f in fields(settings):  # type: ignore[arg-type]
        value, name = getattr(settings, f.name), f"{path}{f.name}"
        if is_dataclass(value):
            errors += bound_errors(value, f"{name}.")
        elif f.metadata and value is not None and (wanted := _unmet(value, **f.metadata)):
            errors.append(f"{name}={value}: must be {wanted}.")
    return errors


def _unmet(value: float, *, at_least: float | None, above: float | None, below: float | None) -> str:
    """What the value should be and is not; empty where it is."""
    is_count = isinstance(value, int)
    is_sane = abs(value) < LARGEST if is_count else math.isfinite(value)
    within = (
        is_sane
        and (at_least is None or value >= at_least)
        and (above is None or value > above)
        and (below is None or value < below)
    )
    parts = [f"at least {at_least}"] * (at_least is not None)
    parts += [f"above {above}"] * (above is not None) + [f"below {below}"] * (below is not None)
    if within:
        return ""
    if is_sane:
        return " and ".join(parts)
    return f"less than {LARGEST:.0e}" if is_count else " and ".join(["finite", *parts])


def _divisors(n: int) -> str:
    """What divides a number, as choices; of a large one the small ones."""
    return f"Choices: {', '.join(str(i) for i in range(1, min(n, 1024) + 1) if n % i == 0)}."


def _shape_errors(cfg: Root) -> list[str]:
    """Errors between fields; the single fields are known to be sound."""
    model, errors = cfg.model, list[str]()
    if model.d_model % model.n_heads:
        errors.append(
            f"model.n_heads={model.n_heads}: must divide model.d_model={model.d_model}. {_divisors(model.d_model)}"
        )
        return errors
    own = fact("attention", cfg.attention.name, "n_kv_heads", model.n_heads)
    n_kv, grouped = cfg.attention.n_kv_heads, fact("attention", cfg.attention.name, "grouped", False)
    if n_kv is not None and not grouped and n_kv != own:
        errors.append(f"attention.n_kv_heads={n_kv}: {cfg.attention.name} has {own}; choose attention=gqa to set it.")
    elif n_kv is not None and model.n_heads % n_kv:
        errors.append(
            f"attention.n_kv_heads={n_kv}: must divide model.n_heads={model.n_heads}. {_divisors(model.n_heads)}"
        )
    errors += _position_errors(cfg) or _scaling_errors(cfg)
    if isinstance(cfg.optim, SGD) and cfg.optim.nesterov and not cfg.optim.momentum:
        errors.append("optim.nesterov=true: needs optim.momentum above 0.")
    if not errors and cfg.ffn.d_ff is None and _matched_d_ff(cfg) < 1:
        errors.append(
            f"ffn.match={cfg.ffn.match.name}: the other parts leave nothing for the FFN of a budget of "
            f"{_budget(cfg)} parameters; set ffn.d_ff or a larger model.budget."
        )
    return errors


def _position_errors(cfg: Root) -> list[str]:
    """Errors between the position encoding and what it meets."""
    posenc, model, data = cfg.posenc, cfg.model, cfg.data
    if posenc.name in fact("attention", cfg.attention.name, "refuses", ()):
        return [f"posenc={posenc.name}: cannot be combined with attention={cfg.attention.name}."]
    latent = _latent_errors(cfg.attention, posenc) if isinstance(cfg.attention, MLA) else []
    if latent or (isinstance(cfg.attention, MLA) and isinstance(posenc, Rope)):
        return latent
    match posenc:
        case Rope(width=None) if model.d_head % 2:
            return [
                f"model.n_heads={model.n_heads}: posenc={posenc.name} rotates pairs and needs an even d_head, "
                f"but model.d_model / model.n_heads is {model.d_head}."
            ]
        case Rope(width=int(width)) if width % 2 or width > model.d_head:
            return [f"posenc.width={width}: must be an even number of at most d_head={model.d_head} dimensions."]
        case Learned() if counts.n_positions(posenc, data) < data.max_len:
            return [
                f"posenc.n_positions={posenc.n_positions}: the table is too short for data={data.name}, "
                f"which has positions up to {data.max_len}; set at least that, or null."
            ]
        case T5() if not cfg.attention.causal:
            return ["attention.causal=false: posenc=t5 has buckets for what came before alone."]
        case T5() if posenc.max_distance <= posenc.n_buckets // 2:
            return [
                f"posenc.max_distance={posenc.max_distance}: must be above half of posenc.n_buckets="
                f"{posenc.n_buckets}, the distances that have a bucket of their own."
            ]
        case _:
            return []


def _scaling_errors(cfg: Root) -> list[str]:
    """What a scaling of RoPE needs of its settings and of the rotated width."""
    if not isinstance(cfg.posenc, Rope):
        return []
    scaling, base = cfg.posenc.scaling, cfg.posenc.base
    path, errors = "posenc.scaling", list[str]()
    match scaling.name:
        case RopeScaling.none if scaling.factor != 1:
            choices = ", ".join(name for name in RopeScaling.__members__ if name != "none")
            errors.append(
                f"{path}.factor={scaling.factor}: {path}.name=none scales nothing; set the name. Choices: {choices}."
            )
        case RopeScaling.ntk | RopeScaling.dynamic if rotated_width(cfg) < 4:
            errors.append(f"{path}.name={scaling.name.name}: needs at least 4 rotated dimensions, not 2.")
        case RopeScaling.yarn if base <= 1:
            errors.append(f"posenc.base={base}: {path}.name=yarn needs it above 1.")
        case _:
            pass
    if scaling.beta_slow >= scaling.kept_turns:
        errors.append(f"{path}.beta_slow={scaling.beta_slow}: must be below {path}.beta_fast={scaling.kept_turns}.")
    return errors


def rotated_width(cfg: Root) -> int:
    """How many dimensions of each query and key RoPE turns."""
    assert isinstance(cfg.posenc, Rope)
    own = cfg.attention.d_rope if isinstance(cfg.attention, MLA) else cfg.model.d_head
    return cfg.posenc.width or own


def _latent_errors(attention: MLA, posenc: PosEnc) -> list[str]:
    """What MLA cannot be combined with."""
    errors = list[str]()
    if attention.qk_norm:
        errors.append("attention.qk_norm=true: attention=mla normalises its latent instead.")
    if isinstance(posenc, Rope) and attention.d_rope % 2:
        errors.append(f"attention.d_rope={attention.d_rope}: posenc={posenc.name} rotates pairs and needs it even.")
    if isinstance(posenc, Rope) and posenc.width not in (None, attention.d_rope):
        errors.append(f"posenc.width={posenc.width}: attention=mla rotates its d_rope={attention.d_rope} dimensions.")
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
    """Optimiser steps that see every training document once; of packed ones about so many."""
    if isinstance(cfg.data, GardenPacked):
        return max(1, round(cfg.data.n_train * GARDEN_MEAN_LEN / cfg.data.max_len / cfg.trainer.batch_size))
    return math.ceil(cfg.data.n_train / cfg.trainer.batch_size)


def settle(cfg: Root) -> Root:
    """The same config with nothing left open: d_ff, n_kv_heads and trainer.steps are numbers.

    Raises ValueError with every error where the config is not sound. Settling twice changes nothing.
    """
    if errors := validate(cfg):
        raise ValueError("\n".join(errors))
    d_ff = _source_d_ff(cfg) if cfg.ffn.d_ff is None else cfg.ffn.d_ff
    ffn = replace(cfg.ffn, d_ff=_matched_d_ff(cfg) if d_ff is None else d_ff)
    attention = replace(
        cfg.attention,
        n_kv_heads=counts.n_kv_heads(cfg.attention, cfg.model),
        output_bias=cfg.attention.has_output_bias,
    )
    posenc = cfg.posenc
    if isinstance(posenc, Learned):
        posenc = replace(posenc, n_positions=counts.n_positions(posenc, cfg.data))
    if isinstance(posenc, Rope):
        n_original = cfg.data.max_len if posenc.scaling.n_original is None else posenc.scaling.n_original
        width = attention.d_rope if isinstance(attention, MLA) else posenc.width
        posenc = replace(posenc, width=width, scaling=replace(posenc.scaling, n_original=n_original))
    trainer = cfg.trainer
    if trainer.steps is None:
        assert trainer.epochs is not None
        trainer = replace(trainer, steps=max(1, round(trainer.epochs * steps_per_epoch(cfg))))
    trainer = replace(trainer, epochs=None)
    return replace(cfg, ffn=ffn, attention=attention, posenc=posenc, trainer=trainer, eval=_settled_eval(cfg))


def _source_d_ff(cfg: Root) -> int | None:
    """The d_ff of the run that this one starts from; None where it starts anew."""
    source = cfg.init.run if isinstance(cfg.init, Uptrain) else None
    return source.ffn.d_ff if isinstance(source, Root) else None


def _settled_eval(cfg: Root) -> Eval:
    """The evaluation with its stretch settled: null and 1 stand for what data and length ask for."""
    scaling, block = cfg.eval.scaling, cfg.data.max_len
    if scaling.name is RopeScaling.none:
        return cfg.eval
    n_original = block if scaling.n_original is None else scaling.n_original
    factor = max(1.0, (cfg.eval.length or block) / n_original) if scaling.factor == 1 else scaling.factor
    return replace(cfg.eval, scaling=replace(scaling, factor=factor, n_original=n_original))
