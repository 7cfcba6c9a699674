"""The rows of a sweep, from a sweep file or from the swept choices of a plain multirun. Nothing is composed here.

A row is a list of ordinary Hydra overrides, so that its run can be repeated by copying them to the command line.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from lecture04.config import Design, Table
from lecture04.config.messages import UserError, explain
from lecture04.config.overrides import complaint
from lecture04.config.schema import SESSION
from lecture04.config.settings import is_session
from lecture04.config.typed import understood

IsGroup = Callable[[str], bool]
Lines = dict[str, str]  # key -> the override as it was typed


@dataclass(frozen=True)
class Row:
    """A row of the table: its name, what distinguishes its runs from those of the plain config, and a grid's slice."""

    name: str
    overrides: tuple[str, ...]
    slice: str = ""


@dataclass(frozen=True)
class Asked:
    """What the command line asked for: `fixed` holds for every row, `axes` are swept, `seeds` None means the file's."""

    fixed: Lines
    axes: dict[str, tuple[str, ...]]
    seeds: tuple[int, ...] | None

    @property
    def settings(self) -> list[str]:
        """Those of `fixed` that make another table."""
        return without_session(self.fixed.values())


def asked(overrides: Sequence[Override]) -> Asked:
    """The command line's overrides, sorted. Raises UserError for seeds that are not distinct integers."""
    fixed, axes, seeds = Lines(), dict[str, tuple[str, ...]](), None
    for o in overrides:
        key = o.get_key_element()
        if key == "seed":
            seeds = _seeds(_values(o) if o.is_sweep_override() else (str(o.value()),))
        elif o.is_sweep_override():
            axes[key] = _values(o)
        elif key != "sweeps" and not key.startswith("sweep."):
            assert o.input_line is not None
            fixed[key] = o.input_line
    return Asked(fixed, axes, seeds)


def without_session(lines: Iterable[str]) -> list[str]:
    """The overrides that can change a result."""
    return [line for line in lines if not is_session(line)]


def _values(override: Override) -> tuple[str, ...]:
    """The values of a swept key, each once and each well formed."""
    try:
        values = tuple(map(str, override.sweep_string_iterator()))
    except (HydraException, ValueError) as e:
        raise UserError(f"{override.input_line}: {e}.") from e
    if not values:
        raise UserError(f"{override.input_line}: no value stands there.")
    key = override.get_key_element()
    if wrong := [text for value in values if (text := complaint(f"{key}={value}"))]:
        raise UserError("\n".join(wrong))
    if twice := [value for value in values if values.count(value) > 1]:
        raise UserError(f"{override.input_line}: {twice[0]} stands there twice.")
    return values


def _seeds(texts: tuple[str, ...]) -> tuple[int, ...]:
    for text in texts:
        if not re.fullmatch(r"\d+", text):
            raise UserError(f"seed={text}: a seed is a whole number, 0 or more; of several write -m seed=0,1,2.")
    seeds = tuple(map(int, texts))
    if len(set(seeds)) < len(seeds):
        raise UserError(f"seed={','.join(texts)}: a seed stands there twice.")
    return seeds


def plain_rows(ask: Asked, is_group: IsGroup) -> list[Row]:
    """The rows of a multirun without a sweep file: every combination of the swept choices, the first the baseline."""
    if not ask.axes:
        chosen = [line.partition("=")[2] for key, line in ask.fixed.items() if is_group(key) and key not in SESSION]
        return [Row(", ".join(chosen) or "standard", tuple(ask.fixed.values()))]
    choices = [
        [(value if is_group(key) else f"{key}={value}", f"{key}={value}") for value in values]
        for key, values in ask.axes.items()
    ]
    return [
        Row(", ".join(name for name, _ in combination), (*ask.fixed.values(), *(line for _, line in combination)))
        for combination in itertools.product(*choices)
    ]


