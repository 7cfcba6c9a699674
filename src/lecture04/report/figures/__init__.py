"""A table's figures as PNG, SVG and PDF, without torch: `lecture04 report --figures NAME`."""

from pathlib import Path
from typing import Any

FORMATS = ("png", "svg", "pdf")
NAMES = ("forest", "forest-step", "forest-total", "strip", "curves", "waterfall", "positions", "grid")
"""What the files of figures may be called; other files in their folder are somebody else's."""
SETTINGS: dict[Any, Any] = {
    # Letters as outlines, or embedded whole: a paper's printer has none of our fonts.
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    # A row may be called `$x$`, and means it.
    "text.parse_math": False,
    "font.size": 9,
    "hatch.linewidth": 0.6,
    # The same results give the same bytes.
    "svg.hashsalt": "lecture04",
}


def write(folder: Path, formats: tuple[str, ...] = FORMATS) -> list[Path]:
    """Write the figures of the table in a folder to its `figures/`. Returns the files, PNG before SVG before PDF."""
    import matplotlib

    from lecture04.report.figures.paper import figures
    from lecture04.report.results import collect

    results = collect(folder)
    there = folder / "figures"
    there.mkdir(exist_ok=True)
    written = []
    with matplotlib.rc_context(SETTINGS):
        made = figures(results)
        for old in (there / f"{name}.{kind}" for kind in FORMATS for name in NAMES if name not in made):
            old.unlink(missing_ok=True)
        for name, figure in made.items():
            for kind in formats:
                path = there / f"{name}.{kind}"
                date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
                figure.savefig(path, dpi=200, metadata=date)
                written.append(path)
    return sorted(written, key=lambda path: (FORMATS.index(path.suffix[1:]), path.name))
