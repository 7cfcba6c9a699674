"""Trackers of a run: W&B, or none. metrics.jsonl is the truth; a tracker may fail, hang or be missing.

W&B is spoken to on a thread of its own, so that a slow or dead one delays a run by PATIENCE seconds at the most.
"""

import hashlib
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from lecture04 import config
from lecture04.config import Request, WandB
from lecture04.config.registry import Family, register
from lecture04.records.identity import chosen_parts, identity, plain, run_name

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that a run waits for W&B at its end, and that W&B has to begin."""

Row = dict[str, float]


class Tracker(Protocol):
    """What follows a run from outside."""

    def __init__(self, request: Request) -> None: ...

    def log(self, row: Row) -> None:
        """One more line of metrics.jsonl."""
        ...

    def summarise(self, figures: dict[str, Any]) -> None:
        """What the run reached."""
        ...

    def close(self, exit_code: int) -> str | None:
        """The run has ended, well (0) or not. Returns why not everything was taken; None where it was."""
        ...


@register("logger", "none", options=config.Logger)
class NoTracker:
    """No tracker; metrics.jsonl only."""

    def __init__(self, request: Request) -> None:
        pass

    def log(self, row: Row) -> None:
        """Nothing."""

    def summarise(self, figures: dict[str, Any]) -> None:
        """Nothing."""

    def close(self, exit_code: int) -> None:
        """Nothing."""


@register("logger", "wandb", options=config.WandB)
class WandbTracker:
    """Weights & Biases: one run a job, grouped by row; offline under paths.outputs where there is no account."""

    def __init__(self, request: Request) -> None:
        self.about = describe(request)
        self.rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self.figures: dict[str, Any] = {}
        self.exit_code = 1
        self.left_behind = False
        self.why: str | None = None
        # A daemon: one that hangs must not keep the process alive.
        self.thread = threading.Thread(target=self._work, name="wandb", daemon=True)
        self.thread.start()

    def log(self, row: Row) -> None:
        """Hand the row over; never waits."""
        self.rows.put(row)

    def summarise(self, figures: dict[str, Any]) -> None:
        """Keep the figures for the end."""
        self.figures |= figures

    def close(self, exit_code: int) -> str | None:
        """Wait until W&B has everything, PATIENCE seconds at the most."""
        self.exit_code = exit_code
        self.rows.put(None)
        self.thread.join(PATIENCE)
        if self.thread.is_alive():
            self.left_behind = True
            self.why = f"it has not finished in {PATIENCE:g} s and is left behind"
        if self.why:
            log.warning("W&B: %s; metrics.jsonl has everything.", self.why)
        return self.why

    def _work(self) -> None:
        try:
            # W&B's telemetry about itself would hold a process for 10 s at its exit where the server does not answer.
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
            import wandb

            make_writable(Path(self.about["dir"]))
            settings = quiet_settings()
            wandb.setup(settings)  # init alone would announce the login before it is silent
            # create_new: the jobs of a sweep may share a process, and one that was left behind is still open.
            run = wandb.init(**self.about, reinit="create_new", settings=settings)
            while (row := self.rows.get()) is not None:
                run.log({name: value for name, value in row.items() if name != "step"}, step=int(row["step"]))
            run.summary.update(self.figures)
            run.finish(exit_code=self.exit_code)
        except BaseException as e:  # SystemExit too: whatever W&B does, it must not affect the run
            if not self.left_behind:  # or it would stand in the log of another run
                self.why = f"{type(e).__name__}: {str(e).partition(chr(10))[0].rstrip('.')}"


def make_writable(folder: Path) -> None:
    """Make a folder. Raises OSError where nothing can be written there; W&B would write to /tmp without a word."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as e:
        raise OSError(e.errno, e.strerror, str(folder)) from e


def quiet_settings() -> Any:
    """W&B's settings for what we send: no word on the terminal, nothing of the machine or of the user's code."""
    import wandb

    return wandb.Settings(
        console="off",
        silent=True,
        init_timeout=PATIENCE,
        x_disable_stats=True,
        x_disable_meta=True,
        x_save_requirements=False,
        disable_git=True,
        disable_code=True,
    )


