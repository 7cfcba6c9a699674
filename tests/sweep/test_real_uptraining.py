"""Runs that start from other runs, and rows that test one run in several ways, through Hydra in a subprocess."""

import json

import pytest
import yaml
from safetensors.torch import load_file

ROWS = ("-m", "attention=gqa,mqa", "init=uptrain", "seed=4", "hydra/launcher=basic")
SOURCE = "init.source=['trainer.steps=30','trainer.batch_size=8','trainer.log_every=10','trainer.diverged_margin=-9']"


def runs(folder, part=""):
    return sorted(path for path in (folder / "outputs" / "runs").iterdir() if part in path.name)


@pytest.fixture(scope="module")
def uptrained(tmp_path_factory, train):
    """Two rows and a seed, from a source that no row asks for."""
    folder = tmp_path_factory.mktemp("uptrained")
    done = train(folder, *ROWS, SOURCE)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_missing_source_is_trained_first_and_once(uptrained):
    folder, done = uptrained
    assert "2 runs, 0 there, 3 to train" in done.stderr
    (source,) = runs(folder, "-mha-")
    ends = {path.name: (path / "summary.json").stat().st_mtime_ns for path in runs(folder)}
    assert len(ends) == 3
    assert ends[source.name] == min(ends.values())
    assert json.loads((source / "summary.json").read_text())["seed"] == 4


def test_a_run_records_what_it_started_from(uptrained):
    folder, _ = uptrained
    (run,) = runs(folder, "-gqa-")
    recorded = yaml.safe_load((run / "config.yaml").read_text())["init"]
    assert recorded["start"]["attention"]["name"] == "mha"
    assert recorded["start"]["seed"] == 4
    assert json.loads((runs(folder, "-mha-")[0] / "summary.json").read_text())["status"] == "finished"


def test_another_call_trains_nothing(uptrained, train):
    folder, done = uptrained
    again = train(folder, *ROWS, SOURCE)
    assert "2 runs, 2 there, 0 to train" in again.stderr
    assert again.stdout == done.stdout


def test_a_single_run_trains_its_source_first_and_says_so(uptrained, train):
    folder, _ = uptrained
    done = train(folder, "attention=mqa", "init=uptrain", "init.merge=first", SOURCE, "seed=5")
    assert done.returncode == 0, done.stderr
    assert "first the run that it starts from: outputs/runs/" in done.stderr
    assert len(runs(folder, "-mha-")) == 2
    assert len(runs(folder)) == 5


@pytest.mark.slow
def test_a_stretched_test_is_an_evaluation_of_the_same_run(tmp_path, train):
    packed = ("data=garden_packed", "posenc=rope", "eval.length=128", "hydra/launcher=basic")
    done = train(tmp_path, "-m", "eval.scaling.name=none,linear", *packed)
    assert done.returncode == 0, done.stderr
    assert "1 to train" in done.stderr
    (run,) = runs(tmp_path)
    evaluations = [json.loads(path.read_text()) for path in (run / "evals").iterdir()]
    assert len(evaluations) == 2
    assert len({e["metrics"]["test/excess@64-127"] for e in evaluations}) == 2
    assert len({e["metrics"]["val/nll"] for e in evaluations}) == 1
    assert all(len(e["curves"]["nll"]) == 128 for e in evaluations)
    before = load_file(run / "checkpoint.safetensors")
    again = train(tmp_path, "-m", "eval.scaling.name=none,linear,ntk", *packed)
    assert "0 to train, 1 to evaluate" in again.stderr
    assert all((before[name] == value).all() for name, value in load_file(run / "checkpoint.safetensors").items())
