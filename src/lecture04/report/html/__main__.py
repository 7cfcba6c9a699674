"""`python -m lecture04.report.html NAME ...`: write tables as pages, and their index."""

from pathlib import Path

from lecture04.config import messages
from lecture04.report.html import write, write_index
from lecture04.report.named import over_tables


def main() -> None:
    """Write the page of each named table, or of all, then the index; say where they are."""
    over_tables("lecture04.report.html", __doc__, _page, after=lambda sweeps: f"{write_index(sweeps)}  (all tables)")


def _page(folder: Path) -> str:
    file = write(folder)
    return f"{file}  ({file.stat().st_size / 1e6:.1f} MB)"


if __name__ == "__main__":
    messages.run(main)
