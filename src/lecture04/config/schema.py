"""What a command line comes to: a run, its evaluation, the session that asks for them, and the table they stand in.

Hydra composes one flat tree, `Settings`, in which sizes may be open. `resolve` splits it where it enters:

    Run          all of it is the run's identity (an Architecture, and how it is trained)
    Evaluation   how the trained run is measured; a change here retrains nothing
    Session      where results lie, who watches, how often it is logged: what changes no result
    Table        rows, seeds and design of one comparison

Nothing in these four is open: every size is a number. No torch here.
"""

from dataclasses import dataclass, field, make_dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from omegaconf import MISSING

from lecture04.config.fields import Options, bounded, opened, schema_of
from lecture04.config.parts import (
    FFN,
    Attention,
    Data,
    Facts,
    Init,
    Layout,
    Logger,
    Model,
    Norm,
    Optim,
    Placement,
    PosEnc,
    Scaling,
    Uptrain,
)


class Design(Enum):
    """How a sweep's rows are compared: with the first, with the one before, or with the first of their slice."""

    star = "star"
    path = "path"
    grid = "grid"


class Reuse(Enum):
    """Which finished runs count as this run: those of the same config and code, or of the same config alone."""

    exact = "exact"
    config = "config"


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What a language model is: its parts and sizes, its vocabulary, and the most positions of a row."""

    model: Model
    ffn: FFN
    norm: Norm
    placement: Placement
    attention: Attention
    posenc: PosEnc
    vocab_size: int
    n_ctx: int


@dataclass(frozen=True, kw_only=True)
class Trainer(Options):
    """How long and how. `steps`, where set, wins over `epochs`; `batch_size` counts documents (or blocks).

    0 steps: the initial values are the result, for `init=uptrain`.

    A run has trained when its last validation NLL is below the unigram model's less `diverged_margin` (nats a token).
    Where it is not, the run diverged if its loss broke down or stood still, and was not trained enough otherwise.
    `log_every` is how many steps lie between two lines of metrics.jsonl, and `checkpoint_every` how many between two
    places that a stopped run can go on from; null for one a minute.
    """

    asked_only: ClassVar = {
        "epochs": (float | None, bounded(6.0, above=0, below=1e9)),
        "log_every": (int, bounded(50, at_least=1)),
        "checkpoint_every": (int | None, bounded(None, at_least=1)),
    }

    steps: int = opened(
        lambda own, c: max(1, round(own.epochs * c.layout.steps_per_epoch(c.facts, own.batch_size))), at_least=0
    )
    batch_size: int = bounded(32, at_least=1)
    threads: int = bounded(1, at_least=1)
    diverged_margin: float = bounded(0.25)


@dataclass(frozen=True, kw_only=True)
class Run(Architecture):
    """One run: a model, its initial values, its data and its training. All of it is the run's identity."""

    init: Init
    optim: Optim
    data: Data
    layout: Layout
    trainer: Trainer
    seed: int

    @property
    def facts(self) -> Facts:
        """What is known of the data before training."""
        return self.data.facts()

    def with_seed(self, seed: int) -> "Run":
        """The same run with another seed; what it starts from has it too."""
        init = self.init
        if isinstance(init, Uptrain) and isinstance(init.start, Run):
            init = replace(init, start=init.start.with_seed(seed))
        return replace(self, seed=seed, init=init)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps that see every training document once; of concatenated ones about so many."""
        return self.layout.steps_per_epoch(self.facts, self.trainer.batch_size)


@dataclass(frozen=True, kw_only=True)
class Evaluation(Options):
    """How a trained run is evaluated.

    `window`: pronoun accuracy is taken where the subject lies more than this many tokens back. `n_docs`: the FFN's
    zeros are counted on so many validation documents. `length`: the blocks that concatenated test documents are cut
    into, null for those of training. `scaling`: RoPE's scaling for the test split alone; a `factor` of 1 stands for the
    one that the length asks for, length / layout.length. `train_tokens`: the training split's own NLL is taken on about
    so many of its tokens, the first ones; null for all. `n_samples`: so many documents are drawn from the model, and
    the source's grammar says of each whether it could have produced it; 0 draws none.
    """

    window: int = bounded(4, at_least=0)
    n_docs: int = bounded(200, at_least=1)
    train_tokens: int | None = bounded(None, at_least=1)
    n_samples: int = bounded(0, at_least=0)
    length: int | None = bounded(None, at_least=1)
    scaling: Scaling


@dataclass(frozen=True, kw_only=True)
class Origin(Options):
    """Which sweep and row asked for a run, and what the sweep found out for all: set by the sweeper, for the logger."""

    sweep: str = ""
    row: str = ""
    wandb_mode: str = ""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What changes no result: where results lie, which finished runs count, who is told, and how often.

    `parts` are the files and modules with the user's own parts.
    """

    outputs: str = "outputs"
    reuse: Reuse = Reuse.exact
    logger: Logger = field(default_factory=lambda: Logger(name="none"))
    origin: Origin = field(default_factory=Origin)
    log_every: int = 50
    checkpoint_every: int | None = None
    parts: tuple[str, ...] = ()


