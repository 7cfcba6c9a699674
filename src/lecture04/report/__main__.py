"""`python -m lecture04.report NAME ...`: rebuild tables from their records."""

import argparse
from pathlib import Path

from lecture04 import errors
from lecture04.report import write


def main() -> None:
    """Rebuild and print each named table, or all."""
    parser = argparse.ArgumentParser(prog="python -m lecture04.report", description=__doc__)
    parser.add_argument("names", nargs="*", help="folders in OUTPUTS/sweeps; all where none is named")
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    args = parser.parse_args()
    sweeps = args.outputs / "sweeps"
    for name in args.names or sorted(path.parent.name for path in sweeps.glob("*/sweep.json")):
        print(write(sweeps / name), end="\n\n")


if __name__ == "__main__":
    errors.run(main)
