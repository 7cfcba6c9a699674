"""A display that moves below what is said meanwhile, and signs that a terminal has not got."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from lecture04 import screen

ROOT = Path(__file__).parents[1]
# A display of two lines, above which everything that can be said is said.
SAYS = """
import logging, sys, time, warnings
from lecture04 import screen
from rich.text import Text

logging.basicConfig(format="%(message)s", level=logging.WARNING)

def draw(console):
    return Text("d" * min(console.width, 70) + "\\n" + screen.spinner(console), no_wrap=True)

with screen.showing(draw):
    time.sleep(0.6)
    logging.warning("logged " + "x" * 90 + " /a/path/that/is/long")
    print("printed", file=sys.stderr)
    sys.stderr.write("without an end")
    time.sleep(WAIT)
    print("for the pipe")
logging.warning("afterwards")
"""


def alone(*arguments, cwd, **environment):
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def said_on(in_terminal, tmp_path, wait, columns):
    (tmp_path / "says.py").write_text(SAYS.replace("WAIT", wait))
    done, screens, raw = in_terminal(alone, tmp_path / "says.py", columns=columns, cwd=tmp_path)
    assert done.returncode == 0, raw
    assert done.stdout == "for the pipe\n"
    return screens, raw


def test_what_is_said_stands_whole_above_the_display_which_is_wiped_at_the_end(in_terminal, tmp_path):
    screens, raw = said_on(in_terminal, tmp_path, "0.6", "80")
    logged = "logged " + "x" * 90 + " /a/path/that/is/long"
    assert logged in raw, "what is longer than a line is left to the terminal to fold"
    assert any(screen[-2] == "d" * 70 for screen in screens if len(screen) > 4), "the display goes on below"
    turned = {screen[-1] for screen in screens if screen and len(screen[-1]) == 1}
    assert len(turned) > 2, "and moves"
    assert screens[-1] == [logged[:80], logged[80:], "printed", "without an end", "afterwards"]


def test_a_terminal_that_gets_narrower_keeps_nothing_of_the_old_display(in_terminal, tmp_path):
    screens, raw = said_on(in_terminal, tmp_path, "1.5", "80-40")
    assert "d" * 70 in raw
    assert screens[-1][-2:] == ["without an end", "afterwards"] or screens[-1] == ["without an end", "afterwards"]
    assert not any("d" * 10 in line for line in screens[-1])
    assert raw.count("\x1b[2J") == 1, "wiped once, when it was folded"
    later = raw.split("\x1b[2J")[1]
    assert "d" * 40 in later
    assert "d" * 41 not in later


def test_nothing_is_drawn_in_a_pipe(tmp_path):
    (tmp_path / "says.py").write_text(SAYS.replace("WAIT", "0.1"))
    done = alone(str(tmp_path / "says.py"), cwd=tmp_path)
    assert done.stdout == "for the pipe\n"
    assert done.stderr.splitlines()[1:] == ["printed", "without an endafterwards"]
    assert "\x1b" not in done.stderr


# -- signs


@pytest.fixture
def written(monkeypatch):
    """`written("ascii", text)`: what a stream of an encoding holds after it was printed there."""

    def written(encoding, text, errors="strict"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding, errors)
        monkeypatch.setattr(sys, "stdout", stream)
        screen.write_what_can_be_written()
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
    signs = {sign for path in files if path.name != "screen.py" for sign in path.read_text("utf-8") if sign > "\x7f"}
    assert {"±", "∞"} <= signs
    letters = {sign for sign in signs if sign.isalpha()}
    assert not sorted(signs - screen.IN_ASCII.keys() - letters)


COMMANDS = [
    ("sample.py", "3"),
    ("train.py", "--help"),
    ("train.py", "-m", "sweeps=recipe", "sweep.plan=true"),
    ("probe.py", "--help"),
    ("probe.py", "probe=rope"),
    ("train.py", "-m", "ffn=relu,gelu", "seed=0,1", "hydra/launcher=basic", "logger=none", "trainer.steps=10"),
]
IN_ASCII = """
import io, runpy, sys
for name in ("stdout", "stderr"):
    setattr(sys, name, io.TextIOWrapper(getattr(sys, name).buffer, "ascii", "strict"))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_door_opens_in_a_terminal_of_ascii(warm, tmp_path, command):
    (tmp_path / "ascii.py").write_text(IN_ASCII)
    script, *arguments = command
    small = ("trainer.batch_size=8", "data.n_train=80", "data.n_val=20", "data.n_test=40")
    more = small if "logger=none" in arguments else ()
    done = warm(tmp_path / "ascii.py", str(ROOT / script), *arguments, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) > 3
