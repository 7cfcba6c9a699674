"""From records to tables, without torch: `lecture04 report NAME` rebuilds a table from the records alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lecture04.report.comparison import Judged
    from lecture04.report.manifest import Manifest
    from lecture04.report.results import Results


def report(
    folder: Path, manifest: Manifest | None = None, *, verbose: bool = False, all_of_it: str = "table.verbose=true"
) -> Iterator[str]:
    """Write a table's files and its page into its folder. Yields what a command prints: the answer, then the way on.

    The answer comes before anything is written; where that cannot be, it is all, and why stands on stderr. `manifest`:
    what the table is from now on, in place of what its folder says. `verbose`: every column and the whole legend, not
    the first screen; `all_of_it` is what the user types for that.
    """
    from lecture04.files import not_a_folder
    from lecture04.report import html
    from lecture04.report.comparison import judge_all
    from lecture04.report.results import collect, gather
    from lecture04.report.screen import screen
    from lecture04.report.table import build
    from lecture04.report.text import linked, terminal, wants_colour
    from lecture04.terminal import width_of, wrapped

    results = collect(folder) if manifest is None else gather(folder, manifest)
    judged = judge_all(results)
    colour = wants_colour()
    yield terminal(build(results, judged), colour=colour) if verbose else screen(results, judged[0], colour=colour)
    page = folder / html.PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = {} if manifest is None else {"sweep.json": json.dumps(manifest.to_json(), indent=1) + "\n"}
        if [*_renew(folder, own), *write(folder, results, judged)] or not page.exists():
            html.write(folder)
            html.write_index(folder.parent)  # the page has a link to it
    except OSError as e:
        why = not_a_folder(folder) or f"{e.filename}: {e.strerror}"
        print(f"The table is shown here alone, its files could not be written ({why}).", file=sys.stderr)
        return
    more = "" if verbose else f"; {all_of_it} prints it all"
    everything = f"all numbers: table.md, contrasts.csv and runs.csv beside it{more}"
    yield f"page: {linked(page)}\n{wrapped(everything, width_of(sys.stdout))}"


def write(folder: Path, results: Results, judged: Sequence[Judged]) -> list[str]:
    """Write a table's files but for its page. Returns the names of those that changed."""
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
    return _renew(folder, files)


def _renew(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write those of these texts that are not in their files. Returns their names."""
    from lecture04.files import write_whole

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
