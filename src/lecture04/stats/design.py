"""What a table compares: its design, and the families of contrasts that hold together (rule 3 of the protocol)."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from lecture04.stats.noise import NoisePool
from lecture04.stats.simultaneous import Block

Design = Literal["star", "path", "grid"]
FamilyName = Literal["star", "step", "total", "grid"]
Slices = Mapping[str, Hashable]
"""{row: the slice it lies in}, such as its learning rate."""


@dataclass(frozen=True)
class Tied:
    """Rows whose contrasts share rows: a star (the reference first) or a chain (each against the one before)."""

    kind: Literal["star", "chain"]
    rows: tuple[str, ...]

    def pairs(self) -> list[tuple[str, str]]:
        """The contrasts, as (row, reference)."""
        references = self.rows[:1] * (len(self.rows) - 1) if self.kind == "star" else self.rows[:-1]
        return list(zip(self.rows[1:], references, strict=True))

    def blocks(self, pool: NoisePool) -> list[Block]:
        """What can be compared, in seeds: rows without a mean leave a star and cut a chain in two."""
        runs: list[list[int]] = [[]]
        for row in self.rows:
            if not math.isnan(pool.mean[row]):
                runs[-1].append(pool.n[row])
            elif self.kind == "chain":
                runs.append([])
            elif row == self.rows[0]:
                return []
        return [Block(self.kind, tuple(run)) for run in runs if len(run) > 1]


def families(
    rows: tuple[str, ...], *, design: Design, baseline: str | None = None, slices: Slices | None = None
) -> dict[FamilyName, list[Tied]]:
    """What a table compares, family by family: from the design alone, whatever the values.

    Raises ValueError for an unknown design or baseline, for a baseline other than the first row of a path or any in a
    grid, and for slices that are missing, do not cover the rows, name others, or belong to no grid.
    """
    if design not in get_args(Design):
        raise ValueError(f"design: expected one of {', '.join(get_args(Design))}, got {design!r}")
    if baseline is not None and baseline not in rows:
        raise ValueError(f"baseline: {baseline!r} is not a row; the rows are {', '.join(rows) or 'none'}")
    if (slices is not None) != (design == "grid"):
        raise ValueError(f"slices: a grid needs {{row: slice}}, another design has none; got {design} and {slices!r}")
    if slices is not None:
        if baseline is not None:
            raise ValueError(f"baseline: each slice of a grid starts at its own first row, got {baseline!r}")
        if odd := sorted(set(rows) ^ set(slices)):
            raise ValueError(f"slices: expected one for every row and no other, differs at {', '.join(odd)}")
        of_slice: dict[Hashable, list[str]] = {}
        for row in rows:
            of_slice.setdefault(slices[row], []).append(row)
        return {"grid": [Tied("star", tuple(tied)) for tied in of_slice.values()]}
    if not rows:
        return {}
    if design == "path":
        if baseline is not None and baseline != rows[0]:
            raise ValueError(f"baseline: a path starts at its first row, {rows[0]!r}, got {baseline!r}")
        return {"step": [Tied("chain", rows)], "total": [Tied("star", rows)]}
    first = baseline if baseline is not None else rows[0]
    return {"star": [Tied("star", (first, *(row for row in rows if row != first)))]}
