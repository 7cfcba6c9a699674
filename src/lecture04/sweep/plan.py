"""The plan of a sweep: every row composed and checked, every job with its settled config and its record."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from lecture04.config import Design, Request, Run, Session, Table
from lecture04.config.resolve import MISMATCH_WARNING
from lecture04.config.validate import bound_errors
from lecture04.training.start import source_lines, source_run
from lecture04.config import sizes as counts
from lecture04.config.messages import UserError, explain, nearest
from lecture04.config.overrides import source_line
from lecture04.records.identity import evaluation_key, identity
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record, Status, find, is_other_code
from lecture04.sweep.rows import Row

if TYPE_CHECKING:
    from lecture04.report.model import Table

Compose = Callable[[Sequence[str]], Request]


@dataclass(frozen=True)
class Job:
    """One run of the sweep."""

    row: str
    seed: int
    overrides: tuple[str, ...]
    request: Request
    record: Record
    key: str

    @property
    def is_complete(self) -> bool:
        """Whether the run is there, with its evaluation."""
        return self.record.is_complete(self.key)

    @property
    def error(self) -> str | None:
        """Why it failed; None where it did not."""
        return self.record.error(self.key)

    def source(self) -> "Job | None":
        """The job of the run that this one starts from (init=uptrain)."""
        run = source_run(self.request.run)
        if run is None:
            return None
        line = source_line(source_lines(self.request.run), self.overrides)
        request = replace(self.request, run=run)
        return Job(self.row, self.seed, tuple(line), request, find(run, request.session), self.key)


def runs_of(jobs: Iterable[Job]) -> list[Job]:
    """A job for each run among these; several jobs may ask for the same one, with evaluations of their own."""
    found: dict[Path, Job] = {}
    for job in jobs:
        found.setdefault(job.record.folder, job)
    return list(found.values())


@dataclass(frozen=True)
class Plan:
    """A sweep, ready to launch. `jobs` are seed by seed, so that a killed sweep leaves every row with a seed."""

    name: str
    title: str
    sweep: Table
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    jobs: tuple[Job, ...]
    session: Session

    @property
    def folder(self) -> Path:
        """Where the table lies."""
        return self.outputs / "sweeps" / self.name

    @property
    def outputs(self) -> Path:
        """Where results lie."""
        return Path(self.session.outputs)

    @cached_property
    def waves(self) -> list[list[Job]]:
        """What is launched together: first the runs that others start from, at last the sweep's own."""
        waves = [list(self.jobs)]
        while sources := runs_of(source for job in waves[0] if (source := job.source())):
            waves.insert(0, sources)
        return waves

    @cached_property
    def runs(self) -> list[Job]:
        """Every run that is needed, once."""
        return runs_of(job for wave in reversed(self.waves) for job in wave)

    def of_row(self, name: str) -> list[Job]:
        """A row's jobs, in the order of the seeds."""
        return [job for job in self.jobs if job.row == name]

    def manifest(self, command: str) -> dict[str, Any]:
        """What the report needs to know: the table's design, and where each row's runs lie."""
        rows = {
            row.name: {
                **({"slice": row.slice} if self.sweep.design is Design.grid else {}),
                "evaluation": self.of_row(row.name)[0].key,
                "overrides": list(row.overrides),
                "mismatch": self.of_row(row.name)[0].request.mismatch,
                "runs": {str(job.seed): job.record.folder.name for job in self.of_row(row.name)},
                "other_code": [job.seed for job in self.of_row(row.name) if is_other_code(job.record, job.request.run)],
            }
            for row in self.rows
        }
        return {
            "name": self.name,
            "title": self.title,
            "design": self.sweep.design.name,
            "primary": self.sweep.primary,
            "columns": self.sweep.columns,
            "delta": self.sweep.delta,
            "looks": self.sweep.looks,
            "command": command,
            "rows": rows,
        }


def make_plan(name: str, title: str, sweep: Table, rows: Sequence[Row], seeds: Sequence[int], compose: Compose) -> Plan:
    """Compose each row once, check all, and lay out the jobs. Raises UserError with every row's errors."""
    errors = [*bound_errors(sweep, "sweep."), *_metric_errors(sweep)]
    if not seeds:
        errors.append(f"sweep.seeds: sweeps={sweep.name} has none.")
    if len(set(seeds)) < len(seeds) or min(seeds, default=0) < 0:
        errors.append(f"sweep.seeds={list(seeds)}: must be distinct whole numbers, 0 or more.")
    resolved: dict[str, Request] = {}
    for row in rows:
        try:
            resolved[row.name] = compose(row.overrides)
        except UserError as e:
            errors += [f"row {row.name!r}: {line}" for line in str(e).splitlines()]
        except (HydraException, OmegaConfBaseException) as e:
            errors.append(f"row {row.name!r}: {explain(e)}")
    first_of: dict[tuple[str, str], str] = {}
    for row, request in resolved.items():
        alike = identity(replace(request.run, seed=0)).config, evaluation_key(request.run, request.evaluation)
        same = first_of.setdefault(alike, row)
        if same != row:
            errors.append(f"rows {same!r} and {row!r}: their runs are the same, so there is nothing to compare.")
    if errors:
        raise UserError("\n".join(errors))
    jobs = [_job(row, seed, resolved[row.name]) for seed in seeds for row in rows]
    return Plan(name, title, sweep, tuple(rows), tuple(seeds), tuple(jobs), jobs[0].request.session)


