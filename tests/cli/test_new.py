"""`lecture04 new DIR`; that the project's comparison runs is tested from the wheel (tests/test_wheel.py)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lecture04.cli.new import new
from lecture04.config.errors import UserError
from lecture04.sweep.files import load


@pytest.fixture
def project(tmp_path):
    new(tmp_path / "project")
    return tmp_path / "project"


def test_the_files_name_each_other(project):
    (part,) = yaml.safe_load((project / "lecture04.yaml").read_text())["parts"]
    ((family, name),) = re.findall(r'^@register\("(\w+)", "(\w+)"', (project / part).read_text(), flags=re.M)
    assert yaml.safe_load((project / "conf" / family / f"{name}.yaml").read_text()) == {"name": name}
    rows = load(project / "sweeps" / "mine.yaml").sweep.rows
    assert [f"{family}={name}"] in rows.values()


def test_a_project_holds_no_compiled_files(project):
    assert not list(project.rglob("__pycache__"))


def test_make_lists_its_targets_and_the_readme_names_one_of_them(project):
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    targets = [line.split()[0] for line in listed.splitlines()]
    assert targets == ["help", "mine-ablation", "plan", "check", "report"]
    assert set(re.findall(r"make ([\w-]+)", (project / "README.md").read_text())) <= set(targets)


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "a b").mkdir()
    assert f"cd '{tmp_path}/a b'" in new(tmp_path / "a b")


def test_a_folder_that_looks_like_an_option_can_be_entered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "  cd ./-x\n" in new(Path("./-x"))


@pytest.mark.parametrize("name", ["file", ".hidden"])
def test_a_folder_that_holds_files_is_refused_and_left_as_it_is(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="the folder holds files; name a new or an empty one"):
        new(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(UserError, match="a file of that name is there"):
        new(tmp_path / name)


def test_what_cannot_be_written_is_one_sentence():
    command = [sys.executable, "-m", "lecture04.cli.main", "new", "/dev/null/here"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "/dev/null/here: /dev/null is a file, and a folder has to be there; name a new folder.\n"


def test_a_folder_that_its_owner_sees_as_empty_will_do_and_a_link_that_leads_nowhere_will_not(tmp_path):
    (tmp_path / ".DS_Store").write_text("the system's")
    assert "my_part.py" in new(tmp_path)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UserError, match="link is a link to nowhere, which is not there; name a new folder"):
        new(tmp_path / "link")
