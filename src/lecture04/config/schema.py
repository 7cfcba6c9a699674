"""What a run is: typed settings, one dataclass a family. No torch here, so that `--help` and errors answer at once.

`Root` is the schema that every composed config is checked against, so that a wrong field or type fails before any job
starts. A part with options of its own adds a dataclass here (as `Rope` does) and names it in SCHEMAS; a part without
options needs nothing in this file. Facts of a class that are no choice of the user's (is it gated?) stand beside the
class, in its `@register` line.

Bounds stand beside the field (`bounded`); `settle.validate` reads them.

After `settle.settle` nothing is open: d_ff, n_kv_heads and trainer.steps are numbers.
"""

# No `from __future__ import annotations`: omegaconf reads these annotations as types.
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from omegaconf import II, MISSING


def bounded(
    default: Any, *, at_least: float | None = None, above: float | None = None, below: float | None = None
) -> Any:
    """A field whose value, where it is not null, must be finite and within these bounds."""
    return field(default=default, metadata={"at_least": at_least, "above": above, "below": below})


class Match(Enum):
    """What a matched d_ff is matched to: the plain FFN of 4 d_model, or the whole standard model."""

    ffn = "ffn"
    model = "model"


class Schedule(Enum):
    """The learning rate's course after warm-up."""

    constant = "constant"
    linear = "linear"
    cosine = "cosine"


class RopeScaling(Enum):
    """How RoPE's angles are scaled for contexts longer than those trained on: the formulas of nn/rope_scaling.py."""

    none = "none"
    linear = "linear"
    ntk = "ntk"
    dynamic = "dynamic"
    yarn = "yarn"
    llama3 = "llama3"


class Design(Enum):
    """How a sweep's rows are compared: with the first, with the one before, or with the first of their slice."""

    star = "star"
    path = "path"
    grid = "grid"


class Merge(Enum):
    """What becomes of the key and value heads that a group shares: their mean, the first, or new random ones."""

    mean = "mean"
    first = "first"
    random = "random"


class Reuse(Enum):
    """Which finished runs count as this run: those of the same config and code, or of the same config alone."""

    exact = "exact"
    config = "config"


@dataclass
class FFN:
    """The feed-forward layer. `d_ff: null` means matched (see `Match`)."""

    name: str = MISSING
    d_ff: int | None = bounded(None, at_least=1)
    match: Match = Match.ffn
    bias: bool = II("model.bias")


@dataclass
class Swish(FFN):
    """Swish; `beta` is the slope inside the sigmoid."""

    beta: float = bounded(1.0, at_least=0)


@dataclass
class Norm:
    """The normalisation. `eps` is added to the variance or the mean square."""

    name: str = MISSING
    eps: float = bounded(1e-5, above=0)


@dataclass
class Placement:
    """Where in a block the norms stand."""

    name: str = MISSING


@dataclass
class Attention:
    """The attention.

    `output_bias` is the bias of the output projection alone, null as `bias` (Qwen2 has one on q, k and v only).
    `n_kv_heads: null` means what the name says: all heads for mha, one for mqa. `scale` multiplies the scores, null is
    1/sqrt(d_head). `qk_norm` puts the model's norm on every query and key. `causal: false` lets every token see all
    others: for probes, not for training.
    """

    name: str = MISSING
    n_kv_heads: int | None = bounded(None, at_least=1)
    bias: bool = II("model.bias")
    output_bias: bool | None = None
    scale: float | None = bounded(None, above=0)
    qk_norm: bool = False
    causal: bool = True

    @property
    def has_output_bias(self) -> bool:
        """Whether the output projection has a bias."""
        return self.bias if self.output_bias is None else self.output_bias


@dataclass
class MLA(Attention):
    """Multi-head latent attention: the width of the latent that is cached, and of the part that carries positions."""

    d_latent: int = bounded(24, at_least=1)
    d_rope: int = bounded(8, at_least=2)


@dataclass
class PosEnc:
    """The position encoding, one a model."""

    name: str = MISSING


