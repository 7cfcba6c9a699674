"""The tracker in this process, against a W&B that is made up: what it is told, and what it may do wrong."""

import logging
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from lecture04.records import tracker as trackers
from lecture04.records.tracker import ModeProbe, describe, several_runs, tracker

ROWS = [{"step": 10, "train/loss": 2.5, "tokens": 70}, {"step": 10, "val/nll": 2.25}, {"step": 20, "train/loss": 1.5}]


class FakeRun:
    """Remembers what it is told."""

    def __init__(self, **about):
        self.about, self.rows, self.summary, self.exit_code = about, [], {}, None

    def log(self, row, step):
        self.rows.append((step, row))

    def finish(self, exit_code):
        self.exit_code = exit_code


@pytest.fixture
def fake(monkeypatch):
    """`fake(init)`: a wandb whose init is this; returns the runs that it was asked for."""

    def fake(init=FakeRun):
        runs = []

        def keep(**about):
            runs.append(init(**about))
            return runs[-1]

        module = SimpleNamespace(Settings=lambda **settings: settings, setup=lambda settings: None, init=keep)
        monkeypatch.setitem(sys.modules, "wandb", module)
        return runs

    return fake


@pytest.fixture
def cfg(small_request, tmp_path):
    """What a sweep's job asks for."""

    def cfg(*overrides):
        return small_request("logger=wandb", f"paths.outputs={tmp_path}", "origin.wandb_mode=offline", *overrides)

    return cfg


def refuse(why):
    pytest.fail(f"nothing was wrong: {why}")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(trackers, "PATIENCE", 0.5)


def test_everything_arrives_in_order_and_the_run_is_closed_well(fake, cfg):
    runs = fake()
    with tracker(cfg("seed=3", "origin.row=mine", "origin.sweep=table"), refuse) as watcher:
        for row in ROWS:
            watcher.log(row)
        watcher.summarise({"test/nll": 1.25})
        watcher.summarise({"status": "finished"})
    (run,) = runs
    assert run.rows == [(10, {"train/loss": 2.5, "tokens": 70}), (10, {"val/nll": 2.25}), (20, {"train/loss": 1.5})]
    assert run.summary == {"test/nll": 1.25, "status": "finished"}
    assert run.exit_code == 0
    assert run.about["name"] == "mine s3"
    assert run.about["reinit"] == "create_new", "never a run that an earlier job left behind in this process"


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(0)])
def test_a_run_that_raises_is_closed_as_failed_and_its_exception_passes(fake, cfg, error):
    runs = fake()

    def run():
        with tracker(cfg(), refuse) as watcher:
            watcher.log(ROWS[0])
            raise error

    with pytest.raises(type(error)):
        run()
    assert runs[0].exit_code == 1
    assert len(runs[0].rows) == 1


def raising(error):
    def init(**about):
        raise error

    return init


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("no server\nConsider something."), "W&B: RuntimeError: no server; metrics.jsonl has everything."),
        (SystemExit(3), "W&B: SystemExit: 3; metrics.jsonl has everything."),
        (KeyboardInterrupt(), "W&B: KeyboardInterrupt: ; metrics.jsonl has everything."),
    ],
)
def test_a_wandb_that_raises_is_one_warning(fake, cfg, caplog, error, said):
    fake(raising(error))
    told = []
    with tracker(cfg(), told.append) as watcher:
        watcher.log(ROWS[0])
    assert [record.getMessage() for record in caplog.records] == [said]
    assert [f"W&B: {why}; metrics.jsonl has everything." for why in told] == [said], "whoever started the run is told"


def test_one_that_raises_in_the_middle_or_at_the_end_is_one_warning(fake, cfg, caplog):
    for method in ("log", "finish"):
        runs = fake(lambda method=method, **about: _with(FakeRun(**about), method, raising(ValueError("late"))))
        caplog.clear()
        with tracker(cfg(), lambda why: None) as watcher:
            for row in ROWS:
                watcher.log(row)
        assert len(runs) == 1
        assert [record.getMessage() for record in caplog.records] == [
            "W&B: ValueError: late; metrics.jsonl has everything."
        ]


