"""From records to tables, without torch: `lecture04 report NAME` rebuilds a table from the records alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04.report.comparison import Judged
    from lecture04.report.results import Results


def report(folder: Path, *, verbose: bool = False) -> Iterator[str]:
    """Write a table's files and its page into its folder. Yields what a command prints: the answer, then the way on.

    The answer comes before anything is written. `verbose`: every column and the whole legend, not the first screen.
    """
    from lecture04.report import html
    from lecture04.report.comparison import judge_all
    from lecture04.report.results import collect
    from lecture04.report.screen import screen
    from lecture04.report.table import build
    from lecture04.report.text import linked, terminal, wants_colour

    results = collect(folder)
    judged = judge_all(results)
    colour = wants_colour()
    yield terminal(build(results, judged), colour=colour) if verbose else screen(results, judged[0], colour=colour)
    changed = write(folder, results, judged)
    page = folder / html.PAGE
    if changed or not page.exists():
        html.write(folder)
    more = "" if verbose else "; table.verbose=true prints it all"
    yield "\n".join([f"page: {linked(page)}", f"all figures: table.md, contrasts.csv and runs.csv beside it{more}"])


def write(folder: Path, results: Results, judged: Sequence[Judged]) -> list[str]:
    """Write a table's files but for its page. Returns the names of those that changed."""
    from lecture04.files import write_whole
    from lecture04.report.contrasts import contrasts
    from lecture04.report.latex import latex
    from lecture04.report.markdown import markdown
    from lecture04.report.table import build
    from lecture04.report.text import terminal

    tables = build(results, judged)
    files = {
        "table.txt": terminal(tables, width=160) + "\n",
        "table.md": markdown(tables) + f"\nMade by `{results.manifest.command}`.\n",
        "table.tex": latex(tables),
        "runs.csv": results.runs.to_csv(index=False),
        "contrasts.csv": contrasts(judged).to_csv(index=False),
    }
    changed = [name for name, text in files.items() if not _holds(folder / name, text)]
    for name in changed:
        write_whole(folder / name, files[name])
    return changed


def _holds(file: Path, text: str) -> bool:
    """Whether a file has this text already."""
    try:
        return file.read_bytes() == text.encode()
    except OSError:
        return False
