"""The manifest of a table, sweep.json: what was compared, and where each row's runs lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lecture04.config.messages import UserError
from lecture04.config.overrides import command_line
from lecture04.records.metrics import canonical

if TYPE_CHECKING:
    from lecture04.stats import Design


@dataclass(frozen=True)
class ManifestRow:
    """One row of a table.

    evaluation  the key of its runs' evaluation
    mismatch    by which share its parameters differ from the matched number
    runs        {seed: the name of the run's folder}, in the order of the seeds
    other_code  seeds whose run is of other code (runs.reuse=config)
    overrides   what was typed for it
    slice       a grid's slice; None in other designs
    tokens      what tells its tokens from another row's; "" where all rows have the same
    """

    evaluation: str
    mismatch: float
    runs: Mapping[int, str]
    other_code: tuple[int, ...]
    overrides: tuple[str, ...] = ()
    slice: str | None = None
    tokens: str = ""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ManifestRow:
        """A row as it stands in the file, which has all of its keys."""
        return cls(
            evaluation=content["evaluation"],
            mismatch=content["mismatch"],
            runs={int(seed): folder for seed, folder in content["runs"].items()},
            other_code=tuple(content["other_code"]),
            overrides=tuple(content.get("overrides", ())),
            slice=content.get("slice"),
            tokens=content.get("tokens", ""),
        )


@dataclass(frozen=True)
class Manifest:
    """What the report needs to know of a table.

    name         the name of its folder
    primary      the metric that carries the verdicts
    columns      metrics, and columns that were declared, that the table shows beside it
    delta        the declared equivalence margin, on the judged scale
    looks        how often the seeds are judged in all, as declared
    command      what makes the table again
    environment  the versions that its runs were made with; None where that was not kept
    parts        files and modules from outside that its runs, metrics and columns need
    earlier      the seeds of each look before this one, where seeds were added later (report --all-seeds)
    """

    name: str
    title: str
    design: Design
    primary: str
    columns: tuple[str, ...]
    delta: float | None
    looks: int
    command: str
    rows: Mapping[str, ManifestRow] = field(repr=False)
    environment: Mapping[str, str] | None = None
    parts: tuple[str, ...] = ()
    earlier: tuple[tuple[int, ...], ...] = ()

    @property
    def all_looks(self) -> int:
        """How often the seeds are judged in all: as declared, or more where more looks were taken."""
        return max(self.looks, len(self.earlier) + 1)

    def looks_said(self) -> str:
        """What the looks at a table whose seeds were added to mean for the level, in words."""
        n = len({seed for row in self.rows.values() for seed in row.runs})
        look, first, level = len(self.earlier) + 1, self.earlier[0], f"{5 / self.all_looks:.3g} %"
        declared = f"{len(first)} {_were(len(first))} declared ({', '.join(map(str, first))})"
        if look <= self.looks:
            how = f"of {self.looks} that were declared (sweep.looks), each judged at {level}"
        else:
            how = f"at them, and {self.looks} {_were(self.looks)} declared, so it is judged at {level}"
            how += f" and not at {5 / self.looks:.3g} %"
        return f"judged with {n} seeds, {declared}: this is look {look} {how}"

    @property
    def seeds(self) -> list[int]:
        """Every seed that a row asks for."""
        return sorted({seed for row in self.rows.values() for seed in row.runs})

    @classmethod
    def from_json(cls, content: Mapping[str, Any], *, file: object, name: str) -> Manifest:
        """A manifest as it stands in a file, metrics by their names of today.

        Raises UserError, which names the file, what it does not say, and the command that writes it again.
        """
        if lacks := _lacking(content):
            command = content.get("command", command_line("train.py", ["-m", f"sweeps={name}"]))
            raise UserError(f"{file}: says nothing of {', '.join(lacks)}; `{command}` writes it again.")
        return cls(
            name=content["name"],
            title=content["title"],
            design=content["design"],
            primary=canonical(content["primary"]),
            columns=tuple(map(canonical, content["columns"])),
            delta=content["delta"],
            looks=content["looks"],
            command=content["command"],
            rows={row: ManifestRow.from_json(about) for row, about in content["rows"].items()},
            environment=content.get("environment"),
            parts=tuple(content.get("parts", ())),
            earlier=tuple(map(tuple, content.get("earlier", ()))),
        )

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads back; what is not there is left out."""
        content = {key: value for key, value in asdict(self).items() if (key, value) not in _EMPTY}
        for about in content["rows"].values():
            about["runs"] = {str(seed): folder for seed, folder in about["runs"].items()}
            for name, nothing in (("slice", None), ("tokens", "")):
                if about[name] == nothing:
                    del about[name]
        return content


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


OPTIONAL = ("earlier", "environment", "overrides", "parts", "slice", "tokens")
_EMPTY = (("earlier", ()), ("environment", None), ("parts", ()))


def _lacking(content: Mapping[str, Any]) -> list[str]:
    """The keys that a manifest and its rows must have and do not."""
    of_row = [f.name for f in fields(ManifestRow) if f.name not in OPTIONAL]
    if content.get("design") == "grid":
        of_row.append("slice")
    own = [f.name for f in fields(Manifest) if f.name not in OPTIONAL and f.name not in content]
    rows = content.get("rows")
    if not isinstance(rows, Mapping) or not all(isinstance(about, Mapping) for about in rows.values()):
        return list(dict.fromkeys([*own, "rows"]))
    of_rows = [key for about in rows.values() for key in of_row if key not in about]
    if not all(isinstance(about.get("runs", {}), Mapping) for about in rows.values()):
        of_rows.append("runs")
    return own + list(dict.fromkeys(of_rows))