def file_rows(sweep: Table, ask: Asked, is_group: IsGroup) -> list[Row]:
    """The rows of a sweep file. In a path a row adds to those before it; in a star it stands for itself.

    In a grid every row stands in every slice, as `SLICE: ROW`; what it sets wins over what the slice sets.

    Choosing a group again drops what earlier rows had set inside it, and choosing a recipe drops all that they had set.
    The command line's overrides hold for every row, over `sweep.common`. Raises UserError where they, or the swept
    keys, meddle with what the rows set.
    """
    if ask.axes:
        key = next(iter(ask.axes))
        raise UserError(
            f"{key}={','.join(ask.axes[key])}: sweeps={sweep.name} sets the rows; only seed= can be swept too."
        )
    if not sweep.rows:
        raise UserError(f"sweep.rows: sweeps={sweep.name} has none.")
    common = {**_parse("sweep.common", sweep.common), **ask.fixed}
    settings = {name: _parse(f"row {name!r}", lines) for name, lines in sweep.rows.items()}
    slices = {name: _parse(f"slice {name!r}", lines) for name, lines in sweep.slices.items()}
    for kind, parsed in (("row", settings), ("slice", slices)):
        for name, new in parsed.items():
            if clash := [line for key, line in ask.fixed.items() if key in new]:
                raise UserError(
                    f"{clash[0]}: {kind} {name!r} of sweeps={sweep.name} sets this itself; it cannot be fixed for all."
                )
    if sweep.design is Design.grid:
        if not slices:
            raise UserError(f"sweep.slices: sweeps={sweep.name} is a grid and has none.")
        return [
            Row(f"{where}: {name}", tuple({**common, **slices[where], **new}.values()), where)
            for where in slices
            for name, new in settings.items()
        ]
    if slices:
        raise UserError(f"sweep.slices: sweeps={sweep.name} is a {sweep.design.name}; slices are for design: grid.")
    rows, total = list[Row](), Lines()
    for name, new in settings.items():
        total = _add(total, new, is_group) if sweep.design is Design.path else new
        rows.append(Row(name, tuple({**common, **total}.values())))
    return rows


def _add(total: Lines, new: Lines, is_group: IsGroup) -> Lines:
    """The changes of a path so far with one more row's."""
    if "recipe" in new:
        return new
    chosen = tuple(f"{key}." for key in new if is_group(key))
    return {**{key: line for key, line in total.items() if not key.startswith(chosen)}, **new}


def _parse(where: str, lines: Iterable[str]) -> Lines:
    parsed = Lines()
    for line in map(understood, lines):
        if wrong := complaint(line):
            raise UserError(f"{where}: {wrong}")
        try:
            (override,) = OverridesParser.create().parse_overrides([line])
        except HydraException as e:
            raise UserError(f"{where}: {explain(e)}") from e
        key = override.get_key_element()
        if override.is_sweep_override() or key == "seed" or key.startswith(("sweep", "hydra")):
            raise UserError(
                f"{where}: {line!r} cannot stand in a row; a row is one setting of the model or its training."
            )
        parsed[key] = line
    return parsed


def title(sweep: Table, ask: Asked) -> str:
    """What the table is about, in one line: the file's own title, or what was typed."""
    typed = [*(f"{key}={','.join(values)}" for key, values in ask.axes.items()), *ask.settings]
    if not sweep.name:
        return " ".join(typed) or "standard"
    own = sweep.title or sweep.name
    return f"{own} ({' '.join(typed)})" if typed else own


def table_name(sweep: Table, ask: Asked, rows: Sequence[Row]) -> str:
    """The folder that keeps the table: the sweep file's name, marked where more than the seeds was changed."""
    if sweep.name and not ask.settings:
        return sweep.name
    words = re.sub(r"[^A-Za-z0-9]+", "-", sweep.name or title(sweep, ask)).strip("-")[:40].strip("-")
    digest = hashlib.sha256(repr([(row.name, without_session(row.overrides)) for row in rows]).encode()).hexdigest()[:6]
    return f"{words}-{digest}"
