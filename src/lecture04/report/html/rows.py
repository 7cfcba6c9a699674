"""What a page says of each row: its settings where they differ, its runs, and the command that makes it again."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from lecture04.config.messages import UserError
from lecture04.config.overrides import command_line
from lecture04.config.project import config_dir
from lecture04.records.config_file import read_plain
from lecture04.records.record import Record
from lecture04.report.results import Results

NO_SETTINGS = ("seed", "parts")
"""What does not tell rows apart: which run it is, and where the code of its parts lies."""


@dataclass(frozen=True)
class Run:
    """A run's place from the page, as a link."""

    seed: int
    status: str
    name: str
    href: str


@dataclass(frozen=True)
class RowDetails:
    """What stands under "Rows and runs" of one row. `trouble`: why its settings cannot be shown, where they cannot."""

    name: str
    command: str
    overrides: list[str]
    runs: list[Run]
    settings: dict[str, str]
    trouble: str


def row_details(results: Results) -> list[RowDetails]:
    """Every row, in the table's order."""
    found, outside = [], config_dir(shlex.split(results.manifest.command))
    for name, about in results.manifest.rows.items():
        settings, trouble = _settings(results.records[name].values())
        overrides, seeds = about.overrides, list(about.runs)
        many = ["-m"] if len(seeds) > 1 else []
        command = command_line("train.py", [*outside, *overrides, f"seed={','.join(map(str, seeds))}", *many])
        runs = [
            Run(seed, results.status(name, seed).value, folder, f"../../runs/{quote(folder)}/")
            for seed, folder in about.runs.items()
        ]
        found.append(RowDetails(name, command, list(overrides), runs, settings, trouble))
    return found


def differing(found: list[RowDetails]) -> list[str]:
    """The settings in which any two rows differ."""
    known = [row.settings for row in found if row.settings]
    keys = dict.fromkeys(key for settings in known for key in settings)
    return [key for key in keys if len({settings.get(key) for settings in known}) > 1]


def told(found: list[RowDetails]) -> list[str]:
    """Those of the differing settings that were typed: what the rows are about, without what follows from it.

    A preset of several groups (recipe=llama) stands for the parts that it chooses.
    """
    said = [set(row.overrides) for row in found]
    apart = set().union(*said) - set.intersection(*said)
    keys = {text.partition("=")[0].lstrip("+~") for text in apart}
    known = differing(found)
    if keys - {key for row in found for key in row.settings}:
        keys |= {name for name in known if "." not in name}
    return [name for name in known if name in keys]


def shared(found: list[RowDetails]) -> dict[str, str]:
    """The settings that are the same in all rows."""
    known = next((row.settings for row in found if row.settings), {})
    apart = set(differing(found))
    return {key: value for key, value in known.items() if key not in apart}


def _settings(records: Iterable[Record]) -> tuple[dict[str, str], str]:
    """The resolved config of the first run that has begun, and what is wrong where it cannot be read."""
    for record in records:
        if record.has_begun():
            try:
                return flat(read_plain(record.folder)), ""
            except UserError as e:  # a run of older code, say
                return {}, str(e).replace(str(record.folder), record.folder.name)
    return {}, "No run of this row has begun."


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """{"ffn.d_ff": "256"}; a part's name stands under its family, as it would be typed: {"ffn": "relu"}."""
    found: dict[str, str] = {}
    for key, value in config.items():
        if not prefix and key in NO_SETTINGS:
            continue
        path = prefix.rstrip(".") if key == "name" and prefix else f"{prefix}{key}"
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[path] = _text(value)
    return found


def _text(value: object) -> str:
    """As YAML would have it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
