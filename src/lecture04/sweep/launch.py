"""Launching what is missing of a plan, and launching again what a dead worker left."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lecture04.config.typed import quoted
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

    Outcomes are read from the records: a worker that is killed takes the launcher's whole batch of results with it, but
    not the runs on disk. What it left is launched again. The runs that had begun are launched one by one then, as any
    of them may be what kills the worker; one that was begun TRIES times without an outcome counts as failed.
    """
    tries, cause = Counter[Path](), ""
    # One job a run at a time: the others would wait for its lock.
    while todo := runs_of(job for job in missing(wave) if status_of(job) is not Status.failed):
        for job in todo:
            if tries[job.record.folder] == TRIES:
                job.record.give_up(job.request.run, job.key, f"no outcome after {TRIES} tries: {cause}")
        todo = [job for job in todo if tries[job.record.folder] < TRIES]
        if tries and todo:
            log.warning("%d runs have no outcome (%s); launching them again.", len(todo), cause)
        begun = [job for job in todo if job.record.has_begun()]
        for batch in ([job for job in todo if job not in begun], *([job] for job in begun)):
            lines = [[*job.overrides, *origin(plan, job, wandb_mode)] for job in batch]
            cause = _launch(launcher, lines) if batch else cause
        left = [job for job in todo if status_of(job) is Status.missing]
        # Where nothing at all happened, the launcher itself does not work.
        blamed = [job for job in left if job.record.has_begun()] or (left if len(left) == len(todo) else [])
        tries.update(job.record.folder for job in blamed)


def origin(plan: Plan, job: Job, wandb_mode: str) -> list[str]:
    """What a job is told of where it comes from, as overrides that are no part of the run."""
    told = {"sweep": plan.name, "row": job.row, "wandb_mode": wandb_mode}
    return [f"origin.{key}={quoted(value)}" for key, value in told.items()]


def _launch(launcher: Launcher, lines: list[list[str]]) -> str:
    """Launch jobs once; whatever the launcher raises is no verdict on them. Returns what it had to say."""
    try:
        returns = launcher.launch(lines, initial_job_idx=0)
    except Exception as e:  # joblib, submitit and ray each have their own for a lost worker
        return f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
    raised = [value for value in (getattr(r, "_return_value", None) for r in returns) if isinstance(value, Exception)]
    return (
        f"{type(raised[0]).__name__}: {raised[0]}"
        if raised
        else "no record of the planned name; was code edited meanwhile?"
    )
