"""The wheel: what is in it, and that it works where nothing else of the repository is."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_holds_all_that_a_run_needs(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    inside = {f"lecture04/{folder}/": ROOT / folder for folder in ("conf", "sweeps")}
    inside |= {"lecture04/": ROOT / "src" / "lecture04", "hydra_plugins/": ROOT / "src" / "hydra_plugins"}
    for place, folder in inside.items():
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        assert files
        assert not {place + name for name in files if "__pycache__" not in name} - held
    assert not [name for name in held if name.startswith(("tests", "tools")) or name.endswith(".pyc")]


@pytest.mark.slow
def test_it_trains_and_starts_projects_from_empty_folders(tmp_path):
    done = subprocess.run([ROOT / "tools" / "try_wheel.sh", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
