"""Leases between real processes: one holds a run, the others wait, and a dead owner loses it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from lecture04.records import lease as leases
from lecture04.records.lease import FOLDER, Holders, LeaseLostError, check, clear_dead, lease, take

HOLD = """
import sys, time
from pathlib import Path
from lecture04.records.lease import lease
with lease(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
ADD = """
import sys
from pathlib import Path
from lecture04.records.lease import lease
run = Path(sys.argv[1])
for _ in range(20):
    with lease(run):
        count = int(run.read_text())
        run.write_text(str(count + 1))
"""


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def holding(run):
    """`holding(seconds)`: another process that holds the run's lease."""
    started = []

    def holding(seconds):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(run), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield holding
    for process in started:
        process.kill()
        process.wait()


def test_nothing_is_left_behind(run):
    with lease(run):
        assert list(Holders(run.parent).now()) == ["one"]
    assert not (run.parent / FOLDER).exists()


def test_a_living_owner_keeps_it(run, holding):
    other = holding(60)
    with lease(run, wait=False) as is_ours:
        assert not is_ours
    assert Holders(run.parent).now() == {"one": f"process {other.pid}"}


def test_who_waits_says_so_and_gets_it_at_the_end(run, holding, caplog):
    other = holding(1)
    with lease(run):
        pass
    assert f"one waits: process {other.pid} works on it." in caplog.text
    assert other.wait(5) == 0


def test_a_killed_owner_loses_it_at_once(run, holding):
    other = holding(60)
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert Holders(run.parent).now() == {}
    began = time.monotonic()
    with lease(run):
        assert time.monotonic() - began < 5
    assert not (run.parent / FOLDER).exists(), "the dead one's lease is taken away too"


def test_dead_leases_are_cleared_and_living_ones_stay(run, holding):
    other = holding(60)
    dead = run.parent / FOLDER / "two.000001"
    content = json.loads((run.parent / FOLDER / "one.000001").read_text())
    dead.write_text(json.dumps(content | {"started": "0"}))
    clear_dead(run.parent)
    assert not dead.exists()
    assert Holders(run.parent).now() == {"one": f"process {other.pid}"}


def test_an_owner_elsewhere_that_is_silent_loses_it_after_a_while_and_writes_nothing_more(run, monkeypatch):
    """Whether a process of another machine lives cannot be seen; only that its lease is not renewed."""
    monkeypatch.setattr(leases, "EXPIRY", 1.0)
    monkeypatch.setattr(leases, "RENEWED", 60.0)
    own = take(run, wait=True)
    path = run.parent / FOLDER / "one.000001"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "elsewhere"}))
    check(run)
    script = HOLD.replace("with lease", "import lecture04.records.lease as l; l.EXPIRY = 1.0\nwith lease")
    other = subprocess.Popen([sys.executable, "-c", script, str(run), "30"], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LeaseLostError, match="another process has taken it over"):
            check(run)
        own.release()
        assert list(Holders(run.parent).now()) == ["one"], "what is another's is not given back"
    finally:
        other.kill()
        other.wait()
        leases._held.clear()


def test_a_lease_that_is_renewed_does_not_run_out(run, monkeypatch):
    monkeypatch.setattr(leases, "EXPIRY", 1.0)
    monkeypatch.setattr(leases, "RENEWED", 0.2)
    with lease(run):
        path = run.parent / FOLDER / "one.000001"
        first = json.loads(path.read_text())["renewals"]
        time.sleep(1.5)
        assert json.loads(path.read_text())["renewals"] > first


def test_many_processes_never_hold_it_together(run):
    count = run / "count"
    count.write_text("0")
    added = [subprocess.Popen([sys.executable, "-c", ADD, str(count)]) for _ in range(3)]
    assert [process.wait(60) for process in added] == [0, 0, 0]
    assert count.read_text() == "60"


def test_an_owner_elsewhere_that_is_silent_is_none_after_a_while(run, monkeypatch):
    monkeypatch.setattr(leases, "EXPIRY", 0.5)
    folder = run.parent / FOLDER
    folder.mkdir()
    (folder / "one.000001").write_text(json.dumps({"host": "elsewhere", "process": 3, "renewals": 1}))
    seen = Holders(run.parent)
    assert seen.now() == {"one": "process 3 on elsewhere"}
    time.sleep(0.7)
    assert seen.now() == {}
    (folder / "one.000001").write_text(json.dumps({"host": "elsewhere", "process": 3, "renewals": 2}))
    assert seen.now() == {"one": "process 3 on elsewhere"}