def _with(run, method, replacement):
    setattr(run, method, lambda *args, **options: replacement())
    return run


@pytest.mark.parametrize("hangs", ["init", "finish"])
def test_one_that_hangs_is_left_behind_and_what_it_says_later_is_not_told(fake, cfg, caplog, impatient, hangs):
    release, done = threading.Event(), threading.Event()

    def hang(**about):
        release.wait(20)
        done.set()
        raise ValueError("late")

    fake(hang if hangs == "init" else lambda **about: _with(FakeRun(**about), "finish", hang))
    run = cfg()
    started = time.monotonic()
    told = []
    with tracker(run, told.append) as watcher:
        watcher.log(ROWS[0])
        assert time.monotonic() - started < 0.4, "nothing waits before the end"
    assert 0.5 <= time.monotonic() - started < 5
    release.set()
    assert done.wait(5)
    watcher.thread.join(5)
    assert not watcher.thread.is_alive()
    assert [record.getMessage() for record in caplog.records] == [
        "W&B: it has not finished in 0.5 s and is left behind; metrics.jsonl has everything."
    ]
    assert told == ["it has not finished in 0.5 s and is left behind"]


@pytest.mark.parametrize("folder", ["file/inside", "/proc/self/fdinfo"])
def test_a_folder_that_cannot_be_written_to_is_a_warning(fake, cfg, caplog, monkeypatch, tmp_path, folder):
    """W&B itself would write to /tmp without a word."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / folder))
    runs, told = fake(), []
    with tracker(cfg(), told.append) as watcher:
        watcher.log(ROWS[0])
    assert not runs
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert folder in told[0]
    assert "Error: [Errno" in told[0]


def test_no_tracker_starts_nothing(small_request, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # an import would raise
    before = threading.active_count()
    with tracker(small_request("logger=none"), refuse) as watcher:
        watcher.log(ROWS[0])
        watcher.summarise({"test/nll": 1.0})
        assert threading.active_count() == before


def test_the_group_is_the_row_whatever_the_seed(cfg):
    rows = ("ffn=relu", "ffn=swiglu", "optim.lr=0.01")
    groups = [{describe(cfg(row, f"seed={seed}"))["group"] for seed in (0, 1, 10)} for row in rows]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3
    mine = [describe(cfg("origin.row=mine", *other))["group"] for other in (["seed=4"], ["seed=5"], ["optim.lr=0.5"])]
    assert mine[0].startswith("mine ")
    assert mine[0] == mine[1] != mine[2], "rows of one name and other settings are other groups"


def test_names_stay_within_wandbs_limits_and_differ(cfg):
    long = [f"'{'x' * 300} {end}'" for end in "ab"]
    told = [describe(cfg(f"origin.row={row}", "seed=12345")) for row in long]
    assert all(len(t["group"]) <= 128 and len(t["name"]) <= 128 for t in told)
    assert all(1 <= len(tag) <= 64 for t in told for tag in t["tags"])
    assert told[0]["group"] != told[1]["group"]
    assert told[0]["name"] != told[1]["name"]
    assert told[0]["config"]["row"] == long[0].strip("'"), "the config has the whole name"


def test_the_config_is_resolved_and_has_nothing_of_this_machine(cfg, tmp_path):
    told = describe(cfg("origin.sweep=table", "seed=7"))
    assert told["config"]["ffn"]["d_ff"] == 24
    assert told["config"]["attention"]["n_kv_heads"] == 4
    assert told["config"]["seed"] == 7
    assert told["config"]["sweep"] == "table"
    assert str(tmp_path) not in repr(told["config"])
    assert told["dir"] == str(tmp_path)
    assert told["job_type"] == "train"
    assert {"ffn=relu", "norm=layernorm", "optim=adamw"} <= set(told["tags"])
    assert not [tag for tag in told["tags"] if tag.startswith("logger")]


# -- the mode


@pytest.fixture
def nothing_starts(monkeypatch):
    def refuse(*args, **options):
        pytest.fail("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.parametrize("mode", ["online", "offline", "disabled"])
def test_wandb_mode_wins_and_starts_no_process(monkeypatch, nothing_starts, mode):
    monkeypatch.setenv("WANDB_MODE", mode)
    probe = ModeProbe("wandb")
    assert probe.mode() == mode
    assert probe.said() == ""


def test_a_mode_that_does_not_exist_is_said_once_and_kept_from_wandb(monkeypatch, nothing_starts):
    monkeypatch.setenv("WANDB_MODE", "foo")
    probe = ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert "WANDB_MODE=foo" in (said := probe.said())
    assert "online, offline, disabled" in said
    assert probe.said() == ""
    assert "WANDB_MODE" not in os.environ, "W&B would refuse to start with it"


def test_what_names_one_run_is_not_there_while_several_are_made(monkeypatch):
    for name in ("RUN_ID", "RESUME", "NAME", "NOTES", "RUN_GROUP", "PROJECT"):
        monkeypatch.setenv(f"WANDB_{name}", "mine")
    with several_runs() as named:
        assert sorted(named) == ["WANDB_NAME", "WANDB_RESUME", "WANDB_RUN_ID"]
        assert not os.environ.keys() & set(named)
        assert os.environ["WANDB_NOTES"] == os.environ["WANDB_RUN_GROUP"] == "mine", "what holds for many runs stays"
    assert os.environ["WANDB_RUN_ID"] == "mine"


def test_without_a_logger_nothing_is_asked(monkeypatch, nothing_starts):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert ModeProbe("none").mode() == "disabled"


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """No account, and no server but what the test names."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


