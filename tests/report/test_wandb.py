"""A table in W&B: its offline file is read back by W&B's own reader, and a W&B that fails costs seconds and a line."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lecture04.config import Logger, WandB
from lecture04.report import figures, html, wandb
from lecture04.report.answer import answer
from lecture04.report.comparison import judge_all
from lecture04.report.contrasts import contrasts
from lecture04.report.results import collect
from lecture04.report.wandb import send

ROWS = {"base": (3.80, 3.82, 3.81), 'a, "b" <c>': (3.30, 3.31, 3.33), "wild": (3.9, float("nan"), 3.8)}
LOGGER = WandB(name="wandb", project="mine")


@pytest.fixture
def at_home(monkeypatch, tmp_path):
    """Of a user without an account."""
    for name in [name for name in os.environ if name.startswith(("WANDB_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """`fake(source)`: a wandb of that source, found before the real one."""

    def fake(source):
        (tmp_path / "fake" / "wandb").mkdir(parents=True)
        (tmp_path / "fake" / "wandb" / "__init__.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))

    return fake


def read_back(folder):
    """The one offline run under a folder, as {type: records}, and the files that it brings along."""
    (run,) = (folder / "wandb").glob("offline-run-*")
    (file,) = run.glob("run-*.wandb")
    command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    by_type = {kind: [r[kind] for r in records if r["type"] == kind] for kind in {r["type"] for r in records}}
    return by_type, {
        str(path.relative_to(run / "files")): path for path in (run / "files").rglob("*") if path.is_file()
    }


@pytest.mark.slow
def test_one_run_carries_the_answer_the_verdicts_the_figures_and_the_page(table_folder, at_home, monkeypatch):
    monkeypatch.setattr(wandb, "PATIENCE", 90.0)  # other tests run beside this one
    folder = table_folder(ROWS)
    figures.write(folder), html.write(folder)
    assert send(folder, LOGGER, mode="offline")
    records, files = read_back(folder.parents[1])
    (run,) = records["run"]
    assert (run["job_type"], run["project"], run["display_name"]) == ("table", "mine", "mine table")
    config = run["config"]["update"]
    assert (config["sweep"], config["rows"], config["design"]) == ("mine", list(ROWS), "star")
    assert not [exit for exit in records["exit"] if exit.get("exit_code", 0)]
    judged = judge_all(results := collect(folder))
    said = answer(results, judged[0])
    assert run["notes"] == said
    assert said in [summary["update"].get("answer") for summary in records["summary"]]
    found = {
        Path(name).name.split("_")[0]: json.loads(path.read_text()) for name, path in files.items() if "table" in name
    }
    assert set(found) == {"verdicts", "contrasts"}
    assert found["verdicts"]["columns"] == ["row", "against", "difference", "low", "high", "unit", "verdict"]
    better, wild = found["verdicts"]["data"]
    (v, _) = judged[0].verdicts
    assert (better[0], better[1], better[5], better[6]) == (v.row, "base", "%", "better")
    assert better[2:5] == pytest.approx([judged[0].shown(x) for x in (v.delta, v.lower, v.upper)], rel=1e-4)
    assert wild == ["wild", "base", None, None, None, "%", "diverged 1/3"]
    table = found["contrasts"]
    expected = contrasts(judged)
    assert table["columns"] == list(expected.columns)
    place = table["columns"].index
    for line, (_, contrast) in zip(table["data"], expected.iterrows(), strict=True):
        assert (line[place("row")], line[place("verdict")]) == (contrast["row"], contrast["verdict"])
    pages = [path.read_text() for name, path in files.items() if name.endswith(".html")]
    assert pages == [(folder / "report.html").read_text()]
    assert len([name for name in files if name.endswith(".png")]) == len(list((folder / "figures").glob("*.png"))) > 1


@pytest.mark.parametrize(("logger", "mode"), [(Logger(name="none"), "disabled"), (LOGGER, "disabled")])
def test_nothing_is_started_where_nobody_asked_for_it(logger, mode, table_folder, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    assert not send(table_folder(ROWS), logger, mode=mode)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise ImportError('not installed')", "not installed"),
        ("raise SystemExit(3)", "no word why"),
        pytest.param("import time; time.sleep(600)", "left behind", marks=pytest.mark.slow),
    ],
)
def test_a_wandb_that_fails_costs_seconds_and_a_line(source, said, table_folder, fake, caplog, monkeypatch):
    monkeypatch.setattr(wandb, "PATIENCE", 5.0)
    fake(source)
    started = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert not send(folder := table_folder(ROWS), LOGGER, mode="online")
    assert time.monotonic() - started < wandb.PATIENCE + 3
    (line,) = caplog.messages
    assert said in line
    assert f"lecture04 report --wandb {folder.name} --outputs {folder.parents[1]}" in line


@pytest.mark.slow
def test_what_hangs_is_ended_with_all_that_it_started(table_folder, fake, monkeypatch, tmp_path):
    monkeypatch.setattr(wandb, "PATIENCE", 5.0)
    pids = tmp_path / "pids"
    fake(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\ntime.sleep(600)"
    )
    assert not send(table_folder(ROWS), LOGGER, mode="online")
    for pid in pids.read_text().split():
        for _ in range(50):
            state = Path(f"/proc/{pid}/stat")
            if not state.exists() or state.read_text().split()[2] == "Z":
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"{pid} is alive")
