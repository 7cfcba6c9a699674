"""Sweeps through Hydra in a subprocess: tables, sharing, launchers, failures, interrupts and dead workers."""

import csv
import json
import re

import pytest

SWIGLU = ("ffn=swiglu", "norm=rmsnorm", "-m", "seed=0,1")


def runs(folder):
    return sorted(path for path in (folder / "outputs" / "runs").iterdir())


def checkpoints(folder):
    return {run.name: (run / "checkpoint.safetensors").read_bytes() for run in runs(folder)}


def table(folder):
    (path,) = (folder / "outputs" / "sweeps").glob("*/table.md")
    return path.read_text()


@pytest.fixture(scope="module")
def swept(tmp_path_factory, train_alone):
    """A finished sweep of one row and two seeds, typed with -m in the middle."""
    folder = tmp_path_factory.mktemp("swept")
    done = train_alone(folder, *SWIGLU)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_minus_m_may_stand_in_the_middle_and_the_sweep_ends_with_its_table(swept):
    folder, done = swept
    assert len(runs(folder)) == 2
    assert "swiglu, rmsnorm" in done.stdout
    assert re.search(r"swiglu, rmsnorm: test ppl [\d.]+, the mean of 2 seeds", done.stdout)
    assert "table.md" in done.stdout
    (page,) = (folder / "outputs" / "sweeps").glob("*/report.html")
    assert str(page.relative_to(folder)) in done.stdout
    assert "\x1b" not in done.stdout + done.stderr, "a pipe gets no terminal codes"
    assert done.stderr.count("\n") == 1, "and one line at the start"


def test_a_finished_sweep_trains_nothing_and_prints_the_same_table(swept, train):
    folder, done = swept
    before = {run: (run / "checkpoint.safetensors").stat().st_mtime_ns for run in runs(folder)}
    again = train(folder, *SWIGLU)
    assert again.stdout == done.stdout
    assert "2 there, 0 to train" in again.stderr
    assert before == {run: (run / "checkpoint.safetensors").stat().st_mtime_ns for run in runs(folder)}


@pytest.mark.slow
def test_the_basic_launcher_gives_the_same_bits(swept, train, tmp_path):
    folder, _ = swept
    assert train(tmp_path, *SWIGLU, "hydra/launcher=basic").returncode == 0
    assert checkpoints(tmp_path) == checkpoints(folder)


def test_a_single_run_is_shared_with_the_sweep(swept, train):
    folder, _ = swept
    before = checkpoints(folder)
    single = train(folder, "ffn=swiglu", "norm=rmsnorm", "seed=1")
    assert single.returncode == 0
    assert "finished, after 30 steps" in single.stdout
    assert checkpoints(folder) == before


def test_a_new_evaluation_retrains_nothing(swept, train):
    folder, _ = swept
    before = {run: (run / "checkpoint.safetensors").stat().st_mtime_ns for run in runs(folder)}
    again = train(folder, *SWIGLU, "eval.window=6", "hydra/launcher=basic")
    assert again.returncode == 0, again.stderr
    assert {run: (run / "checkpoint.safetensors").stat().st_mtime_ns for run in runs(folder)} == before
    assert all(len(list((run / "evals").glob("*.json"))) == 2 for run in runs(folder))


def test_plain_rows_share_a_run_with_every_other_table_and_csv_is_tidy(train, tmp_path):
    done = train(tmp_path, "-m", "ffn=relu,swiglu", "seed=0,1", "hydra/launcher=basic")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "outputs" / "sweeps").glob("*/runs.csv")
    with open(path, newline="") as file:
        lines = list(csv.DictReader(file))
    nll = {(line["row"], line["seed"]): float(line["value"]) for line in lines if line["metric"] == "test/nll"}
    assert set(nll) == {(row, seed) for row in ("relu", "swiglu") for seed in "01"}
    for line in lines:
        if line["metric"] == "test/nll":
            (evaluation,) = (tmp_path / "outputs" / "runs" / line["run"] / "evals").glob("*.json")
            assert json.loads(evaluation.read_text())["metrics"]["test/nll"] == float(line["value"])
    assert "| relu |" in table(tmp_path)


def test_the_recipe_plan_starts_nothing(train, tmp_path):
    done = train(tmp_path, "-m", "sweeps=recipe", "sweep.plan=true")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("─\n")[1].split("\n\n")[0]
    sizes = [re.split(r"\s{3,}", line)[1] for line in table.splitlines()]
    assert sizes == ["256", "256", "257", "171", "171", "192", "196"]
    assert re.search(r"3 \(planned\) +3\.\d times the noise", done.stdout)
    assert "21 runs, 21 to train, nothing started" in done.stdout
    assert not (tmp_path / "outputs").exists()


BROKEN = '''
import torch
from torch import Tensor
from lecture04.nn.ffn import PlainFFN
from lecture04.config.registry import register


@register("ffn", "broken")
class Broken(PlainFFN):
    """Fails when it is used."""

    def activation(self, x: Tensor) -> Tensor:
        raise RuntimeError("boom")
'''


@pytest.mark.slow
def test_a_failing_job_is_named_with_its_cause_and_its_command_and_the_others_go_on(with_part, train_in):
    copy = with_part("ffn", "broken", BROKEN)
    done = train_in(copy, "-m", "ffn=relu,broken", "seed=0,1")
    assert done.returncode == 1
    assert "FAILED 'broken' seed 0: RuntimeError: boom" in done.stdout
    assert "again: python train.py" in done.stdout
    statuses = [json.loads((run / "summary.json").read_text())["status"] for run in runs(copy)]
    assert sorted(statuses) == ["failed", "failed", "finished", "finished"]
    failed = next(run for run in runs(copy) if "failed" in (run / "summary.json").read_text())
    assert "Traceback" in (failed / "train.log").read_text()
    # It is tried again, and only it.
    before = {run: (run / "summary.json").stat().st_mtime_ns for run in runs(copy)}
    assert train_in(copy, "-m", "ffn=relu,broken", "seed=0,1").returncode == 1
    changed = [run for run in runs(copy) if (run / "summary.json").stat().st_mtime_ns != before[run]]
    assert len(changed) == 2
