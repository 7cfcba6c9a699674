"""Rebuild tables from their records."""

from lecture04.config import messages
from lecture04.report import write
from lecture04.report.named import over_tables


def main() -> None:
    """Rebuild and print each named table, or all."""
    over_tables("lecture04.report", __doc__, lambda folder: write(folder) + "\n")


if __name__ == "__main__":
    messages.run(main)
