"""From what was asked for to what will be run: every error at once, then every open size a number. Pure, no torch."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from lecture04.config import sizes
from lecture04.config.errors import UserError
from lecture04.config.fields import Options, hints
from lecture04.config.parts import Data, Facts, Match, RopeScaling
from lecture04.config.registry import Family, load, options_of
from lecture04.config.schema import (
    PARTS,
    Architecture,
    Evaluation,
    Model,
    Origin,
    Request,
    Run,
    Session,
    Trainer,
)
from lecture04.config.validate import (
    run_errors,
    setting_errors,
    source_errors,
    training_errors,
    training_setting_errors,
)

MISMATCH_WARNING = 0.02
"""The share of parameters off the matched number from which on a table says so."""

O = TypeVar("O", bound=Options)  # noqa: E741


@dataclass(frozen=True)
class Source:
    """What a run starts from: another run, or the architecture of a folder and the digest of its files."""

    start: Architecture
    digest: str = ""


FindSource = Callable[[Any], Source | None]
"""A run's settings -> what it starts from; None where it starts anew."""


def from_nothing(settings: Any) -> None:
    """Nothing is started from another run."""


def fill(cls: type[O], asked: Any, c: Any, **known: object) -> O:
    """Options with what was asked for, and with what null stands for where a field was left open.

    `c` is what is resolved already; `known` are values that the caller has found.
    """
    given = {f.name: getattr(asked, f.name) for f in fields(asked)} | known
    own = SimpleNamespace(**given)
    for f in fields(cls):
        value = given[f.name] if "settled" not in f.metadata else f.default
        if value is None and "open" in f.metadata and f.metadata["open"]:
            value = f.metadata["open"](own, c)
        elif isinstance(kind := hints(cls)[f.name], type) and issubclass(kind, Options) and not isinstance(value, kind):
            value = fill(kind, value, c)
        setattr(own, f.name, value)
    return cls(**{f.name: getattr(own, f.name) for f in fields(cls)})


def part(family: str, asked: Any, c: Any, **known: object) -> Any:
    """As `fill`, for a part of a family: its options class is found by its name."""
    return fill(options_of(family, asked.name, PARTS[family]), asked, c, **known)


def architecture(settings: Any, vocab_size: int, n_ctx: int, d_ff: int | None = None) -> Architecture:
    """The model of settings whose single fields are sound; `d_ff` stands for an open one, else it is matched.

    `settings` needs no more than `model` and the families of an architecture.
    """
    c = SimpleNamespace(vocab_size=vocab_size, n_ctx=n_ctx, model=fill(Model, settings.model, None))
    for family in ("attention", "posenc", "norm", "placement"):
        setattr(c, family, part(family, getattr(settings, family), c))
    asked = settings.ffn
    c.ffn = part("ffn", asked, c, d_ff=asked.d_ff or d_ff or 1)
    found = Architecture(**vars(c))
    if asked.d_ff is None and d_ff is None:
        found = replace(found, ffn=replace(found.ffn, d_ff=_matched_d_ff(found, asked.match, settings.model.budget)))
    return found


def _budget(c: Architecture, match: Match, budget: int | None) -> int:
    """The parameters that `ffn.match` aims at: of one FFN, or of the whole model."""
    if match is Match.ffn:
        return sizes.plain_ffn_params(c.ffn, c.model.d_model)
    return budget or sizes.standard_params(c.model, c.vocab_size)


def _matched_params(c: Architecture, match: Match, d_ff: int) -> int:
    """The parameters that are compared with the budget, at one d_ff."""
    c = replace(c, ffn=replace(c.ffn, d_ff=d_ff))
    return sizes.ffn_params(c) if match is Match.ffn else sizes.params(c)


def _matched_d_ff(c: Architecture, match: Match, budget: int | None) -> int:
    """The d_ff that comes nearest to the budget; parameters grow by the same number with each unit."""
    one, two = _matched_params(c, match, 1), _matched_params(c, match, 2)
    return 1 + round((_budget(c, match, budget) - one) / (two - one))


