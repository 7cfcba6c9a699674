"""The notebooks of docs/: they run, and what they show is there."""

import re
from pathlib import Path

import nbformat
import notebooks
import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 1_000_000
EXERCISES = range(1, 10)


def read(name):
    return nbformat.read(notebooks.DOCS / name, as_version=4)


def kinds(cell):
    """What a cell shows, by MIME type."""
    return {kind for out in cell.get("outputs", ()) for kind in out.get("data", {})}


def sections(notebook):
    """{heading: the code cells below it}."""
    found, heading = {}, ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.setdefault(heading, []).append(cell)
        elif title := re.match("## (.*)", cell.source):
            heading = title[1]
    return found


def show_their_figures(exercises):
    below = sections(exercises)
    for number in EXERCISES:
        (cells,) = [cells for heading, cells in below.items() if heading.startswith(f"Exercise {number}:")]
        assert "image/png" in kinds(cells[-1]), number


def shows_a_verdict(tour):
    (found,) = [cells for heading, cells in sections(tour).items() if heading.endswith("The verdict")]
    assert any("text/html" in kinds(cell) and "lecture04" in str(cell.outputs) for cell in found)
    assert any("image/png" in kinds(cell) for cell in found)


def test_there_are_two():
    assert [path.name for path in notebooks.NOTEBOOKS] == ["exercises.ipynb", "tour.ipynb"]


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_ran(path):
    assert path.stat().st_size < MOST_BYTES
    notebook = read(path.name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [out for cell in code for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"]
    said = str([out.get("text", "") + str(out.get("data", {}).get("text/plain", "")) for out in outputs])
    assert not re.search(r"/(tmp|home|root|Users)/", said)


def test_each_exercise_ends_in_its_figure():
    show_their_figures(read("exercises.ipynb"))


def test_the_tour_comes_to_a_verdict():
    shows_a_verdict(read("tour.ipynb"))


@pytest.mark.slow
def test_the_tour_runs():
    shows_a_verdict(notebooks.executed(notebooks.DOCS / "tour.ipynb"))


@pytest.mark.slow
def test_the_exercises_run():
    show_their_figures(notebooks.executed(notebooks.DOCS / "exercises.ipynb"))
