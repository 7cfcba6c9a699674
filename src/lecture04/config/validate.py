"""What is wrong with a config, every error at once, each one sentence with the field, the value and what would do."""

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from lecture04.config.parts import MLA, Rope, RopeScaling, Uptrain
from lecture04.config.parts.attention import divisors
from lecture04.config.registry import names
from lecture04.config.schema import ARCHITECTURE, PARTS, Architecture, Model, Request, Run

LARGEST = 1e15
"""What no count of a run comes near; sizes beyond it could not be computed with."""


def setting_errors(settings: Any) -> list[str]:
    """Errors of single fields, before anything open is resolved."""
    if missing := _missing_classes(settings):
        return missing
    errors = [*text_errors(settings), *bound_errors(settings, "")]
    if settings.trainer.steps is None and settings.trainer.epochs is None:
        errors.append("trainer.steps=null, trainer.epochs=null: one of them must say how long to train.")
    return errors or model_errors(settings.model)


def _missing_classes(settings: Any) -> list[str]:
    """Parts that a YAML names and no class answers to: one that is half added."""
    named = {family: getattr(settings, family).name for family in PARTS}
    return [
        f"{family}={name}: conf/{family}/{name}.yaml names it, but no class is registered as "
        f'@register("{family}", "{name}"). Choices: {", ".join(names(family))}.'
        for family, name in named.items()
        if name not in names(family)
    ]


def text_errors(settings: Any) -> list[str]:
    """Texts that must not be empty: an empty folder's name would stand for the root of the file system."""
    texts = {"paths.outputs": settings.paths.outputs, "logger.project": getattr(settings.logger, "project", None)}
    return [f"{name}=: no value stands there." for name, text in texts.items() if text is not None and not text.strip()]


def bound_errors(settings: object, path: str) -> list[str]:
    """The fields outside the bounds that stand beside them, those of nested settings included."""
    errors: list[str] = []
    for f in fields(settings):  # type: ignore[arg-type]
        value, name = getattr(settings, f.name), f"{path}{f.name}"
        if is_dataclass(value):
            errors += bound_errors(value, f"{name}.")
        elif "bounds" in f.metadata and value is not None and (wanted := _unmet(value, **f.metadata["bounds"])):
            errors.append(f"{name}={value}: must be {wanted}.")
    return errors


def _unmet(value: float, *, at_least: float | None, above: float | None, below: float | None) -> str:
    """What the value should be and is not; empty where it is."""
    is_count = isinstance(value, int)
    if is_count and type(value) is bool:
        return ""
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


def model_errors(model: Model) -> list[str]:
    """Heads that the width cannot be divided into: nothing else can be said of such a model."""
    if model.d_model % model.n_heads:
        return [f"model.n_heads={model.n_heads}: must divide model.d_model={model.d_model}. {divisors(model.d_model)}"]
    return []


def architecture_errors(c: Architecture) -> list[str]:
    """What the parts say of each other."""
    refused = c.posenc.name in c.attention.refuses
    errors = [f"posenc={c.posenc.name}: cannot be combined with attention={c.attention.name}."] if refused else []
    for family in ARCHITECTURE:
        if not (refused and family == "posenc"):
            errors += getattr(c, family).errors(c)
    return errors


def run_errors(run: Run) -> list[str]:
    """What cannot be built: of the parts, and of what they are trained with."""
    return [*architecture_errors(run), *run.init.errors(), *run.optim.errors()]


def training_setting_errors(settings: Any) -> list[str]:
    """What is sound as a model but can never be trained, by single settings."""
    errors = list[str]()
    if not settings.attention.causal:
        errors.append("attention.causal=false: a model that sees what it predicts learns nothing; for probes only.")
    if settings.trainer.steps == 0 and not hasattr(settings.init, "source"):
        errors.append("trainer.steps=0: must be at least 1; init=uptrain alone can be evaluated as it is.")
    return errors


def training_errors(request: Request) -> list[str]:
    """What is sound as a model but cannot be trained on these data, or tested as it is asked."""
    return request.run.data.errors(request.run.layout) + _test_errors(request)


def _test_errors(request: Request) -> list[str]:
    """What cannot be asked of the test split."""
    run, evaluation = request.run, request.evaluation
    errors, length, longest = list[str](), evaluation.length, run.posenc.longest()
    if length is not None and run.layout.keeps_documents:
        errors.append(f"eval.length={length}: layout={run.layout.name} tests whole documents; see layout=stream.")
    elif length is not None and longest is not None and longest < length:
        errors.append(
            f"eval.length={length}: posenc={run.posenc.name} has no vector beyond posenc.n_positions={longest}; "
            "set at least that."
        )
    if evaluation.n_samples and not run.data.judges_samples:
        errors.append(
            f"eval.n_samples={evaluation.n_samples}: data={run.data.name} has no grammar that judges samples; set 0."
        )
    scaling = evaluation.scaling
    if isinstance(run.posenc, Rope):
        errors += scaling.errors(run.posenc.base, run.posenc.width, "eval.scaling")
    elif scaling.name is not RopeScaling.none:
        errors.append(
            f"eval.scaling.name={scaling.name.name}: posenc={run.posenc.name} rotates nothing that could be scaled; "
            "choose posenc=rope or rope_half."
        )
    return errors


SAME = ("model", "ffn", "norm", "placement", "posenc")
"""What a run that starts from another model must have in common with it; a run's data too."""


def source_errors(run: Run) -> list[str]:
    """Where a run cannot start from its source: all but the number of key and value heads must be the same."""
    if not isinstance(run.init, Uptrain) or run.init.start is None:
        return []
    source: Architecture = run.init.start
    named = "init.folder" if run.init.folder else "init.source"
    errors = [
        f"{named}: its {name} is {theirs}, this run's {ours}; init=uptrain changes n_kv_heads alone."
        for name, theirs, ours in _differences(
            source, run, [*SAME, "data", "layout"] if isinstance(source, Run) else SAME
        )
    ]
    own, n_kv_heads = source.attention.n_kv_heads, run.attention.n_kv_heads
    if isinstance(source.attention, MLA) or isinstance(run.attention, MLA):
        errors.append("attention=mla: init=uptrain merges key and value heads, and a latent has none.")
    elif own % n_kv_heads:
        errors.append(f"attention.n_kv_heads={n_kv_heads}: must divide its source's {own}. {divisors(own)}")
    apart = ("name", "n_kv_heads")
    theirs, ours = ({f.name: getattr(a, f.name) for f in fields(a)} for a in (source.attention, run.attention))
    if not errors and any(theirs.get(key) != ours.get(key) for key in (theirs | ours) if key not in apart):
        errors.append(f"{named}: its attention has other settings; init=uptrain changes n_kv_heads alone.")
    return errors


def _differences(source: Architecture, run: Run, families: Iterable[str]) -> list[tuple[str, object, object]]:
    """(family.field, theirs, ours) where they differ."""
    return [
        (f"{family}.{f.name}", theirs, ours)
        for family in families
        for f in fields(getattr(run, family))
        if (theirs := getattr(getattr(source, family), f.name, None)) != (ours := getattr(getattr(run, family), f.name))
    ]
