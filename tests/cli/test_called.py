"""`lecture04.train(...)` beside the command that it stands for."""

import json
import logging
import sys

import hydra
import pytest
import torch
from hydra.core.global_hydra import GlobalHydra

import lecture04 as l4
from lecture04.cli import called
from lecture04.config.errors import UserError

TINY = (
    *("trainer.steps=12", "trainer.batch_size=8", "data.n_train=80", "data.n_val=20", "data.n_test=40"),
    *("logger=none", "ffn=swiglu", "seed=1"),
)
OF_THE_MACHINE = {"tokens_per_second", "peak_mib", "wall_seconds", "train_seconds"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


@pytest.fixture(autouse=True)
def _there(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])


@pytest.fixture(scope="module")
def run(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return l4.train(TINY)


def test_it_is_the_commands_run_bit_for_bit(run, place, warm, tmp_path):
    done = warm("lecture04.cli.main", "train", *TINY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ours, (theirs,) = place / run.folder, (tmp_path / "outputs" / "runs").iterdir()
    assert theirs.name == run.folder.name  # the identity is in it
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
    for name in ("checkpoint.safetensors", "identity.json"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()
    settings = [(folder / "config.yaml").read_text().partition("\n")[2] for folder in (ours, theirs)]
    assert settings[0] == settings[1]
    found = l4.load(theirs).metrics
    assert run.metrics.keys() == found.keys()
    for name in run.metrics.keys() - OF_THE_MACHINE:
        assert run.metrics[name] == found[name]


def test_a_run_that_is_there_is_returned_and_not_trained_again(run, monkeypatch):
    monkeypatch.setattr(called.command, "perform", lambda *_, **__: pytest.fail("trained again"))
    again = l4.train([*TINY])
    assert again.folder == run.folder
    assert again.metrics == run.metrics


def test_its_log_is_in_its_folder_and_nothing_is_left_of_it(run):
    assert "Evaluated" in (run.folder / "train.log").read_text()
    ours = logging.getLogger("lecture04")
    assert ours.propagate
    assert ours.level == logging.NOTSET
    assert not any(isinstance(handler, logging.FileHandler) for handler in ours.handlers)


def test_torch_keeps_the_callers_threads(run):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        l4.train([*TINY, "trainer.steps=1"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_application_of_hydras_around_it_stays_as_it_is(run, tmp_path):
    (tmp_path / "theirs.yaml").write_text("mine: 1\n")
    with hydra.initialize_config_dir(str(tmp_path), version_base="1.3"):
        assert l4.train(TINY).folder == run.folder
        assert hydra.compose("theirs").mine == 1
    assert not GlobalHydra.instance().is_initialized()


@pytest.mark.parametrize(
    "line", ["ffn=nope", "lr=3", "trainer.stepss=3", "ffn", "model.n_heads=5", "sweep.rows=3", "init=uptrain"]
)
def test_a_bad_override_is_told_in_the_commands_words(line, forked, tmp_path):
    done = forked("lecture04.cli.main", "train", "logger=none", line, cwd=tmp_path)
    assert done.returncode == 1
    with pytest.raises(UserError) as told:
        l4.train(["logger=none", line])
    assert str(told.value).split() == done.stderr.split()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["seed=0,1"], "seed=0,1: several values, .* `lecture04 train -m seed=0,1` .* lecture04.table"),
        (["ffn=choice(relu,gelu)"], "several values"),
        (["-m", "ffn=relu"], "-m: one run at a time .* `lecture04 train -m ffn=relu` "),
        (["sweeps=recipe"], "sweeps=recipe is a table of 7 rows: `lecture04 train -m sweeps=recipe`"),
        (["hydra.run.dir=x"], "hydra.run.dir=x: a setting of Hydra's own"),
        (["--cfg", "job"], "--cfg: an option of the command line's"),
        ("ffn=relu", r"write train\(\['ffn=relu'\]\)"),
    ],
)
def test_what_is_more_than_one_run_is_refused_with_the_way_on(words, said):
    with pytest.raises(UserError, match=said) as told:
        l4.train(words)
    assert "\n" not in str(told.value)


def test_a_measure_without_a_file_is_refused(monkeypatch):
    monkeypatch.setitem(called.MEASURES, "test/mine", type("Mine", (), {"__module__": "__main__"}))
    with pytest.raises(UserError, match="test/mine: what measures it must lie in a file, named by parts="):
        l4.train(TINY)


def test_a_failure_is_raised_and_written_down(monkeypatch):
    from lecture04.training import run as training

    def fail(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr(training, "begin", fail)
    with pytest.raises(RuntimeError, match="boom"):
        l4.train([*TINY, "seed=7"])
    (folder,) = (path for path in called.Path("outputs/runs").iterdir() if "-s7-" in path.name)
    assert json.loads((folder / "summary.json").read_text())["status"] == "failed"
    assert l4.load(folder).status == "failed"
    with pytest.raises(UserError, match="no checkpoint.safetensors is there; the run is failed"):
        _ = l4.load(folder).model