def _job(row: Row, seed: int, request: Request) -> Job:
    run = replace(request.run, seed=seed)
    request = replace(request, run=run)
    key = evaluation_key(run, request.evaluation)
    return Job(row.name, seed, (*row.overrides, f"seed={seed}"), request, find(run, request.session), key)


def _metric_errors(sweep: Sweep) -> list[str]:
    fields = [("sweep.primary", sweep.primary), *(("sweep.columns", name) for name in sweep.columns)]
    errors = [
        f"{field}={name}: nothing measures this." + nearest(name, METRICS)
        for field, name in fields
        if name not in METRICS
    ]
    if sweep.primary in METRICS and not METRICS[sweep.primary].judged:
        errors.append(
            f"sweep.primary={sweep.primary}: seeds do not move it, so there is nothing to judge."
            + nearest("", [name for name, metric in METRICS.items() if metric.judged])
        )
    return errors


def work(run: Run) -> float:
    """How much there is to compute, for comparing runs: documents seen times FLOPs a token."""
    return run.trainer.steps * run.trainer.batch_size * counts.flops_per_token(run)


def seconds_per_work(outputs: Path) -> float | None:
    """Wall time per unit of `work` of the runs that are there, whoever asked for them; None where there are none."""
    seconds = done = 0.0
    for folder in (outputs / "runs").glob("*"):
        m = Record(folder).summary().get("metrics", {})
        if m.get("wall_seconds"):
            seconds, done = seconds + m["wall_seconds"], done + m["documents"] * m["flops_per_token"]
    return seconds / done if done else None


def print_plan(plan: Plan, n_workers: int) -> None:
    """What the sweep would do: rows, sizes, what is there already and the time the rest would take. Starts nothing.

    Below it, what the planned seeds can find, and how many more a table needs whose runs are there.
    """
    from lecture04.report.text import terminal, wants_colour
    from lecture04.sweep.forecast import outlook

    print(terminal([_plan_table(plan)], colour=wants_colour()), end="\n\n")
    rate = seconds_per_work(plan.outputs)
    to_train = [job for job in plan.jobs if job in plan.runs and not job.record.status().is_result]
    own = {job.record.folder for job in plan.jobs}
    sources = [run for run in plan.runs if run.record.folder not in own and not run.record.status().is_result]
    waiting = sum(work(run.request.run) for run in [*to_train, *sources])
    print(f"seeds {', '.join(map(str, plan.seeds))}; {len(plan.jobs)} runs, {len(to_train)} to train, nothing started")
    if sources:
        print(f"before them {len(sources)} runs that these start from")
    if any(is_other_code(job.record, job.request.run) for job in plan.jobs):
        print("* a run of other code (runs.reuse=config)")
    if to_train and rate:
        print(f"about {waiting * rate / n_workers / 60:.1f} minutes on {n_workers} workers, by the runs that are there")
    elif to_train:
        print("no time can be given before the first run is there")
    print(f"the table will lie in {plan.folder}")
    if tables := outlook(plan):
        print("\n" + terminal(tables, colour=wants_colour()))


def _plan_table(plan: Plan) -> "Table":
    """The rows with their sizes and their runs, as the terminal folds it."""
    from lecture04.report.model import Table

    headings = ["row", "d_ff", "mismatch", "parameters", "there", "to train", "kFLOP/token", "KV/token"]
    lines = list[list[str]]()
    for row in plan.rows:
        jobs = plan.of_row(row.name)
        run, missing = jobs[0].request.run, [job for job in jobs if not job.record.status().is_result]
        there = [
            f"{job.seed}*" if is_other_code(job.record, job.request.run) else str(job.seed)
            for job in jobs
            if job not in missing
        ]
        off = jobs[0].request.mismatch
        lines.append(
            [
                row.name,
                str(run.ffn.d_ff),
                f"{off:+.2%}" + (" (!)" if abs(off) > MISMATCH_WARNING else ""),
                f"{counts.params(run):,}",
                " ".join(there) or "-",
                # A row that tests the same runs in another way trains nothing itself.
                " ".join(str(job.seed) for job in missing if job in plan.runs) or "-",
                f"{counts.flops_per_token(run) / 1e3:,.0f}",
                str(counts.kv_per_token(run)),
            ]
        )
    return Table.of_text(plan.title, headings, lines)


def status_of(job: Job) -> Status:
    """A job's status for display: a result counts only with its evaluation."""
    status = job.record.status()
    if status.is_result and not job.is_complete:
        return Status.failed if job.error else Status.missing
    return status
