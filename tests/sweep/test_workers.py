"""Worker processes that are killed, asked to end or left alone by their parent: no finished work is lost."""

import re
import signal
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
LONG = ("trainer.steps=600", "trainer.checkpoint_every=20", "logger=none")
TWO = ("-m", "ffn=relu,swiglu", "seed=0", "hydra.launcher.n_jobs=2")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, start, small_data):
    """The checkpoints and curves of a sweep that nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sweep = start(folder, *TWO, *small_data, *LONG)
    out, err = sweep.communicate(timeout=240)
    assert sweep.returncode == 0, err
    return folder


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail("waited in vain")


def runs(folder):
    return sorted(path for path in (folder / "outputs" / "runs").iterdir() if not path.name.startswith("."))


def summaries(folder):
    return list((folder / "outputs" / "runs").glob("*/summary.json"))


def checkpoints(folder):
    return {run.name: (run / "checkpoint.safetensors").read_bytes() for run in runs(folder)}


def curves(folder):
    return {run.name: (run / "metrics.jsonl").read_bytes() for run in runs(folder)}


def workers_of(sweep):
    return [p for p in psutil.Process(sweep.pid).children() if "popen_loky" in " ".join(p.cmdline())]


def stands(folder):
    """The places that runs can go on from."""
    return list((folder / "outputs" / "runs").glob("*/resume-*.safetensors"))


def both_run(folder):
    return wait_for(lambda: len({path.parent for path in stands(folder)}) == 2)


def ended(folder):
    """What is left where all has ended."""
    left = [path for run in runs(folder) for path in run.iterdir() if path.suffix == ".part" or "resume" in path.name]
    return left + list((folder / "outputs" / "runs").glob(".leases/*"))


def goes_on_to_the_same_bits(folder, undisturbed, start, small_data):
    again = start(folder, *TWO, *small_data, *LONG)
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, err
    assert checkpoints(folder) == checkpoints(undisturbed)
    assert curves(folder) == curves(undisturbed)
    assert ended(folder) == []


@pytest.mark.slow
def test_a_killed_worker_costs_its_own_run_alone(undisturbed, start, small_data, tmp_path):
    sweep = start(tmp_path, *TWO, *small_data, *LONG)
    both_run(tmp_path)
    victim, other = workers_of(sweep)
    victim.kill()
    out, err = sweep.communicate(timeout=240)
    assert sweep.returncode == 0, err
    assert "1 runs have no outcome (ChildProcessError: its worker was killed (SIGKILL)" in err
    assert checkpoints(tmp_path) == checkpoints(undisturbed)
    assert curves(tmp_path) == curves(undisturbed)
    assert ended(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_workers_end_with_their_parent_and_the_same_command_goes_on(how, undisturbed, start, small_data, tmp_path):
    sweep = start(tmp_path, *TWO, *small_data, *LONG)
    both_run(tmp_path)
    workers = workers_of(sweep)
    sweep.send_signal(signal.Signals[how])
    out, err = sweep.communicate(timeout=60)
    if how != "SIGKILL":
        assert sweep.returncode == 128 + signal.Signals[how]
        assert "Traceback" not in err
        assert "Interrupted" in err
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []
    assert len(summaries(tmp_path)) < 2, "or nothing was interrupted"
    goes_on_to_the_same_bits(tmp_path, undisturbed, start, small_data)


@pytest.mark.slow
def test_two_sweeps_share_the_work(undisturbed, start, small_data, tmp_path):
    sweeps = [start(tmp_path, *TWO, *small_data, *LONG) for _ in range(2)]
    for sweep in sweeps:
        out, err = sweep.communicate(timeout=240)
        assert sweep.returncode == 0, err
    assert checkpoints(tmp_path) == checkpoints(undisturbed)
    assert curves(tmp_path) == curves(undisturbed)
    logs = "".join((run / "train.log").read_text() for run in runs(tmp_path))
    assert len(re.findall(r"INFO\] python \S*train.py", logs)) == 2, "each was trained once"
    assert ended(tmp_path) == []


def test_a_single_run_that_is_asked_to_end_goes_on(start, small_data, tmp_path):
    one = ("ffn=relu", "seed=0", *small_data, *LONG)
    run = start(tmp_path, *one)
    wait_for(lambda: stands(tmp_path))
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 143, err
    assert not summaries(tmp_path)
    again = start(tmp_path, *one)
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, err
    (log,) = (tmp_path / "outputs" / "runs").glob("*/train.log")
    assert "Going on behind step" in log.read_text()
    assert ended(tmp_path) == []


@pytest.mark.slow
def test_an_interrupted_sweep_keeps_what_is_finished_and_goes_on(start, small_data, tmp_path):
    arguments = ["-m", "ffn=relu,swiglu", "seed=0,1,2", *small_data, "trainer.steps=150", "hydra.launcher.n_jobs=1"]
    sweep = start(tmp_path, *arguments)
    wait_for(lambda: len(summaries(tmp_path)) >= 2)
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, err
    assert "Traceback" not in err
    assert "Interrupted" in err
    kept = {path: path.stat().st_mtime_ns for path in summaries(tmp_path)}
    assert 2 <= len(kept) < 6
    again = start(tmp_path, *arguments)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert len(summaries(tmp_path)) == 6
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert "(3)" in out, "the means of three seeds"
