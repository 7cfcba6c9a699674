"""`python train.py -m`: from the command line's overrides to the table."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hydra.core.override_parser.types import Override

from lecture04.config import Request, Table
from lecture04.config.overrides import command_line
from lecture04.config.project import config_dir
from lecture04.files import write_whole
from lecture04.records.record import read_json
from lecture04.records.tracker import ModeProbe
from lecture04.sweep import rows as rowing
from lecture04.sweep.launch import Launcher, launch, missing
from lecture04.sweep.live import live
from lecture04.sweep.plan import Job, Plan, make_plan
from lecture04.terminal import say


def plan(
    sweep: Table,
    overrides: Sequence[Override],
    *,
    is_group: Callable[[str], bool],
    compose: Callable[[Sequence[str]], Request],
) -> Plan:
    """The plan for these overrides. Raises UserError with everything that is wrong, before any job starts."""
    ask = rowing.asked(overrides)
    if sweep.name:
        rows, seeds = rowing.file_rows(sweep, ask, is_group), ask.seeds or tuple(sweep.seeds)
    else:
        rows, seeds = rowing.plain_rows(ask, is_group), ask.seeds or (0,)
    return make_plan(rowing.table_name(sweep, ask, rows), rowing.title(sweep, ask), sweep, rows, seeds, compose)


def show(plan: Plan, launcher_config: Mapping[str, object]) -> None:
    """Print the plan, with the time that this launcher's workers would take."""
    from lecture04.sweep.show_plan import print_plan

    n_jobs = launcher_config.get("n_jobs", 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    print_plan(plan, n_jobs if isinstance(n_jobs, int) and n_jobs > 0 else cores)


def execute(plan: Plan, launcher: Launcher, arguments: Sequence[str]) -> int:
    """Launch what is missing and print the table. Returns the number of runs that failed."""
    command = command_line("train.py", arguments)
    todo = [job for wave in plan.waves for job in missing(wave)]
    to_train = sum(not run.record.status().is_result for run in plan.runs)
    to_evaluate = sum(job.record.status().is_result for job in todo)
    probe = ModeProbe(plan.session.logger.name if todo else "none")
    what = f"{to_train} to train" + (f", {to_evaluate} to evaluate" if to_evaluate else "")
    there = sum(job.is_complete for job in plan.jobs)
    print(f"{plan.name}: {len(plan.jobs)} runs, {there} there, {what}", file=sys.stderr, flush=True)
    try:
        with live(plan):
            launch(plan, launcher, wandb_mode=probe.mode())
    finally:
        # Also after an interrupt: the table of what is there.
        _report(plan, command, is_new=bool(todo))
    if todo and (plan.folder / "sweep.json").exists():
        from lecture04.report.wandb import send

        send(plan.folder, plan.session.logger, mode=probe.mode())
    failed = [job for job in plan.jobs if job.error]
    for job in failed:
        say(f"FAILED {job.row!r} seed {job.seed}: {job.error}\n  again: {repeat(job, arguments)}")
        if (log := job.record.folder / "train.log").exists():  # hydra/job_logging may have put it elsewhere
            say(f"  log:   {log}")
    return len(failed)


def _report(plan: Plan, command: str, *, is_new: bool) -> None:
    """Write and print the table, where any run has ended; until then an earlier table stays as it is.

    With it stands what its runs were made with, as long as none is added.
    """
    if any(job.is_complete for job in plan.jobs):
        from lecture04.report import write
        from lecture04.report.environment import environment

        before = {} if is_new else read_json(plan.folder / "sweep.json") or {}
        manifest = replace(plan.manifest(command), environment=before.get("environment") or environment())
        plan.folder.mkdir(parents=True, exist_ok=True)
        write_whole(plan.folder / "sweep.json", json.dumps(manifest.to_json(), indent=1) + "\n")
        say(write(plan.folder))


def repeat(job: Job, arguments: Sequence[str] = ()) -> str:
    """The command that repeats one run of a sweep; `arguments` are what was typed for the sweep."""
    return command_line("train.py", [*config_dir(arguments), *job.overrides])
