"""Which runs count as a table's, and as a config's."""

import json
import shutil
from dataclasses import replace

import pytest

from lecture04.config.messages import UserError
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.finished import as_run, of_config, of_table
from lecture04.nn.init import build
from lecture04.records.identity import fingerprint
from lecture04.training import checkpoint


@pytest.fixture
def copy(swept, tmp_path):
    """A copy of the finished sweep's outputs, to be damaged."""
    return shutil.copytree(swept, tmp_path / "outputs")


@pytest.fixture
def asked(resolved, small_data):
    """`asked(outputs, ...)`: a probe's config of the small standard model."""
    return lambda outputs, *more: resolved("probe=world", *small_data, f"paths.outputs={outputs}", *more)


def test_a_probes_config_is_that_of_a_run(resolved, compose):
    """Or runs of the standard model would never be found: two files list the defaults."""
    assert fingerprint(as_run(resolved("probe=world"))) == fingerprint(compose())


def test_a_table_has_its_runs_in_order(asked, swept):
    runs = of_table(asked(swept), "ffn")
    assert [(run.row, run.seed) for run in runs] == [
        (row, seed) for row in ("ReLU", "GELU", "SiLU", "SwiGLU") for seed in (0, 1)
    ]
    assert [run.cfg.ffn.name for run in runs[::2]] == ["relu", "gelu", "silu", "swiglu"]
    assert all(run.cfg.seed == run.seed and run.cfg.trainer.steps == 30 for run in runs)
    assert all(run.record.metrics(run.evaluation)["test/ppl"] > 1 for run in runs)


def test_a_run_lies_where_it_lies_now(asked, copy):
    """Whatever its own config says of the place: outputs that were moved can still be asked."""
    assert all(run.cfg.paths.outputs == str(copy) for run in of_table(asked(copy), "ffn"))


def test_no_table(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"make it: python train\.py -m sweeps=ffn paths\.outputs={tmp_path}$"):
        of_table(asked(tmp_path), "ffn")
    with pytest.raises(UserError, match=r"make it: python train\.py -m sweeps=ffn$"):
        of_table(replace(asked(tmp_path), paths=type(asked(tmp_path).paths)("outputs")), "ffn")
    with pytest.raises(UserError, match=r"there is no such table\. Did you mean ffn\?"):
        of_table(asked(tmp_path), "fnf")


def test_runs_that_are_missing(asked, copy):
    runs = of_table(asked(copy), "ffn")
    (runs[3].record.folder / "summary.json").unlink()
    with pytest.raises(
        UserError, match=r"1 of its 8 runs not there \(GELU seed 1\); train them: python train\.py .* -m$"
    ):
        of_table(asked(copy), "ffn")
    shutil.rmtree(runs[6].record.folder)
    with pytest.raises(UserError, match=r"2 of its 8 runs not there \(GELU seed 1, \.\.\.\)"):
        of_table(asked(copy), "ffn")


def test_a_configs_runs_are_found_whatever_their_seed(asked, swept):
    runs = of_config(asked(swept, "seed=7"))
    assert [run.seed for run in runs] == [0, 1]
    assert [run.record for run in runs] == [run.record for run in of_table(asked(swept), "ffn") if run.row == "ReLU"]
    assert [run.cfg.seed for run in runs] == [0, 1]
    assert not of_config(asked(swept, "ffn=relu2"))
    assert not of_config(asked(swept, "trainer.steps=31"))
    assert len(of_config(asked(swept, "ffn=swiglu", "ffn.d_ff=171"))) == 2


def test_runs_that_did_not_finish_do_not_count(asked, copy):
    first, second = of_config(asked(copy))
    path = second.record.folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "diverged"}))
    assert [run.seed for run in of_config(asked(copy))] == [first.seed]


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_run_of_todays_code_goes_before_others(asked, copy, ours_first):
    ours = of_config(asked(copy))[0].record.folder
    other = ours.with_name(ours.name[:-6] + "abcdef")
    shutil.copytree(ours, other)
    (ours if not ours_first else other).joinpath("summary.json").touch()
    assert of_config(asked(copy))[0].record.folder == ours
    shutil.rmtree(ours)
    assert of_config(asked(copy))[0].record.folder == other


def test_a_trained_model_is_the_checkpoints(asked, copy):
    run = of_config(asked(copy))[0]
    model, untrained = trained(run), build(run.cfg)
    assert not model.training
    assert not (model.embed.weight == untrained.embed.weight).all()
    (run.record.folder / checkpoint.NAME).write_bytes(b"torn")
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: does not fit .* train it again: python train\.py"):
        trained(run)
    (run.record.folder / checkpoint.NAME).unlink()
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: is missing"):
        trained(run)
