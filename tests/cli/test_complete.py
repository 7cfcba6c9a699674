"""TAB offers what can be chosen, and nothing internal."""

from pathlib import Path

import pytest

from lecture04.cli import complete, runs
from lecture04.config.settings import INTERNAL

ROOT = Path(__file__).parents[2]
FROM_HYDRA = ("ffn.", "ffn=", "hydra", "hydra.", "origin.", "parts.", "probe=", "schema/", "seed=", "sweep.", "sweeps=")


def offered(monkeypatch, capsys, line, words=(), **about):
    """What is offered after a line where Hydra would offer these words."""
    monkeypatch.setenv("COMP_LINE", line)
    complete.answer(lambda: print(" ".join(words)), ["-sc", "query=bash"], **about)
    return capsys.readouterr().out.split()


def test_nothing_internal_and_nothing_of_another_command(monkeypatch, capsys):
    found = offered(monkeypatch, capsys, "train.py ", FROM_HYDRA)
    assert found == ["ffn.", "ffn=", "parts=[", "seed=", "sweep.", "sweeps="]
    assert offered(monkeypatch, capsys, "probe.py ", FROM_HYDRA, is_probe=True) == [
        "ffn.",
        "ffn=",
        "parts=[",
        "probe=",
        "seed=",
    ]


@pytest.mark.parametrize(
    ("line", "words", "found"),
    [
        ("train.py h", ("hydra", "hydra."), ["hydra/", "hydra."]),
        ("train.py hydra/", ("hydra/env=", "hydra/launcher=", "hydra/sweeper="), ["hydra/launcher="]),
        ("train.py hydra.", ("hydra.job.", "hydra.launcher.", "hydra.run."), ["hydra.launcher.", "hydra.run."]),
        (
            "train.py hydra.launcher.",
            ("hydra.launcher._target_=", "hydra.launcher.backend=", "hydra.launcher.n_jobs="),
            ["hydra.launcher.n_jobs="],
        ),
        ("train.py ffn.", ("ffn.d_ff=", "ffn.name="), ["ffn.d_ff="]),
        ("train.py optim.schedule=", (), [f"optim.schedule={name}" for name in ("constant", "linear", "cosine")]),
        ("train.py model.bias=f", (), ["model.bias=false"]),
        ("train.py --c", ("ffn=",), ["--cfg", "--config-dir"]),
    ],
)
def test_what_can_be_chosen(monkeypatch, capsys, line, words, found):
    assert offered(monkeypatch, capsys, line, words) == found


def test_fish_has_a_line_each(monkeypatch, capsys):
    monkeypatch.setenv("COMP_LINE", "train.py ffn")
    complete.answer(lambda: print("ffn.\nffn="), ["-sc", "query=fish"])
    assert capsys.readouterr().out == "ffn.\nffn=\n"


def test_hydras_own_list_is_the_one_that_is_trimmed(forked, tmp_path):
    done = forked(ROOT / "train.py", "-sc", "query=bash", cwd=tmp_path, COMP_LINE="train.py ")
    words = done.stdout.split()
    assert {"ffn=", "sweeps=", "optim.", "trainer."} <= set(words)
    assert not [word for word in words if word.startswith((*INTERNAL, "schema", "hydra", "probe"))]
    assert not done.imported


@pytest.mark.parametrize(
    ("line", "found"),
    [("", ["list", "show", "explain", "prune"]), ("l", ["list"]), ("prune --a", ["--all-unused"]), ("list x", [])],
)
def test_other_commands_offer_their_own_words(line, found):
    assert complete.of_parser(runs.parser(), line) == found


def test_tab_is_set_up_behind_a_subcommand_too(forked, tmp_path):
    done = forked("lecture04.cli.main", "train", "-sc", "install=bash", cwd=tmp_path)
    assert done.stdout.rstrip().endswith("hydra_bash_completion lecture04")
    other = forked("lecture04.cli.main", "runs", "-sc", "install=bash", cwd=tmp_path)
    assert other.returncode == 1
    assert (
        other.stderr == '-sc: TAB is set up for all commands at once; write `eval "$(lecture04 -sc install=bash)"`.\n'
    )
