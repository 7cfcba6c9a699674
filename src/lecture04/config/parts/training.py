"""Options of what a run is trained with: initial values, optimiser, and where metrics are also sent."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lecture04.config.fields import Options, bounded


class Merge(Enum):
    """What becomes of the key and value heads that a group shares: their mean, the first, or new random ones."""

    mean = "mean"
    first = "first"
    random = "random"


@dataclass(frozen=True, kw_only=True)
class Init(Options):
    """The initial values."""

    name: str

    def errors(self) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []


def _no_lines() -> list[str]:
    return []


@dataclass(frozen=True, kw_only=True)
class Uptrain(Init):
    """Start from another run's parameters, with its key and value heads merged to the new number (Ainslie et al. 2023).

    `source` names that run by its overrides, as they would be typed; data and seed are this run's own. In its place
    `folder` may name a Hugging Face folder (see huggingface/). Where `ffn.d_ff` is null it is the source's.
    """

    source: list[str] = field(default_factory=_no_lines)
    folder: str = ""
    merge: Merge = Merge.mean
    # What it starts from, found when the config is resolved: a Run (with this run's seed), or an Architecture and the
    # digest of the folder's files.
    start: Any = None
    digest: str = ""


class Schedule(Enum):
    """The learning rate's course after warm-up."""

    constant = "constant"
    linear = "linear"
    cosine = "cosine"


@dataclass(frozen=True, kw_only=True)
class Optim(Options):
    """What every optimiser has.

    `final` is the share of `lr` that a linear or cosine schedule ends at. `clip` bounds the global gradient norm; null
    leaves it alone.
    """

    name: str
    lr: float = bounded(3e-3, above=0)
    schedule: Schedule = Schedule.cosine
    final: float = bounded(0.0, at_least=0)
    warmup_steps: int = bounded(100, at_least=0)
    clip: float | None = bounded(1.0, above=0)

    def errors(self) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []


@dataclass(frozen=True, kw_only=True)
class AdamW(Optim):
    """AdamW's own settings."""

    beta1: float = bounded(0.9, at_least=0, below=1)
    beta2: float = bounded(0.999, at_least=0, below=1)
    eps: float = bounded(1e-8, above=0)
    weight_decay: float = bounded(0.01, at_least=0)


@dataclass(frozen=True, kw_only=True)
class SGD(Optim):
    """SGD's own settings."""

    momentum: float = bounded(0.9, at_least=0, below=1)
    nesterov: bool = False
    weight_decay: float = bounded(0.0, at_least=0)

    def errors(self) -> list[str]:
        """Nesterov's momentum without any."""
        if self.nesterov and not self.momentum:
            return ["optim.nesterov=true: needs optim.momentum above 0."]
        return []


@dataclass(frozen=True, kw_only=True)
class Logger(Options):
    """Where metrics are sent beside metrics.jsonl."""

    name: str


@dataclass(frozen=True, kw_only=True)
class WandB(Logger):
    """Weights & Biases. Whether online or offline is found out once a sweep; WANDB_MODE, where set, wins."""

    project: str = "lecture04"
