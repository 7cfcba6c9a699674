"""A command over tables: `python -m lecture04.report.SOMETHING NAME ...`, or all of them."""

import argparse
from collections.abc import Callable
from pathlib import Path

from lecture04.config.messages import UserError


def over_tables(
    module: str, about: str | None, do: Callable[[Path], str], after: Callable[[Path], str] | None = None
) -> None:
    """Do something for the folder of each table that the command line names, and print what it returns.

    `after` is done once, for the folder of all tables. Raises UserError at the end for tables that could not be read:
    they keep no other from being done.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("names", nargs="*", help="folders in OUTPUTS/sweeps; all where none is named")
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    args = parser.parse_args()
    sweeps: Path = args.outputs / "sweeps"
    names = args.names or sorted(path.parent.name for path in sweeps.glob("*/sweep.json"))
    if not names:
        raise UserError(f"{sweeps}: no table lies there yet; `make recipe-ablation` makes one.")
    wrong: list[str] = []
    for name in names:
        try:
            print(do(sweeps / name), flush=True)
        except UserError as e:
            wrong.append(str(e))
    if after and len(wrong) < len(names):
        print(after(sweeps))
    if wrong:
        raise UserError("\n".join(wrong))
