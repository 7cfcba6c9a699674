"""The lecture's claims, as claims.yaml holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


class Kind(StrEnum):
    """What a claim is, and so how it is judged."""

    exact = "exact"
    measured = "measured"
    shape = "shape"


@dataclass(frozen=True)
class Claim:
    """One thing that the lecture says. The fields are explained at the head of claims.yaml."""

    id: str
    part: int
    section: str
    kind: Kind
    what: str
    lecture: str
    expected: str
    sources: tuple[str, ...]
    exercise: int | None


def _claim(part: str, entry: Mapping[str, Any]) -> Claim:
    sources = entry["from"]
    return Claim(
        id=entry["id"],
        part=int(part),
        section=entry["section"],
        kind=Kind(entry["kind"]),
        what=entry["what"],
        lecture=str(entry["lecture"]),
        expected=str(entry["expected"]),
        sources=(sources,) if isinstance(sources, str) else tuple(sources),
        exercise=entry.get("exercise"),
    )


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the notebook's order."""
    content = yaml.safe_load((HERE / "claims.yaml").read_text(encoding="utf-8"))
    return tuple(_claim(part, entry) for part, entries in content.items() for entry in entries)
