"""A run's folder: what is read back is what was written, and nothing half-written counts."""

import json
import math
import os
import subprocess
import sys
import time
from datetime import datetime

import pytest

from lecture04.records.identity import identity, run_name
from lecture04.records.lease import lease
from lecture04.records.record import Record, Status, find, is_other_code


@pytest.fixture
def asked(requested, tmp_path):
    return requested(f"paths.outputs={tmp_path}")


@pytest.fixture
def cfg(asked):
    return asked.run


@pytest.fixture
def record(asked):
    record = find(asked.run, asked.session)
    record.folder.mkdir(parents=True)
    return record


def test_a_run_without_a_summary_is_missing(record):
    assert record.status() is Status.missing
    assert record.last_step() == 0


def test_metrics_come_back_from_summary_and_evaluation(record, cfg, asked):
    record.start(cfg, asked.evaluation, "python train.py")
    record.finish(Status.finished, cfg, "python train.py", metrics={"steps": 3, "train_seconds": 1.5})
    assert not record.is_complete("key")
    record.write_evaluation("key", {"metrics": {"test/nll": 1.25, "test/ppl": math.inf}})
    assert record.is_complete("key")
    assert not record.is_complete("another key")
    metrics = record.metrics("key")
    assert metrics["steps"] == 3
    assert metrics["test/nll"] == 1.25
    assert math.isnan(metrics["test/ppl"])


def test_when_a_run_ended_is_kept_wherever_the_record_is_copied_to(record, cfg, tmp_path):
    assert record.ended() is None
    before = datetime.now().replace(microsecond=0)
    record.finish(Status.finished, cfg, "", metrics={})
    assert before <= record.ended() <= datetime.now()
    os.utime(record.folder / "summary.json", (0, 0))
    assert record.ended() >= before
    older = {key: value for key, value in record.summary().items() if key not in ("ended", "sha256")}
    (record.folder / "summary.json").write_text(json.dumps(older))
    os.utime(record.folder / "summary.json", (0, 0))
    assert record.ended() == datetime.fromtimestamp(0), "an older record does not say it"


