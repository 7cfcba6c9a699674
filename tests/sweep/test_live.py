"""What a running sweep shows, as a board and in a terminal."""

import io
import itertools
import json
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

from lecture04.config import Design, Table
from lecture04.records.record import Status
from lecture04.sweep import live

ROOT = Path(__file__).parents[2]
FFNS = ("relu", "relu2", "gelu", "gelu_tanh", "silu", "glu", "swiglu")


@pytest.fixture
def board_of(plan_of):
    """`board_of("relu", "swiglu")`: a board of two rows, two seeds each."""

    def board_of(*ffns, **settings):
        rows = {ffn: [f"ffn={ffn}"] for ffn in ffns}
        return live.Board(plan_of(Table(name="mine", design=Design.star, seeds=[0, 1], rows=rows, **settings)))

    return board_of


def drawn(board, width=80, height=24, encoding="utf-8"):
    """The lines of the board on a terminal of that size."""
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=file, force_terminal=True, color_system=None, width=width, height=height)
    console.print(board.draw(console))
    file.flush()
    return file.buffer.getvalue().decode().splitlines()


def begin(job, step=0):
    job.record.folder.mkdir(parents=True, exist_ok=True)
    job.record.start(job.request.run, job.request.evaluation, "")
    if step:
        job.record.append({"step": step})


def end(job, nll, status=Status.finished):
    begin(job)
    job.record.finish(status, job.request.run, "", metrics={})
    job.record.write_evaluation(job.key, {"metrics": {"test/nll": nll, "test/ppl": math.exp(nll)}})


def line_of(lines, row):
    (line,) = (line for line in lines if line.split()[:1] == [row])
    return re.split(r"\s{2,}", line.strip())


def test_each_row_says_how_many_seeds_are_there_and_their_mean_so_far(board_of):
    board = board_of("relu", "swiglu", columns=["train/nll", "test/ppl"])
    relu, swiglu = board.plan.of_row("relu"), board.plan.of_row("swiglu")
    assert line_of(drawn(board), "relu") == ["relu", "0 of 2"]
    end(relu[0], 1.2)
    for _ in range(2):
        assert line_of(drawn(board), "relu") == ["relu", "1 of 2", f"{math.exp(1.2):.3f}"], "however often it is drawn"
    end(relu[1], 1.4)
    end(swiglu[0], 1.1, Status.undertrained)
    lines = drawn(board)
    assert line_of(lines, "relu") == ["relu", "2 of 2", f"{(math.exp(1.2) + math.exp(1.4)) / 2:.3f}"]
    assert line_of(lines, "swiglu") == ["swiglu", "1 of 2", f"{math.exp(1.1):.3f}", "1 undertrained"]
    assert "test ppl so far" in lines[1]
    assert not re.search(r"±|better|worse|noise|[-+]\d", "\n".join(lines)), "no look at the result before its end"


