"""`lecture04 runs`: list, show, explain and prune what lies under outputs/runs."""

import argparse
from datetime import datetime
from pathlib import Path

from lecture04.cli.parser import Parser, folder
from lecture04.config import messages
from lecture04.config.errors import UserError
from lecture04.files import not_a_folder
from lecture04.records import store
from lecture04.records.explain import explain
from lecture04.records.metrics import METRICS
from lecture04.records.record import Status


def parser() -> Parser:
    """The command line."""
    p = Parser("lecture04 runs", description=__doc__)
    commands = p.add_subparsers(dest="command", required=True, metavar="{list,show,explain,prune}")
    list_ = commands.add_parser("list", help="every run: its status, its test NLL, the tables that show it")
    list_.add_argument("words", nargs="*", help="only runs with all of these in their names")
    show = commands.add_parser("show", help="what one run is and what it reached")
    show.add_argument("run", help="its folder, its name, or a part of its name")
    why = commands.add_parser("explain", help="why two runs are not the same one")
    for name in ("a", "b"):
        why.add_argument(name, metavar=name.upper(), help="a run's folder, its name, or a part of its name")
    prune = commands.add_parser("prune", help="delete runs without a result that no table shows")
    prune.add_argument("--all-unused", action="store_true", help="results too, where no table shows them")
    prune.add_argument("--yes", action="store_true", help="delete them; without it they are only listed")
    for command in commands.choices.values():
        command.add_argument(
            "--outputs", type=folder, default=Path("outputs"), help="where results lie (default: outputs)"
        )
    return p


def list_runs(outputs: Path, words: list[str]) -> str:
    """A line a run."""
    found = [kept for kept in store.store(outputs) if all(word in kept.name for word in words)]
    lines = [
        f"{kept.record.status().value:12s} {_nll(kept):>9s}  {kept.name}  {_shown(kept)}".rstrip() for kept in found
    ]
    return "\n".join([*lines, f"{len(found)} runs in {outputs / 'runs'}; the figure is the test NLL in nats a token"])


def _nll(kept: store.Kept) -> str:
    metrics = kept.record.latest_metrics()
    return f"{metrics['test/nll']:.4f}" if "test/nll" in metrics else "-"


def _shown(kept: store.Kept) -> str:
    return f"in {', '.join(kept.tables)}" if kept.tables else ""


def show_run(folder: Path) -> str:
    """What a run is, what it reached, and how it is made again."""
    record = store.Record(folder)
    summary, status = record.summary(), record.status()
    lines = [f"{folder}", f"status: {status.value}" + (f", {why}" if (why := summary.get("why")) else "")]
    if status is Status.failed:
        lines.append(f"error: {summary.get('error')}")
    if (when := folder / "summary.json").exists():
        lines.append(f"ended: {datetime.fromtimestamp(when.stat().st_mtime):%Y-%m-%d %H:%M}")
    if command := summary.get("command"):
        lines.append(f"made by: {command}")
    metrics = record.latest_metrics()
    lines += [
        f"  {METRICS[name].label:20s} {metrics[name]:{METRICS[name].format}}" for name in METRICS if name in metrics
    ]
    return "\n".join([*lines, "its config: config.yaml, what its identity is made of: identity.json"])


def explain_runs(outputs: Path, a: str, b: str) -> str:
    """Sentences on why two runs are not the same one."""
    here, there = store.find_run(outputs, a), store.find_run(outputs, b)
    try:
        return "\n".join([f"here:  {here.name}", f"there: {there.name}", *explain(here, there)])
    except ValueError as e:
        raise UserError(str(e)) from e


def prune_runs(outputs: Path, *, all_unused: bool, yes: bool) -> str:
    """What was deleted, or would be."""
    found = store.prunable(store.store(outputs), all_unused=all_unused)
    if not found:
        return f"nothing to delete in {outputs / 'runs'}"
    size = sum(kept.n_bytes for kept in found) / 1e6
    if not yes:
        names = [f"  {kept.record.status().value:12s} {kept.name}" for kept in found]
        return "\n".join([*names, f"{len(found)} runs, {size:.1f} MB, would be deleted; --yes deletes them"])
    gone = [kept for kept in found if store.remove(kept)]
    busy = f"; {len(found) - len(gone)} are being worked on and stay" if len(gone) < len(found) else ""
    return f"{len(gone)} runs, {size:.1f} MB, were deleted{busy}"


def main(args: argparse.Namespace) -> None:
    """Do what was asked for, and say it. Raises UserError."""
    if why := not_a_folder(args.outputs / "runs"):
        raise UserError(f"--outputs {args.outputs}: {why}.")
    if args.command == "list":
        print(list_runs(args.outputs, args.words))
    elif args.command == "show":
        print(show_run(store.find_run(args.outputs, args.run)))
    elif args.command == "explain":
        print(explain_runs(args.outputs, args.a, args.b))
    else:
        print(prune_runs(args.outputs, all_unused=args.all_unused, yes=args.yes))


def entry() -> None:
    """The command line."""
    args = parser().parse_args()
    messages.run(lambda: main(args))
