"""A run from its folder, and what it is asked."""

import pytest
import torch

import lecture04 as l4
from lecture04.config.errors import UserError
from lecture04.nn.init import build
from lecture04.records.identity import identity, run_name
from lecture04.records.record import Record
from lecture04.training import checkpoint


@pytest.fixture
def finished(tmp_path, small_request):
    """The folder of a run that was never trained, at its initial values."""
    request = small_request("seed=3")
    record = Record(tmp_path / "outputs" / "runs" / run_name(request.run))
    record.folder.mkdir(parents=True)
    record.start(request.run, request.evaluation, "lecture04 train")
    checkpoint.save(build(request.run), record.folder)
    record.finish(record.status().finished, request.run, "", metrics={"params": 5.0})
    record.write_evaluation("0" * 10, {"metrics": {"test/ppl": 2.0}})
    return record, request.run


def test_a_run_is_found_by_its_folder_its_name_and_a_part_of_it(finished, tmp_path):
    record, run = finished
    outputs = tmp_path / "outputs"
    for path, where in ((record.folder, "elsewhere"), (record.folder.name, outputs), (str(identity(run)), outputs)):
        found = l4.load(path, where)
        assert found.folder == record.folder
        assert found.config == run
        assert found.outputs == outputs


def test_metrics_are_those_of_the_training_and_the_evaluation(finished, tmp_path):
    assert l4.load(finished[0].folder).metrics == {"params": 5.0, "test/ppl": 2.0}


def test_the_model_is_the_checkpoints_in_evaluation_mode(finished):
    record, run = finished
    found = l4.load(record.folder)
    assert not found.model.training
    assert found.model is found.model
    expected = build(run).eval()
    tokens = torch.arange(8)[None] % run.vocab_size
    assert torch.equal(found.model(tokens), expected(tokens))


def test_it_says_what_it_is(finished):
    text = repr(l4.load(finished[0].folder))
    assert "finished" in text
    assert "test ppl 2.000" in text


def test_a_run_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match="no run of .* has this in its name"):
        l4.load("nope", tmp_path)