# What a table shows unless its file says otherwise: these, and between them what its source of data measures.
COLUMNS = (("test/ppl",), ("params", "d_ff", "kv_per_token", "train/nll"))


@dataclass
class Table:
    """One comparison table: rows are lists of ordinary overrides, in order; `common` holds those of every row.

    `columns` are metrics and declared columns; where there are none, `COLUMNS` and what the source of data measures.

    In a grid every row stands in each of the `slices`, which are lists of overrides too.

    `primary` carries the verdicts; where there is none, the data's own does. `delta`, declared before the runs, is
    the difference of it that is too small to matter, on the scale on which it is judged (nats for a perplexity and an
    NLL, log odds for an accuracy). `looks` is how often the seeds are judged, where they are added in steps: each
    look then has 5 % / looks.
    """

    name: str = ""
    title: str = ""
    design: Design = Design.star
    seeds: list[int] = field(default_factory=lambda: list[int]())
    primary: str = ""
    columns: list[str] = field(default_factory=lambda: list[str]())
    common: list[str] = field(default_factory=lambda: list[str]())
    rows: dict[str, list[str]] = field(default_factory=lambda: dict[str, list[str]]())
    slices: dict[str, list[str]] = field(default_factory=lambda: dict[str, list[str]]())
    delta: float | None = bounded(None, above=0)
    looks: int = bounded(1, at_least=1)
    plan: bool = False


@dataclass
class Printed:
    """How a table is printed. `verbose`: with every column and the whole legend, not the first screen alone."""

    verbose: bool = False


@dataclass
class Paths:
    """Where results lie, from the folder that the command is run in."""

    outputs: str = "outputs"


@dataclass
class Runs:
    """Which finished runs may stand for a run."""

    reuse: Reuse = Reuse.exact


@dataclass(frozen=True)
class Request:
    """What one command line asks for. `mismatch` is what d_ff leaves of the budget that it is matched to, as a share of
    it: 0.01 is one per cent too many parameters.
    """

    run: Run
    evaluation: Evaluation
    session: Session
    mismatch: float


PARTS: dict[str, type[Options]] = {
    "ffn": FFN,
    "norm": Norm,
    "placement": Placement,
    "attention": Attention,
    "posenc": PosEnc,
    "init": Init,
    "optim": Optim,
    "data": Data,
    "layout": Layout,
    "logger": Logger,
}
"""The families that every run needs one choice of, with what each of their parts has."""

SESSION = ("logger", "paths", "runs", "origin", "parts", "table")
"""The settings that belong to the session: no run and no table is another one for them."""
ARCHITECTURE = ("ffn", "norm", "placement", "attention", "posenc")
"""Those of them that make up the model."""

# The flat tree that Hydra composes: a group for each family of parts, and the settings below it.
Settings: Any = make_dataclass(
    "Settings",
    [
        *((family, schema_of(base), field(default=MISSING)) for family, base in PARTS.items()),
        *(
            (name, schema_of(cls), field(default_factory=schema_of(cls)))
            for name, cls in (("model", Model), ("trainer", Trainer), ("eval", Evaluation), ("origin", Origin))
        ),
        *(
            (name, cls, field(default_factory=cls))
            for name, cls in (("paths", Paths), ("runs", Runs), ("sweep", Table), ("table", Printed))
        ),
        ("parts", list[str], field(default_factory=lambda: list[str]())),
        ("seed", int, bounded(0, at_least=0)),
    ],
)
