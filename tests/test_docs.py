"""The worked example, done as its page says: files written, commands run, on a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "add-a-part.md"
# Seconds instead of minutes; the slow test does without.
SMALL = "trainer.steps=20 trainer.diverged_margin=-9 trainer.batch_size=8 data.n_train=80 data.n_val=20 data.n_test=40"


def blocks(kind):
    """(the text before it, the block's content) of each fenced block of a kind."""
    return re.findall(rf"([^\n]*)\n\n```{kind}\n(.*?)```", PAGE.read_text(), flags=re.S)


@pytest.fixture
def follow(tmp_path):
    """Does what the page says, and gives what each command printed."""

    def follow(more):
        copy = tmp_path / "project"
        ignored = shutil.ignore_patterns(".*", "outputs", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for before, code in blocks("python") + blocks("yaml"):
            (path,) = re.findall(r"`((?:src|conf)/[^`]+)`", before)
            assert not (copy / path).exists(), "the page adds files, it changes none"
            (copy / path).write_text(code)
        bin_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PATH": bin_first, "WANDB_MODE": "disabled"}
        printed = {}
        for _, commands in blocks("sh"):
            for command in commands.splitlines():
                typed = f"{command} {more}" if command.startswith("python train.py") else command
                done = subprocess.run(typed, shell=True, cwd=copy, env=environment, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                printed[command] = done.stdout
        return printed

    return follow


@pytest.mark.slow
def test_the_page_works_as_it_stands(follow):
    printed = follow(SMALL)
    assert len(printed) == 4
    test, plan, table, more = printed.values()
    assert re.search(r"[1-9]\d* passed", test)
    assert "failed" not in test
    assert "6 runs, 6 to train, nothing started" in plan
    assert plan.count("   170   ") == 2
    for text in (table, more):
        assert "relu2glu" in text
        assert "±" in text
    assert "seed 4" in more
    assert "seed 4" not in table


@pytest.mark.slow
def test_the_pages_table_is_what_its_command_prints(follow):
    """At full length: every figure on the page, to the digit."""
    printed = follow("")
    ((_, shown),) = blocks("")
    table = list(printed.values())[2]
    for line in shown.splitlines():
        assert re.sub(r"\s+", " ", line) in re.sub(r"[^\S\n]+", " ", table)
