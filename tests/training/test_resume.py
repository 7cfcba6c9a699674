"""A run that was stopped, and goes on: the same bits as one that never was."""

import signal
from dataclasses import replace

import pytest
import torch

from lecture04 import interrupts
from lecture04.data.types import LAYOUTS
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel
from lecture04.records.record import Record
from lecture04.training import resume
from lecture04.training.loop import train

OWN = "a-run"


class StoppedError(Exception):
    """The training ends here."""


def trained(request, corpus, record, at=None, model=None, stop=None, every=None):
    """Train with metrics.jsonl kept; ends behind the step `stop`, its place written down."""
    run = request.run
    model = build(run) if model is None else model
    record.folder.mkdir(exist_ok=True)
    keeper = resume.Keeper(record, OWN, every)

    def pause(at, model, optimiser):
        if at.step == stop:
            resume.save(record, OWN, 0.0, at, model, optimiser)
            raise StoppedError
        if every:
            keeper(at, model, optimiser)

    try:
        outcome = train(model, corpus, run, log=record.append, tick=lambda *_: None, log_every=7, start=at, pause=pause)
    except StoppedError:
        return None
    return model, outcome


def gone_on(request, corpus, record):
    kept = resume.latest(record, OWN)
    model = LanguageModel(request.run)
    model.load_state_dict(kept.parameters)
    return trained(request, corpus, record, kept.at, model)


CONFIGS = (
    ("trainer.steps=130",),
    ("trainer.steps=130", "layout=stream", "layout.length=16", "trainer.batch_size=3"),
    ("trainer.steps=130", "layout=windows", "layout.length=16", "trainer.batch_size=3"),
    ("trainer.steps=130", "optim=sgd", "optim.lr=0.1", "recipe=llama"),
)


@pytest.mark.parametrize("overrides", CONFIGS)
def test_the_same_bits(small_request, tiny_corpus, tmp_path, overrides):
    asked = small_request(*overrides)
    corpus = replace(tiny_corpus, layout=LAYOUTS.lookup(asked.run.layout.name)(asked.run.layout))
    whole = Record(tmp_path / "whole")
    model, outcome = trained(asked, corpus, whole)
    for stop in (1, 6, 7, 49, 50, 63, 129):
        record = Record(tmp_path / f"stopped-{stop}")
        assert trained(asked, corpus, record, stop=stop) is None
        record.append({"step": 999})  # what a killed process wrote behind the place that it goes on from
        again, its_outcome = gone_on(asked, corpus, record)
        for name, value in model.state_dict().items():
            assert torch.equal(value, again.state_dict()[name]), (stop, name)
        assert record.rows() == whole.rows()
        assert (its_outcome.status, its_outcome.tokens) == (outcome.status, outcome.tokens)


def test_two_are_kept_and_a_torn_one_leaves_the_one_before(small_request, tiny_corpus, tmp_path, caplog):
    asked, record = small_request("trainer.steps=40"), Record(tmp_path / "run")
    trained(asked, tiny_corpus, record, every=10, stop=35)
    assert [path.name for path in resume.files(record.folder)] == [
        "resume-000000030.safetensors",
        "resume-000000035.safetensors",
    ]
    newest = resume.files(record.folder)[-1]
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    assert resume.latest(record, OWN).at.step == 30
    assert "its checksum is another" in caplog.text
    assert newest.with_name(f"{newest.name}.unreadable").exists()


def test_another_runs_place_and_a_changed_curve_count_for_nothing(small_request, tiny_corpus, tmp_path, caplog):
    asked, record = small_request("trainer.steps=40"), Record(tmp_path / "run")
    trained(asked, tiny_corpus, record, stop=20)
    assert resume.latest(record, "another") is None
    assert "another run's" in caplog.text
    record = Record(tmp_path / "other")
    trained(asked, tiny_corpus, record, stop=20)
    curve = record.folder / "metrics.jsonl"
    curve.write_text(curve.read_text().replace("1", "2", 1))
    assert resume.latest(record, OWN) is None
    assert "does not begin as it did" in caplog.text


def test_a_held_signal_is_written_down_and_then_raised(small_request, tiny_corpus, tmp_path, monkeypatch):
    asked, record = small_request("trainer.steps=40"), Record(tmp_path / "run")
    record.folder.mkdir()
    monkeypatch.setattr(interrupts._State, "asked", int(signal.SIGTERM))
    with pytest.raises(interrupts.Stopped) as stopped:
        train(
            build(asked.run),
            tiny_corpus,
            asked.run,
            log=record.append,
            tick=lambda *_: None,
            pause=resume.Keeper(record, OWN, None),
        )
    assert stopped.value.exit_code == 143
    assert resume.latest(record, OWN).at.step == 1
