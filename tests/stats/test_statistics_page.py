"""docs/statistics.md: its programs print what stands below them."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.S)


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_the_pages_programs_print_what_it_says(program, printed, capsys):
    exec(program, {})
    assert capsys.readouterr().out == printed


def test_the_page_has_its_programs():
    assert len(PROGRAMS) == PAGE.count("```python") == 2
