"""The store of runs: what is there, and what no table shows. No torch is imported."""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lecture04.config.errors import UserError, nearest
from lecture04.records.record import Record, Status


@dataclass(frozen=True)
class Kept:
    """A run of the store, and the tables that show it."""

    record: Record
    tables: tuple[str, ...]

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.record.folder.name

    @property
    def n_bytes(self) -> int:
        """What it takes on the disk."""
        return sum(path.stat().st_size for path in self.record.folder.rglob("*") if path.is_file())


def store(outputs: Path) -> list[Kept]:
    """Every run under OUTPUTS/runs, by name."""
    shown_by: dict[str, list[str]] = {}
    for name, runs in _tables(outputs):
        for run in runs:
            shown_by.setdefault(run, []).append(name)
    folders = sorted(path for path in (outputs / "runs").glob("*") if path.is_dir() and not path.name.startswith("."))
    return [Kept(Record(folder), tuple(dict.fromkeys(shown_by.get(folder.name, ())))) for folder in folders]


def _tables(outputs: Path) -> Iterator[tuple[str, set[str]]]:
    """(name, the folders of its runs) of every table; one that cannot be read holds nothing back."""
    for path in sorted((outputs / "sweeps").glob("*/sweep.json")):
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"].values()
            yield path.parent.name, {run for about in rows for run in about["runs"].values()}
        except (ValueError, KeyError, AttributeError, TypeError, OSError):
            continue


def find_run(outputs: Path, text: str) -> Path:
    """The folder of a run that is named by its path, its name, or a part of its name that no other has.

    Raises UserError where there is none, or more than one.
    """
    if (Path(text) / "config.yaml").exists():
        return Path(text)
    names = [kept.name for kept in store(outputs)]
    found = [name for name in names if text.rstrip("/").rpartition("/")[2] in name]
    if text in names or len(found) == 1:
        return outputs / "runs" / (text if text in names else found[0])
    if not found:
        raise UserError(f"{text}: no run of {outputs / 'runs'} has this in its name." + nearest(text, names[:20]))
    shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
    raise UserError(f"{text}: {len(found)} runs have this in their names: {shown}.")


def prunable(kept: Iterable[Kept], *, all_unused: bool) -> list[Kept]:
    """The runs that no table shows and that are no results; with `all_unused` results too."""
    return [one for one in kept if not one.tables and (all_unused or one.record.status() in _NO_RESULT)]


_NO_RESULT = (Status.failed, Status.missing)


def remove(kept: Kept) -> bool:
    """Delete a run, unless another process holds its lock. Returns whether it is gone."""
    with kept.record.lock_now() as is_ours:
        if is_ours:
            shutil.rmtree(kept.record.folder)
    return is_ours