def test_a_run_shows_how_far_it_is_and_how_it_ended(board_of):
    board = board_of("relu")
    first, second = board.plan.of_row("relu")
    steps = first.request.run.trainer.steps
    begin(first)
    assert line_of(drawn(board), "relu")[-1] == "seed 0: 0%"
    begin(first, steps // 2)
    begin(second, steps)
    assert line_of(drawn(board), "relu")[-1] == "seed 0: 50%, seed 1: evaluating"
    end(first, math.nan, Status.diverged)
    second.record.finish(Status.failed, second.request.run, "", error="boom")
    assert line_of(drawn(board), "relu") == ["relu", "2 of 2", "1 diverged, 1 failed"]


def test_something_moves_every_second(board_of, monkeypatch):
    now = itertools.count(100, 1)
    monkeypatch.setattr("time.monotonic", lambda: float(next(now)) / 4)
    board = board_of("relu")
    begin(board.plan.jobs[0], 10)
    seen = [drawn(board)[-1] for _ in range(12)]
    assert all(before != after for before, after in itertools.pairwise(seen))
    assert re.search(r"\d of 2 runs, 0:0\d", seen[-1])


def test_the_time_left_is_said_once_there_is_progress(board_of):
    board = board_of("relu")
    job = board.plan.jobs[0]
    assert "starting" in drawn(board)[-1]
    assert "left" not in drawn(board)[-1]
    for step in (10, 20, 30):
        begin(job, step)
        last = drawn(board)[-1]
    assert re.search(r"about \d+:\d\d left", last)
    for job in board.plan.jobs:
        end(job, 1.0)
    assert "left" not in drawn(board)[-1]


def test_of_jobs_that_end_before_they_are_seen_nothing_untrue_is_said(board_of):
    board = board_of("relu")
    for job in board.plan.jobs:
        begin(job, 0)
        end(job, 1.0)
    assert re.search(r"2 of 2 runs, \d+:\d\d$", drawn(board)[-1].rstrip())


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (80, 10),
        (40, 8),
        *(pytest.param(*size, marks=pytest.mark.slow) for size in ((80, 24), (20, 6), (120, 4), (200, 3))),
    ],
)
def test_it_fits_any_terminal(board_of, width, height):
    board = board_of(*FFNS, title="a title that is much longer than a line of any terminal is wide " * 4)
    for job in board.plan.jobs[1:12]:
        begin(job, 700)
    end(board.plan.jobs[0], 1.3)
    lines = drawn(board, width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert "1 of 14 runs"[: width - 8] in lines[-1]
    if width >= 40 and height > 6:
        assert any(line.startswith("relu ") for line in lines), "names stay whole"
    if height == 10:
        assert [line.split()[0] for line in lines[3:-2]] == ["relu", "relu2", "gelu", "gelu_tanh"]
        assert lines[-2] == "3 other rows: 0 of 6 runs there"


def test_names_cannot_move_the_cursor_and_a_terminal_without_unicode_gets_ascii(plan_of):
    rows = {"a\x1b[2J\nb": ["ffn=relu"], "plain": ["ffn=gelu"]}
    board = live.Board(plan_of(Table(name="mine", design=Design.star, seeds=[0], rows=rows, title="[red]x\x07")))
    lines = drawn(board, encoding="ascii")
    assert len(lines) == 6
    assert lines[0] == "[red]x "
    assert not [sign for sign in "".join(lines) if not sign.isprintable()]


# -- in a terminal


def test_a_sweep_fills_its_rows_and_leaves_a_clean_screen(warm, small_data, in_terminal, tmp_path):
    line = ("-m", "ffn=relu", "seed=0,1", "hydra/launcher=basic", "logger=none", *small_data)
    done, screens, raw = in_terminal(warm, ROOT / "train.py", *line, cwd=tmp_path)
    assert done.returncode == 0, raw
    assert "\x1b" not in done.stdout
    assert "test ppl" in done.stdout, "the table is for the pipe"
    assert all(len(screen) < 24 and max(map(len, screen), default=0) <= 80 for screen in screens)
    assert len(screens) > 4
    said = ["\n".join(screen) for screen in screens]
    assert any(re.search(r"seed 0: \d+%", screen) for screen in said)
    assert any(re.search(r"relu +1 of 2 +\d", screen) for screen in said)
    assert not any(word in screen for screen in said for word in ("±", "better", "within noise"))
    assert len(screens[-1]) == 1, screens[-1]
    assert screens[-1][0].endswith("2 runs, 0 there, 2 to train")


def test_a_failed_run_names_a_log_only_where_there_is_one(plan_of, capsys):
    p = plan_of(
        Table(name="mine", design=Design.star, seeds=[0, 1], rows={"a": ["ffn=relu"]}, title="x"), "logger=none"
    )

    class Launcher:
        def launch(self, job_overrides, initial_job_idx):
            job = p.jobs[0]
            begin(job)
            job.record.finish(Status.failed, job.request.run, "", error="boom")
            (job.record.folder / "train.log").write_text("Traceback")
            raise RuntimeError("no worker")

    from lecture04.sweep.command import execute

    assert execute(p, Launcher(), ["-m"]) == 2
    said = capsys.readouterr().out
    assert f"log:   {p.jobs[0].record.folder}/train.log" in said
    assert "log:   none, the job was never started" in said
    assert json.loads((p.jobs[1].record.folder / "summary.json").read_text())["status"] == "failed"
