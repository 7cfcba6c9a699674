"""Items in subprocesses: their logs, their durations, and what is shown meanwhile.

One item that fails does not end the others. In a terminal a bar with the time left; in a pipe a line an item.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lecture04.cli.train import ROOT
from lecture04.lecture import fresh
from lecture04.lecture.fresh import State
from lecture04.lecture.items import Item, Kind
from lecture04.records.record import read_json, write_whole

POLL_SECONDS = 1.0
# Until an item has run here once: seconds a run of a sweep, or a probe or test, takes.
ROUGHLY = {Kind.sweep: 12.0, Kind.probe: 5.0, Kind.test: 15.0}

Say = Callable[[str], None]


@dataclass
class Outcomes:
    """What came of the items: why some failed, by source, and how long a unit of each took."""

    failed: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


def command(item: Item) -> list[str]:
    """The command, with this very python, from wherever it is run."""
    if item.kind is Kind.test:
        xml = f"--junitxml={Path.cwd() / item.folder / 'junit.xml'}"
        where = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", xml]
        return [sys.executable, *item.arguments[:-1], *where, str(ROOT / item.path)]
    return [sys.executable, str(ROOT / item.arguments[0]), *item.arguments[1:]]


def environment(item: Item) -> dict[str, str]:
    """A test is told where the first run lies of the table that it needs."""
    told = dict(os.environ)
    if item.kind is Kind.test and item.needs:
        rows = (read_json(item.needs[0].folder / "sweep.json") or {"rows": {}})["rows"]
        if names := [name for about in rows.values() for name in about["runs"].values()]:
            told["LECTURE04_RUN"] = str(Path.cwd() / "outputs" / "runs" / names[0])
    return told


def without_places(text: str) -> str:
    """A log without the folders of this machine: paths from the folder that the command was run in."""
    for folder in (Path.cwd(), ROOT, Path(sys.prefix), Path.home()):
        text = text.replace(f"{folder}/", "")
    return text


def run(item: Item, log: Path, poll: Callable[[], None]) -> int:
    """Run one item, its output to a log; `poll` is called now and then meanwhile. Returns the exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    item.folder.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command(item), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(item)
        )
        try:
            while True:
                try:
                    code = process.wait(timeout=POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    poll()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    write_whole(log, without_places(log.read_text(encoding="utf-8", errors="replace")))
    return code


class Durations:
    """How long a unit of each item took when it last ran here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, float] = read_json(path) or {}

    def estimate(self, item: Item, units: int) -> float:
        """Seconds for so many runs of a sweep, or for a probe."""
        return units * self.known.get(item.source, ROUGHLY[item.kind])

    def keep(self, item: Item, seconds: float) -> None:
        """Remember a duration, for next time."""
        self.known[item.source] = round(seconds, 1)
        write_whole(self.path, json.dumps(self.known, indent=1) + "\n")


def minutes(seconds: float) -> str:
    """`4:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Screen:
    """What is shown: `line` in a pipe, `bar` in a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.text = ""

    def line(self, text: str) -> None:
        """Something that stays."""
        if self.console.is_terminal:
            self.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def bar(self) -> Iterator[None]:
        """A line at the bottom that says what is going on, in a terminal."""
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        if not self.console.is_terminal:
            yield
            return
        spinner = Spinner("dots")

        def draw() -> Spinner:
            spinner.update(text=Text(self.text))
            return spinner

        with Live(get_renderable=draw, console=self.console, refresh_per_second=8, transient=True):
            yield


def perform(items: Sequence[Item], outputs: Path) -> Outcomes:
    """Run what is missing of the items, in order. Call it inside `fresh.composing()`."""
    logs, durations, outcomes, screen = outputs / "logs", Durations(outputs / "durations.json"), Outcomes(), Screen()
    outputs.mkdir(parents=True, exist_ok=True)
    with screen.bar():
        screen.text = f"looking what is there of {len(items)} items"
        if not screen.console.is_terminal:
            screen.line(screen.text)
        waiting = {item.source: _waiting(item, durations) for item in items}
        for i, item in enumerate(items, 1):
            head = f"[{i:2d}/{len(items)}] {item.kind} {item.name}"
            _one(item, head, logs / f"{item.name}.log", durations, waiting, outcomes, screen)
            waiting[item.source] = 0.0
    return outcomes


def _waiting(item: Item, durations: Durations) -> float:
    state = _look(item)
    return durations.estimate(item, 1 if state is None else _units(state))


def _look(item: Item) -> State | None:
    """An item's state; None where its config does not compose: its own command says why."""
    try:
        return fresh.state(item)
    except Exception:
        return None


def _units(state: State) -> int:
    """What is left to do of an item: runs of a sweep; none where only its table is missing."""
    return state.total - state.done


def _one(
    item: Item,
    head: str,
    log: Path,
    durations: Durations,
    waiting: dict[str, float],
    outcomes: Outcomes,
    screen: Screen,
) -> None:
    if failed := [needed.name for needed in item.needs if needed.source in outcomes.failed]:
        outcomes.failed[item.source] = f"{item.kind} {item.name} needs {failed[0]}, which failed"
        screen.line(f"{head}: left out, {failed[0]} failed")
        return
    state = _look(item)
    if state is not None and state.is_fresh:
        screen.line(f"{head}: there already")
        return
    started = time.monotonic()
    units = 1 if state is None else _units(state)
    expected, rest = durations.estimate(item, units), sum(waiting.values()) - waiting[item.source]

    def poll() -> None:
        seconds, share = time.monotonic() - started, ""
        left = max(0.0, expected - seconds)
        if screen.console.is_terminal and state is not None and state.plan is not None:
            done = sum(job.is_complete for job in state.plan.jobs)
            share = f", {done} of {state.total} runs"
            left = max(left, (state.total - done) * durations.estimate(item, 1))
        screen.text = f"{head}{share} · about {minutes(left + rest)} left"

    poll()
    code = run(item, log, poll)
    seconds = time.monotonic() - started
    if code:
        outcomes.failed[item.source] = f"{item.kind} {item.name} failed; its log is {log}"
        screen.line(f"{head}: FAILED after {minutes(seconds)}, see {log}")
        return
    fresh.stamp(item)
    outcomes.ran.append(item.source)
    if units:
        durations.keep(item, seconds / units)
    what = f"{units} of {state.total} runs trained or evaluated" if state and item.kind is Kind.sweep else "done"
    screen.line(f"{head}: {what}, {minutes(seconds)}")
