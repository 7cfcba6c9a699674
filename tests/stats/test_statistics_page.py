"""docs/statistics.md and README.md: their programs print what stands below them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "statistics.md").read_text()
README = (ROOT / "README.md").read_text()
PRINTS = re.compile(r"```python\n((?:(?!```).)*?)```\n\n```text\n(.*?)```", flags=re.S)
PROGRAMS = PRINTS.findall(PAGE)


@pytest.mark.parametrize(("program", "printed"), [*PROGRAMS, *PRINTS.findall(README)])
def test_the_pages_programs_print_what_it_says(program, printed, capsys):
    exec(program, {})
    assert capsys.readouterr().out == printed


def test_the_page_has_its_programs():
    assert len(PROGRAMS) == PAGE.count("```python") == 2
    assert len(PRINTS.findall(README)) == 1
