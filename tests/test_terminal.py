"""Lines that fit a terminal, signs that it has not got, and a reader that goes away."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture04.terminal import IN_ASCII, NARROWEST, READER_GONE, wrapped, write_what_can_be_written

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


@pytest.fixture
def written(monkeypatch):
    """`written("ascii", text)`: what a stream of an encoding holds after it was printed there."""

    def written(encoding, text, errors="strict"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding, errors)
        monkeypatch.setattr(sys, "stdout", stream)
        write_what_can_be_written()
        print(text, end="")
        stream.flush()
        return stream.buffer.getvalue()

    return written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("row   a ± b", "row   a +- b"),
        ("+1.02 ±  0.68", "+1.02 +- 0.68"),
        ("───", "---"),
        ("2 (1 to ∞)", "2 (1 to inf)"),
        ("0.5 × 3 → 1 … ≤", "0.5 x 3 -> 1 ... <="),
        ("runs/größe/Ж", r"runs/gr\xf6\xdfe/\u0416"),
        ("plain", "plain"),
    ],
)
def test_a_terminal_without_our_signs_gets_them_spelt(written, text, expected):
    assert written("ascii", text) == expected.encode()
    assert written("ascii", text, "backslashreplace") == expected.encode(), "stderr too"
    assert written("utf-8", text) == text.encode()


def test_an_encoding_that_has_some_of_them_keeps_those(written):
    assert written("latin-1", "ö ± 1 →") == "ö ± 1 ->".encode("latin-1")


def test_a_files_name_that_is_no_text_is_printed_byte_by_byte(written):
    name = b"runs/\xff\xfe".decode("utf-8", "surrogateescape")
    assert written("utf-8", name) == written("ascii", name) == b"runs/\xff\xfe"


def test_columns_stay_in_line_where_there_is_room(written):
    first, second = written("ascii", "×    a\n±    a\n").decode().splitlines()
    assert first.index("a") == second.index("a")


def test_all_that_our_files_print_has_a_spelling():
    """Whatever sign stands in a text of ours, a terminal of ASCII shows something that can be read."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "conf").rglob("*.yaml"), *(ROOT / "sweeps").glob("*.yaml")]
    signs = {
        sign
        for path in files
        if path.name not in ("terminal.py", "display.py")
        for sign in path.read_text("utf-8")
        if sign > "\x7f"
    }
    assert {"±", "∞"} <= signs
    letters = {sign for sign in signs if sign.isalpha()}
    assert not sorted(signs - IN_ASCII.keys() - letters)


COMMANDS = [
    ("sample.py", "garden", "-n", "3"),
    ("train.py", "--help"),
    pytest.param(("train.py", "-m", "sweeps=recipe", "sweep.plan=true"), marks=pytest.mark.slow),
    ("probe.py", "--help"),
    ("probe.py", "probe=rope"),
    ("train.py", "-m", "ffn=relu,gelu", "seed=0,1", "hydra/launcher=basic", "logger=none", "trainer.steps=10"),
]
TYPED_IN_ASCII = """
import io, runpy, sys
for name in ("stdout", "stderr"):
    setattr(sys, name, io.TextIOWrapper(getattr(sys, name).buffer, "ascii", "strict"))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_door_opens_in_a_terminal_of_ascii(warm, tmp_path, command):
    (tmp_path / "ascii.py").write_text(TYPED_IN_ASCII)
    script, *arguments = command
    small = ("trainer.batch_size=8", "data.n_train=80", "data.n_val=20", "data.n_test=40")
    more = small if "logger=none" in arguments else ()
    done = warm(tmp_path / "ascii.py", str(ROOT / script), *arguments, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) > 3
