"""What a sweep would do, printed and not started: its rows, its runs, the time, and what its seeds can find."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lecture04.config import sizes
from lecture04.config.resolve import MISMATCH_WARNING
from lecture04.records.store import runs_in
from lecture04.report.model import Table
from lecture04.report.text import one_block, terminal, wants_colour
from lecture04.sweep.forecast import forecast
from lecture04.sweep.plan import Plan, work


@dataclass(frozen=True)
class Pace:
    """How long runs took: seconds of training per unit of `work`, and seconds around it, whatever the run is."""

    per_work: float
    per_run: float

    def minutes(self, waiting: Sequence[float], n_workers: int) -> float:
        """The minutes that runs of so much work take."""
        return (sum(waiting) * self.per_work + len(waiting) * self.per_run) / n_workers / 60


def pace(outputs: Path) -> Pace | None:
    """The pace of the runs that are there, whoever asked for them; None where there are none."""
    training = around = done = 0.0
    n = 0
    for record in runs_in(outputs):
        m = record.summary().get("metrics", {})
        if m.get("train_seconds") and m.get("wall_seconds"):
            training, around = training + m["train_seconds"], around + m["wall_seconds"] - m["train_seconds"]
            done, n = done + m["documents"] * m["flops_per_token"], n + 1
    return Pace(training / done, around / n) if done else None


def print_plan(plan: Plan, n_workers: int) -> None:
    """What the sweep would do: rows, sizes, what is there already and the time the rest would take. Starts nothing.

    Below it, what the planned seeds can find, and how many more a table needs whose runs are there.
    """
    print(one_block(_plan_table(plan), "", colour=wants_colour()), end="\n\n")
    known = pace(plan.outputs)
    runs = set(map(id, plan.runs))
    to_train = [job for job in plan.jobs if id(job) in runs and not job.record.status().is_result]
    own = {job.record.folder for job in plan.jobs}
    sources = [run for run in plan.runs if run.record.folder not in own and not run.record.status().is_result]
    waiting = [work(run.request.run) for run in [*to_train, *sources]]
    seeds = f"seed{'s' if len(plan.seeds) > 1 else ''} {', '.join(map(str, plan.seeds))}"
    print(f"{seeds}; {len(plan.jobs)} runs, {len(to_train)} to train, nothing started")
    if sources:
        print(f"before them {len(sources)} runs that these start from")
    if any(job.is_of_other_code for job in plan.jobs):
        print("* a run of other code (runs.reuse=config)")
    if to_train and known:
        print(
            f"about {known.minutes(waiting, n_workers):.1f} minutes on {n_workers} workers, by the runs that are there"
        )
    elif to_train:
        print("no time can be given before the first run is there")
    print(f"the table will lie in {plan.folder}")
    if tables := forecast(plan):
        print("\n" + terminal(tables, colour=wants_colour()))


GIVES_WAY = {"kFLOP/token": "1", "KV/token": "2"}
"""Columns that a narrow terminal has no room for, the last one first."""


def _plan_table(plan: Plan) -> Table:
    """The rows with their sizes and their runs, as the terminal folds it."""
    headings = ["row", "d_ff", "mismatch", "parameters", "there", "to train", "kFLOP/token", "KV/token"]
    lines, runs = list[list[str]](), set(map(id, plan.runs))
    for row in plan.rows:
        jobs = plan.of_row(row.name)
        run, missing = jobs[0].request.run, [job for job in jobs if not job.record.status().is_result]
        there = [f"{job.seed}*" if job.is_of_other_code else str(job.seed) for job in jobs if job not in missing]
        off = jobs[0].request.mismatch
        lines.append(
            [
                row.name,
                str(run.ffn.d_ff),
                f"{off:+.2%}" + (" (!)" if abs(off) > MISMATCH_WARNING else ""),
                f"{sizes.params(run):,}",
                " ".join(there) or "-",
                # A row that tests the same runs in another way trains nothing itself.
                " ".join(str(job.seed) for job in missing if id(job) in runs) or "-",
                f"{sizes.flops_per_token(run) / 1e3:,.0f}",
                str(sizes.kv_per_token(run)),
            ]
        )
    table = Table.of_text(plan.title, headings, lines)
    return replace(table, columns=[replace(c, block=GIVES_WAY.get(c.heading, "")) for c in table.columns])
