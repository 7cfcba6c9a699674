"""From records to tables, without torch: `python -m lecture04.report NAME` rebuilds a table from the records alone."""

from pathlib import Path


def write(folder: Path) -> str:
    """Write a table's files into its folder. Returns the terminal's text, which says where they are."""
    from lecture04.report.collect import collect
    from lecture04.report.faces import markdown, terminal
    from lecture04.report.table import build
    from lecture04.runs.record import write_whole

    results = collect(folder)
    tables = build(results)
    command = results.manifest["command"]
    write_whole(folder / "table.md", markdown(tables) + f"\nMade by `{command}`.\n")
    write_whole(folder / "table.txt", terminal(tables, width=160) + "\n")
    write_whole(folder / "runs.csv", results.runs.to_csv(index=False))
    runs = folder.parent.parent / "runs"
    where = f"table: {folder}/table.md, table.txt\nevery run and metric: {folder}/runs.csv\nthe runs: {runs}"
    return f"{terminal(tables)}\n\n{where}"
