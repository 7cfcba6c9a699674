"""Which runs count as a table's, and as a config's."""

import json
import shutil

import pytest

from lecture04.config.messages import UserError
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.finished import of_config, of_table
from lecture04.nn.init import build
from lecture04.records.identity import identity
from lecture04.training import checkpoint


@pytest.fixture
def copy(swept, tmp_path):
    """A copy of the finished sweep's outputs, to be damaged."""
    return shutil.copytree(swept, tmp_path / "outputs")


@pytest.fixture
def of_small(resolved, small_data):
    """`of_small(outputs, ...)`: the runs there of the small standard model, with further overrides."""
    return lambda outputs, *more: of_config(resolved("probe=world", *small_data, *more)[0].run, str(outputs))


def test_a_probes_config_is_that_of_a_run(resolved, compose):
    """Or runs of the standard model would never be found: two files list the defaults."""
    assert identity(resolved("probe=world")[0].run) == identity(compose())


def test_a_table_has_its_runs_in_order(swept):
    runs = of_table(str(swept), "ffn")
    assert [(run.row, run.seed) for run in runs] == [
        (row, seed) for row in ("ReLU", "GELU", "SiLU", "SwiGLU") for seed in (0, 1)
    ]
    assert [found.run.ffn.name for found in runs[::2]] == ["relu", "gelu", "silu", "swiglu"]
    assert all(found.run.seed == found.seed and found.run.trainer.steps == 30 for found in runs)
    assert all(run.record.metrics(run.evaluation)["test/ppl"] > 1 for run in runs)


def test_no_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"make it: python train\.py -m sweeps=ffn paths\.outputs={tmp_path}$"):
        of_table(str(tmp_path), "ffn")
    with pytest.raises(UserError, match=r"make it: python train\.py -m sweeps=ffn$"):
        of_table("outputs", "ffn")
    with pytest.raises(UserError, match=r"there is no such table\. Did you mean ffn\?"):
        of_table(str(tmp_path), "fnf")


def test_runs_that_are_missing(copy):
    runs = of_table(str(copy), "ffn")
    (runs[3].record.folder / "summary.json").unlink()
    with pytest.raises(
        UserError, match=r"1 of its 8 runs not there \(GELU seed 1\); train them: python train\.py .* -m$"
    ):
        of_table(str(copy), "ffn")
    shutil.rmtree(runs[6].record.folder)
    with pytest.raises(UserError, match=r"2 of its 8 runs not there \(GELU seed 1, \.\.\.\)"):
        of_table(str(copy), "ffn")


def test_a_configs_runs_are_found_whatever_their_seed(of_small, swept):
    runs = of_small(swept, "seed=7")
    assert [run.seed for run in runs] == [0, 1]
    assert [run.record for run in runs] == [run.record for run in of_table(str(swept), "ffn") if run.row == "ReLU"]
    assert [found.run.seed for found in runs] == [0, 1]
    assert not of_small(swept, "ffn=relu2")
    assert not of_small(swept, "trainer.steps=31")
    assert len(of_small(swept, "ffn=swiglu", "ffn.d_ff=171")) == 2


def test_runs_that_did_not_finish_do_not_count(of_small, copy):
    first, second = of_small(copy)
    path = second.record.folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "diverged", "sha256": None}))
    assert [run.seed for run in of_small(copy)] == [first.seed]


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_run_of_todays_code_goes_before_others(of_small, copy, ours_first):
    ours = of_small(copy)[0].record.folder
    other = ours.with_name(ours.name[:-6] + "abcdef")
    shutil.copytree(ours, other)
    for path in (other / "summary.json", *(other / "evals").iterdir()):
        as_theirs = {"code": "abcdef", "run": other.name[-17:], "sha256": None}
        path.write_text(json.dumps(json.loads(path.read_text()) | as_theirs))
    (ours if not ours_first else other).joinpath("summary.json").touch()
    assert of_small(copy)[0].record.folder == ours
    shutil.rmtree(ours)
    assert of_small(copy)[0].record.folder == other


def test_a_trained_model_is_the_checkpoints(of_small, copy):
    run = of_small(copy)[0]
    model, untrained = trained(run), build(run.run)
    assert not model.training
    assert not (model.embed.weight == untrained.embed.weight).all()
    (run.record.folder / checkpoint.NAME).write_bytes(b"torn")
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: does not fit .* train it again: python train\.py"):
        trained(run)
    (run.record.folder / checkpoint.NAME).unlink()
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: is missing"):
        trained(run)
