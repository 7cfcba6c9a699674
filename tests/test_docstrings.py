"""The package's own names: each has a docstring whose examples run."""

import json
from pathlib import Path

import pytest

import lecture04

TABLE = """\
# @package _global_
sweep:
  title: My table
  seeds: [0, 1]
  primary: test/nll
  common: [trainer.steps=10, trainer.diverged_margin=-9, data.n_train=80, data.n_val=20, data.n_test=40]
  rows:
    ReLU: [ffn=relu]
    SwiGLU: [ffn=swiglu]
"""
MOST = 12


@pytest.fixture(scope="module")
def failures(warm, tmp_path_factory):
    """{name: what its examples printed that they should not}, where a table of a project's own was trained."""
    place = tmp_path_factory.mktemp("place")
    (place / "lecture04.yaml").write_text("parts: []\n")
    (place / "sweeps").mkdir()
    (place / "sweeps" / "mine.yaml").write_text(TABLE)
    launcher = ("hydra/launcher=basic", "logger=none")
    done = warm("lecture04.cli.main", "train", "-m", "sweeps=mine", *launcher, cwd=place)
    assert done.returncode == 0, done.stderr
    done = warm(Path(__file__).with_name("docstrings.py"), cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", lecture04.__all__)
def test_the_examples_of_a_docstring_run(name, failures):
    assert failures[name] == ""


def test_there_are_few_names_and_each_is_told():
    assert lecture04.__all__ == sorted(lecture04.__all__)
    assert len(lecture04.__all__) <= MOST
    for name in lecture04.__all__:
        assert (getattr(lecture04, name).__doc__ or "").strip()
        assert name in dir(lecture04)


def test_no_module_of_the_package_has_a_public_name():
    """It would stand in the name's place once it is imported."""
    folder = Path(lecture04.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not modules & set(lecture04.__all__)
