"""Real sweeps, small enough to run in seconds: a subprocess of train.py, as a user types it."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from lecture04.cli import train as cli
from lecture04.config.places import CONF
from lecture04.sweep import command

ROOT = Path(__file__).parents[2]
# What W&B is told is tested in test_wandb.py; here its seconds are saved.
WITHOUT_WANDB = {"WANDB_MODE": "disabled"}
SMALL = (
    "trainer.steps=30",
    "trainer.log_every=10",
    "trainer.batch_size=8",
    "trainer.diverged_margin=-9",
    "data.n_train=80",
    "data.n_val=20",
    "data.n_test=40",
)


GROUPS = {"ffn", "norm", "placement", "attention", "posenc", "recipe"}


@cache
def composed(row):
    """What Hydra makes of a row: many plans have the same ones."""
    return compose("config", overrides=list(row))


@pytest.fixture
def plan_of(tmp_path):
    """`plan_of(Table(...), "seed=0,1")`: the plan of a sweep file and a command line."""

    def plan_of(sweep, *lines):
        overrides = OverridesParser.create().parse_overrides(list(lines))

        def at_home(row):
            with initialize_config_dir(str(CONF), version_base="1.3"):
                settings = cli.settings_of(composed(tuple(row)))
                settings.paths.outputs = str(tmp_path)
                return cli.resolved_settings(settings)

        return command.plan(sweep, overrides, is_group=GROUPS.__contains__, compose=at_home)

    return plan_of


@pytest.fixture(scope="session")
def small_data():
    """The overrides that make a run of about a second."""
    return SMALL


@pytest.fixture(scope="session")
def train(warm):
    """`train(folder, "-m", "ffn=relu,swiglu")`: runs the command in a folder, which gets the outputs."""

    def train(folder, *arguments):
        return warm(ROOT / "train.py", *arguments, *SMALL, "logger=none", cwd=folder, **WITHOUT_WANDB)

    return train


@pytest.fixture(scope="session")
def train_alone():
    """As `train`, in a process of its own from the beginning."""

    def train_alone(folder, *arguments):
        command = [sys.executable, str(ROOT / "train.py"), *arguments, *SMALL, "logger=none"]
        env = os.environ | WITHOUT_WANDB
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=env)

    return train_alone


@pytest.fixture
def with_part(tmp_path):
    """A copy of the project with one more part, as a user adds it: `with_part("ffn", "mine", code)` is its folder."""

    def with_part(family, name, code):
        copy = tmp_path / "project"
        for folder in ("src", "conf", "sweeps"):
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        shutil.copy(ROOT / "train.py", copy)
        (copy / "src" / "lecture04" / "nn" / f"{name}.py").write_text(code)
        (copy / "conf" / family / f"{name}.yaml").write_text(f"name: {name}\n")
        return copy

    return with_part


@pytest.fixture(scope="session")
def train_in():
    """`train_in(copy, "-m", ...)`: as `train`, with the code of a copy of the project."""

    def train_in(copy, *arguments):
        command = [sys.executable, "train.py", *arguments, *SMALL]
        environment = os.environ | WITHOUT_WANDB | {"PYTHONPATH": str(copy / "src")}
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=240)

    return train_in


@pytest.fixture(scope="session")
def start():
    """As `train`, but leaves the process running."""

    def start(folder, *arguments):
        command = [sys.executable, str(ROOT / "train.py"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=folder, env=os.environ | WITHOUT_WANDB, text=True, **pipes)

    return start
