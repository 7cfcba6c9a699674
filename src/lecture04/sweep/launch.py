"""Launching what is missing of a plan, and launching again what a dead worker left."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lecture04.config.typed import quoted
from lecture04.records.lease import POLLED, Holders
from lecture04.records.record import Status
from lecture04.sweep.plan import Job, Plan, runs_of, status_of

log = logging.getLogger(__name__)
TRIES = 3


class Launcher(Protocol):
    """Any of Hydra's launchers."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[object]: ...


def missing(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with something left to do, in their order; rows that share a run and its evaluation launch it once."""
    return list({(job.record.folder, job.key): job for job in jobs if not job.is_complete}.values())


def launch(plan: Plan, launcher: Launcher, *, wandb_mode: str = "") -> None:
    """Run every job that is missing, the runs that others start from first; what failed earlier is tried again."""
    for wave in plan.waves:
        for job in missing(wave):
            job.record.forget_failure(job.key)
    for wave in plan.waves:
        _launch_wave(plan, wave, launcher, wandb_mode)


def _launch_wave(plan: Plan, wave: Sequence[Job], launcher: Launcher, wandb_mode: str) -> None:
    """Run every job of a wave that is missing.

    Outcomes are read from the records, never from what a launcher returns. What a dead worker left is launched again,
    and goes on from where it stood; one that was begun TRIES times without an outcome counts as failed. Where the death
    of one worker is that of all, the runs that had begun are launched one by one, as any of them may be what kills it.
    """
    tries, causes, holders = Counter[Path](), dict[Path, str](), Holders(plan.outputs / "runs")
    isolates = getattr(launcher, "isolates", False)
    # One job a run at a time: the others would wait for it.
    while todo := runs_of(job for job in missing(wave) if status_of(job) is not Status.failed):
        for job in todo:
            if tries[job.record.folder] == TRIES:
                cause = causes[job.record.folder]
                job.record.give_up(job.request.run, job.key, f"no outcome after {TRIES} tries: {cause}")
        todo = _free(holders, [job for job in todo if tries[job.record.folder] < TRIES])
        if any(tries[job.record.folder] for job in todo):
            said = "; ".join(dict.fromkeys(causes[job.record.folder] for job in todo if job.record.folder in causes))
            n_lost = sum(tries[job.record.folder] > 0 for job in todo)
            log.warning("%d runs have no outcome (%s); launching them again.", n_lost, said)
        begun = [] if isolates else [job for job in todo if job.record.has_begun()]
        for batch in ([job for job in todo if job not in begun], *([job] for job in begun)):
            lines = [[*job.overrides, *origin(plan, job, wandb_mode)] for job in batch]
            said = _launch(launcher, lines) if batch else []
            causes |= {job.record.folder: cause for job, cause in zip(batch, said, strict=False) if cause}
        elsewhere = holders.now()
        left = [job for job in todo if status_of(job) is Status.missing and job.record.folder.name not in elsewhere]
        blamed = left
        if not isolates:  # where nothing at all happened, the launcher itself does not work
            begun = [job for job in left if job.record.has_begun()]
            blamed = begun or (left if len(left) == len(todo) else [])
        for job in blamed:
            causes.setdefault(job.record.folder, "no record of the planned name; was code edited meanwhile?")
        tries.update(job.record.folder for job in blamed)


def _free(holders: Holders, todo: list[Job]) -> list[Job]:
    """The jobs that no other process works on; waits where there is none, and says so."""
    said = False
    while todo:
        elsewhere = holders.now()
        free = [job for job in todo if job.record.folder.name not in elsewhere]
        if free:
            return free
        if not said:
            log.warning(
                "%d runs are left, and others work on them (%s); waiting.",
                len(todo),
                ", ".join(sorted(set(elsewhere.values()))),
            )
            said = True
        time.sleep(POLLED)
        todo = [job for job in todo if status_of(job) is Status.missing]
    return todo


def origin(plan: Plan, job: Job, wandb_mode: str) -> list[str]:
    """What a job is told of where it comes from, as overrides that are no part of the run."""
    told = {"sweep": plan.name, "row": job.row, "wandb_mode": wandb_mode}
    return [f"origin.{key}={quoted(value)}" for key, value in told.items()]


def _launch(launcher: Launcher, lines: list[list[str]]) -> list[str]:
    """Launch jobs once; whatever the launcher raises is no verdict on them. Returns why each has no outcome, or ""."""
    try:
        returns = launcher.launch(lines, initial_job_idx=0)
    except Exception as e:  # joblib, submitit and ray each have their own for a lost worker
        return [f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"] * len(lines)
    raised = (getattr(outcome, "_return_value", None) for outcome in returns)
    return [f"{type(value).__name__}: {value}" if isinstance(value, Exception) else "" for value in raised]
