"""Splits of every task, drawn once, with few problems."""

from pathlib import Path

import pytest

from lecture04.data.types import SOURCES
from tests.data.tasks.examples import TASKS

FEW = ("data.n_train=400", "data.n_val=60", "data.n_test=80")


@pytest.fixture(scope="session")
def drawn(compose, tmp_path_factory):
    """`drawn("copy", "data.train_max=5")`: the splits of a command line."""

    def draw(task, *overrides, few=FEW, folder: Path | None = None):
        options = compose(f"data={task}", *few, *overrides).data
        return SOURCES.lookup(task)(options, folder or tmp_path_factory.mktemp(task))

    return draw


@pytest.fixture(params=TASKS)
def task(request):
    """The name of each task in turn."""
    return request.param