def test_files_are_strict_json(record, cfg):
    record.append({"step": 1, "train/loss": math.nan})
    record.finish(Status.diverged, cfg, "", metrics={"x": math.inf})
    for text in (record.folder / "metrics.jsonl", record.folder / "summary.json"):
        json.loads(text.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_line_that_is_being_written_does_not_count(record):
    record.append({"step": 10, "train/loss": 1.0})
    record.append({"step": 20, "train/loss": 1.0})
    assert record.last_step() == 20
    with open(record.folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 3')
    assert record.last_step() == 20


@pytest.mark.parametrize(
    "torn",
    [
        *("", '{"status": "fini', "[1, 2", "3", "[]", "null", "{}"),
        *('{"status": "bogus"}', '{"status": "finished"}', '{"status": "finished", "metrics": 3}'),
    ],
)
def test_a_torn_summary_is_set_aside_and_said(record, caplog, torn):
    (record.folder / "summary.json").write_text(torn)
    assert record.status() is Status.missing
    assert (record.folder / "summary.json.unreadable").exists()
    assert "could not be read" in caplog.text


@pytest.mark.parametrize("torn", ["", "[]", "{}", '{"metrics": 3}', '{"metrics": {"a": 1}'])
def test_a_torn_evaluation_is_set_aside_and_said(record, cfg, caplog, torn):
    record.finish(Status.finished, cfg, "", metrics={})
    record.write_evaluation("key", {"metrics": {}})
    (record.folder / "evals" / "key.json").write_text(torn)
    assert not record.is_complete("key")
    assert (record.folder / "evals" / "key.json.unreadable").exists()
    assert "could not be read" in caplog.text


def test_starting_again_takes_away_what_a_failed_try_left(record, cfg, asked):
    record.append({"step": 10})
    record.finish(Status.failed, cfg, "", error="boom")
    record.start(cfg, asked.evaluation, "python train.py")
    assert record.status() is Status.missing
    assert record.last_step() == 0


def test_forgetting_failures_leaves_results(record, cfg):
    record.finish(Status.diverged, cfg, "", metrics={})
    record.write_evaluation("key", {"error": "boom"})
    record.forget_failure("key")
    assert record.status() is Status.diverged
    assert record.error("key") is None


def test_a_run_that_another_process_works_on_is_left_alone(record, cfg):
    record.append({"step": 10})
    record.finish(Status.failed, cfg, "", error="boom")
    with lease(record.folder):
        script = (
            "import sys; from pathlib import Path; from lecture04.records.record import Record\n"
            "Record(Path(sys.argv[1])).forget_failure('key')"
        )
        subprocess.run([sys.executable, "-c", script, str(record.folder)], check=True)
        assert record.status() is Status.failed
    record.forget_failure("key")
    assert record.status() is Status.missing
    assert record.last_step() == 10


def test_a_run_is_found_by_its_identity_whatever_its_folder_is_called(record, asked):
    renamed = record.folder.with_name(f"my favourite-{identity(asked.run)}")
    record.folder.rename(renamed)
    assert find(asked.run, asked.session) == Record(renamed)


def test_a_run_of_other_code_stands_in_only_where_asked_for(requested, tmp_path):
    strict, lax = (requested(f"paths.outputs={tmp_path}", f"runs.reuse={how}").session for how in ("exact", "config"))
    cfg = requested().run
    other = Record(tmp_path / "runs" / f"x-{identity(cfg).config}-000000")
    other.folder.mkdir(parents=True)
    assert find(cfg, lax).folder.name == run_name(cfg), "an unfinished run stands for nothing"
    other.finish(Status.finished, cfg, "", metrics={})
    summary = json.loads((other.folder / "summary.json").read_text()) | {"code": "000000", "sha256": None}
    (other.folder / "summary.json").write_text(json.dumps(summary))
    assert find(cfg, strict).folder.name == run_name(cfg)
    assert find(cfg, lax) == other
    assert is_other_code(other, cfg)
    own = find(cfg, strict)
    own.folder.mkdir()
    own.finish(Status.finished, cfg, "", metrics={})
    assert find(cfg, lax) == own, "a run of the same code comes first"
    assert not is_other_code(own, cfg)


def test_the_resolved_config_lies_in_the_folder(record, cfg, asked):
    from omegaconf import OmegaConf

    record.start(cfg, asked.evaluation, "python train.py ffn=relu")
    text = (record.folder / "config.yaml").read_text()
    assert text.startswith("# python train.py ffn=relu\n")
    assert OmegaConf.create(text).ffn.d_ff == cfg.ffn.d_ff


@pytest.mark.parametrize(
    "content",
    [
        {"status": "finished", "metrics": {"test/nll": "abc"}},
        {"status": ["finished"], "metrics": {}},
        {"status": "finished", "metrics": {"wall_seconds": "x"}},
        {"status": "finished", "metrics": {"steps": True}},
        {"status": "finished", "metrics": [1]},
        {"status": "finished", "metrics": {}, "ended": 3},
        {"status": "failed", "error": {}},
    ],
)
def test_a_summary_that_says_nonsense_is_set_aside(record, caplog, content):
    (record.folder / "summary.json").write_text(json.dumps(content))
    assert record.status() is Status.missing
    assert record.metrics("key") == {}
    assert "does not say what it should" in caplog.text
    assert (record.folder / "summary.json.unreadable").exists()


def test_lines_of_the_curve_that_say_nonsense_do_not_count(record):
    lines = ['{"step": 1, "train/loss": 2.0}', "5", "[]", '{"step": "x"}', '{"step": 2, "train/loss": "y"}', '{"a']
    (record.folder / "metrics.jsonl").write_text("\n".join(lines) + "\n5\n")
    assert record.rows() == [{"step": 1, "train/loss": 2.0}]
    assert record.logged("train/loss") == {1: 2.0}
    assert record.last_step() == 0


def test_a_file_that_is_written_anew_is_read_anew(record, cfg):
    for nll in (1.0, 2.0, 3.0):
        record.write_evaluation("key", {"metrics": {"test/nll": nll}})
        assert record.evaluation("key")["metrics"]["test/nll"] == nll
        time.sleep(0.12)
        assert record.evaluation("key")["metrics"]["test/nll"] == nll
