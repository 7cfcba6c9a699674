"""What there is to run, in order: a later item may read what an earlier one trained."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lecture04.lecture.claims import Claim


class Kind(StrEnum):
    """How an item is run."""

    probe = "probe"
    sweep = "sweep"
    test = "test"


@dataclass(frozen=True)
class Item:
    """One command. `overrides` are a probe's; `needs` are the items whose runs it reads.

    A test has a `path`, and `reads` other files of the project's.
    """

    kind: Kind
    name: str
    overrides: tuple[str, ...] = ()
    needs: tuple["Item", ...] = ()
    path: str = ""
    reads: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """What claims.yaml calls it."""
        return f"{self.kind}:{self.name}"

    @property
    def folder(self) -> Path:
        """Where its result lies, from the folder that the command is run in."""
        return Path("outputs", {Kind.sweep: "sweeps", Kind.probe: "probes", Kind.test: "tests"}[self.kind], self.name)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command, without python; as README says it."""
        if self.kind is Kind.sweep:
            return "train.py", "-m", f"sweeps={self.name}"
        if self.kind is Kind.test:
            return "-m", "pytest", "-q", "-n0", self.path
        return "probe.py", *self.overrides


def probe(name: str, *overrides: str, folder: str = "", needs: tuple[Item, ...] = ()) -> Item:
    """A probe; one that is asked twice has a folder of its own."""
    own = (f"hydra.run.dir=outputs/probes/{folder}",) if folder else ()
    return Item(Kind.probe, folder or name, (f"probe={name}", *overrides, *own), needs)


def sweep(name: str) -> Item:
    """A comparison table."""
    return Item(Kind.sweep, name)


FFN, NORM, HIGH_LR = sweep("ffn"), sweep("norm"), sweep("relu_high_lr")

ITEMS: tuple[Item, ...] = (
    *map(probe, ("activations", "ffn_params", "norm_invariance", "residual_paths", "grad_norms")),
    *map(probe, ("kv_cache", "mla", "order_blind", "t5_buckets", "alibi", "rope", "position_shift", "models")),
    probe("unigram"),
    sweep("recipe"),
    FFN,
    probe("sparsity", "probe.sweep=ffn", needs=(FFN,)),
    NORM,
    probe("world", needs=(NORM,)),
    # With the parameters of a trained standard model.
    Item(
        Kind.test,
        "textbook",
        needs=(NORM,),
        path="tests/lecture/test_textbook.py",
        reads=("tests/nn/test_textbook.py",),
    ),
    HIGH_LR,
    probe("sparsity", "probe.sweep=relu_high_lr", folder="sparsity_high_lr", needs=(HIGH_LR,)),
    *map(sweep, ("nope_by_document", "warmup", "uptrain_direct", "uptrain", "extrapolation", "stability")),
)


def chosen(claims: Iterable[Claim], items: Iterable[Item] = ITEMS) -> list[Item]:
    """The items that these claims are judged by, with those that they read, in order."""
    wanted = {source for claim in claims for source in claim.sources}
    named = [item for item in items if item.source in wanted]
    needed = {item.source for item in with_needs(named)}
    return [item for item in items if item.source in needed]


def with_needs(items: Iterable[Item]) -> Iterator[Item]:
    """The items and what they read."""
    for item in items:
        yield from with_needs(item.needs)
        yield item
