"""Arrays that are made once, where they can be written and where they cannot."""

import pytest

SCRIPT = """
import sys
from pathlib import Path
from lecture04.data.cache import cached
import numpy as np
def make():
    print("made")
    return {"x": np.arange(3)}
print(cached(Path("data"), "x", {"a": int(sys.argv[1])}, make)["x"].sum())
"""


@pytest.fixture
def place(tmp_path, warm):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert warm(tmp_path / "script.py", "0", cwd=tmp_path).stdout == "made\n3\n"
    (tmp_path / "data").chmod(0o555)
    for path in (tmp_path / "data").iterdir():
        path.chmod(0o444)
    yield tmp_path
    (tmp_path / "data").chmod(0o755)


def test_what_was_made_is_read_where_nothing_can_be_written(place, warm):
    done = warm(place / "script.py", "0", cwd=place, is_bound=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_what_was_not_made_is_an_error_where_nothing_can_be_written(place, warm):
    done = warm(place / "script.py", "1", cwd=place, is_bound=True)
    assert done.returncode == 1
    assert "Permission" in done.stderr
    assert "made" not in done.stdout
