"""A run on disk: one folder, looked up by the run's identity. No torch is imported.

    config.yaml              the run's config, with nothing open
    identity.json            what the run's identity was made of, and the machine
    metrics.jsonl            the curves, a line each time something is measured; the truth, dashboards follow it
    checkpoint.safetensors   the parameters at the end
    summary.json             how the training ended; written last, whole, by rename
    evals/KEY.json           an evaluation of the checkpoint, each under a key of its own
    train.log                the log, with the traceback of a failure
    resume-STEP.safetensors  while it is trained: where it stood, to go on from there
    untracked.txt            why W&B has not got everything, where it has not

A run without a summary was interrupted. Training's own outcome is written before the evaluation starts, so that a
failing metric loses no training.
"""

import json
import logging
import math
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from lecture04.config import Evaluation, Reuse, Run, Session, UserError
from lecture04.files import not_a_folder, not_writable, rename_unreadable, whole, write_whole
from lecture04.records.config_file import written
from lecture04.records.identity import Identity, identity, recorded, run_name
from lecture04.records.lease import check, lease
from lecture04.records.metrics import canonical
from lecture04.records.stored import (
    SEAL,
    SETTLED,
    are_metrics,
    changed,
    checksum,
    evaluation_fault,
    finite,
    is_number,
    read_json,
    seals,
    summary_fault,
    write_sealed,
)
from lecture04.records.stored import Status as Status

log = logging.getLogger(__name__)

_KEY = re.compile("[0-9a-f]{10}")  # an evaluation's; other files may lie beside it


UNTRACKED, CHECKPOINT, CURVE = "untracked.txt", "checkpoint.safetensors", "metrics.jsonl"
IDENTITY = re.compile(r".*-([0-9a-f]{10}-[0-9a-f]{6})")
"""How the name of a run's folder ends."""