def describe(request: Request) -> dict[str, Any]:
    """What W&B is told of a run: the arguments of wandb.init.

    The group is the row, by its name and its config without the seed. So W&B's own grouped charts show the seeds' band
    of each row.
    """
    run, origin = request.run, request.session.origin
    assert isinstance(request.session.logger, WandB)
    without_seed = run.with_seed(0)
    row = origin.row or run_name(without_seed).replace("-s0-", "-")
    # Two sweeps may both have a row "relu", at different sizes: the same name is not the same group.
    group = f"{_short(row)} {identity(without_seed).config[:6]}" if origin.row else _short(row)
    folder = Path(os.environ.get("WANDB_DIR", request.session.outputs)).absolute()
    return {
        "project": request.session.logger.project,
        "name": f"{_short(row)} s{run.seed}",
        "group": group,
        "job_type": "train",
        "tags": sorted(f"{family}={name}"[:64] for family, name in chosen_parts(run)),
        "config": plain(run) | {"eval": plain(request.evaluation), "sweep": origin.sweep, "row": row},
        "dir": str(folder),
        "mode": origin.wandb_mode or os.environ.get("WANDB_MODE", "offline"),
    }


def _short(row: str) -> str:
    """A row's name within W&B's limit of 128 characters, seed included; two that are cut still differ."""
    return row if len(row) <= 120 else f"{row[:111]}-{hashlib.sha256(row.encode()).hexdigest()[:8]}"


class MakeTracker(Protocol):
    """A tracker of what is asked for."""

    def __call__(self, request: Request) -> Tracker: ...


TRACKERS: Family[MakeTracker] = Family("logger")


@contextmanager
def tracker(request: Request, complain: Callable[[str], None]) -> Iterator[Tracker]:
    """The tracker that the session names, closed with the block: as failed where it raises.

    `complain` gets the reason where it has not taken everything.
    """
    opened, exit_code = TRACKERS.lookup(request.session.logger.name)(request), 1
    try:
        yield opened
        exit_code = 0
    finally:
        if why := opened.close(exit_code):
            complain(why)


MODES = ("online", "offline", "disabled", "shared", "dryrun", "run")
"""What W&B takes in WANDB_MODE; the last two are old names of offline and online."""
NAMES_ONE_RUN = tuple(
    f"WANDB_{name}"
    for name in ("RUN_ID", "RUN_NAME", "NAME", "RESUME", "RESUME_FROM", "FORK_FROM", "SWEEP_ID", "SWEEP_PARAM_PATH")
)
"""W&B's variables that say which single run is meant, the trial of one of its own sweeps among them."""


@contextmanager
def several_runs() -> Iterator[list[str]]:
    """While the block starts more than one run: without the variables that name one. Yields those that were set."""
    named = {name: os.environ.pop(name) for name in NAMES_ONE_RUN if name in os.environ}
    try:
        yield list(named)
    finally:
        os.environ.update(named)


# In a process of its own: the parent of a sweep does not import wandb. Without an account W&B raises a UsageError, and
# there is nothing to say.
PROBE = """
import wandb
try:
    print("it does not answer", flush=True)
    assert wandb.Api(timeout=3).viewer, "the server knows no such user"
except wandb.errors.UsageError:
    print(flush=True)
    raise
except Exception as e:
    print((str(e) or type(e).__name__).splitlines()[0], flush=True)
    raise
"""


class ModeProbe:
    """Whether W&B is to be online: decided once a sweep, by asking for the account. WANDB_MODE, where set, wins.

    `why` says why the runs stay offline although something else was asked for; empty where that is as it should be.
    """

    def __init__(self, logger: str) -> None:
        self.known, self.why = os.environ.get("WANDB_MODE", "") if logger == "wandb" else "disabled", ""
        if logger == "wandb" and self.known not in ("", *MODES):
            self.known, mode = "offline", os.environ.pop("WANDB_MODE")  # W&B refuses to start with it
            self.why = f"WANDB_MODE={mode}: there is no such mode; choices: {', '.join(MODES[:3])}"
        if not self.known:
            quiet = subprocess.DEVNULL
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROBE], stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, text=True
            )

    def mode(self) -> str:
        """online or offline; waits PATIENCE seconds at the most."""
        if not self.known:
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
            said, _ = self.process.communicate()
            self.known = "offline" if self.process.returncode else "online"
            if self.known == "offline":
                self.why = (said.splitlines() or [""])[-1].rstrip(".")
        return self.known

    def said(self) -> str:
        """The line on why the runs stay offline, once; empty where there is nothing to say."""
        why, self.why = self.why, ""
        return f"W&B: {why}. The runs stay offline; `wandb sync` sends them later." if why else ""
