"""The lecture's claims, as claims.yaml holds them."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    template: str
    sources: tuple[str, ...]
    exercise: int | None
    is_set: bool = False
    bounds: Mapping[str, Any] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        """What ours must show, with the numbers of `bounds` filled in. Raises KeyError for a name not among them."""
        return Numbers().vformat(self.template, (), self.bounds)


class Numbers(string.Formatter):
    """Formats numbers as text: `{x:.0e}` gives 1e-5 for 1e-05, and a list gives its numbers with commas."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """One field."""
        if isinstance(value, list):
            return ", ".join(self.format_field(x, format_spec) for x in value)
        text = re.sub(r"e([-+])0(\d)$", r"e\1\2", format(value, format_spec))
        return text.replace("%", " %")


def _claim(part: str, entry: Mapping[str, Any]) -> Claim:
    sources = entry["from"]
    return Claim(
        id=entry["id"],
        part=int(part),
        section=entry["section"],
        kind=Kind(entry["kind"]),
        what=entry["what"],
        lecture=str(entry["lecture"]),
        template=str(entry["expected"]),
        sources=(sources,) if isinstance(sources, str) else tuple(sources),
        exercise=entry.get("exercise"),
        is_set=entry.get("set", False),
        bounds=entry.get("bounds", {}),
    )


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the pages' order."""
    content = yaml.safe_load((HERE / "claims.yaml").read_text(encoding="utf-8"))
    return tuple(_claim(part, entry) for part, entries in content.items() for entry in entries)


def claim(id: str) -> Claim:
    """One claim. Raises StopIteration where there is none of this name."""
    return next(claim for claim in claims() if claim.id == id)
