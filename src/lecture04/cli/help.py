"""What can be chosen, a line each: `python train.py --help`, and `lecture04 parts` for the parts alone."""

import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from lecture04.cli.parser import Parser
from lecture04.config import messages
from lecture04.config.overrides import program
from lecture04.config.places import CONF, SWEEPS, yamls
from lecture04.config.project import Outside, outside
from lecture04.config.registry import entries, list_parts
from lecture04.config.schema import PARTS
from lecture04.terminal import width_of, wrapped

USAGE = """\
Lecture04 trains small Transformers with one part swapped at a time, and says which differences are larger than what \
the random seeds alone can do.

  python train.py [GROUP=CHOICE ...] [SETTING=VALUE ...]
      one run
  python train.py -m GROUP=CHOICE,CHOICE seed=0,1,2
      a table: rows are the swept choices
  python train.py -m sweeps=NAME [seed=0,1,2,3,4] [sweep.plan=true]
      a table from sweeps/NAME.yaml, or its plan
  python train.py --cfg job [GROUP=CHOICE ...]
      every setting of a run, and its value
"""


def parts() -> str:
    """Every registered part with what it is and where it comes from, family by family."""
    blocks = []
    for family, settings in PARTS.items():
        about = {e.name: e.about for e in entries().values() if e.family == family}
        blocks.append(_block(family, str(settings.__doc__), about))
    return "\n".join(blocks)


def presets(more: Iterable[Path] = ()) -> str:
    """The presets and sweep files, with the first comment or the title of each; `more` are folders of sweep files."""
    recipes, models = _comments(CONF / "recipe"), _comments(CONF / "model")
    files = [path for folder in (SWEEPS, *more) for path in yamls(folder)]
    titles = {path.stem: _title(path) for path in files}
    return "\n".join(
        [
            _block("model", "The sizes.", models),
            _block("recipe", "Presets of several groups.", recipes),
            _block("sweeps", "Comparison tables, with -m.", titles),
        ]
    )


def _show(text: str) -> None:
    print(wrapped(text, width_of(sys.stdout)))


def train_help() -> None:
    """`lecture04 train --help`: what can be chosen, by the sources alone."""
    messages.run(lambda: _show(help_text(outside(sys.argv[1:], Path.cwd()))))


def help_text(brought: Outside = Outside()) -> str:  # noqa: B008 (frozen)
    """What `lecture04 train --help` prints; with `python train.py` in it where that was typed."""
    list_parts(brought.parts)
    tab = 'TAB completes groups and choices after\n  eval "$(python train.py -sc install=bash)"'
    text = "\n".join(
        [USAGE, parts(), presets(brought.sweeps), tab, "Hydra's own options\n  python train.py --hydra-help"]
    )
    return text.replace("python train.py", program("train.py"))


def _block(name: str, about: str, choices: dict[str, str]) -> str:
    width = max(map(len, choices), default=0)
    lines = [f"  {choice:{width}}  {what}" for choice, what in choices.items()]
    return "\n".join([f"{name}: {about.partition(chr(10))[0]}", *lines, ""])


def _comments(folder: Path) -> dict[str, str]:
    found = {}
    for path in yamls(folder):
        lines = [line.lstrip("# ") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        found[path.stem] = next((line for line in lines if not line.startswith("@package")), "")
    return found


def _title(path: Path) -> str:
    try:
        return str(yaml.safe_load(path.read_text(encoding="utf-8"))["sweep"]["title"])
    except (yaml.YAMLError, KeyError, TypeError):
        return ""


def entry() -> None:
    """`lecture04 parts`."""
    Parser("lecture04 parts", description=parts.__doc__).parse_args()
    messages.run(lambda: list_parts(outside([], Path.cwd()).parts))
    _show(parts())
