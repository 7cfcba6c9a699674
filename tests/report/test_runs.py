"""`lecture04.runs(...)` beside the records that it reads."""

import json
import math

import pandas as pd
import pytest

import lecture04 as l4
from lecture04.config.errors import UserError
from lecture04.records.record import Record
from lecture04.records.store import runs_in


@pytest.fixture
def outputs(tmp_path, requested):
    """Three runs as they would be written: finished, diverged, interrupted."""
    for seed, (ffn, status) in enumerate((("relu", "finished"), ("swiglu", "diverged"), ("gelu", ""))):
        request = requested(f"ffn={ffn}", f"seed={seed}")
        record = Record(tmp_path / "runs" / f"{ffn}-{seed}")
        record.folder.mkdir(parents=True)
        record.start(request.run, request.evaluation, "")
        if status:
            metrics = {"steps": 10 + seed, "mine": 3.0}
            record.finish(record.status().__class__(status), request.run, "", metrics=metrics)
            record.write_evaluation("0" * 10, {"metrics": {"test/ppl": 4.0 + seed}})
    (tmp_path / "runs" / "notes").mkdir()
    return tmp_path


def test_a_line_a_run_with_what_its_record_says(outputs):
    found = l4.runs(outputs).set_index("run")
    records = runs_in(outputs)
    assert list(found.index) == [record.folder.name for record in records] == ["gelu-2", "relu-0", "swiglu-1"]
    for record in records:
        line = found.loc[record.folder.name]
        assert line["status"] == record.status().value
        assert line["folder"] == str(record.folder)
        measured = record.latest_metrics()
        shown = {name: line[name] for name in ("test/ppl", "steps", "mine")}
        assert {name: x for name, x in shown.items() if not math.isnan(x)} == measured
    assert found["ffn"].to_dict() == {"gelu-2": "gelu", "relu-0": "relu", "swiglu-1": "swiglu"}
    assert found["seed"].to_dict() == {"gelu-2": 2, "relu-0": 0, "swiglu-1": 1}
    assert set(found["data"]) == {"garden"}


def test_a_run_whose_identity_cannot_be_read_keeps_its_line(outputs):
    (outputs / "runs" / "relu-0" / "identity.json").write_text("torn")
    found = l4.runs(outputs)
    # Without it only the name of a folder tells a run from other things.
    assert "relu-0" in set(found.run)
    assert pd.isna(found.set_index("run").loc["relu-0", "ffn"])


def test_each_record_is_read_once(outputs, monkeypatch):
    read = []
    monkeypatch.setattr(Record, "latest_metrics", lambda self: read.append(self.folder) or {})
    l4.runs(outputs)
    assert len(read) == len(set(read)) == 2


def test_no_runs_are_no_lines_and_no_folder_is_an_error(tmp_path):
    found = l4.runs(tmp_path)
    assert found.empty
    assert list(found)[:3] == ["run", "seed", "status"]
    with pytest.raises(UserError, match="there is no such folder"):
        l4.runs(tmp_path / "nope")
    (tmp_path / "file").write_text(json.dumps({}))
    with pytest.raises(UserError, match="is a file"):
        l4.runs(tmp_path / "file")
