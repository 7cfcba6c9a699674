"""Runs that differ in their seed alone are told by their records, whatever they start from."""

from pathlib import Path

import pytest

from lecture04.records.record import Record
from lecture04.records.replicates import replicate


def recorded(asked, folder, *line):
    request = asked(*line)
    record = Record(Path(folder))
    record.folder.mkdir(parents=True)
    record.start(request.run, request.evaluation, "")
    return replicate(record)


UPTRAINED = ("attention=gqa", "init=uptrain", "init.source=['attention=mha']", "trainer.steps=5")


@pytest.mark.parametrize("line", [("ffn=swiglu",), UPTRAINED], ids=["plain", "uptrained"])
def test_runs_that_differ_in_the_seed_alone_are_replicates(asked, tmp_path, line):
    a, b = (recorded(asked, tmp_path / str(seed), *line, f"seed={seed}") for seed in (0, 1))
    assert (a.seed, b.seed) == (0, 1)
    assert (a.config, a.code) == (b.config, b.code)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ffn=swiglu",), ("ffn=geglu",)),
        ((), ("optim.lr=0.001",)),
        (UPTRAINED, (*UPTRAINED[:2], "init.source=['attention=mha','trainer.steps=9']", "trainer.steps=5")),
        (UPTRAINED, (*UPTRAINED, "init.merge=first")),
    ],
    ids=["part", "setting", "source", "merge"],
)
def test_runs_of_other_settings_are_not(asked, tmp_path, one, other):
    a, b = (recorded(asked, tmp_path / name, *line, "seed=0") for name, line in (("a", one), ("b", other)))
    assert a.config != b.config
