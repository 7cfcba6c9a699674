"""The store of runs: what is there, and what no table shows. No torch is imported.

Files and folders that are no runs and no tables may lie among them: they are never listed, read or deleted.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lecture04.config.errors import UserError, nearest
from lecture04.records.lease import lease
from lecture04.records.record import IDENTITY, Record, Status


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
        """What it takes on the disk; a link takes nothing."""
        if self.record.folder.is_symlink():
            return 0
        return sum(path.stat().st_size for path in self.record.folder.rglob("*") if path.is_file())


def store(outputs: Path) -> list[Kept]:
    """Every run under OUTPUTS/runs, by name."""
    shown_by: dict[str, list[str]] = {}
    for name, runs in _tables(outputs):
        for run in runs:
            shown_by.setdefault(run, []).append(name)
    names = (record.folder.name for record in runs_in(outputs))
    return [Kept(Record(outputs / "runs" / name), tuple(dict.fromkeys(shown_by.get(name, ())))) for name in names]


def runs_in(outputs: Path) -> list[Record]:
    """Every run under OUTPUTS/runs, by name: a folder whose name ends in an identity, or that holds identity.json."""
    folders = sorted(path for path in (outputs / "runs").glob("*") if not path.name.startswith(".") and path.is_dir())
    return [Record(path) for path in folders if IDENTITY.fullmatch(path.name) or (path / "identity.json").is_file()]


def tables_in(sweeps: Path) -> list[Path]:
    """The folder of every table under OUTPUTS/sweeps, by name: one that holds a sweep.json."""
    files = (path for path in sweeps.glob("*/sweep.json") if path.is_file())
    return sorted(path.parent for path in files if not path.parent.name.startswith("."))


def _tables(outputs: Path) -> Iterator[tuple[str, set[str]]]:
    """(name, the folders of its runs) of every table; one that cannot be read holds nothing back."""
    for folder in tables_in(outputs / "sweeps"):
        try:
            rows = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))["rows"].values()
            yield folder.name, {run for about in rows for run in about["runs"].values()}
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


def outputs_of(run_folder: Path, otherwise: Path = Path("outputs")) -> Path:
    """Where the results lie that a run is one of: OUTPUTS for OUTPUTS/runs/RUN, `otherwise` for a folder elsewhere."""
    runs = run_folder.resolve().parent
    return runs.parent if runs.name == "runs" else otherwise


def prunable(kept: Iterable[Kept], *, all_unused: bool) -> list[Kept]:
    """The runs that no table shows and that are no results; with `all_unused` results too."""
    return [one for one in kept if not one.tables and (all_unused or one.record.status() in _NO_RESULT)]


_NO_RESULT = (Status.failed, Status.missing)


def remove(kept: Kept) -> bool:
    """Delete a run, unless another process works on it. Returns whether it is gone.

    Of one that is linked from elsewhere the link is deleted; what it leads to stays.
    """
    with lease(kept.record.folder, wait=False) as is_ours:
        if is_ours and kept.record.folder.is_symlink():
            kept.record.folder.unlink()
        elif is_ours:
            shutil.rmtree(kept.record.folder)
    return is_ours
