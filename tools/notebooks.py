"""Runs the notebooks of docs/ from top to bottom, in an empty folder."""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
SECONDS = 900
"""Of one cell."""


def executed(path: Path) -> nbformat.NotebookNode:
    """A notebook with what its cells give, without what they say on stderr and without times.

    Raises nbclient's CellExecutionError where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
        client.execute(cwd=folder)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if not _is_passing(out)]
    notebook.metadata.pop("signature", None)
    return notebook


def _is_passing(out: nbformat.NotebookNode) -> bool:
    """Whether an output is gone for who reads it later: what stderr says, and a run's display, empty at its end."""
    return out.get("name") == "stderr" or out.get("data") == {"text/plain": ""}


def write() -> None:
    """Every notebook again, with its outputs."""
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)
        print(f"docs/{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    write()
