"""What a run is: typed settings, one dataclass a family. No torch here, so that `--help` and errors answer at once.

`Root` is the schema that every composed config is checked against, so that a wrong field or type fails before any job
starts. A part with options of its own adds a dataclass here (as `Rope` does) and names it in SCHEMAS; a part without
options needs nothing in this file. Facts of a class that are no choice of the user's (is it gated?) stand beside the
class, in its `@register` line.

After `settle.settle` nothing is open: d_ff, n_kv_heads and trainer.steps are numbers.
"""

# No `from __future__ import annotations`: omegaconf reads these annotations as types.
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from omegaconf import II, MISSING


class Match(Enum):
    """What a matched d_ff is matched to: the plain FFN of 4 d_model, or the whole standard model."""

    ffn = "ffn"
    model = "model"


class Schedule(Enum):
    """The learning rate's course after warm-up."""

    constant = "constant"
    linear = "linear"
    cosine = "cosine"


class Design(Enum):
    """How a sweep's rows are compared: each with the first, or each with the one before."""

    star = "star"
    path = "path"


class Reuse(Enum):
    """Which finished runs count as this run: those of the same config and code, or of the same config alone."""

    exact = "exact"
    config = "config"


@dataclass
class FFN:
    """The feed-forward layer. `d_ff: null` means matched (see `Match`)."""

    name: str = MISSING
    d_ff: int | None = None
    match: Match = Match.ffn
    bias: bool = II("model.bias")


@dataclass
class Norm:
    """The normalisation. `eps` is added to the variance or the mean square."""

    name: str = MISSING
    eps: float = 1e-5


@dataclass
class Placement:
    """Where in a block the norms stand."""

    name: str = MISSING


@dataclass
class Attention:
    """The attention. `n_kv_heads: null` means what the name says: all heads for mha, one for mqa."""

    name: str = MISSING
    n_kv_heads: int | None = None
    bias: bool = II("model.bias")


@dataclass
class PosEnc:
    """The position encoding, one a model."""

    name: str = MISSING


@dataclass
class Rope(PosEnc):
    """RoPE; `base` sets the slowest rotation, base^(-2i/d_head) radians a token for pair i."""

    base: float = 10000.0


@dataclass
class Init:
    """The initial values: a row of the table in nn/init.py."""

    name: str = MISSING


@dataclass
class Model:
    """The sizes that all parts share. `bias` is that of the Linear layers; `budget` is for `ffn.match=model`."""

    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    bias: bool = True
    tied: bool = True
    budget: int | None = None

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads


@dataclass
class Optim:
    """What every optimiser has. `clip` bounds the global gradient norm; null leaves it alone."""

    name: str = MISSING
    lr: float = 3e-3
    schedule: Schedule = Schedule.cosine
    warmup_steps: int = 100
    clip: float | None = 1.0


@dataclass
class AdamW(Optim):
    """AdamW's own settings."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01


@dataclass
class Data:
    """A corpus of documents: its vocabulary, and the most tokens that are predicted in one document."""

    name: str = MISSING
    vocab_size: int = MISSING
    max_len: int = MISSING
    n_train: int = MISSING


@dataclass
class Garden(Data):
    """The Garden World: how many documents of each split, and the seed of its collocations."""

    n_val: int = 1000
    n_test: int = 2000
    world_seed: int = 0


@dataclass
class Trainer:
    """How long and how. `steps`, where set, wins over `epochs`; `batch_size` counts documents.

    A run counts as diverged when a loss is not finite, or when its last validation NLL is above the unigram model's
    less `diverged_margin` (nats a token).
    """

    steps: int | None = None
    epochs: float | None = 6.0
    batch_size: int = 32
    threads: int = 1
    log_every: int = 50
    diverged_margin: float = 0.25


@dataclass
class Eval:
    """How a trained run is evaluated; a change here retrains nothing.

    `window`: possessive accuracy is taken where the subject lies more than this many tokens back.
    """

    window: int = 4


@dataclass
class Logger:
    """Where metrics are mirrored to, beside metrics.jsonl."""

    name: str = MISSING


@dataclass
class Paths:
    """Where results lie, from the folder that the command is run in."""

    outputs: str = "outputs"


@dataclass
class Runs:
    """Which finished runs may stand for a run."""

    reuse: Reuse = Reuse.exact


# What a table shows beside its primary metric, unless its file says otherwise.
COLUMNS = ("test/ppl", "possessive/accuracy", "params", "d_ff", "kv_per_token", "train/nll")


@dataclass
class Sweep:
    """One comparison table: rows are lists of ordinary overrides, in order; `common` holds those of every row."""

    name: str = ""
    title: str = ""
    design: Design = Design.star
    seeds: list[int] = field(default_factory=lambda: list[int]())
    primary: str = "test/nll"
    columns: list[str] = field(default_factory=lambda: list(COLUMNS))
    common: list[str] = field(default_factory=lambda: list[str]())
    rows: dict[str, list[str]] = field(default_factory=lambda: dict[str, list[str]]())
    plan: bool = False


@dataclass
class Root:
    """Everything that can be set. The groups in conf/ fill the fields of the same name."""

    ffn: FFN = MISSING
    norm: Norm = MISSING
    placement: Placement = MISSING
    attention: Attention = MISSING
    posenc: PosEnc = MISSING
    init: Init = MISSING
    model: Model = field(default_factory=Model)
    optim: Optim = MISSING
    data: Data = MISSING
    trainer: Trainer = field(default_factory=Trainer)
    eval: Eval = field(default_factory=Eval)
    logger: Logger = MISSING
    paths: Paths = field(default_factory=Paths)
    runs: Runs = field(default_factory=Runs)
    sweep: Sweep = field(default_factory=Sweep)
    seed: int = 0


# Parts with options of their own: (family, name) -> dataclass, stored as schema/FAMILY/NAME for the YAML to name.
SCHEMAS: dict[tuple[str, str], Any] = {
    ("posenc", "rope"): Rope,
    ("optim", "adamw"): AdamW,
    ("data", "garden"): Garden,
}
