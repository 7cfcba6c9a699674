"""A display that moves below what is said meanwhile."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A display of two lines, above which everything that can be said is said.
SAYS = """
import logging, sys, time, warnings
from lecture04 import display
from rich.text import Text

logging.basicConfig(format="%(message)s", level=logging.WARNING)

def draw(console):
    return Text("d" * min(console.width, 70) + "\\n" + display.spinner(console), no_wrap=True)

with display.showing(draw):
    time.sleep(0.6)
    logging.warning("logged " + "x" * 90 + " /a/path/that/is/long")
    print("printed", file=sys.stderr)
    sys.stderr.write("without an end")
    time.sleep(WAIT)
    print("for the pipe")
logging.warning("afterwards")
"""


CELL = """
import time
import IPython.display
import rich.console
from rich.text import Text
from lecture04 import display

class Handle:
    def display(self, data, raw):
        print("displayed", data)
    def update(self, data, raw):
        print("updated", data)

IPython.display.DisplayHandle = Handle
rich.console._is_jupyter = lambda: True
with display.showing(lambda console: Text("here")):
    time.sleep(1.3)
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


def test_in_a_notebook_one_output_is_written_again_and_is_empty_at_the_end(tmp_path):
    done = alone("-c", CELL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, *more, last = done.stdout.splitlines()
    assert first == "displayed {'text/plain': ''}"
    assert more
    assert set(more) == {"updated {'text/plain': 'here'}"}
    assert last == "updated {'text/plain': ''}"
