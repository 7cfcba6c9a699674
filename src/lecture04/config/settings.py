"""Every setting that there is, by its whole name: those of parts that are not chosen too. Without torch."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from lecture04.config.fields import hints, schema_of
from lecture04.config.registry import entries, names, options_of
from lecture04.config.schema import PARTS, SESSION, Settings

INTERNAL = ("origin", "sweep.name", "sweep.rows", "sweep.slices", "sweep.common", "init.start", "init.digest")
"""What nobody types: what is found out on the way, and what a sweep file alone can say."""
OF_NO_RESULT = ("trainer.log_every", "trainer.checkpoint_every")
"""Settings outside the session's families that change no result either."""


def settings() -> dict[str, Any]:
    """{whole name: type} of every setting; a part's choice (`ffn`) is none of them."""
    return _settings(tuple(entries()))


@cache
def _settings(known: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    found = dict(_leaves(Settings, ""))
    for family, base in PARTS.items():
        for name in names(family):
            found |= _leaves(schema_of(options_of(family, name, base)), f"{family}.")
    return {name: kind for name, kind in found.items() if not (name.endswith(".name") and name[:-5] in PARTS)}


def _leaves(schema: Any, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in fields(schema):
        kind = hints(schema)[f.name]
        found |= _leaves(kind, f"{path}{f.name}.") if is_dataclass(kind) else {f"{path}{f.name}": kind}
    return found


def owners(setting: str) -> list[str]:
    """The parts of its family that have a setting: `rope` and `rope_half` for posenc.base."""
    family, _, own = setting.partition(".")
    if family not in PARTS:
        return []
    return [name for name in names(family) if own in _leaves(schema_of(options_of(family, name, PARTS[family])), "")]


def is_text(setting: str) -> bool:
    """Whether a setting takes any text, as a path and a title do."""
    return settings().get(setting) in (str, str | None)


def is_session(key: str) -> bool:
    """Whether it changes no result: no run and no table is another one for it."""
    return key.partition("=")[0].partition(".")[0] in SESSION or key.partition("=")[0] in OF_NO_RESULT
