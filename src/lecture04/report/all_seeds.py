"""A table with every seed that is there: `lecture04 report --all-seeds NAME`.

For results that were brought together from several machines: each table's manifest names the seeds of its own machine
alone. A finished or diverged run is one more seed of a row where its config is that of the row's own runs but for the
seed, its code and versions are theirs, and it has the table's evaluation. What fits but for the last two is named and
left out.

The seeds that the manifest named have been looked at, so a table with more is a look more. It is kept in the manifest
(`earlier`), and counts in the level at which differences are judged.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from lecture04.records.identity import COMPUTING
from lecture04.records.record import Record
from lecture04.records.replicates import Replicate, replicate
from lecture04.records.store import runs_in
from lecture04.report.manifest import Manifest, ManifestRow
from lecture04.report.results import read_manifest


@dataclass
class Found:
    """What was found for the rows of a table: {row: names by seed} of what is added, runs' names of what is not."""

    added: dict[str, dict[int, str]] = field(default_factory=dict[str, dict[int, str]])
    other_code: dict[str, str] = field(default_factory=dict[str, str])  # the run: one of the row that it does not fit
    not_evaluated: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])  # rows none of whose own runs is there


def with_all_seeds(folder: Path) -> tuple[Manifest, list[str]]:
    """The manifest of the table in a folder with every seed that is there, and what was done, a sentence each.

    Raises UserError as `collect`.
    """
    before, outputs = read_manifest(folder), folder.parent.parent
    there: dict[str, list[Replicate]] = {}
    for record in runs_in(outputs):
        if found := replicate(record):
            there.setdefault(found.config, []).append(found)
    found = Found()
    for name, row in before.rows.items():
        _search(name, row, outputs / "runs", there, found)
    after = _widened(before, found.added)
    return after, list(_sentences(before, after, found, outputs))


def _search(name: str, row: ManifestRow, runs: Path, there: dict[str, list[Replicate]], found: Found) -> None:
    """Look for the seeds of one row."""
    own = {seed: own for seed, run in row.runs.items() if (own := replicate(Record(runs / run)))}
    if not own:
        found.unknown.append(name)
        return
    exact = [one for seed, one in own.items() if seed not in row.other_code] or list(own.values())
    codes, configs = {one.code for one in exact}, {one.config for one in exact}
    added = found.added.setdefault(name, {})
    for one in (one for config in configs for one in there.get(config, ())):
        folder = one.record.folder.name
        is_taken = one.seed in row.runs and Record(runs / row.runs[one.seed]).is_complete(row.evaluation)
        if is_taken or folder in row.runs.values() or not one.record.status().is_result:
            continue
        if one.code not in codes:
            found.other_code.setdefault(folder, exact[0].record.folder.name)
        elif not one.record.is_complete(row.evaluation):
            found.not_evaluated.append(folder)
        else:
            added.setdefault(one.seed, folder)


def _widened(before: Manifest, added: dict[str, dict[int, str]]) -> Manifest:
    if not any(added.values()):
        return before
    rows = {
        name: replace(row, runs=dict(sorted({**row.runs, **added.get(name, {})}.items())))
        for name, row in before.rows.items()
    }
    kept = {name: version for name, version in (before.environment or {}).items() if name in COMPUTING}
    wider = replace(before, rows=rows, environment=kept or None, earlier=(*before.earlier, tuple(before.seeds)))
    return replace(wider, command=_command(before.command, wider.seeds))


def _command(command: str, seeds: list[int]) -> str:
    """The command that makes the table, with all of its seeds."""
    words = [word for word in shlex.split(command) if not word.startswith("seed=")]
    return shlex.join([*words, f"seed={_listed(seeds, ',')}"])


def _sentences(before: Manifest, after: Manifest, found: Found, outputs: Path) -> Iterator[str]:
    runs = outputs / "runs"
    if after is before:
        yield f"{before.name}: {runs} holds no seed beyond those of the table, {_listed(before.seeds)}."
    else:
        rows = {name: seeds for name, seeds in found.added.items() if seeds}
        alike = len(rows) == len(before.rows) and len({tuple(sorted(seeds)) for seeds in rows.values()}) == 1
        which = (
            f"{_seeds(sorted(next(iter(rows.values()))))} in every row"
            if alike
            else "; ".join(f"{_seeds(sorted(seeds))} of {name}" for name, seeds in rows.items())
        )
        yield f"{before.name}: added from {runs}: {which}."
        yield f"{after.looks_said()[0].upper()}{after.looks_said()[1:]}."
    where = [] if outputs == Path("outputs") else ["--outputs", str(outputs)]
    if found.other_code:
        run, own = next(iter(found.other_code.items()))
        explain = shlex.join(["lecture04", "runs", "explain", own, run, *where])
        yield (
            f"Left out as other code, or other versions of {' and '.join(COMPUTING)}, made them: "
            f"{', '.join(found.other_code)}. Why: {explain}"
        )
    if found.not_evaluated:
        seeds = sorted({one.seed for run in found.not_evaluated if (one := replicate(Record(runs / run)))})
        command = _command(after.command, sorted({*after.seeds, *seeds}))
        yield (
            f"Left out as they lack this table's evaluation: {', '.join(dict.fromkeys(found.not_evaluated))}. "
            f"To make it: {command}"
        )
    if found.unknown:
        yield f"None of its own runs is there, so that no seed could be added: {', '.join(found.unknown)}."


def _seeds(seeds: list[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {_listed(seeds)}"


def _listed(seeds: list[int], between: str = ", ") -> str:
    return between.join(map(str, seeds))
