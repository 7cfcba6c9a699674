"""`python train.py -m`: from the command line's overrides to the table."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydra.core.override_parser.types import Override

from lecture04.config import Request, Table
from lecture04.config.messages import UserError
from lecture04.config.overrides import command_line
from lecture04.config.project import config_dir
from lecture04.files import not_writable
from lecture04.records.lease import clear_dead
from lecture04.records.record import refuse_unwritable
from lecture04.records.stored import read_json
from lecture04.records.tracker import ModeProbe, several_runs
from lecture04.sweep import rows as rowing
from lecture04.sweep.launch import Launcher, launch, missing
from lecture04.sweep.live import live
from lecture04.sweep.plan import Job, Plan, make_plan, runs_of
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


def execute(plan: Plan, launcher: Launcher, arguments: Sequence[str], *, verbose: bool = False) -> int:
    """Launch what is missing and print the table. Returns the number of runs that failed."""
    with several_runs() as named:
        return _execute(plan, launcher, arguments, named, verbose=verbose)


def _execute(plan: Plan, launcher: Launcher, arguments: Sequence[str], named: Sequence[str], *, verbose: bool) -> int:
    command = command_line("train.py", arguments)
    todo = [job for wave in plan.waves for job in missing(wave)]
    if todo:
        _refuse_unwritable(plan, todo)
    _say_what_is_replaced(plan)
    to_train = sum(not run.record.status().is_result for run in plan.runs)
    to_evaluate = sum(job.record.status().is_result for job in todo)
    probe = ModeProbe(plan.session.logger.name if todo else "none")
    what = f"{to_train} to train" + (f", {to_evaluate} to evaluate" if to_evaluate else "")
    there = sum(job.is_complete for job in plan.jobs)
    _tell(f"{plan.name}: {len(plan.jobs)} runs, {there} there, {what}")
    if todo and named and plan.session.logger.name == "wandb":
        _tell(f"In a sweep {', '.join(named)} counts for nothing: each of its runs is one of its own in W&B.")
    try:
        with live(plan):
            mode = probe.mode()
            if line := probe.said():
                _tell(line)
            launch(plan, launcher, wandb_mode=mode)
    finally:
        clear_dead(plan.outputs / "runs")
        # Also after an interrupt: the table of what is there.
        _report(plan, command, is_new=bool(todo), verbose=verbose)
    if todo and (plan.folder / "sweep.json").exists() and not _untracked(todo):
        from lecture04.report.wandb import send

        send(plan.folder, plan.session.logger, mode=mode)
    failed = [job for job in plan.jobs if job.error]
    for job in failed:
        say(f"FAILED {job.row!r} seed {job.seed}: {job.error}\n  again: {repeat(job, arguments)}")
        log = job.record.folder / "train.log"  # hydra/job_logging may have put it elsewhere
        say(f"  log:   {log if log.exists() else 'none, the job was never started'}")
    return len(failed)


def _untracked(jobs: Sequence[Job]) -> bool:
    """Say which runs W&B has not got, in one line. Returns whether it has got none: then it is not sent the table."""
    runs = runs_of(jobs)
    why = Counter(found for run in runs if (found := run.record.untracked()))
    if not why:
        return False
    (most, _), *others = why.most_common()
    more = f" ({len(others)} other reasons in the runs' train.log)" if others else ""
    n, nothing = why.total(), why.total() == len(runs)
    which = f"none of the {n} runs was sent, nor the table" if nothing else f"{n} of {len(runs)} runs were not sent"
    _tell(f"W&B: {which}: {most}{more}. Every run's metrics.jsonl has everything.")
    return nothing


def _tell(line: str) -> None:
    """One line on the screen, apart from the results."""
    print(line, file=sys.stderr, flush=True)


def _report(plan: Plan, command: str, *, is_new: bool, verbose: bool) -> None:
    """Write and print the table, where any run has ended; until then an earlier table stays as it is.

    With it stands what its runs were made with, as long as none is added, and the looks that were taken at these runs.
    """
    if any(job.is_complete for job in plan.jobs):
        from lecture04.report import report
        from lecture04.report.environment import environment

        before, manifest = read_json(plan.folder / "sweep.json") or {}, plan.manifest(command)
        made_with = None if is_new else before.get("environment")
        earlier = before.get("earlier", ()) if _runs(before) == _runs(manifest.to_json()) else ()
        manifest = replace(manifest, environment=made_with or environment(), earlier=tuple(map(tuple, earlier)))
        for text in report(plan.folder, manifest, verbose=verbose):
            say(f"{text}\n")


def _runs(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """{row: its runs} of a manifest as it stands in its file."""
    rows = manifest.get("rows")
    return {name: row.get("runs") for name, row in rows.items()} if isinstance(rows, dict) else {}


def _refuse_unwritable(plan: Plan, todo: Sequence[Job]) -> None:
    """Raises UserError where something is left to do and its folders, or the table's, take no files."""
    refuse_unwritable(plan.outputs, (job.record for job in runs_of(todo)))
    if why := not_writable(plan.folder):
        raise UserError(f"paths.outputs={plan.outputs}: {why}, so the table could not be kept; name another folder.")


def _say_what_is_replaced(plan: Plan) -> None:
    """A table of the same name that shares no row with this one is written over: said, as its runs stay."""
    before = read_json(plan.folder / "sweep.json") or {}
    rows = before.get("rows")
    if isinstance(rows, dict) and not {row.name for row in plan.rows} & set(rows):
        print(
            f"{plan.folder} holds another table, of {', '.join(rows)}: this one takes its place; its runs stay.",
            file=sys.stderr,
        )


def repeat(job: Job, arguments: Sequence[str] = ()) -> str:
    """The command that repeats one run of a sweep; `arguments` are what was typed for the sweep."""
    return command_line("train.py", [*config_dir(arguments), *job.overrides])
