"""Where a training stands, on disk: from there it goes on as if it had never been stopped.

    resume-000001200.safetensors    behind step 1200: parameters, the optimiser's state, losses, random state

The header says of which run it is, how much of metrics.jsonl belongs to it, and a checksum of all tensors. The last two
are kept: one that turns out to be torn leaves the one before.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lecture04 import interrupts
from lecture04.files import rename_unreadable, whole
from lecture04.nn.model import LanguageModel
from lecture04.records.lease import check
from lecture04.records.record import Record
from lecture04.training.loop import Standing

log = logging.getLogger(__name__)

KEPT = 2
BY_THE_CLOCK = 60.0
"""Seconds between two, where no number of steps is set."""


class Keeper:
    """Writes down where a training stands: each `every` steps, by the clock where that is None, and when asked to end.

    `wall` are the seconds that earlier tries of the run took.
    """

    def __init__(self, record: Record, own: str, every: int | None, wall: float = 0.0) -> None:
        self.record, self.own, self.every = record, own, every
        self.began, self.saved = time.monotonic() - wall, time.monotonic()

    @property
    def wall(self) -> float:
        """Seconds that the run took so far, all tries together."""
        return time.monotonic() - self.began

    def __call__(self, at: Standing, model: LanguageModel, optimiser: torch.optim.Optimizer) -> None:
        """Behind a step. Raises `interrupts.Stopped` where a signal is held, once all is written."""
        number = interrupts.asked()
        if number or self._is_due(at.step):
            save(self.record, self.own, self.wall, at, model, optimiser)
            self.saved = time.monotonic()
        if number:
            raise interrupts.Stopped(number)

    def _is_due(self, step: int) -> bool:
        if self.every is not None:
            return step % self.every == 0
        return time.monotonic() - self.saved >= BY_THE_CLOCK


@dataclass(frozen=True)
class Kept:
    """What a file holds: where the run stood, its parameters, and the seconds that it had taken."""

    at: Standing
    parameters: dict[str, torch.Tensor]
    random: torch.Tensor
    wall: float
    curve: dict[str, Any]


def save(
    record: Record, own: str, wall: float, at: Standing, model: LanguageModel, optimiser: torch.optim.Optimizer
) -> None:
    """Write down where a run stands, and take away all but the last KEPT files."""
    check(record.folder)
    state = optimiser.state_dict()
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    numbers: dict[str, dict[str, Any]] = {}
    for i, values in state["state"].items():
        tensors |= {f"optim.{i}.{name}": value for name, value in values.items() if isinstance(value, torch.Tensor)}
        numbers[str(i)] = {name: value for name, value in values.items() if not isinstance(value, torch.Tensor)}
    tensors |= {
        "losses": torch.tensor(at.losses, dtype=torch.float64),
        "unlogged": torch.stack(at.unlogged) if at.unlogged else torch.empty(0),
        "unchecked": torch.stack(at.unchecked) if at.unchecked else torch.empty(0),
        "random": torch.get_rng_state(),
    }
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    header = {
        "run": own,
        "sha256": _digest(tensors),
        "curve": record.curve(),
        "wall": wall,
        "at": {"step": at.step, "tokens": at.tokens, "seconds": at.seconds, "row": at.row},
        "optim": {"numbers": numbers, "groups": state["param_groups"]},
    }
    with whole(record.folder / f"resume-{at.step:09d}.safetensors") as part:
        save_file(tensors, part, {"standing": json.dumps(header)})
    for old in files(record.folder)[:-KEPT]:
        old.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The files of a run, the oldest first."""
    return sorted(folder.glob("resume-*.safetensors"))


def latest(record: Record, own: str) -> Kept | None:
    """The last place that a run can go on from, metrics.jsonl cut to it; None where there is none.

    A file that is torn, or another run's, is renamed and said.
    """
    for path in reversed(files(record.folder)):
        try:
            kept = _load(path, own)
            record.cut_curve(kept.curve)
        except (SafetensorError, ValueError, KeyError, TypeError) as e:
            rename_unreadable(path, e)
        else:
            return kept
    return None


def clear(folder: Path) -> None:
    """Take the files away: the run has ended."""
    for path in files(folder):
        path.unlink(missing_ok=True)


def _load(path: Path, own: str) -> Kept:
    with safe_open(path, "pt") as file:
        header = json.loads((file.metadata() or {}).get("standing", "null"))
        names: list[str] = list(file.keys())
        tensors = {name: file.get_tensor(name) for name in names}
    if not isinstance(header, dict) or header["run"] != own:
        raise ValueError("it is another run's")
    if header["sha256"] != _digest(tensors):
        raise ValueError("its checksum is another")
    state: dict[int, dict[str, Any]] = {int(i): dict(numbers) for i, numbers in header["optim"]["numbers"].items()}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optim":
            i, _, quantity = rest.partition(".")
            state[int(i)][quantity] = value
    at = Standing(
        **header["at"],
        losses=tensors["losses"].tolist(),
        unlogged=list(tensors["unlogged"]),
        unchecked=list(tensors["unchecked"]),
        optimiser={"state": state, "param_groups": header["optim"]["groups"]},
    )
    parameters = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    return Kept(at, parameters, tensors["random"], float(header["wall"]), dict(header["curve"]))


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    return digest.hexdigest()
