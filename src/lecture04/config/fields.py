"""Fields of options: their bounds, those that may be left open, and the schema that Hydra composes, derived from them.

An options class states the RESOLVED types. What a user may leave open is said beside the field:

    @dataclass(frozen=True, kw_only=True)
    class Window(Attention):
        width: int = bounded(8, at_least=1)                             # always a number
        n_sinks: int = opened(lambda own, c: c.model.n_heads)           # null stands for what the function gives

`schema_of(Window)` is the same with `n_sinks: int | None = None`, not frozen: what OmegaConf checks a YAML against.
So a config that is still open and one that is resolved have different types, and an options class is written once.
"""

# No `from __future__ import annotations`: omegaconf reads these annotations as types.
from collections.abc import Callable
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Any, ClassVar, Optional, get_type_hints

from omegaconf import MISSING


def bounded(
    default: Any = NO_DEFAULT, *, at_least: float | None = None, above: float | None = None, below: float | None = None
) -> Any:
    """A field whose value, where it is not null, must be finite and within these bounds.

    >>> from dataclasses import dataclass
    >>> import lecture04 as l4
    >>> from lecture04.config import Options
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Scaled(Options):
    ...     name: str
    ...     factor: float = l4.bounded(1.0, above=0)
    >>> Scaled(name="scaled").factor
    1.0
    """
    return field(default=default, metadata={"bounds": {"at_least": at_least, "above": above, "below": below}})


def opened(
    value: Callable[[Any, Any], Any] | None = None,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """A field that may be null, which stands for `value(own, c)`: `own` are the part's fields before it, `c` the rest.

    Without `value` whoever resolves the part knows what null stands for.

    >>> from dataclasses import dataclass
    >>> from types import SimpleNamespace
    >>> import lecture04 as l4
    >>> from lecture04.config import Options
    >>> from lecture04.config.fields import schema_of
    >>> from lecture04.config.resolve import fill
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Narrow(Options):
    ...     width: int = l4.opened(lambda own, c: c.d_model // 2, at_least=1)
    >>> fill(Narrow, schema_of(Narrow)(width=None), SimpleNamespace(d_model=64))
    Narrow(width=32)
    """
    return field(metadata={"bounds": {"at_least": at_least, "above": above, "below": below}, "open": value})


def settled() -> Any:
    """A field that nobody sets: None until what it stands for was found, before the run is resolved."""
    return field(default=None, metadata={"settled": True})


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be set of a part: frozen, and nothing in it is open.

    `asked_only`: {name: (type, default)} of what can be asked for and is no part of the result, as `ffn.match` is.
    """

    asked_only: ClassVar[dict[str, tuple[Any, Any]]] = {}


@cache
def hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return get_type_hints(cls)


@cache
def schema_of(cls: type) -> type:
    """The dataclass that a composed config is checked against: as `cls`, but open fields may be null."""
    bases = tuple(schema_of(base) for base in cls.__bases__ if is_dataclass(base) and base is not Options)
    made: list[tuple[str, Any, Any]] = []
    own = cls.__dict__.get("__annotations__", {})
    for f in fields(cls):
        if f.name not in own or "settled" in f.metadata:
            continue
        kind = hints(cls)[f.name]
        if "open" in f.metadata:
            made.append((f.name, Optional[kind], field(default=None, metadata=f.metadata)))  # noqa: UP045 (a value)
        elif is_dataclass(kind):
            made.append((f.name, schema_of(kind), field(default_factory=schema_of(kind))))  # pyright: ignore[reportArgumentType]
        elif f.default_factory is not NO_DEFAULT:
            made.append((f.name, kind, field(default_factory=f.default_factory, metadata=f.metadata)))
        else:
            default = MISSING if f.default is NO_DEFAULT else f.default
            made.append((f.name, kind, field(default=default, metadata=f.metadata)))
    for name, (kind, default) in cls.__dict__.get("asked_only", {}).items():
        has_field = type(default) is type(field())
        made.append((name, kind, default if has_field else field(default=default)))
    about = {"__doc__": cls.__doc__, "__module__": __name__}
    return make_dataclass(cls.__name__, made, bases=bases, namespace=about)


def asked(cls: type, **values: object) -> Any:
    """Options that are still open, as a YAML would give them. What follows another setting there must be given here."""
    made = schema_of(cls)(**values)
    if linked := [f.name for f in fields(made) if str(getattr(made, f.name)).startswith("${")]:
        raise TypeError(f"{cls.__name__}: {', '.join(linked)} must be given; only a whole config knows what it follows")
    return made
