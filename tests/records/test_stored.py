"""Records that parse and are not what was written: noticed by checksum, set aside and named."""

import json
import logging
import shutil

import pytest

from lecture04.records.record import Record, Status, find


@pytest.fixture
def finished(requested, tmp_path):
    """`finished(seed)`: the record of a run that has ended, with an evaluation."""

    def finished(seed):
        asked = requested(f"paths.outputs={tmp_path}", f"seed={seed}")
        record = find(asked.run, asked.session)
        record.start(asked.run, asked.evaluation, "")
        record.append({"step": 1, "train/loss": 2.0 + seed})
        record.append({"step": 2, "train/loss": 1.0 + seed})
        (record.folder / "checkpoint.safetensors").write_bytes(bytes([seed]) * 100)
        record.finish(Status.finished, asked.run, "", metrics={"steps": 2})
        record.write_evaluation("key", {"metrics": {"test/nll": 1.0 + seed}})
        return record

    return finished


def seen(record):
    """As another process sees it, which has parsed nothing yet."""
    from lecture04.records import stored

    stored._parsed.clear()
    return Record(record.folder)


def test_what_was_written_is_sound(finished, caplog):
    record = seen(finished(0))
    assert record.is_complete("key")
    assert caplog.text == ""


def test_a_copy_of_a_run_and_one_without_its_checkpoint_are_sound(finished, caplog):
    record = finished(0)
    moved = record.folder.with_name(f"copied-{record.folder.name}")
    shutil.copytree(record.folder, moved, copy_function=shutil.copy)  # other times of change
    assert seen(Record(moved)).is_complete("key")
    (moved / "checkpoint.safetensors").unlink()
    assert seen(Record(moved)).is_complete("key")
    assert caplog.text == ""


def flip(path):
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("name", "harm"), [("checkpoint.safetensors", flip), ("checkpoint.safetensors", cut), ("metrics.jsonl", cut)]
)
def test_a_checkpoint_and_a_curve_that_are_others(finished, caplog, name, harm):
    record = finished(0)
    harm(record.folder / name)
    assert seen(record).status() is Status.missing
    assert f"{name} is not the file that it was written with; the run is made again" in caplog.text
    assert (record.folder / "summary.json.unreadable").exists()


def test_a_swapped_checkpoint(finished, caplog):
    one, two = finished(1), finished(2)
    shutil.copy(two.folder / "checkpoint.safetensors", one.folder)
    assert seen(one).status() is Status.missing
    assert seen(two).status() is Status.finished
    assert not (one.folder / "checkpoint.safetensors").exists(), "nobody takes it for the run's"
    assert (one.folder / "checkpoint.safetensors.unreadable").exists()


def test_another_runs_summary_and_evaluation(finished, caplog):
    one, two = finished(1), finished(2)
    shutil.copy(two.folder / "evals" / "key.json", one.folder / "evals")
    assert not seen(one).is_complete("key")
    assert "it is the evaluation of another run" in caplog.text
    shutil.copy(two.folder / "summary.json", one.folder)
    assert seen(one).status() is Status.missing
    assert "it is the summary of another run" in caplog.text


@pytest.mark.parametrize("name", ["summary.json", "evals/key.json"])
def test_a_figure_that_was_edited(finished, caplog, name):
    record = finished(1)
    content = json.loads((record.folder / name).read_text())
    content["metrics"] |= {"test/nll": 0.5}
    (record.folder / name).write_text(json.dumps(content))
    with caplog.at_level(logging.WARNING):
        assert not seen(record).is_complete("key")
    assert f"{name} could not be read (its checksum is another, so it was changed by hand)" in caplog.text


def test_records_of_earlier_versions_have_no_checksums(finished):
    record = finished(1)
    for name in ("summary.json", "evals/key.json"):
        content = json.loads((record.folder / name).read_text())
        for key in ("sha256", "files", "run"):
            content.pop(key, None)
        (record.folder / name).write_text(json.dumps(content))
    assert seen(record).is_complete("key")
