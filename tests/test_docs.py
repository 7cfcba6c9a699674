"""The worked examples, done as their pages say: files written, commands run, in an empty folder outside the package."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# Seconds instead of minutes; the slow test does without.
SMALL = "trainer.steps=20 trainer.diverged_margin=-9 trainer.batch_size=8 data.n_train=80 data.n_val=20 data.n_test=40"
# The pages' commands say `lecture04`, whose script lies beside the interpreter of an installed package.
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "WANDB_MODE": "disabled",
}


def blocks(page, kind):
    """(the text before it, the block's content) of each fenced block of a kind."""
    return re.findall(rf"([^\n]*)\n\n```{kind}\n(.*?)```", (DOCS / page).read_text(), flags=re.S)


def write_files(page, folder):
    """The files that a page shows."""
    for before, code in blocks(page, "python") + blocks(page, "yaml"):
        ((path,),) = [re.findall(r"`([^`]+\.(?:py|yaml))`:$", before)]
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(code)


def commands(page):
    """What a page tells to type, line by line."""
    return [command for _, lines in blocks(page, "sh") for command in lines.splitlines()]


@pytest.fixture
def typed(tmp_path):
    """What a line prints that is typed into a shell."""

    def typed(line):
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    return typed


@pytest.fixture
def follow(tmp_path, typed, warm):
    """Does what a page says, and gives what each command printed; `more` is added to what trains.

    The commands are those of a process that has imported torch, or `alone`, as they stand in the page.
    """

    def forked(line):
        if line.startswith("python "):
            return typed(line)
        first, *words = shlex.split(line)
        assert first == "lecture04"
        done = warm("lecture04.cli.main", *words, cwd=tmp_path, **ENVIRONMENT)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(page, more="", alone=False):
        write_files(page, tmp_path)
        lines = {line: f"{line} {more}" if line.startswith("lecture04 train") else line for line in commands(page)}
        return {line: (typed if alone else forked)(asked) for line, asked in lines.items()}

    return follow


def test_a_part_with_a_parameter_and_an_option_of_its_own(warm, typed, tmp_path):
    """Its commands but the last two, which the slow test types; in their place, one run of the part."""
    write_files("add-a-part.md", tmp_path)
    check, plan, *_ = commands("add-a-part.md")
    checked = warm("lecture04.cli.main", *shlex.split(check)[1:], cwd=tmp_path)
    assert "attention=scaled: every check passed." in checked.stdout
    assert "FAILED" not in checked.stdout + checked.stderr
    assert checked.returncode == 0
    assert "6 runs, 6 to train, nothing started" in typed(f"{plan} {SMALL}")
    run = warm("lecture04.cli.main", "train", "attention=scaled", *SMALL.split(), "logger=none", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    (recorded,) = tmp_path.glob("outputs/runs/*-scaled-*/config.yaml")
    assert "start: 0.1" in recorded.read_text()
    assert "scaled.py" in recorded.read_text()
    metrics = json.loads(recorded.with_name("summary.json").read_text())["metrics"]
    assert metrics["params"] == 106_112, "128 more than the standard model's"


@pytest.mark.slow
def test_a_part_compared(follow, tmp_path):
    checks, plan, table, more = follow("add-a-part.md", SMALL, alone=True).values()
    assert "attention=scaled: every check passed." in checks
    assert "6 runs, 6 to train, nothing started" in plan
    assert "scaled" in table
    (page,) = tmp_path.glob("outputs/sweeps/*/table.md")
    assert "106,112" in page.read_text(), "its parameters: 128 more than the standard model's"
    assert "seed 4" in more
    recorded = [path.read_text() for path in tmp_path.glob("outputs/runs/*-scaled-*/config.yaml")]
    assert len(recorded) == 5
    assert all("start: 0.1" in text and "scaled.py" in text for text in recorded)


def test_a_source_of_text_without_a_true_distribution(follow, tmp_path):
    (tmp_path / "poem.txt").write_text("\n".join(f"line {i} of a poem that nobody wrote" for i in range(200)))
    more = "trainer.steps=20 trainer.diverged_margin=-9 logger=none"
    (printed,) = follow("add-a-source.md", more).values()
    assert "perplexity" in printed
    assert "excess" not in printed
    (config,) = tmp_path.glob("outputs/runs/*/config.yaml")
    digest = re.search(r"digest: '?(\w{16})'?", config.read_text())
    assert digest, "the text is part of the run"
    (tmp_path / "poem.txt").write_text("\n".join(f"line {i} of another poem" for i in range(200)))
    follow("add-a-source.md", more)
    assert len(list(tmp_path.glob("outputs/runs/*"))) == 2, "another text is another run"


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True])
def test_a_text_of_your_own(follow, tmp_path, alone):
    """The stranger's path, from a folder of texts to a page."""
    more = "trainer.steps=20 trainer.diverged_margin=-9 layout.length=32 eval.train_tokens=500 model.d_model=16"
    printed = follow("your-own-text.md", f"{more} model.n_heads=2 logger=none hydra/launcher=basic", alone=alone)
    _, plan, table, page = printed.values()
    assert "6 runs, 6 to train, nothing started" in plan
    assert "test bits/byte" in table
    assert "ppl" not in table.splitlines()[0]
    (html,) = tmp_path.glob("outputs/sweeps/*/report.html")
    assert str(html.relative_to(tmp_path)) in page
    assert "bits/byte" in html.read_text()


@pytest.mark.slow
def test_a_metric_is_one_declaration(follow):
    (table,) = follow("add-a-metric.md", f"{SMALL} logger=none hydra/launcher=basic").values()
    assert "top-5" in table
    assert "log odds" in table
    assert "how often the right token is among the five likeliest" in table


@pytest.mark.slow
def test_a_column_is_declared_in_one_place(follow):
    (table,) = follow("add-a-column.md", f"{SMALL} hydra/launcher=basic").values()
    assert "spread of ppl" in table
    assert "the largest perplexity of a row less its smallest" in table


@pytest.mark.slow
def test_the_pages_table_is_what_its_command_prints(follow):
    """At full length: every figure on the page, to the digit."""
    printed = follow("add-a-part.md", alone=True)
    ((_, shown),) = blocks("add-a-part.md", "")
    table = list(printed.values())[2]
    for line in shown.splitlines():
        assert re.sub(r"\s+", " ", line) in re.sub(r"[^\S\n]+", " ", table)
