"""What a single run shows: a progress bar in a terminal, nothing in a pipe, and where it ended."""

from collections.abc import Iterator
from contextlib import contextmanager

from lecture04.config import Request, Run
from lecture04.records.identity import evaluation_key
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record, Status, is_other_code
from lecture04.training.loop import Row
from lecture04.training.run import Progress


@contextmanager
def run_progress(run: Run, *, show: bool) -> Iterator[Progress]:
    """Yields what the training loop calls after each step; draws on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield lambda step, row: None
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[reached]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("training", total=run.trainer.steps, reached="")

        def tick(step: int, row: Row) -> None:
            shown = [f"{name} {row[name]:.3f}" for name in ("train/loss", "val/ppl") if name in row]
            bar.update(task, completed=step, reached="  ".join(shown))

        yield tick


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
        excess = m.get(f"{split}/excess")
        print(line if excess is None else f"{line}, {excess:+.4f} over the true ones")
    for metric in METRICS.values():
        if metric.items and metric.name in m:
            print(f"  {metric.label} {m[metric.name]:.4f} of {m[metric.items]:,.0f}: {metric.about}")
    print(
        f"  {m['params']:,} parameters (d_ff {m['d_ff']}, {m['mismatch']:+.2%} of the matched size), "
        f"{m['flops_per_token'] / 1e3:,.0f} kFLOP and {m['kv_per_token']} KV numbers a token\n"
        f"  {m['tokens_per_second']:,.0f} tokens/s, {m['peak_mib']:.0f} MiB at the peak"
    )
    print(f"config, curves, checkpoint and log: {record.folder}")