@dataclass
class Scaling:
    """RoPE for a context `factor` times the `n_original` positions trained on (null: data.max_len).

    yarn and llama3 read the betas, in turns over n_original positions: pairs that turn more than `beta_fast` times
    (null: 32 for yarn, 4 for llama3) keep their frequency, those below `beta_slow` times are interpolated.
    YaRN also makes scores larger, by (temperature ln(factor) + 1)^2: those of the rotated dimensions, or with
    `on_scores` all (DeepSeek).
    """

    name: RopeScaling = RopeScaling.none
    factor: float = bounded(1.0, at_least=1)
    n_original: int | None = bounded(None, at_least=1)
    beta_fast: float | None = bounded(None, above=0)
    beta_slow: float = bounded(1.0, above=0)
    temperature: float = bounded(0.1, at_least=0)
    on_scores: bool = False

    @property
    def kept_turns(self) -> float:
        """`beta_fast`, or where it is null what the formula's authors chose."""
        if self.beta_fast is not None:
            return self.beta_fast
        return 4.0 if self.name is RopeScaling.llama3 else 32.0


@dataclass
class Rope(PosEnc):
    """RoPE; `base` sets the slowest rotation, base^(-2i/width) radians a token for pair i.

    `width` is how many dimensions of a head are rotated, null for all.
    """

    base: float = bounded(10000.0, above=0)
    width: int | None = bounded(None, at_least=2)
    scaling: Scaling = field(default_factory=Scaling)


@dataclass
class Learned(PosEnc):
    """A learned table; `n_positions` is its length, null for the longest document of the data."""

    n_positions: int | None = bounded(None, at_least=1)


@dataclass
class Shaw(PosEnc):
    """Shaw's relative positions; distances beyond `max_distance` share an embedding."""

    max_distance: int = bounded(16, at_least=1)


@dataclass
class T5(PosEnc):
    """T5's buckets of distances; all from `max_distance` on share the last."""

    n_buckets: int = bounded(32, at_least=2)
    max_distance: int = bounded(128, at_least=2)


@dataclass
class Init:
    """The initial values: a row of the table in nn/init.py."""

    name: str = MISSING


@dataclass
class Uptrain(Init):
    """Start from another run's parameters, with its key and value heads merged to the new number (Ainslie et al. 2023).

    `source` names that run by its overrides, as they would be typed; data and seed are this run's own. In its place
    `folder` may name a Hugging Face folder (see lecture04.huggingface). Where `ffn.d_ff` is null it is the source's.
    """

    source: list[str] = field(default_factory=lambda: list[str]())
    folder: str = ""
    merge: Merge = Merge.mean
    # The source's settled config, a Root, and what a folder held; found when this run's config is settled.
    run: Any = None
    digest: str = ""


@dataclass
class Model:
    """The sizes that all parts share.

    `bias` is that of the Linear layers. `embed_scale` multiplies the embeddings where they enter, null is
    sqrt(d_model). `budget` is for `ffn.match=model`.
    """

    d_model: int = bounded(64, at_least=1)
    n_layers: int = bounded(2, at_least=1)
    n_heads: int = bounded(4, at_least=1)
    bias: bool = True
    tied: bool = True
    embed_scale: float | None = bounded(None, above=0)
    budget: int | None = bounded(None, at_least=1)

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads


@dataclass
class Optim:
    """What every optimiser has. `clip` bounds the global gradient norm; null leaves it alone."""

    name: str = MISSING
    lr: float = bounded(3e-3, above=0)
    schedule: Schedule = Schedule.cosine
    warmup_steps: int = bounded(100, at_least=0)
    clip: float | None = bounded(1.0, above=0)


@dataclass
class AdamW(Optim):
    """AdamW's own settings."""

    beta1: float = bounded(0.9, at_least=0, below=1)
    beta2: float = bounded(0.999, at_least=0, below=1)
    eps: float = bounded(1e-8, above=0)
    weight_decay: float = bounded(0.01, at_least=0)


@dataclass
class SGD(Optim):
    """SGD's own settings."""

    momentum: float = bounded(0.9, at_least=0, below=1)
    nesterov: bool = False
    weight_decay: float = bounded(0.0, at_least=0)


@dataclass
class Data:
    """A corpus of documents: its vocabulary, and the most tokens that are predicted in one document."""

    name: str = MISSING
    vocab_size: int = bounded(MISSING, at_least=1)
    max_len: int = bounded(MISSING, at_least=1)
    n_train: int = bounded(MISSING, at_least=1)


@dataclass
class Garden(Data):
    """The Garden World: how many documents of each split, and the seed of its collocations.

    `vocab_size` and `max_len` are facts of the language; `max_len` may be larger, and then rows are longer.
    """

    n_val: int = bounded(1000, at_least=1)
    n_test: int = bounded(2000, at_least=1)
    world_seed: int = bounded(0, at_least=0)


@dataclass
class GardenPacked(Garden):
    """The Garden World's documents end to end; `max_len` is the length of the blocks that they are cut into."""