def mismatch(c: Architecture, match: Match, budget: int | None) -> float:
    """What d_ff leaves of the budget, as a share of it: 0.01 is one per cent too many parameters."""
    wanted = _budget(c, match, budget)
    return (_matched_params(c, match, c.ffn.d_ff) - wanted) / wanted


def resolve(settings: Any, find_source: FindSource = from_nothing) -> Request:
    """What a composed config comes to, as a model; nothing is asked of its training. Raises UserError."""
    load(settings.parts)
    if bad := setting_errors(settings):
        raise UserError("\n".join(bad))
    source = find_source(settings)
    run = _run(settings, source)
    match, budget = settings.ffn.match, settings.model.budget
    bad = run_errors(run)
    if not bad and run.ffn.d_ff < 1:
        bad.append(
            f"ffn.match={match.name}: the other parts leave nothing for the FFN of a budget of "
            f"{_budget(run, match, budget)} parameters; set ffn.d_ff or a larger model.budget."
        )
    if bad:
        raise UserError("\n".join(bad))
    session = Session(
        outputs=settings.paths.outputs,
        reuse=settings.runs.reuse,
        logger=part("logger", settings.logger, None),
        origin=fill(Origin, settings.origin, None),
        log_every=settings.trainer.log_every,
        checkpoint_every=settings.trainer.checkpoint_every,
        parts=tuple(settings.parts),
    )
    return Request(run, _evaluation(settings, run), session, mismatch(run, match, budget))


def resolve_for_training(settings: Any, find_source: FindSource = from_nothing) -> Request:
    """As `resolve`, for a run that can be trained. Raises UserError with every error."""
    early = training_setting_errors(settings)
    try:
        request = resolve(settings, find_source)
    except UserError as e:
        raise UserError("\n".join([str(e), *early])) from e
    if bad := [*early, *training_errors(request), *source_errors(request.run)]:
        raise UserError("\n".join(bad))
    return request


Settle = Callable[[Any, Path], Any]
"""Options of a source, as asked for, and the folder that keeps what is made once -> options that know what is there."""
SETTLERS: Family[Settle] = Family("settle")
"""Sources that read files have one: what the options say of them, and the facts that follow, are found before a run is
resolved, so that every error is said before any training. Raises ValueError or OSError where they cannot be read."""


def data_of(settings: Any) -> tuple[Data, Facts]:
    """The source of these settings, and what is known of it. Raises UserError where it cannot be read."""
    name = settings.data.name
    try:
        data = part("data", settings.data, None)
        if name in SETTLERS.names():
            data = SETTLERS.lookup(name)(data, Path(settings.paths.outputs) / "data")
        return data, data.facts()
    except UserError:
        raise
    except OSError as e:
        raise UserError(f"data={name}: {e.filename}: {e.strerror}.") from e
    except ValueError as e:
        raise UserError(f"data={name}: {e}") from e


def _run(settings: Any, source: Source | None) -> Run:
    data, facts = data_of(settings)
    layout = part("layout", settings.layout, SimpleNamespace(facts=facts))
    start = {"start": source.start, "digest": source.digest} if source else {}
    d_ff = source.start.ffn.d_ff if source else None
    c = architecture(settings, facts.vocab_size, layout.length, d_ff)
    return Run(
        **{f.name: getattr(c, f.name) for f in fields(Architecture)},
        init=part("init", settings.init, c, **start),
        optim=part("optim", settings.optim, c),
        data=data,
        layout=layout,
        trainer=fill(Trainer, settings.trainer, SimpleNamespace(facts=facts, layout=layout)),
        seed=settings.seed,
    )


def _evaluation(settings: Any, run: Run) -> Evaluation:
    """With its scaling resolved: a factor of 1 stands for what the length asks for."""
    found = fill(Evaluation, settings.eval, run)
    scaling, block = found.scaling, run.layout.length
    if scaling.name is not RopeScaling.none and scaling.factor == 1:
        factor = max(1.0, (found.length or block) / scaling.n_original)
        found = replace(found, scaling=replace(scaling, factor=factor))
    return found