@dataclass(frozen=True)
class Record:
    """A run's folder, which need not be there yet."""

    folder: Path

    def summary(self) -> dict[str, Any]:
        """How the training ended; empty where it has not ended."""
        return read_json(self.folder / "summary.json", self._summary_fault) or {}

    def status(self) -> Status:
        """What the summary says; missing where there is none."""
        return Status(self.summary().get("status", Status.missing))

    def evaluation(self, key: str) -> dict[str, Any]:
        """The evaluation under a key: {"metrics": ...} or {"error": ...}; empty where it was not made."""
        return read_json(self.folder / "evals" / f"{key}.json", self._evaluation_fault) or {}

    def _summary_fault(self, content: dict[str, Any]) -> str:
        own = f"{content.get('config')}-{content.get('code')}"
        if why := summary_fault(content):
            return why
        if "config" in content and self._identity and self._identity != own:
            return f"it is the summary of another run, {own}"
        if name := changed(self.folder, content.get("files")):
            if name == CHECKPOINT:  # or it would be taken for the run's once the summary is set aside
                rename_unreadable(self.folder / name, "it is not the one that the run ended with")
            return f"{name} is not the file that it was written with; the run is made again"
        return ""

    def _evaluation_fault(self, content: dict[str, Any]) -> str:
        if why := evaluation_fault(content):
            return why
        of = content.get("run", self._identity)
        return "" if of == self._identity else f"it is the evaluation of another run, {of}"

    @property
    def _identity(self) -> str:
        """That in the folder's name; empty where the user chose the name."""
        found = IDENTITY.fullmatch(self.folder.name)
        return found[1] if found else ""

    def is_complete(self, key: str) -> bool:
        """Whether there is nothing to do: trained, and evaluated under this key."""
        return self.status().is_result and "metrics" in self.evaluation(key)

    def metrics(self, key: str) -> dict[str, float]:
        """Everything measured of a result, by today's names: training's and the evaluation's; NaN where not finite."""
        found = self.summary().get("metrics", {}) | self.evaluation(key).get("metrics", {})
        return {canonical(name): math.nan if value is None else value for name, value in found.items()}

    def latest_metrics(self) -> dict[str, float]:
        """As `metrics`, under the evaluation that was written last."""
        files = [
            path for path in (self.folder / "evals").glob("*.json") if _KEY.fullmatch(path.stem) and path.is_file()
        ]
        evaluations = sorted(files, key=lambda path: path.stat().st_mtime)
        return self.metrics(evaluations[-1].stem if evaluations else "")

    def error(self, key: str) -> str | None:
        """Why the run, or its evaluation, failed; None where it did not."""
        return self.summary().get("error") or self.evaluation(key).get("error")

    def has_begun(self) -> bool:
        """Whether a job has started on the run."""
        return (self.folder / "config.yaml").exists()

    def last_step(self) -> int:
        """The last step in metrics.jsonl; 0 before the first. A line that is being written does not count."""
        try:
            with open(self.folder / CURVE, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
                lines = file.read().split(b"\n")[:-1]
        except OSError:
            return 0
        try:
            step = json.loads(lines[-1])["step"] if lines else 0
        except (ValueError, KeyError, TypeError):
            return 0
        return int(step) if is_number(step) else 0

    def logged(self, name: str) -> dict[float, float]:
        """{step: value} of a quantity of metrics.jsonl; what is not finite, and a line that is torn, do not count."""
        return {row["step"]: row[name] for row in self.rows() if row.get(name) is not None}

    def not_writable(self) -> str:
        """Why nothing more can be written here; empty where it can."""
        return not_writable(self.folder) or not_writable(self.folder / "evals")

    def start(self, run: Run, evaluation: Evaluation, command: str) -> None:
        """Make the folder ready for a run, without what an earlier try left."""
        check(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._clear()
        text = f"# {command}\n" + yaml.safe_dump(written(run, evaluation), sort_keys=False)
        write_whole(self.folder / "config.yaml", text)
        write_whole(self.folder / "identity.json", json.dumps(recorded(run), indent=1) + "\n")

    def forget_failure(self, key: str) -> None:
        """Take away that a try failed, unless another process works on it; it goes on from where it stood."""
        if not self.error(key):
            return
        with lease(self.folder, wait=False) as is_ours:
            if is_ours and not self.status().is_result:
                (self.folder / "summary.json").unlink(missing_ok=True)
            elif is_ours and self.evaluation(key).get("error"):
                (self.folder / "evals" / f"{key}.json").unlink()

    def give_up(self, run: Run, key: str, error: str) -> None:
        """Write down that a run has no outcome, from outside of it, unless another process works on it."""
        with lease(self.folder, wait=False) as is_ours:
            if is_ours and self.status().is_result:
                self.write_evaluation(key, {"error": f"evaluation: {error}"})
            elif is_ours:
                self.finish(Status.failed, run, "", error=error)

    def _clear(self) -> None:
        names = ("config.yaml", "identity.json", CURVE, "summary.json", CHECKPOINT, UNTRACKED)
        for leftover in (*names, *(path.name for path in self.folder.glob("resume-*"))):
            (self.folder / leftover).unlink(missing_ok=True)

    def clear_torn(self) -> None:
        """Take away what processes that were killed had begun to write."""
        for part in (*self.folder.glob("*.part"), *self.folder.glob("evals/*.part")):
            part.unlink(missing_ok=True)

    def note_untracked(self, why: str) -> None:
        """Write down that the tracker has not got everything."""
        write_whole(self.folder / UNTRACKED, f"{why}\n")

    def untracked(self) -> str:
        """Why the tracker has not got everything; empty where it has."""
        path = self.folder / UNTRACKED
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""

    def append(self, row: dict[str, float]) -> None:
        """One more line of metrics.jsonl."""
        check(self.folder)
        with open(self.folder / CURVE, "a", encoding="utf-8") as file:
            file.write(json.dumps(finite(row)) + "\n")

    def curve(self) -> dict[str, Any]:
        """The seal of metrics.jsonl as it is; empty where nothing was measured yet."""
        return seals(self.folder, (CURVE,)).get(CURVE, {})

    def cut_curve(self, seal: dict[str, Any]) -> None:
        """Leave of metrics.jsonl what was there when it was sealed. Raises ValueError where that is not there."""
        path, lines = self.folder / CURVE, self._lines()
        n_bytes = seal.get("size", 0)
        if seal and not (path.is_file() and checksum(path, n_bytes) == seal.get(SEAL)):
            raise ValueError(f"{CURVE} does not begin as it did")
        if len(lines) > n_bytes:
            with whole(path) as part:
                part.write_bytes(lines[:n_bytes])

    def rows(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl; one that is torn, or says nonsense, does not count."""
        found = list[dict[str, float]]()
        for line in self._lines().splitlines():
            try:
                measured = json.loads(line)
            except ValueError:
                continue
            if isinstance(measured, dict) and are_metrics(measured) and is_number(measured.get("step")):
                found.append(measured)
        return found

    def _lines(self) -> bytes:
        path = self.folder / CURVE
        return path.read_bytes() if path.is_file() else b""

    def finish(self, status: Status, run: Run, command: str, **facts: Any) -> None:
        """Write the summary; the run has ended."""
        check(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        own = identity(run)
        head = {
            "status": status.value,
            "seed": run.seed,
            "config": own.config,
            "code": own.code,
            "command": command,
            "ended": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        files = seals(self.folder, (CHECKPOINT, CURVE))
        write_sealed(self.folder / "summary.json", head | facts | {"files": files})

    def ended(self) -> datetime | None:
        """When it ended; of a record that does not say so, when its summary was written. None where none is there."""
        if said := self.summary().get("ended"):
            return datetime.fromisoformat(said).astimezone().replace(tzinfo=None)
        try:
            return datetime.fromtimestamp((self.folder / "summary.json").stat().st_mtime)
        except OSError:
            return None

    def write_evaluation(self, key: str, content: dict[str, Any]) -> None:
        """Keep an evaluation, or why it failed."""
        check(self.folder)
        (self.folder / "evals").mkdir(exist_ok=True)
        of = {"run": self._identity} if self._identity else {}
        write_sealed(self.folder / "evals" / f"{key}.json", content | of)


def find(run: Run, session: Session, own: Identity | None = None) -> Record:
    """The record of a run: the folder with its identity (`own`, where it is known), whatever else its name says.

    With runs.reuse=config a finished run whose code differs stands for it, where there is none of the same code.
    """
    runs, own = Path(session.outputs) / "runs", own or identity(run)
    listing = _listing(runs)
    same = _folders(runs, listing.of(str(own)))
    if session.reuse is Reuse.config and not any(record.status().is_result for record in same):
        other = _folders(runs, listing.of(own.config))
        same = [record for record in other if record.status().is_result] or same
    return same[0] if same else Record(runs / run_name(run, own))


def refuse_unwritable(outputs: Path, records: Iterable[Record]) -> None:
    """For runs with something left to do: raises UserError where they, or the corpus, cannot be written."""
    found = (why for record in records if (why := record.not_writable()))
    if why := next(found, not_a_folder(outputs / "data")):
        raise UserError(
            f"paths.outputs={outputs}: {why}, and something is left to train or to evaluate; name another folder."
        )


def _folders(runs: Path, names: Iterable[str]) -> list[Record]:
    """By name; a file and a link that leads nowhere are no runs, whatever they are called."""
    return [Record(runs / name) for name in names if (runs / name).is_dir()]


class _Listing:
    """The names in a folder of runs, by the identity that they end in, and by its first part, the config."""

    def __init__(self, runs: Path) -> None:
        self.names = dict[str, list[str]]()
        with suppress(OSError):  # what is wrong with a folder is said where it is asked for as one
            for name in sorted(os.listdir(runs)):
                _, *own = name.rsplit("-", 2)
                if len(own) == 2:
                    for key in (own[0], "-".join(own)):
                        self.names.setdefault(key, []).append(name)

    def of(self, key: str) -> list[str]:
        """The names with an identity, or with a config."""
        return self.names.get(key, [])


_listings: dict[Path, tuple[int, _Listing]] = {}


def _listing(runs: Path) -> _Listing:
    """Of a folder as it is; read again only where it has changed, since a table asks for each of its runs."""
    try:
        changed = runs.stat().st_mtime_ns
    except OSError:
        return _Listing(runs)
    known = _listings.get(runs)
    if known and known[0] == changed:
        return known[1]
    listing = _Listing(runs)
    if time.time_ns() - changed > SETTLED:
        _listings[runs] = changed, listing
    return listing


def is_other_code(record: Record, run: Run) -> bool:
    """Whether a record stands for a run although its code differs (runs.reuse=config)."""
    own = identity(run)
    return not record.folder.name.endswith(str(own)) and record.summary().get("code") != own.code
