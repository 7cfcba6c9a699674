"""The plan of a sweep: every row composed and checked, every job with what it asks for and its record."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from lecture04.config import Data, Design, Request, Reuse, Run, Session, Table
from lecture04.config import sizes as counts
from lecture04.config.messages import UserError, explain, nearest
from lecture04.config.overrides import source_line
from lecture04.config.schema import COLUMNS
from lecture04.config.validate import bound_errors
from lecture04.records.identity import evaluation_key, identity, of_seeds
from lecture04.records.metrics import METRICS, canonical
from lecture04.records.record import Record, Status, find, is_other_code
from lecture04.report.columns import is_known, known
from lecture04.report.manifest import Manifest, ManifestRow
from lecture04.sweep.rows import Row, without_session
from lecture04.training.start import source_lines, source_run

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

    @property
    def is_of_other_code(self) -> bool:
        """Whether a finished run of other code stands for it; only runs.reuse=config lets one."""
        return self.request.session.reuse is Reuse.config and is_other_code(self.record, self.request.run)

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
        return self._by_row.get(name, [])

    @cached_property
    def _by_row(self) -> dict[str, list[Job]]:
        found: dict[str, list[Job]] = {}
        for job in self.jobs:
            found.setdefault(job.row, []).append(job)
        return found

    def manifest(self, command: str) -> Manifest:
        """What the report needs to know: the table's design, and where each row's runs lie."""
        return Manifest(
            name=self.name,
            title=self.title,
            design=self.sweep.design.name,
            primary=self.sweep.primary,
            columns=tuple(self.sweep.columns),
            delta=self.sweep.delta,
            looks=self.sweep.looks,
            command=command,
            parts=self.session.parts,
            rows={row.name: self._manifest_row(row) for row in self.rows},
        )

    def _manifest_row(self, row: Row) -> ManifestRow:
        jobs = self.of_row(row.name)
        return ManifestRow(
            evaluation=jobs[0].key,
            mismatch=jobs[0].request.mismatch,
            runs={job.seed: job.record.folder.name for job in jobs},
            other_code=tuple(job.seed for job in jobs if job.is_of_other_code),
            overrides=tuple(without_session(row.overrides)),
            slice=row.slice if self.sweep.design is Design.grid else None,
            tokens=jobs[0].request.run.data.tokens(),
        )


def make_plan(name: str, title: str, sweep: Table, rows: Sequence[Row], seeds: Sequence[int], compose: Compose) -> Plan:
    """Compose each row once, check all, and lay out the jobs. Raises UserError with every row's errors."""
    columns = list(map(canonical, sweep.columns))
    errors = bound_errors(sweep, "sweep.")
    if not seeds:
        errors.append(f"sweep.seeds: sweeps={sweep.name} has none.")
    if len(set(seeds)) < len(seeds) or min(seeds, default=0) < 0:
        errors.append(f"sweep.seeds={list(seeds)}: must be distinct whole numbers, 0 or more.")
    resolved, wrong = dict[str, Request](), dict[str, list[str]]()
    for row in rows:
        try:
            resolved[row.name] = compose(row.overrides)
        except UserError as e:
            wrong[row.name] = str(e).splitlines()
        except (HydraException, OmegaConfBaseException) as e:
            wrong[row.name] = [explain(e)]
    of_source = next((request.run.data.primary for request in resolved.values()), Data.primary)
    sweep = replace(sweep, primary=canonical(sweep.primary or of_source), columns=columns)
    errors += [*_metric_errors(sweep), *_row_errors(wrong, len(rows), is_file=bool(sweep.name))]
    first_of: dict[tuple[str, str], str] = {}
    for row, request in resolved.items():
        alike = identity(request.run.with_seed(0)).config, evaluation_key(request.run, request.evaluation)
        same = first_of.setdefault(alike, row)
        if same != row:
            errors.append(f"rows {same!r} and {row!r}: their runs are the same, so there is nothing to compare.")
    errors += _token_errors(sweep, resolved)
    if errors:
        raise UserError("\n".join(errors))
    by_row = {row.name: _jobs(row, seeds, resolved[row.name]) for row in rows}
    jobs = [by_row[row.name][i] for i in range(len(seeds)) for row in rows]
    if not sweep.columns:
        of_sources = dict.fromkeys(name for request in resolved.values() for name in request.run.data.columns)
        sweep = replace(sweep, columns=[*COLUMNS[0], *of_sources, *COLUMNS[1]])
    return Plan(name, title, sweep, tuple(rows), tuple(seeds), tuple(jobs), jobs[0].request.session)


def _row_errors(wrong: Mapping[str, Sequence[str]], n_rows: int, *, is_file: bool) -> list[str]:
    """Each row's errors; what is wrong with every row is said once, of none: it was typed for all."""
    of_all = [
        line
        for line in next(iter(wrong.values()), ())
        if (n_rows > 1 or not is_file) and len(wrong) == n_rows and all(line in lines for lines in wrong.values())
    ]
    return of_all + [f"row {row!r}: {line}" for row, lines in wrong.items() for line in lines if line not in of_all]


def _jobs(row: Row, seeds: Sequence[int], request: Request) -> list[Job]:
    """A row's jobs, in the order of the seeds; how it is evaluated does not depend on them."""
    key, own = evaluation_key(request.run, request.evaluation), of_seeds(request.run, seeds)
    found = list[Job]()
    for seed in seeds:
        run = request.run.with_seed(seed)
        record = find(run, request.session, own[seed])
        found.append(Job(row.name, seed, (*row.overrides, f"seed={seed}"), replace(request, run=run), record, key))
    return found


def _metric_errors(sweep: Table) -> list[str]:
    errors = [
        f"sweep.columns={name}: nothing measures this." + nearest(name, known())
        for name in sweep.columns
        if not is_known(name)
    ]
    primary = sweep.primary
    if primary not in METRICS:
        errors.insert(0, f"sweep.primary={primary}: nothing measures this." + nearest(primary, METRICS))
    elif not METRICS[primary].noisy:
        errors.append(
            f"sweep.primary={primary}: seeds do not move it, so there is nothing to judge."
            + nearest("", [name for name, metric in METRICS.items() if metric.noisy])
        )
    return errors


def _token_errors(sweep: Table, resolved: Mapping[str, Request]) -> list[str]:
    """A primary metric of tokens where rows have different ones."""
    apart = {request.run.data.tokens() for request in resolved.values()}
    if len(apart) < 2 or sweep.primary not in METRICS or not METRICS[sweep.primary].per_token:
        return []
    return [f"sweep.primary={sweep.primary}: the rows' tokens differ, so that nats a token say nothing; use test/bpb."]


def work(run: Run) -> float:
    """How much there is to compute, for comparing runs: documents seen times FLOPs a token."""
    return run.trainer.steps * run.trainer.batch_size * counts.flops_per_token(run)


def status_of(job: Job) -> Status:
    """A job's status for display: a result counts only with its evaluation."""
    status = job.record.status()
    if status.is_result and not job.is_complete:
        return Status.failed if job.error else Status.missing
    return status
