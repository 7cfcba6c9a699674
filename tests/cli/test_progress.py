"""What a single run shows while it trains, and what it says at its end."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from lecture04.cli import progress

ROOT = Path(__file__).parents[2]
SMALL = ("trainer.batch_size=8", "data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none")


def test_the_line_says_how_far_the_run_is_on_one_line_of_a_terminal():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    line = progress.Line(12_345)
    said = [line.draw(console)]
    for step in (1, 2, 6_000, 12_345):
        line.tick(step, {"train/loss": 2.3456, "val/ppl": 12.345} if step > 2 else {})
        said.append(line.draw(console))
    starting, first, second, half, end = (text.plain for text in said)
    assert "starting, 0:00" in starting
    assert "1/12,345 steps, 0:00" in first
    assert "left" not in first
    assert "2/12,345 steps" in second
    assert "━━━━······ " in half
    assert "left, loss 2.346, val ppl 12.345" in half
    assert "evaluating" in end
    assert all(text.cell_len <= 80 and "\n" not in text.plain for text in said)


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ((), "undertrained", "not trained enough to beat the unigram model, after 5 steps"),
        pytest.param(
            *(("optim.lr=1e6", "optim.clip=null", "optim.schedule=constant"), "diverged", "DIVERGED, after 5 steps"),
            marks=pytest.mark.slow,
        ),
        (("trainer.diverged_margin=-9",), "finished", "finished, after 5 steps"),
    ],
)
def test_a_run_says_how_it_ended(warm, tmp_path, more, status, said):
    line = ("trainer.steps=5", "optim.warmup_steps=0", *SMALL, *more)
    done = warm(ROOT / "train.py", *line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (summary,) = (tmp_path / "outputs" / "runs").glob("*/summary.json")
    assert json.loads(summary.read_text())["status"] == status
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith(said)
    assert second.strip().startswith(("train", "val/nll is", "the loss is"))
    assert done.stderr == ""
    again = warm(ROOT / "train.py", *line, cwd=tmp_path)
    assert again.stdout.splitlines()[:2] == ["there already, nothing trained", first], "it is a result"
