"""What --help and `make parts` list."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lecture04.cli import help as help_page
from lecture04.config import registry
from lecture04.config.schema import PARTS

ROOT = Path(__file__).parents[2]
TEXT = help_page.help_text()


def listed(group):
    """The choices that the help lists under a group."""
    block = re.search(rf"^{group}: .*\n((?:  .*\n)*)", TEXT, flags=re.M)
    assert block, f"{group} is not listed"
    return [line.split()[0] for line in block[1].splitlines()]


@pytest.mark.parametrize("family", PARTS)
def test_every_registered_part_is_listed_with_what_it_is(family):
    assert sorted(listed(family)) == sorted(registry.names(family))
    for name in registry.names(family):
        assert re.search(rf"^  {name} +\S.{{10,}}$", TEXT, flags=re.M), f"{family}={name} says nothing of itself"


def test_no_family_is_left_out():
    assert {family for family, _ in registry.entries()} == {*PARTS, "architecture", "probe", "settle"}


@pytest.mark.parametrize("family", ["ffn", "norm", "placement", "attention", "posenc"])
def test_every_part_of_the_model_names_its_source(family):
    block = re.search(rf"^{family}: .*\n((?:  .*\n)*)", TEXT, flags=re.M)
    for line in block[1].splitlines():
        assert re.search(r"\(.*(\d{4}|BERT|T5).*\)", line), line


@pytest.mark.parametrize(
    ("group", "folder"), [("model", "conf/model"), ("recipe", "conf/recipe"), ("sweeps", "sweeps")]
)
def test_presets_and_sweeps_are_listed_with_a_line_each(group, folder):
    assert sorted(listed(group)) == sorted(path.stem for path in (ROOT / folder).glob("*.yaml"))
    for name in listed(group):
        assert re.search(rf"^  {name} +\S.{{5,}}$", TEXT, flags=re.M)


def test_every_sweep_file_has_a_make_target():
    makefile = (ROOT / "Makefile").read_text()
    for path in (ROOT / "sweeps").glob("*.yaml"):
        assert re.search(rf"^{path.stem}-ablation: +## ", makefile, flags=re.M), path.stem


def test_help_prints_it_and_nothing_else():
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout == TEXT + "\n"
    assert not done.stderr


@pytest.mark.parametrize("makefile", [ROOT / "Makefile", ROOT / "src/lecture04/cli/project/Makefile"])
@pytest.mark.parametrize("seeds", ["0,1", "range(0,3)", "0, 1"])
def test_seeds_reach_the_command_as_they_were_typed(makefile, seeds, tmp_path):
    """In a shell brackets and blanks are its own, if nobody quotes them."""
    recipe = ["make", "-f", str(makefile), "--no-print-directory", "plan", f"SEEDS={seeds}"]
    (tmp_path / "lecture04").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "lecture04").chmod(0o755)
    (tmp_path / ".installed").touch()
    mine = [
        f"LECTURE04={tmp_path}/lecture04",
        f"BIN={tmp_path}",
        f"READY={tmp_path}/.installed",
        "-o",
        f"{tmp_path}/.installed",
    ]
    done = subprocess.run([*recipe, *mine], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"|seed={seeds}|" in done.stdout