@dataclass
class Trainer:
    """How long and how. `steps`, where set, wins over `epochs`; `batch_size` counts documents (or packed blocks).

    0 steps: the initial values are the result, for `init=uptrain`.

    A run counts as diverged when a loss is not finite, or when its last validation NLL is above the unigram model's
    less `diverged_margin` (nats a token).
    """

    steps: int | None = bounded(None, at_least=0)
    epochs: float | None = bounded(6.0, above=0, below=1e9)
    batch_size: int = bounded(32, at_least=1)
    threads: int = bounded(1, at_least=1)
    log_every: int = bounded(50, at_least=1)
    diverged_margin: float = bounded(0.25)


@dataclass
class Eval:
    """How a trained run is evaluated; a change here retrains nothing.

    `window`: possessive accuracy is taken where the subject lies more than this many tokens back. `n_docs`: the FFN's
    silent units are counted on so many validation documents. `length`: the blocks that packed test documents are cut
    into, null for those of training. `scaling`: how RoPE is stretched for the test split alone; a `factor` of 1 stands
    for the one that the length asks for, length / data.max_len.
    """

    window: int = bounded(4, at_least=0)
    n_docs: int = bounded(200, at_least=1)
    length: int | None = bounded(None, at_least=1)
    scaling: Scaling = field(default_factory=Scaling)


@dataclass
class Logger:
    """Where metrics are mirrored to, beside metrics.jsonl."""

    name: str = MISSING


@dataclass
class WandB(Logger):
    """Weights & Biases. Whether online or offline is found out once a sweep; WANDB_MODE, where set, wins."""

    project: str = "lecture04"


@dataclass
class Origin:
    """Which sweep and row asked for a run, and what the sweep found out for all: set by the sweeper, for the logger."""

    sweep: str = ""
    row: str = ""
    wandb_mode: str = ""


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
    """One comparison table: rows are lists of ordinary overrides, in order; `common` holds those of every row.

    In a grid every row stands in each of the `slices`, which are lists of overrides too.

    `primary` carries the verdicts. `delta`, declared before the runs, is the difference of it that is too small to
    matter, on the scale on which it is judged (nats for a perplexity and an NLL, log odds for an accuracy). `looks` is
    how often the seeds are judged, where they are added in steps: each look then has 5 % / looks.
    """

    name: str = ""
    title: str = ""
    design: Design = Design.star
    seeds: list[int] = field(default_factory=lambda: list[int]())
    primary: str = "test/nll"
    columns: list[str] = field(default_factory=lambda: list(COLUMNS))
    common: list[str] = field(default_factory=lambda: list[str]())
    rows: dict[str, list[str]] = field(default_factory=lambda: dict[str, list[str]]())
    slices: dict[str, list[str]] = field(default_factory=lambda: dict[str, list[str]]())
    delta: float | None = bounded(None, above=0)
    looks: int = bounded(1, at_least=1)
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
    origin: Origin = field(default_factory=Origin)
    seed: int = bounded(0, at_least=0)


def start_of(cfg: Root) -> Root | None:
    """The settled config of the model that a settled run starts from, of a run or a folder; None where it starts anew.

    The seed is the run's.
    """
    if not isinstance(cfg.init, Uptrain):
        return None
    assert isinstance(cfg.init.run, Root), "cli.settled finds it"
    return replace(cfg.init.run, seed=cfg.seed)


def source_of(cfg: Root) -> Root | None:
    """As `start_of` where that is a run, which has to be trained first; None where the model lies in a folder."""
    return None if isinstance(cfg.init, Uptrain) and cfg.init.folder else start_of(cfg)


# What a run that starts from another one (init=uptrain) shares with it, beside its seed.
INHERITED = ("data", "eval", "paths", "runs", "logger")

# Parts with options of their own: (family, name) -> dataclass, stored as schema/FAMILY/NAME for the YAML to name.
SCHEMAS: dict[tuple[str, str], Any] = {
    ("ffn", "swish"): Swish,
    ("attention", "mla"): MLA,
    ("posenc", "rope"): Rope,
    ("posenc", "rope_half"): Rope,
    ("posenc", "learned"): Learned,
    ("posenc", "shaw"): Shaw,
    ("posenc", "t5"): T5,
    ("optim", "adamw"): AdamW,
    ("optim", "sgd"): SGD,
    ("init", "uptrain"): Uptrain,
    ("data", "garden"): Garden,
    ("data", "garden_packed"): GardenPacked,
    ("logger", "wandb"): WandB,
}
