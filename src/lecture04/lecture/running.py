"""Items in subprocesses, each with its log: one that fails does not end the others.

In a terminal a bar shows the current item, and how many of a sweep's runs are complete; a pipe gets a line per item.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lecture04.config.places import ROOT
from lecture04.files import write_whole
from lecture04.lecture import fresh
from lecture04.lecture.items import Item, Kind
from lecture04.records.stored import read_json

POLL_SECONDS = 1.0


def command(item: Item) -> list[str]:
    """The command, with this very python, from wherever it is run."""
    first, *rest = item.arguments
    if item.kind is Kind.test:
        xml = f"--junitxml={Path.cwd() / item.folder / fresh.RESULT[item.kind]}"
        where = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", xml]
        return [sys.executable, first, *rest[:-1], *where, str(ROOT / rest[-1])]
    own = [f"hydra.run.dir={item.folder}"] if item.kind is Kind.probe else []
    return [sys.executable, str(ROOT / first), *rest, *own]


def environment(item: Item) -> dict[str, str]:
    """The environment of an item: a test gets the folder of the first run of the table that it needs."""
    told = dict(os.environ)
    if item.kind is Kind.test and item.needs:
        rows = (read_json(item.needs[0].folder / "sweep.json") or {"rows": {}})["rows"]
        if names := [name for about in rows.values() for name in about["runs"].values()]:
            told["LECTURE04_RUN"] = str(Path.cwd() / "outputs" / "runs" / names[0])
    return told


def without_places(text: str) -> str:
    """A log with paths from the folder that the command was run in, without the folders of this machine."""
    for folder in (Path.cwd(), ROOT, Path(sys.prefix), Path.home()):
        text = text.replace(f"{folder}/", "")
    return text


def run(item: Item, log: Path, poll: Callable[[], None]) -> int:
    """Run one item with its output in a log; `poll` is called every second. Returns the exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    item.folder.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command(item), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(item)
        )
        try:
            while process.poll() is None:
                poll()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=POLL_SECONDS)
        finally:
            process.terminate()  # after an interrupt; one that has ended is left alone
            process.wait()
    write_whole(log, without_places(log.read_text(encoding="utf-8", errors="replace")))
    return process.returncode


def minutes(seconds: float) -> str:
    """`4:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def perform(items: Sequence[Item], outputs: Path) -> dict[str, str]:
    """Run what is missing of the items, in order, inside `fresh.composing()`. Returns {source: why} of failed ones."""
    from rich.console import Console
    from rich.progress import Progress

    failed: dict[str, str] = {}
    console = Console(stderr=True, soft_wrap=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for i, item in enumerate(items, 1):
            head = f"[{i:2d}/{len(items)}] {item.kind} {item.name}"
            task = progress.add_task(head, total=None)
            said = _one(item, outputs / "logs" / f"{item.name}.log", failed, partial(progress.update, task))
            progress.remove_task(task)
            console.print(f"{head}: {said}", markup=False, highlight=False)
    return failed


def _one(item: Item, log: Path, failed: dict[str, str], show: Callable[..., None]) -> str:
    """Run one item unless its result is up to date. Returns what to print; a failure is added to `failed`."""
    if lacks := [needed.name for needed in item.needs if needed.source in failed]:
        failed[item.source] = f"{item.kind} {item.name} needs {lacks[0]}, which failed"
        return f"left out, {lacks[0]} failed"
    jobs = ()
    # Where its config does not compose, the item's own command says why, in the log.
    with contextlib.suppress(Exception):
        if fresh.is_done(item):
            return "there already"
        jobs = fresh.plan_of(item).jobs if item.kind is Kind.sweep else ()
    started = time.monotonic()

    def poll() -> None:
        if jobs:
            show(total=len(jobs), completed=sum(job.is_complete for job in jobs))

    code = run(item, log, poll)
    took = minutes(time.monotonic() - started)
    if code:
        failed[item.source] = f"{item.kind} {item.name} failed; its log is {log}"
        return f"FAILED after {took}, see {log}"
    fresh.stamp(item)
    return f"done, {took}"
