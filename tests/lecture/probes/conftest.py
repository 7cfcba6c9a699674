"""A probe's table, by its name and overrides; and a finished sweep for those that read one."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from lecture04.config import Request
from lecture04.config.places import CONF
from lecture04.lecture import fresh
from lecture04.lecture.probes import command
from lecture04.lecture.probes.options import PROBES, Probe
from lecture04.training.run import run


@cache
def _resolved(overrides: tuple[str, ...]) -> tuple[Request, Probe]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return command.resolved(compose("probe", overrides=list(overrides)))


@cache
def _asked(overrides: tuple[str, ...]) -> pd.DataFrame:
    request, options = _resolved(overrides)
    return PROBES.lookup(options.name)(request, options)


@pytest.fixture(scope="session")
def resolved() -> Callable:
    """`resolved("probe=rope", "posenc=rope")`: the request and the options of a probe's command line."""
    return lambda *overrides: _resolved(overrides)


@pytest.fixture(scope="session")
def ask() -> Callable[..., pd.DataFrame]:
    """`ask("rope", "posenc=rope")`: the table of a probe; asked once for all tests."""
    return lambda name, *overrides: _asked((f"probe={name}", *overrides)).copy()


@pytest.fixture(scope="session")
def value(ask) -> Callable[..., float]:
    """`value("rope", quantity="length", q_pos=3)`: the one figure that fits."""

    def value(name: str, *overrides: str, **where: object) -> float:
        table = ask(name, *overrides)
        for column, wanted in where.items():
            table = table[table[column] == wanted]
        (found,) = table["value"]
        return float(found)

    return value


# A run of a second; the first row of sweeps/ffn is the standard model.
SMALL = (
    "trainer.steps=30",
    "trainer.batch_size=8",
    "trainer.diverged_margin=-9",
    "data.n_train=120",
    "data.n_val=20",
    "data.n_test=40",
)


@pytest.fixture(scope="session")
def small_data() -> tuple[str, ...]:
    """The overrides that the runs of `swept` were made with."""
    return SMALL


@pytest.fixture(scope="session")
def swept(tmp_path_factory) -> Path:
    """The outputs folder of `train.py -m sweeps=ffn` with small runs of two seeds; its table is called ffn."""
    outputs = tmp_path_factory.mktemp("swept") / "outputs"
    lines = ["sweeps=ffn", "seed=0,1", "logger=none", *SMALL, f"paths.outputs={outputs}"]
    with fresh.composing():
        plan = fresh.planned(tuple(lines))
    for job in plan.jobs:
        run(job.request, job.record, command="python train.py", progress=lambda step, row: None)
    manifest = plan.manifest(f"python train.py {' '.join(lines)} -m")
    # With other settings than the file's the table has a name of its own; claims are about the file's.
    (outputs / "sweeps" / "ffn").mkdir(parents=True)
    (outputs / "sweeps" / "ffn" / "sweep.json").write_text(json.dumps(manifest.to_json()))
    return outputs


@pytest.fixture(scope="session")
def part_of_the_corpus(tmp_path_factory) -> tuple[str, ...]:
    """The overrides of a standard corpus with fewer documents, 600 of which are for tests: made once."""
    return "data.n_train=800", "data.n_val=300", "data.n_test=600", f"paths.outputs={tmp_path_factory.mktemp('part')}"


@pytest.fixture(scope="session")
def whole_corpus(tmp_path_factory) -> str:
    """Where probes of the standard corpus keep it, as an override: made once."""
    return f"paths.outputs={tmp_path_factory.mktemp('corpus')}"
