"""`lecture04 new DIR`: a small project with a part of your own, its YAML, a comparison and a Makefile."""

import shlex
import shutil
from pathlib import Path

from lecture04.cli.parser import Parser
from lecture04.cli.parser import folder as named
from lecture04.config import messages
from lecture04.config.errors import UserError
from lecture04.files import not_writable

TEMPLATE = Path(__file__).parent / "project"
PART = "my_part.py"
"""In the template it has another ending: it is the project's code, and none of this package's."""
LEFT_BY_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
"""What lies in a folder that its owner sees as empty."""
NEXT = """\
{folder}: my_part.py holds a feed-forward layer of your own, sweeps/mine.yaml compares it. Next:

  cd {typed}
  lecture04 train ffn=mine          # one run
  lecture04 train -m sweeps=mine    # the table, 3 rows x 3 seeds (make mine-ablation)"""


def new(folder: Path) -> str:
    """Write the project into a new or empty folder; what to type next. Raises UserError where files lie there."""
    if folder.is_file():
        raise UserError(f"{folder}: a file of that name is there; name a new folder.")
    if why := not_writable(folder):
        raise UserError(f"{folder}: {why}; name a new folder.")
    if folder.is_dir() and any(path.name not in LEFT_BY_SYSTEMS for path in folder.iterdir()):
        raise UserError(f"{folder}: the folder holds files; name a new or an empty one.")
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (folder / f"{PART}.txt").rename(folder / PART)
    typed = f"./{folder}" if str(folder).startswith("-") else str(folder)  # `cd -x` would be an option
    return NEXT.format(folder=folder, typed=shlex.quote(typed))


def entry() -> None:
    """The command line."""
    p = Parser("lecture04 new", description="Starts a project with a part of your own.")
    p.add_argument("folder", type=named, metavar="DIR", help="a new or an empty folder")
    folder = p.parse_args().folder
    messages.run(lambda: print(new(folder)))
