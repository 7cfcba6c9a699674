"""What there is to run, in order: a later item may read what an earlier one trained."""

from collections.abc import Iterable, Sequence
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
    """One command. `needs` are the items whose runs it reads.

    arguments  the command without python, as README says it; a probe's settings from the second on
    folder     where its result lies, from the folder that the command is run in
    files      of a test: what it is written in, the first of which is run
    target     of what is too long to be run with the rest: the target of the Makefile that runs it; where its result
               lies, it is read all the same
    """

    kind: Kind
    name: str
    arguments: tuple[str, ...]
    folder: Path
    needs: tuple["Item", ...] = ()
    files: tuple[str, ...] = ()
    target: str = ""

    @property
    def source(self) -> str:
        """What claims.yaml calls it."""
        return f"{self.kind}:{self.name}"


def probe(probe: str, *overrides: str, name: str = "", needs: tuple[Item, ...] = ()) -> Item:
    """A probe; one that is asked twice has a name of its own."""
    name = name or probe
    return Item(Kind.probe, name, ("probe.py", f"probe={probe}", *overrides), Path("outputs/probes", name), needs)


def sweep(name: str, *, target: str = "") -> Item:
    """A comparison table."""
    where = Path("outputs/sweeps", name)
    return Item(Kind.sweep, name, ("train.py", "-m", f"sweeps={name}"), where, target=target)


def check(name: str, *files: str, needs: tuple[Item, ...]) -> Item:
    """A test of the project's own."""
    return Item(Kind.test, name, ("-m", "pytest", "-q", "-n0", files[0]), Path("outputs/tests", name), needs, files)


FFN, NORM, HIGH_LR = sweep("ffn"), sweep("norm"), sweep("relu_high_lr")

ITEMS: tuple[Item, ...] = (
    *map(probe, ("activations", "ffn_params", "norm_invariance", "residual_paths", "grad_norms")),
    probe("grad_norms", "ffn=gelu", name="grad_norms_gelu"),
    *map(probe, ("kv_cache", "mla", "order_blind", "t5_buckets", "alibi", "rope", "position_shift", "models")),
    probe("unigram"),
    sweep("recipe"),
    FFN,
    probe("sparsity", "probe.sweep=ffn", needs=(FFN,)),
    NORM,
    probe("world", needs=(NORM,)),
    # With the parameters of a trained standard model.
    check("textbook", "tests/lecture/test_textbook.py", "tests/nn/test_textbook.py", needs=(NORM,)),
    HIGH_LR,
    probe("sparsity", "probe.sweep=relu_high_lr", name="sparsity_high_lr", needs=(HIGH_LR,)),
    *map(
        sweep,
        ("nope_by_document", "warmup", "uptrain_direct", "uptrain", "uptrain_rates", "extrapolation", "stability"),
    ),
    sweep("collapse", target="collapse-ablation"),
    sweep("worlds", target="worlds"),
)


def chosen(claims: Iterable[Claim], items: Sequence[Item] = ITEMS) -> list[Item]:
    """The items that these claims are judged by, with those that they read, in order; less those with a target."""
    wanted = {source for claim in claims for source in claim.sources}
    for item in reversed(items):
        if item.source in wanted:
            wanted |= {needed.source for needed in item.needs}
    return [item for item in items if item.source in wanted and not item.target]
