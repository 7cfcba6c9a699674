"""Every command that is printed, pasted back into a shell: it asks for the same run, which is there."""

import json
import shlex
from pathlib import Path

import pytest

from lecture04.report.html.rows import row_details
from lecture04.report.results import collect

ROOT = Path(__file__).parents[2]
SMALL = (
    *("trainer.steps=5", "trainer.diverged_margin=-9", "optim.warmup_steps=0", "trainer.batch_size=8", "logger=none"),
    *("data.n_train=80", "data.n_val=20", "data.n_test=40"),
)
FILE = "sweep:\n  seeds: [0]\n  rows: {'☃ it is =1': [ffn=gelu]}\n"
OUTPUTS = "it's a folder=ö, #1"


@pytest.mark.slow
def test_a_table_of_odd_names_in_an_odd_folder(warm, tmp_path):
    (tmp_path / "lecture04.yaml").write_text("parts: []\n")
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "mine.yaml").write_text(FILE)
    typed = ("train", "-m", "sweeps=mine", *SMALL, f"paths.outputs={OUTPUTS}", "hydra/launcher=basic")
    done = warm("lecture04.cli.main", *typed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (manifest,) = tmp_path.glob("*/sweeps/*/sweep.json")
    (summary,) = tmp_path.glob("*/runs/*/summary.json")
    assert manifest.is_relative_to(tmp_path / OUTPUTS)
    (row,) = row_details(collect(manifest.parent))
    of_run = json.loads(summary.read_text())["command"]
    commands = [
        json.loads(manifest.read_text())["command"],
        of_run,
        row.command.replace("python train.py", "lecture04 train"),
    ]
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "lecture04"
        again = warm("lecture04.cli.main", *words, cwd=tmp_path)
        assert again.returncode == 0, f"{command}\n{again.stderr}"
        assert "there already" in again.stdout or "1 there, 0 to train" in again.stderr
    assert len(list(tmp_path.rglob("summary.json"))) == 1
