"""What can be chosen, a line each: `python train.py --help`, and `python -m lecture04.cli.help` for the parts alone."""

from pathlib import Path

import yaml

from lecture04.config.registry import entries
from lecture04.config.schema import PARTS

ROOT = Path(__file__).parents[3]
USAGE = """\
Lecture04 trains small Transformers with one part swapped at a time, and says which differences are larger than what two
seeds of the same model differ by.

  python train.py [GROUP=CHOICE ...] [SETTING=VALUE ...]              one run
  python train.py -m GROUP=CHOICE,CHOICE seed=0,1,2                   a table: rows are the swept choices
  python train.py -m sweeps=NAME [seed=0,1,2,3,4] [sweep.plan=true]   a table from sweeps/NAME.yaml, or its plan
  python train.py --cfg job [GROUP=CHOICE ...]                        every setting of a run, and its value
"""


def parts() -> str:
    """Every registered part with what it is and where it comes from, family by family."""
    blocks = []
    for family, settings in PARTS.items():
        about = {e.name: e.about for e in entries().values() if e.family == family}
        blocks.append(_block(family, str(settings.__doc__), about))
    return "\n".join(blocks)


def presets() -> str:
    """The presets and sweep files, with the first comment or the title of each."""
    recipes, models = _comments(ROOT / "conf" / "recipe"), _comments(ROOT / "conf" / "model")
    titles = {path.stem: _title(path) for path in sorted((ROOT / "sweeps").glob("*.yaml"))}
    return "\n".join(
        [
            _block("model", "The sizes.", models),
            _block("recipe", "Presets of several groups.", recipes),
            _block("sweeps", "Comparison tables, with -m.", titles),
        ]
    )


def help_text() -> str:
    """What `python train.py --help` prints."""
    tab = 'TAB completes groups and choices after:  eval "$(python train.py -sc install=bash)"'
    return "\n".join([USAGE, parts(), presets(), tab, "Hydra's own options:  python train.py --hydra-help"])


def _block(name: str, about: str, choices: dict[str, str]) -> str:
    width = max(map(len, choices), default=0)
    lines = [f"  {choice:{width}}  {what}" for choice, what in choices.items()]
    return "\n".join([f"{name}: {about.partition(chr(10))[0]}", *lines, ""])


def _comments(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        lines = [line.lstrip("# ") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        found[path.stem] = next((line for line in lines if not line.startswith("@package")), "")
    return found


def _title(path: Path) -> str:
    try:
        return str(yaml.safe_load(path.read_text(encoding="utf-8"))["sweep"]["title"])
    except (yaml.YAMLError, KeyError, TypeError):
        return ""


if __name__ == "__main__":
    print(parts())
