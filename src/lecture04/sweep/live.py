"""What a running sweep shows: rows filling as seeds finish, and the time left. In a pipe, nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lecture04.records.metrics import METRICS, shown_for
from lecture04.records.record import Status
from lecture04.sweep.plan import Job, Plan, status_of, work


class Board:
    """The state of a sweep, read from its records: nothing is asked of the jobs themselves."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.started, self.moving = time.monotonic(), False
        # Cells that have ended are not read again: a table of a hundred runs is drawn several times a second.
        self.ended: dict[tuple[str, int], str] = {}
        self.reached: dict[str, list[float]] = {row.name: [] for row in plan.rows}
        self.shown = shown_for(plan.sweep.primary, plan.sweep.columns)
        self.work_before = self.work_done()

    def share_done(self, job: Job) -> float:
        """How much of a job's training is done, 0 to 1."""
        if (job.row, job.seed) in self.ended or job.is_complete or not job.request.run.trainer.steps:
            return 1.0
        return job.record.last_step() / job.request.run.trainer.steps

    def work_done(self) -> float:
        """Work done, in `plan.work`'s unit."""
        return sum(self.share_done(run) * work(run.request.run) for run in self.plan.runs)

    def cell(self, job: Job) -> str:
        """What the table shows for one job."""
        place = job.row, job.seed
        if place not in self.ended:
            status = status_of(job)
            if status is Status.missing:
                share = self.share_done(job)
                return f"[dim]{share:.0%}[/dim]" if share else "[dim]·[/dim]"
            self.ended[place] = self._ended(job, status)
        return self.ended[place]

    def _ended(self, job: Job, status: Status) -> str:
        if status is Status.finished:
            value = job.record.metrics(job.key)[self.shown]
            self.reached[job.row].append(value)
            return format(value, METRICS[self.shown].format)
        return f"[red]{status.value}[/red]"

    def mean(self, row: str) -> str:
        """The mean of the seeds that have finished, without a verdict: that waits for the last of them."""
        reached = self.reached[row]
        return f"{sum(reached) / len(reached):{METRICS[self.shown].format}} ({len(reached)})" if reached else ""

    def left(self) -> str:
        """The time left, by the work done since the start; empty where nothing can be said yet."""
        done, total = self.work_done(), sum(work(run.request.run) for run in self.plan.runs)
        if done <= self.work_before or not self.moving:
            # The clock starts with the first progress: before it lies the workers' start-up.
            self.moving, self.work_before, self.started = done > self.work_before, done, time.monotonic()
            return ""
        seconds = (total - done) * (time.monotonic() - self.started) / (done - self.work_before)
        return f" · {int(seconds) // 60}:{int(seconds) % 60:02d} left"

    def draw(self):  # noqa: ANN201 (a rich renderable, imported only where it is drawn)
        """The table as it stands."""
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table
        from rich.text import Text

        table = Table(METRICS[self.shown].label)
        table.add_column("mean (n)", justify="right", min_width=9)
        for seed in self.plan.seeds:
            table.add_column(f"seed {seed}", justify="right", min_width=8)
        for row in self.plan.rows:
            cells = [self.cell(job) for job in self.plan.of_row(row.name)]
            table.add_row(escape(row.name), self.mean(row.name), *cells)
        # The cells have just noted what has ended: nothing is read twice for the count.
        table.caption = f"{len(self.ended)} of {len(self.plan.jobs)} runs{self.left()}"
        return Group(Text(self.plan.title, style="bold"), table)


@contextmanager
def live(plan: Plan) -> Iterator[None]:
    """Draw the board on stderr while the block runs, if that is a terminal; it is wiped at the end."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    board = Board(plan)
    with Live(get_renderable=board.draw, console=console, refresh_per_second=4, transient=True):
        yield