@pytest.mark.parametrize(
    ("answer", "mode"), [("pass", "online"), ("raise SystemExit(1)", "offline"), ("1/0", "offline")]
)
def test_the_mode_is_what_the_probe_finds(nobody, answer, mode):
    nobody.setattr(trackers, "PROBE", answer)
    probe = ModeProbe("wandb")
    assert probe.mode() == mode
    assert probe.said() == ""


@pytest.mark.parametrize(
    ("prints", "said"), [("'an expired key.'", "W&B: an expired key. The runs stay"), ("''", "nothing")]
)
def test_why_an_account_is_of_no_use_is_said(nobody, prints, said):
    nobody.setattr(trackers, "PROBE", f"print('before'); print({prints}); raise ValueError")
    probe = ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert (probe.said() or "nothing").startswith(said)


def test_a_probe_that_hangs_says_offline_and_is_ended(nobody, impatient):
    nobody.setattr(trackers, "PROBE", "import time; time.sleep(3600)")
    probe = ModeProbe("wandb")
    started = time.monotonic()
    assert probe.mode() == "offline"
    assert time.monotonic() - started < 5
    assert probe.process.wait(5) != 0, "it is not left running"
    assert probe.mode() == "offline", "asked again, it knows"
    assert probe.said() == "", "nor is it known that there is an account"


def test_an_account_whose_server_hangs_is_said(nobody, impatient):
    nobody.setattr(trackers, "PROBE", "print('it does not answer', flush=True); import time; time.sleep(3600)")
    probe = ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert probe.said() == "W&B: it does not answer. The runs stay offline; `wandb sync` sends them later."


def test_without_an_account_wandb_says_offline(nobody, capfd):
    probe = ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert capfd.readouterr() == ("", "")
    assert probe.said() == "", "an account is not needed"


def test_a_key_that_is_none_is_said(nobody, capfd, monkeypatch):
    monkeypatch.setattr(trackers, "PATIENCE", 30.0)
    nobody.setenv("WANDB_API_KEY", "short")
    probe = ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert "WANDB_API_KEY" in probe.said()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_server_that_refuses_means_offline_within_patience(nobody, capfd):
    nobody.setenv("WANDB_API_KEY", "0123456789abcdef" * 2 + "01234567")
    nobody.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    started, probe = time.monotonic(), ModeProbe("wandb")
    assert probe.mode() == "offline"
    assert time.monotonic() - started < trackers.PATIENCE + 2
    assert capfd.readouterr() == ("", "")
    assert probe.said().startswith("W&B: ")
