"""The command in a folder of its own, with two fast probes: what it runs, writes and says."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lecture04.lecture.claims import claims
from lecture04.lecture.command import sections
from lecture04.lecture.pages import prose
from lecture04.lecture.running import without_places

SCRIPT = """
import sys
from lecture04.lecture.command import OUTPUTS, make
from lecture04.lecture.items import ITEMS, probe
wanted = [item for item in ITEMS if item.name in ("t5_buckets", "models")]
wanted += [probe("no_such_probe")] * ("fail" in sys.argv)
sys.exit(make([4, 5], wanted, OUTPUTS, "lecture04 lecture 4 5", known=wanted))
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder, and what the first and the second call said."""
    folder = tmp_path_factory.mktemp("lecture")
    return folder, run(folder), run(folder, "fail")


def ledger(folder):
    with open(folder / "outputs/lecture/claims.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_line_an_item_and_the_way_to_everything(done):
    _, first, _ = done
    assert first.returncode == 0, first.stderr
    assert re.search(r"\[ 1/2\] probe t5_buckets: done, \d:\d\d\n\[ 2/2\] probe models: done, \d:\d\d\n", first.stderr)
    for name in ("index.html", "README.md", "claims.csv", "logs"):
        assert f"outputs/lecture/{name}" in first.stdout
    assert "2 reproduced" in first.stdout


@pytest.mark.slow
def test_what_is_there_is_not_run_again(done):
    _, _, second = done
    assert "probe t5_buckets: there already" in second.stderr
    assert "probe models: there already" in second.stderr


@pytest.mark.slow
def test_what_fails_ends_nothing_else_and_names_its_log(done):
    folder, _, second = done
    assert second.returncode == 1
    log = "outputs/lecture/logs/no_such_probe.log"
    assert f"FAILED: probe no_such_probe failed; its log is {log}" in second.stdout
    assert "there is no such choice" in (folder / log).read_text()
    assert {line["verdict"] for line in ledger(folder) if line["id"] in ("t5_buckets", "models_table")} == {
        "reproduced"
    }
    assert "no\\_such\\_probe" in (folder / "outputs/lecture/README.md").read_text()


@pytest.mark.slow
def test_the_ledger_has_a_line_a_claim(done):
    lines = ledger(done[0])
    assert list(lines[0]) == ["id", "section", "kind", "lecture", "ours", "verdict"]
    assert [line["id"] for line in lines] == [claim.id for claim in claims()]
    assert {line["verdict"] for line in lines} <= {"reproduced", "not reproduced", "not yet judged"}
    assert all(line["ours"] for line in lines)


@pytest.mark.slow
def test_the_pages_are_there_and_name_no_place_of_this_machine(done):
    folder = done[0] / "outputs" / "lecture"
    for number, about in prose()["sections"].items():
        for ending in ("md", "html"):
            assert (folder / f"{number}-{about['name']}.{ending}").exists()
    assert "python probe.py probe=t5_buckets" in (folder / "4-positions.md").read_text(encoding="utf-8")
    for path in folder.rglob("*"):
        if path.suffix in (".md", ".html", ".csv", ".log", ".json"):
            assert str(done[0]) not in path.read_text(encoding="utf-8"), path


def test_a_section_that_there_is_not_is_one_sentence_with_the_choices(tmp_path):
    command = [sys.executable, "-m", "lecture04.cli.main", "lecture", "7"]
    wrong = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("7: there is no such section. Choices: 0 (")
    assert wrong.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_no_section_means_all():
    assert sections([]) == [0, 1, 2, 3, 4, 5]
    assert sections(["4", "1", "4"]) == [1, 4]


def test_a_log_says_nothing_of_where_it_was_written():
    told = without_places(f"{Path.cwd()}/outputs/x\n{sys.prefix}/lib\n{Path.home()}/y")
    assert told.startswith("outputs/x\n")
    assert not {str(Path.cwd()), sys.prefix, f"{Path.home()}/"} & set(re.findall(r"\S+", told))


def test_the_ledger_does_without_torch():
    code = "import sys, lecture04.lecture.command; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
