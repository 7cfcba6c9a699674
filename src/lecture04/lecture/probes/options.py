"""A probe's config: all settings of a run, and the probe's own options. No torch is imported here."""

# No `from __future__ import annotations`: omegaconf reads these annotations as types.
from dataclasses import dataclass
from enum import Enum
from typing import Any

from omegaconf import MISSING

from lecture04 import config
from lecture04.config import bounded
from lecture04.lecture.probes import finished


class DType(Enum):
    """Number formats."""

    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"
    fp8 = "fp8"


BYTES = {DType.fp32: 4, DType.bf16: 2, DType.fp16: 2, DType.fp8: 1}


@dataclass
class Probe:
    """The question."""

    name: str = MISSING

    def errors(self, cfg: config.Root) -> list[str]:
        """One sentence for each error that the bounds of single fields cannot find."""
        return []

    def require(self, cfg: config.Root) -> None:
        """Raise UserError, with the command that makes it, where something that the probe reads is missing."""


@dataclass
class KVCache(Probe):
    """The cache of `batch` sequences of `n_ctx` tokens is counted; `n_tokens` are decoded through our own cache."""

    n_ctx: int = bounded(32768, at_least=1)
    batch: int = bounded(1, at_least=1)
    dtype: DType = DType.bf16
    n_tokens: int = bounded(48, at_least=1)


@dataclass
class GradNorms(Probe):
    """`depths: null` means 2, 6, 12 and 24 layers, or model.n_layers alone where that is not the standard 2."""

    depths: list[int] | None = None
    n_seeds: int = bounded(5, at_least=2)

    def errors(self, cfg: config.Root) -> list[str]:
        """Depths that no model has."""
        if self.depths is None or (self.depths and min(self.depths) >= 1):
            return []
        return [f"probe.depths={self.depths}: numbers of layers, each at least 1."]


@dataclass
class PositionShift(Probe):
    """`n_tokens` positions are moved by `shift`."""

    shift: int = bounded(17, at_least=1)
    n_tokens: int = bounded(24, at_least=2)


@dataclass
class MLA(Probe):
    """Nothing of its own to set."""

    def errors(self, cfg: config.Root) -> list[str]:
        """A head that cannot be rotated."""
        model = cfg.model
        if model.d_head % 2 == 0:
            return []
        return [
            f"model.n_heads={model.n_heads}: probe=mla rotates pairs and needs an even d_head, "
            f"but model.d_model / model.n_heads is {model.d_head}."
        ]


@dataclass
class Sparsity(Probe):
    """The runs of the table `sweep`, on the first `n_docs` validation documents."""

    sweep: str = "ffn"
    n_docs: int = bounded(200, at_least=1)

    def require(self, cfg: config.Root) -> None:
        """The table, with all its runs."""
        finished.of_table(cfg, self.sweep)


@dataclass
class ProbeRoot(config.Root):
    """Everything that can be set for a probe. A class of its own, so that no run's identity depends on probes."""

    probe: Probe = MISSING


# Probes with options of their own: name -> dataclass, stored as schema/probe/NAME.
SCHEMAS: dict[str, Any] = {
    "kv_cache": KVCache,
    "grad_norms": GradNorms,
    "position_shift": PositionShift,
    "mla": MLA,
    "sparsity": Sparsity,
}
