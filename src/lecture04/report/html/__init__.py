"""Tables as pages: one self-contained HTML file each, and an index. Without torch, network or server.

`lecture04 report --html NAME` writes them; they open from the disk.
"""

from pathlib import Path

PAGE, INDEX = "report.html", "index.html"


def write(folder: Path) -> Path:
    """Write the page of the table in a folder, `report.html`. Returns the file."""
    from lecture04.files import write_whole
    from lecture04.report.html.page import page
    from lecture04.report.results import collect

    write_whole(folder / PAGE, page(collect(folder)))
    return folder / PAGE


def write_index(sweeps: Path) -> Path:
    """Write the index of all tables that have a page, `index.html` in the folder of the tables. Returns the file."""
    from lecture04.files import write_whole
    from lecture04.report.html.index import index

    write_whole(sweeps / INDEX, index(sweeps))
    return sweeps / INDEX
