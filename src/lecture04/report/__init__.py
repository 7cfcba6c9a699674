"""From records to tables, without torch: `lecture04 report NAME` rebuilds a table from the records alone."""

from pathlib import Path


def write(folder: Path) -> str:
    """Write a table's files into its folder. Returns the terminal's text, which says where they are."""
    from lecture04.files import write_whole
    from lecture04.report.comparison import judge_all
    from lecture04.report.contrasts import contrasts
    from lecture04.report.latex import latex
    from lecture04.report.markdown import markdown
    from lecture04.report.results import collect
    from lecture04.report.table import build
    from lecture04.report.text import terminal, wants_colour

    results = collect(folder)
    judged = judge_all(results)
    tables = build(results, judged)
    command = results.manifest.command
    files = {
        "table.txt": terminal(tables, width=160) + "\n",
        "table.md": markdown(tables) + f"\nMade by `{command}`.\n",
        "table.tex": latex(tables),
        "runs.csv": results.runs.to_csv(index=False),
        "contrasts.csv": contrasts(judged).to_csv(index=False),
    }
    for name, text in files.items():
        write_whole(folder / name, text)
    where = [
        f"table: {folder}/table.md, table.txt, table.tex",
        f"every run and metric: {folder}/runs.csv",
        f"every difference and its verdict: {folder}/contrasts.csv",
        f"the runs: {folder.parent.parent / 'runs'}",
    ]
    return f"{terminal(tables, colour=wants_colour())}\n\n" + "\n".join(where)
