"""`python -m lecture04.report.figures NAME ...`: write tables' figures, for papers."""

from pathlib import Path

from lecture04.config import messages
from lecture04.report.figures import write
from lecture04.report.named import over_tables


def main() -> None:
    """Write the figures of each named table, or of all, and say where they are."""
    over_tables("lecture04.report.figures", __doc__, _figures)


def _figures(folder: Path) -> str:
    names = ", ".join(dict.fromkeys(path.stem for path in write(folder)))
    return f"{folder}/figures: {names or 'no run has ended yet'}"


if __name__ == "__main__":
    messages.run(main)
