"""A probe's config: all settings of a run, and the probe's own options. No torch is imported here."""

# No `from __future__ import annotations`: omegaconf reads these annotations as types.
from dataclasses import dataclass, field, fields, make_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from omegaconf import MISSING

from lecture04.config import T5, Options, Request, Run, Settings, UserError, bounded
from lecture04.config.errors import nearest
from lecture04.config.fields import schema_of
from lecture04.config.registry import Family
from lecture04.config.resolve import FindSource, fill, resolve
from lecture04.lecture.probes import finished

if TYPE_CHECKING:  # config errors and --help do without pandas
    import pandas as pd


class DType(Enum):
    """Number formats."""

    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"
    fp8 = "fp8"


# What a probe computes in a minute or two on one core.
DEEPEST, WIDEST_STREAM, FARTHEST = 500, 256, 1_000_000

BYTES = {DType.fp32: 4, DType.bf16: 2, DType.fp16: 2, DType.fp8: 1}


@dataclass(frozen=True, kw_only=True)
class Probe(Options):
    """The question."""

    name: str

    def errors(self, run: Run) -> list[str]:
        """One sentence for each error that the bounds of single fields cannot find."""
        return []

    def require(self, request: Request) -> None:
        """Raise UserError, with the command that makes it, where something that the probe reads is missing."""


@dataclass(frozen=True, kw_only=True)
class KVCache(Probe):
    """The cache of `batch` sequences of `n_ctx` tokens is counted; `n_tokens` are decoded through our own cache."""

    n_ctx: int = bounded(32768, at_least=1)
    batch: int = bounded(1, at_least=1)
    dtype: DType = DType.bf16
    n_tokens: int = bounded(48, at_least=1, below=5_000)


@dataclass(frozen=True, kw_only=True)
class GradNorms(Probe):
    """`depths: null` means 2, 3, 6, 12 and 24 layers, or model.n_layers alone where that is not the standard 2."""

    depths: list[int] | None = None
    n_seeds: int = bounded(5, at_least=2, below=1_000)

    def errors(self, run: Run) -> list[str]:
        """Depths that no model has, or that are too many to be differentiated, or counted twice."""
        asked = self.depths
        if asked is None or (asked and min(asked) >= 1 and max(asked) <= DEEPEST and len(set(asked)) == len(asked)):
            return []
        return [f"probe.depths={asked}: numbers of layers, each from 1 to {DEEPEST} and named once."]


@dataclass(frozen=True, kw_only=True)
class PositionShift(Probe):
    """`n_tokens` positions are moved by `shift`."""

    shift: int = bounded(17, at_least=1, below=1_000_000)
    n_tokens: int = bounded(24, at_least=2, below=2_000)


@dataclass(frozen=True, kw_only=True)
class MLA(Probe):
    """Nothing of its own to set."""

    def errors(self, run: Run) -> list[str]:
        """A head that cannot be rotated."""
        model = run.model
        if model.d_head % 2 == 0:
            return []
        return [
            f"model.n_heads={model.n_heads}: probe=mla rotates pairs and needs an even d_head, "
            f"but model.d_model / model.n_heads is {model.d_head}."
        ]


@dataclass(frozen=True, kw_only=True)
class ResidualPaths(Probe):
    """Nothing of its own to set."""

    def errors(self, run: Run) -> list[str]:
        """A stream whose Jacobian takes minutes: it has an entry for every two numbers of the stream."""
        if run.model.d_model <= WIDEST_STREAM:
            return []
        return [
            f"model.d_model={run.model.d_model}: probe=residual_paths takes the derivative of every number of the "
            f"stream by every other; at most {WIDEST_STREAM}."
        ]


@dataclass(frozen=True, kw_only=True)
class T5Buckets(Probe):
    """Nothing of its own to set."""

    def errors(self, run: Run) -> list[str]:
        """A bias of more distances than a table can list."""
        if not isinstance(run.posenc, T5) or run.posenc.max_distance <= FARTHEST:
            return []
        return [
            f"posenc.max_distance={run.posenc.max_distance}: probe=t5_buckets lists every distance; "
            f"at most {FARTHEST:,}."
        ]


@dataclass(frozen=True, kw_only=True)
class Sparsity(Probe):
    """The runs of the table `sweep`, on the first `n_docs` validation documents."""

    sweep: str = "ffn"
    n_docs: int = bounded(200, at_least=1)

    def require(self, request: Request) -> None:
        """The table, with all its runs."""
        finished.of_table(request.session.outputs, self.sweep)


OPTIONS: dict[str, type[Probe]] = {
    "kv_cache": KVCache,
    "grad_norms": GradNorms,
    "position_shift": PositionShift,
    "mla": MLA,
    "residual_paths": ResidualPaths,
    "t5_buckets": T5Buckets,
    "sparsity": Sparsity,
}
"""Probes with options of their own; their schemas are stored as schema/probe/NAME."""

# A class of its own, so that no run's identity depends on probes.
ProbeSettings: Any = make_dataclass(
    "ProbeSettings", [("probe", schema_of(Probe), field(default=MISSING))], bases=(Settings,)
)
"""The tree that Hydra composes for a probe: that of a run, and the probe."""


class Ask(Protocol):
    """A probe: what the command line asks for as a run, and the probe's own options -> a tidy table."""

    def __call__(self, request: Request, options: Any) -> "pd.DataFrame": ...


PROBES: Family[Ask] = Family("probe")


def resolved(settings: Any, find_source: FindSource) -> tuple[Request, Probe]:
    """What a composed config of a probe comes to. Raises UserError with every error, one a line."""
    request, name = resolve(settings, find_source), settings.probe.name
    options = OPTIONS.get(name, Probe)
    if name not in PROBES.names():
        raise UserError(f"probe.name={name}: there is no such probe." + nearest(name, PROBES.names()))
    if lacks := [f.name for f in fields(options) if not hasattr(settings.probe, f.name)]:
        raise UserError(f"probe.name={name}: it has settings of its own ({', '.join(lacks)}); write probe={name}.")
    probe = fill(options, settings.probe, request.run)
    if bad := probe.errors(request.run):
        raise UserError("\n".join(bad))
    return request, probe
