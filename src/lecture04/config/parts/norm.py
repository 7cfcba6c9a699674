"""Options of normalisations, and of where in a block they stand."""

from dataclasses import dataclass
from typing import ClassVar

from lecture04.config.fields import Options, bounded
from lecture04.config.parts.context import Context


@dataclass(frozen=True, kw_only=True)
class Norm(Options):
    """The normalisation. `eps` is added to the variance or the mean square."""

    n_vectors: ClassVar[int] = 1

    name: str
    eps: float = bounded(1e-5, above=0)

    def errors(self, c: Context) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []

    def params(self, width: int) -> int:
        """Parameters of one norm of this width."""
        return self.n_vectors * width


@dataclass(frozen=True, kw_only=True)
class CentredNorm(Norm):
    """A norm with a gain and a bias."""

    n_vectors: ClassVar[int] = 2


@dataclass(frozen=True, kw_only=True)
class Placement(Options):
    """Where in a block the norms stand."""

    norms_per_sublayer: ClassVar[int] = 1
    has_final_norm: ClassVar[bool] = True

    name: str

    def errors(self, c: Context) -> list[str]:
        """What it cannot be combined with, a sentence each."""
        return []


@dataclass(frozen=True, kw_only=True)
class PostNorm(Placement):
    """Norms behind the residual sum: the last block ends with one."""

    has_final_norm: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class SandwichNorm(Placement):
    """A norm on both sides of each sublayer."""

    norms_per_sublayer: ClassVar[int] = 2
