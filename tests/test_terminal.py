"""Lines that fit a terminal, and a reader that goes away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture04.terminal import NARROWEST, READER_GONE, wrapped

ROOT = Path(__file__).parents[1]
WORDS = st.lists(st.text("abcdefgh/.=-", min_size=1, max_size=20), min_size=1, max_size=30)


@settings(deadline=None)
@given(WORDS, st.integers(NARROWEST, 120))
def test_lines_fit_and_words_stay_whole(words, width):
    lines = wrapped(" ".join(words), width).splitlines()
    assert [word for line in lines for word in line.split()] == words
    assert all(len(line) <= width or " " not in line.strip() for line in lines)


def test_a_pipe_has_no_width():
    text = "word " * 100
    assert wrapped(text, None) == text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("/tmp/mein schöner Ordner/sweeps: no table lies there yet, and more", "/tmp/mein schöner Ordner/sweeps:"),
        ("nothing is there yet; `python train.py -m sweeps=recipe` makes one", "`python train.py -m sweeps=recipe`"),
        ("no such table lies in x; make it: python train.py -m sweeps=ffn", "python train.py -m sweeps=ffn"),
        ("  lecture04 train [GROUP=CHOICE ...] [SETTING=VALUE ...]", "train [GROUP=CHOICE ...] [SETTING=VALUE ...]"),
    ],
)
def test_a_path_and_a_command_are_not_broken(text, whole):
    lines = wrapped(text, NARROWEST).splitlines()
    assert any(whole in line for line in lines)
    assert "\x1f" not in "".join(lines)


def test_a_second_column_stays_one():
    lines = wrapped("  relu  max(0, x), the activation of the 2017 Transformer", 30).splitlines()
    assert lines[0].startswith("  relu  max")
    assert len(lines) > 1
    assert all(line.startswith(" " * 8) for line in lines[1:])


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    "words", [("--help",), ("train", "--help"), ("parts",), ("probe", "--help"), ("check-part", "-h")]
)
def test_help_fits_the_columns_that_the_environment_names(forked, words, width, tmp_path):
    done = forked("lecture04.cli.main", *words, cwd=tmp_path, COLUMNS=str(width))
    assert done.returncode == 0
    long = [line for line in done.stdout.splitlines() if len(line) > width]
    if width >= 80:
        assert not long
    assert all(line.startswith(("  lecture04 ", "  eval ", "usage: ")) for line in long), "a command is not broken"


def test_a_sentence_fits_them_too(forked, tmp_path):
    typed = (ROOT / "train.py", "foo=1")
    narrow = forked(*typed, cwd=tmp_path, COLUMNS="60").stderr
    assert len(narrow.splitlines()) > 1
    assert max(map(len, narrow.splitlines())) <= 60
    assert " ".join(narrow.split()) == " ".join(forked(*typed, cwd=tmp_path).stderr.split())


def test_a_reader_that_goes_ends_a_command_without_a_word():
    """Long before it has said everything, and with what its buffer holds at the end."""
    for words in (["train", "--help"], ["runs", "list"], ["--help"], ["runs", "--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "lecture04.cli.main", *words], stdout=writer, stderr=subprocess.PIPE, text=True
        )
        os.close(writer)
        assert done.stderr == "", words
        assert done.returncode in ({READER_GONE} if words != ["runs", "--help"] else {0})  # argparse minds nothing


def test_work_goes_on_where_nobody_listens():
    code = (
        "import sys; from lecture04.terminal import readers_may_go, say\n"
        "with readers_may_go():\n    say('x' * 100000); say('y'); print('done', file=sys.stderr)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "done\n")
