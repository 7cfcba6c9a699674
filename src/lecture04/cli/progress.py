"""What a single run shows: how far it is in a terminal, nothing in a pipe, and where it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lecture04 import display
from lecture04.config import Request, Run
from lecture04.records.identity import evaluation_key
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record, Status, is_other_code

if TYPE_CHECKING:  # torch takes its seconds after the display has begun
    from rich.console import Console
    from rich.text import Text

    from lecture04.training.loop import Row
    from lecture04.training.run import Progress

BAR = 10
"""Signs of the bar."""


class Line:
    """One line on a run."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps, self.step, self.row = n_steps, 0, dict[str, float]()
        self.began = self.started = time.monotonic()

    def tick(self, step: int, row: Row) -> None:
        """A step is done."""
        if not self.step:
            self.started = time.monotonic()  # of the second step: before the first lie the corpus and the model
        self.step, self.row = step, row

    def draw(self, console: Console) -> Text:
        """The line as it stands."""
        from rich.text import Text

        elapsed = display.clock(time.monotonic() - self.began)
        if not self.step:
            said = f"starting, {elapsed}"
        elif self.step == self.n_steps:
            said = f"evaluating, {elapsed}"
        else:
            full = BAR * self.step // self.n_steps
            bar = "━" * full + "·" * (BAR - full)
            named = {"train/loss": "loss", "val/ppl": "val ppl"}
            figures = [f"{named[name]} {self.row[name]:.3f}" for name in named if name in self.row]
            said = f"{bar} {self.step:,}/{self.n_steps:,} steps, {', '.join([elapsed + self._left(), *figures])}"
        return Text(f"{display.spinner(console)} {said}", no_wrap=True, overflow="ellipsis")

    def _left(self) -> str:
        if self.step < 2:
            return ""
        seconds = (time.monotonic() - self.started) * (self.n_steps - self.step) / (self.step - 1)
        return f", {display.clock(seconds)} left"


@contextmanager
def run_progress(run: Run, *, show: bool) -> Iterator[Progress]:
    """Yields what the training loop calls after each step; draws on stderr where that is a terminal."""
    if not show:
        yield lambda step, row: None
        return
    line = Line(run.trainer.steps)
    with display.showing(line.draw):
        yield line.tick


def print_run(request: Request, record: Record, *, was_there: bool) -> None:
    """What a run reached and where everything lies, on stdout; and whether it was there already."""
    run = request.run
    m = record.metrics(evaluation_key(run, request.evaluation))
    summary = record.summary()
    status = record.status()
    how = "DIVERGED" if status is Status.diverged else status.in_words
    if was_there:
        print("there already, nothing trained" + (" (by other code: runs.reuse=config)" * is_other_code(record, run)))
    print(f"{how}, after {m['steps']:,} steps and {m['tokens']:,} tokens in {m['wall_seconds']:.0f} s, seed {run.seed}")
    if why := summary.get("why"):
        print(f"  {why}")
    for split in ("train", "val", "test"):
        line = f"  {split:5s}  perplexity {m[f'{split}/ppl']:.3f}   {m[f'{split}/nll']:.4f} nats a token"
        if (excess := m.get(f"{split}/excess")) is not None:
            line += f", excess {excess:.4f}"
        if (bits := m.get(f"{split}/bpb")) is not None:
            line += f", {bits:.4f} bits a byte"
        print(line)
    for metric in METRICS.values():
        if metric.items and metric.name in m:
            print(f"  {metric.label} {m[metric.name]:.4f} of {m[metric.items]:,.0f}")
    print(
        f"  {m['params']:,} parameters (d_ff {m['d_ff']}, {m['mismatch']:+.2%} of the matched size), "
        f"{m['flops_per_token'] / 1e3:,.0f} kFLOP and {m['kv_per_token']} KV numbers a token\n"
        f"  {m['tokens_per_second']:,.0f} tokens/s, {m['peak_mib']:.0f} MiB at the peak"
    )
    print(f"config, curves, checkpoint and log: {record.folder}")
