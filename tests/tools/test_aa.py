"""The A/A test on made-up runs; the real one is slow and lies in docs/aa.md."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from aa import ALLOWED, METRIC, N_ROWS, ask, page, split

from lecture04.report.results import collect
from lecture04.stats import Identity, judged_values

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs():
    return dict(enumerate(np.random.default_rng(1).normal(1.35, 0.003, 12)))


def test_rows_have_disjoint_seeds_and_all_of_them(runs):
    rows = split(runs, np.arange(12))
    assert [list(row) for row in rows.values()] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert all(row[seed] == runs[seed] for row in rows.values() for seed in row)


def test_what_is_left_over_is_left_out(runs):
    assert sum(map(len, split(runs, np.arange(11)).values())) == 2 * N_ROWS


def test_equal_rows_are_rarely_told_apart_and_unequal_ones_are(runs):
    assert ask(runs, 300).rate < 0.1
    apart = {seed: value + (0.05 if seed >= 9 else 0.0) for seed, value in runs.items()}
    assert ask(apart, 1).verdicts["d"] == "worse"
    assert ask(apart, 1).n_called == 1


def test_the_page_says_what_was_counted(runs):
    text = page(ask(runs, 50), 12)
    assert "Of 50 splits" in text
    assert len(re.findall(r"^\| [abcd] \|", text, flags=re.M)) == N_ROWS


def test_without_the_table_the_command_that_makes_it_is_said(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "aa.py")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "outputs/sweeps/aa: no such table; python train.py -m sweeps=aa makes it."


@pytest.mark.slow
def test_real_runs_that_differ_in_their_seeds_alone_are_not_told_apart(tmp_path):
    """sweeps/aa.yaml, cut to an epoch; docs/aa.md is the whole."""
    command = [sys.executable, str(ROOT / "train.py"), "-m", "sweeps=aa", "trainer.epochs=1", "logger=none"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    (folder,) = (tmp_path / "outputs" / "sweeps").glob("aa-*")
    outcome = ask(judged_values(collect(folder).values(METRIC), Identity())["standard"])
    assert set(outcome.verdicts.values()) == {"within noise"}
    assert outcome.rate <= ALLOWED
