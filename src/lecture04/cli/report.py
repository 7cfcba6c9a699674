"""`lecture04 report [NAME ...]`: tables again from their records, without torch; as pages, as figures, and to W&B."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lecture04.cli.parser import Parser, folder
from lecture04.config import messages
from lecture04.config.errors import UserError
from lecture04.config.overrides import command_line
from lecture04.config.typed import understood


def parser() -> Parser:
    """The command line."""
    from lecture04.config import WandB

    p = Parser("lecture04 report", description="Builds tables again from their records, and prints them.")
    p.add_argument("names", nargs="*", metavar="NAME", help="folders in OUTPUTS/sweeps; all where none is named")
    p.add_argument("--verbose", action="store_true", help="print every column and the whole legend")
    p.add_argument(
        "--all-seeds",
        action="store_true",
        help="add to a table every other seed of its rows that lies in OUTPUTS/runs, as after copying results together",
    )
    p.add_argument("--html", action="store_true", help="write each table's page and their index instead")
    p.add_argument("--figures", action="store_true", help="write each table's figures as PNG, SVG and PDF instead")
    p.add_argument("--wandb", action="store_true", help="send each table to Weights & Biases instead")
    p.add_argument("--outputs", type=folder, default=Path("outputs"), metavar="OUTPUTS", help="(default: outputs)")
    p.add_argument("--project", default=WandB.project, help="with --wandb (default: %(default)s)")
    mode = os.environ.get("WANDB_MODE", "online")
    p.add_argument("--mode", default=mode, help="with --wandb: online or offline (default: %(default)s)")
    return p


def table(folder: Path, *, verbose: bool) -> str:
    """Write every file of a table again; what it says, and where everything lies."""
    from lecture04.report import report

    return "\n\n".join(report(folder, verbose=verbose, all_of_it="--verbose")) + "\n"


def table_with_all_seeds(folder: Path, *, verbose: bool) -> str:
    """Write a table again with every seed that is there; what was added, and what the table says."""
    from lecture04.report import report
    from lecture04.report.all_seeds import with_all_seeds

    manifest, said = with_all_seeds(folder)
    return "\n\n".join(["\n".join(said), *report(folder, manifest, verbose=verbose, all_of_it="--verbose")]) + "\n"


def page(folder: Path) -> str:
    """Write a table's page; where it is."""
    from lecture04.report.html import write

    file = write(folder)
    return f"{file}  ({file.stat().st_size / 1e6:.1f} MB)"


def index(sweeps: Path) -> str:
    """Write the index of all pages; where it is."""
    from lecture04.report.html import write_index

    return f"{write_index(sweeps)}  (all tables)"


def figures(folder: Path) -> str:
    """Write a table's figures; where they are."""
    from lecture04.report.figures import write

    names = ", ".join(dict.fromkeys(path.stem for path in write(folder)))
    return f"{folder}/figures: {names or 'no run has ended yet'}"


def over_tables(
    names: list[str], sweeps: Path, do: Callable[[Path], str], after: Callable[[Path], str] | None = None
) -> None:
    """Do something for the folder of each of these tables, or of all, and print what it returns.

    `after` is done once, for the folder of all tables. Raises UserError at the end for tables that could not be read:
    they keep no other from being done.
    """
    from lecture04.files import not_a_folder
    from lecture04.records.store import tables_in

    if why := not_a_folder(sweeps):
        raise UserError(f"{sweeps}: {why}.")
    names = names or [table.name for table in tables_in(sweeps)]
    if not names:
        elsewhere = [] if sweeps.parent == Path("outputs") else [understood(f"paths.outputs={sweeps.parent}")]
        command = command_line("train.py", ["-m", "sweeps=recipe", *elsewhere])
        raise UserError(f"{sweeps}: no table lies there yet; `{command}` makes one.")
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


def main(args: argparse.Namespace) -> None:
    """Do what was asked for, of each table."""
    sweeps: Path = args.outputs / "sweeps"
    if args.all_seeds and not args.names:
        raise UserError("--all-seeds: name the tables; for each it is one more look at its seeds.")
    if args.all_seeds:
        over_tables(args.names, sweeps, partial(table_with_all_seeds, verbose=args.verbose))
    if args.html:
        over_tables(args.names, sweeps, page, index)
    if args.figures:
        over_tables(args.names, sweeps, figures)
    if args.wandb:
        from lecture04.report.wandb import log_table

        def send(folder: Path) -> str:
            log_table(folder, project=args.project, mode=args.mode)
            return f"{folder}: sent to {args.project}"

        over_tables(args.names, sweeps, send)
    if not (args.html or args.figures or args.wandb or args.all_seeds):
        over_tables(args.names, sweeps, partial(table, verbose=args.verbose))


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: main(args))
