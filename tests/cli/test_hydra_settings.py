"""Hydra's own settings: those by which a run or a table would not be what it is are refused, the rest does its work."""

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from lecture04.cli.hydra_settings import OURS, run_errors, sweep_errors
from lecture04.config.places import CONF

ROOT = Path(__file__).parents[2]
SMALL = (
    *("trainer.steps=5", "trainer.diverged_margin=-9", "optim.warmup_steps=0", "trainer.batch_size=8", "logger=none"),
    *("data.n_train=80", "data.n_val=20", "data.n_test=40", "hydra/launcher=basic"),
)


@pytest.fixture(scope="module")
def hydras():
    """`hydras("hydra.sweep.dir=x")`: Hydra's node of a composed config."""

    def hydras(*lines):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", overrides=[*lines], return_hydra_config=True).hydra

    return hydras


def test_what_conf_says_is_what_is_compared_with(hydras):
    node = OmegaConf.to_container(hydras(), resolve=False)
    assert {
        "run.dir": node["run"]["dir"],
        "sweep.dir": node["sweep"]["dir"],
        "sweep.subdir": node["sweep"]["subdir"],
    } == OURS


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hydra.sweep.dir=folder", "hydra.sweep.dir=folder: "),
        ("hydra.sweep.subdir='${hydra.job.num}'", "hydra.sweep.subdir=${hydra.job.num}: "),
        ("hydra.output_subdir=.", "hydra.output_subdir=.: a run's folder has its config in config.yaml already"),
    ],
)
def test_where_runs_lie_is_not_hydras_to_say(hydras, compose, line, said):
    node, run = hydras(line), compose()
    for errors in (run_errors(node, run), sweep_errors(node)):
        (sentence,) = errors
        assert sentence.startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hydra.run.dir=folder", "hydra.run.dir=folder: names the folder of one run; paths.outputs=FOLDER"),
        ("hydra/sweeper=basic", "hydra/sweeper=basic: another sweeper makes no table"),
        ("hydra.launcher.backend=nonsense", "hydra.launcher.backend=nonsense: there is no such choice here."),
        ("hydra.launcher.backend=threading", "Choices: null, loky."),
        ("hydra.launcher.require=sharedmem", "hydra.launcher.require=sharedmem: "),
        ("hydra.launcher.n_jobs=0", "hydra.launcher.n_jobs=0: must be at least 1"),
    ],
)
def test_a_table_is_made_by_its_own_sweeper_in_processes(hydras, compose, line, said):
    (sentence,) = sweep_errors(hydras("hydra/launcher=joblib", line))
    assert said in sentence


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_our_own_workers_are_one_or_more(hydras, n_jobs):
    (sentence,) = sweep_errors(hydras(f"hydra.launcher.n_jobs={n_jobs}"))
    assert sentence == f"hydra.launcher.n_jobs={n_jobs}: must be at least 1, or -1 for all cores."


def test_a_single_run_has_no_other_sweeper_either(hydras, compose):
    (sentence,) = run_errors(hydras("hydra/sweeper=basic"), compose())
    assert sentence.startswith("hydra/sweeper=basic: another sweeper makes no table")


@pytest.mark.parametrize(
    "lines", [(), ("hydra/launcher=basic",), ("hydra.launcher.n_jobs=2", "hydra.job.chdir=true", "hydra.verbose=true")]
)
def test_other_settings_pass(hydras, compose, lines):
    assert sweep_errors(hydras(*lines)) == run_errors(hydras(*lines), compose()) == []


@pytest.mark.parametrize("line", ["hydra.sweep.dir=folder", "hydra/sweeper=basic", "hydra.output_subdir=.hydra"])
def test_nothing_is_made_where_a_table_is_refused(forked, tmp_path, line):
    done = forked(ROOT / "train.py", "-m", "ffn=relu,gelu", line, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_named_for_a_run_is_that_runs_alone(warm, tmp_path):
    def train(*words):
        return warm(ROOT / "train.py", *SMALL, "hydra.run.dir=mein Ordner", *words, cwd=tmp_path)

    first = train("ffn=relu")
    assert first.returncode == 0, first.stderr
    files = {path: path.read_bytes() for path in (tmp_path / "mein Ordner").rglob("*") if path.suffix == ".json"}
    other = train("ffn=swiglu", "model.d_model=32")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr.startswith(
        "hydra.run.dir=mein Ordner: another run lies there (model.d_model: 32 here, 64 in it"
    )
    assert len(other.stderr.splitlines()) == 1
    assert files == {path: path.read_bytes() for path in files}
    again = train("ffn=relu")
    assert again.stdout.startswith("there already, nothing trained\n"), "and of no other code"


@pytest.mark.slow
def test_paths_mean_the_folder_that_the_command_was_typed_in(warm, tmp_path):
    """With hydra.job.chdir Hydra enters the run's folder: the corpus and the source lie where they lay."""
    source = "init.source=['attention=mha','trainer.steps=5','trainer.diverged_margin=-9']"
    words = ("-m", "attention=gqa", "init=uptrain", source, "hydra.job.chdir=true", *SMALL)
    done = warm(ROOT / "train.py", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.parent for path in tmp_path.rglob("runs")] == [tmp_path / "outputs"]
    assert [path.parent for path in tmp_path.rglob("data")] == [tmp_path / "outputs"]
    statuses = [json.loads(path.read_text())["status"] for path in tmp_path.rglob("summary.json")]
    assert statuses == ["finished"] * 2


def test_an_empty_folder_of_the_environment_is_refused(forked, tmp_path):
    done = forked(ROOT / "train.py", "paths.outputs=${oc.env:EMPTY}", cwd=tmp_path, EMPTY="")
    assert done.returncode == 1
    assert done.stderr == "paths.outputs=: no value stands there.\n"
    assert not list(tmp_path.iterdir())
