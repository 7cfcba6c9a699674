"""A finished table in Weights & Biases: one run of job_type=table, with its answer, verdicts, figures and page.

Sent from a process of its own, so that the parent of a sweep imports no wandb, and a W&B that hangs can be left behind.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lecture04.config import Logger, WandB

if TYPE_CHECKING:
    from lecture04.report.comparison import Judged

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that a sweep waits at its end for its figures and page to be made and its table to be sent."""


def send(folder: Path, logger: Logger, *, mode: str) -> bool:
    """Send the table in a folder, where the sweep logs to W&B; `mode` is what `ModeProbe` found out. Never raises.

    Returns whether W&B has it. What goes wrong is said in a line of the log, with the command that sends it later.
    """
    if not isinstance(logger, WandB) or mode == "disabled":
        return False
    command = [sys.executable, "-m", "lecture04.cli.main", *_words(folder), "--project", logger.project]
    with tempfile.TemporaryFile("w+") as said:
        try:
            # A session of its own: an interrupt ends the sweep, and what W&B has started is ended with its parent.
            process = subprocess.Popen(
                [*command, "--mode", mode], stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        except OSError as e:
            return _failed(folder, str(e))
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return _failed(folder, f"not done in {PATIENCE:g} s, left behind")
        finally:
            _end(process)
        said.seek(0)
        return code == 0 or _failed(folder, (said.read().strip().splitlines() or ["no word why"])[-1])


def _words(folder: Path) -> list[str]:
    """The words behind `lecture04` that send the table in a folder OUTPUTS/sweeps/NAME."""
    return ["report", "--wandb", folder.name, "--outputs", str(folder.parents[1])]


def _failed(folder: Path, why: str) -> bool:
    again = shlex.join(["lecture04", *_words(folder)])
    log.warning("W&B: the table was not sent: %s. Everything lies in %s; to send it: %s", why, folder, again)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a process and of those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no such call on Windows; or nothing is left
        if process.poll() is None:
            process.kill()
    process.wait()


def log_table(folder: Path, *, project: str, mode: str) -> None:
    """Make the figures and the page of the table in a folder and log all as one run; raises whatever W&B raises."""
    there = Path(os.environ.get("WANDB_DIR", folder.parents[1])).absolute()
    # Tables and images wait here to be sent; left alone, W&B would put them into the user's home.
    os.environ.setdefault("WANDB_DATA_DIR", str(there / "wandb"))
    import wandb

    from lecture04.records.tracker import quiet_settings
    from lecture04.report import figures as drawn
    from lecture04.report import html
    from lecture04.report.answer import answer
    from lecture04.report.comparison import judge_all
    from lecture04.report.contrasts import contrasts
    from lecture04.report.results import collect

    results = collect(folder)
    judged = judge_all(results)
    figures = drawn.write(folder, ("png",))
    html.write(folder)
    said = answer(results, judged[0])
    content: dict[str, Any] = {
        "verdicts": wandb.Table(columns=list(VERDICTS), data=verdicts(judged[0]), allow_mixed_types=True),
        "contrasts": wandb.Table(dataframe=contrasts(judged).astype(object), allow_mixed_types=True),
    }
    content |= {f"figures/{path.stem}": wandb.Image(str(path), caption=path.stem) for path in figures}
    if (page := folder / "report.html").exists():
        content["report"] = wandb.Html(page.read_text(encoding="utf-8"), inject=False)
    there.mkdir(parents=True, exist_ok=True)
    settings = quiet_settings()
    wandb.setup(settings)  # init alone would announce the login before it is silent
    manifest = results.manifest
    run = wandb.init(
        project=project,
        name=f"{manifest.name} table"[:128],
        notes=said,
        job_type="table",
        tags=["table", manifest.design],
        config={
            "sweep": manifest.name,
            "title": manifest.title,
            "design": manifest.design,
            "primary": manifest.primary,
            "command": manifest.command,
            "rows": results.rows,
            "seeds": results.seeds,
        },
        dir=str(there),
        mode=mode,  # pyright: ignore[reportArgumentType]
        settings=settings,
    )
    run.log(content)
    run.summary.update({"answer": said})
    run.finish()


VERDICTS = ("row", "against", "difference", "low", "high", "unit", "verdict")
"""The columns of the first table."""


def verdicts(judged: Judged) -> list[Any]:
    """A line a difference of the metric that carries the verdicts, as the terminal shows them; None for no figure."""

    def figures(*ends: float) -> list[float | None]:
        return [None if math.isnan(end) else round(judged.shown(end), 6) for end in ends]

    return [[v.row, v.reference, *figures(v.delta, v.lower, v.upper), judged.unit, v.verdict] for v in judged.verdicts]
