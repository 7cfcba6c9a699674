"""What a running sweep shows: how far each row is, the time, and no verdict before the last seed. In a pipe, nothing.

A band or a difference before the last seed would be a look at the result, which the table's error rate does not count.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lecture04 import display
from lecture04.records.metrics import METRICS, shown_for
from lecture04.records.record import Status
from lecture04.sweep.plan import Job, Plan, status_of, work

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FRAME = 4
"""Lines of the display beside the rows: the title, the headings with their rule, and the times."""
LINE = 100
"""Columns that the display takes at the most."""
WIDE = 60
"""Columns from which on there is room for what happens in each row."""


@dataclass
class Progress:
    """A row so far: the values that count, how its other seeds ended, and the seeds that run with their shares."""

    n: int
    values: list[float] = field(default_factory=list)
    ended: Counter[Status] = field(default_factory=Counter)
    running: dict[int, float] = field(default_factory=dict)

    @property
    def there(self) -> int:
        """How many seeds have ended."""
        return self.ended.total()


class Board:
    """The state of a sweep, read from its records: nothing is asked of the jobs themselves."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.began = self.started = time.monotonic()
        self.moving = False
        self.shown = shown_for(plan.sweep.primary, plan.sweep.columns)
        # Cells that have ended are not read again: a table of a hundred runs is drawn several times a second.
        self.ended: set[tuple[str, int]] = set()
        self.rows = {row.name: Progress(len(plan.of_row(row.name))) for row in plan.rows}
        self.trained = {run.record.folder for run in plan.runs if run.record.status().is_result}
        self.work_before = self.work_done()

    def share_done(self, job: Job) -> float:
        """How much of a job's training is done, 0 to 1."""
        if (job.row, job.seed) in self.ended or job.record.folder in self.trained:
            return 1.0
        steps = job.request.run.trainer.steps
        return min(1.0, job.record.last_step() / steps) if steps else 0.0

    def work_done(self) -> float:
        """Work done, in `plan.work`'s unit."""
        return sum(self.share_done(run) * work(run.request.run) for run in self.plan.runs)

    def read(self) -> None:
        """Bring every row up to date."""
        for row in self.rows.values():
            row.running.clear()
        for job in self.plan.jobs:
            place = job.row, job.seed
            if place in self.ended:
                continue
            row, status = self.rows[job.row], status_of(job)
            if status is not Status.missing:
                self.ended.add(place)
                row.ended[status] += 1
                if status.ended_well:
                    row.values.append(job.record.metrics(job.key)[self.shown])
            elif job.record.folder not in self.trained and job.record.has_begun():
                row.running[job.seed] = self.share_done(job)

    def mean(self, name: str) -> str:
        """The mean of the seeds that have finished."""
        values = self.rows[name].values
        return f"{sum(values) / len(values):{METRICS[self.shown].format}}" if values else ""

    def now(self, name: str) -> str:
        """What happens in a row: the seeds that run, and those without a figure."""
        row = self.rows[name]
        running = [
            f"seed {seed}: {f'{share:.0%}' if share < 1 else 'evaluating'}" for seed, share in row.running.items()
        ]
        return ", ".join(
            [*(f"{n} {status.value}" for status, n in row.ended.items() if status is not Status.finished), *running]
        )

    def left(self) -> str:
        """The time left, by the work done since the start; empty where nothing can be said yet."""
        done, total = self.work_done(), sum(work(run.request.run) for run in self.plan.runs)
        if done <= self.work_before or not self.moving:
            # The clock starts with the first progress: before it lies the workers' start-up.
            self.moving, self.work_before, self.started = done > self.work_before, done, time.monotonic()
            return ""
        if done == total:  # what is left is evaluated
            return ""
        seconds = (total - done) * (time.monotonic() - self.started) / (done - self.work_before)
        return f", about {display.clock(seconds)} left"

    def times(self) -> str:
        """How many runs are there, and the time."""
        there = sum(row.there for row in self.rows.values())
        text = f"{there} of {len(self.plan.jobs)} runs, {display.clock(time.monotonic() - self.began)}{self.left()}"
        if self.moving or any(row.running for row in self.rows.values()):
            return text
        if there == len(self.plan.jobs):
            return text
        own = {job.record.folder for job in self.plan.jobs}
        sources = [run.record for run in self.plan.runs if run.record.folder not in own]
        if any(source.has_begun() and not source.status().is_result for source in sources):
            return f"{text}, first the runs that these start from"
        return f"{text}, starting"

    def draw(self, console: Console) -> RenderableType:
        """All rows where they fit; else those that run, and a count of the others."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        self.read()
        width, space = min(console.width, LINE), console.height - FRAME - 1  # a last line is the cursor's
        last = Text(f"{display.spinner(console)} {self.times()}", no_wrap=True, overflow="ellipsis")
        if space < 2:
            return last
        names = list(self.rows)
        if len(names) > space:
            names = [name for name in names if self.rows[name].running][: space - 1]
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, width=None)
        is_wide, label = width >= WIDE, METRICS[self.shown].label
        table.add_column("row", no_wrap=True, overflow="ellipsis", max_width=max(8, width - (44 if is_wide else 23)))
        table.add_column("seeds", justify="right", no_wrap=True)
        table.add_column(f"{label} so far" if is_wide else label, justify="right", no_wrap=True)
        if is_wide:
            table.add_column("now", no_wrap=True, overflow="ellipsis", min_width=16)
        for name in names:
            row = self.rows[name]
            cells = [Text(_one_line(name)), f"{row.there} of {row.n}", self.mean(name), self.now(name)]
            table.add_row(*cells[: len(table.columns)])
        title = Text(_one_line(self.plan.title), style="bold", no_wrap=True, overflow="ellipsis")
        rest = [Text(self._others(names), no_wrap=True, overflow="ellipsis")] if len(names) < len(self.rows) else []
        return Group(title, table, *rest, last)

    def _others(self, names: Sequence[str]) -> str:
        others = [row for name, row in self.rows.items() if name not in names]
        there, seeds = sum(row.there for row in others), sum(row.n for row in others)
        return f"{len(others)} {'other ' if names else ''}rows: {there} of {seeds} runs there"


def _one_line(text: str) -> str:
    """Without what would move the cursor."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


@contextmanager
def live(plan: Plan) -> Iterator[None]:
    """Show the board while the block runs."""
    with display.showing(Board(plan).draw):
        yield
