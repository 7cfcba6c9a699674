"""Family and name -> class. The names are read from the sources, so that listing them imports no torch.

A part registers beside its code: `@register("ffn", "swiglu", gated=True)`. What follows the name are facts of the class
that counting needs (literals only); they are not settings, so nobody can set them wrong.
"""

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
PACKAGE = Path(__file__).parents[1]
# The folders in which parts live; a new file in one of them is found by itself.
FOLDERS = ("nn", "data", "training", "records", "lecture/probes")


@dataclass(frozen=True)
class Entry:
    """A registered part, as its source states it: where it is, its facts, and its docstring's first line."""

    family: str
    name: str
    module: str
    attribute: str
    facts: dict[str, Any]
    summary: str


_registered: dict[tuple[str, str], Any] = {}


def register(family: str, name: str, **facts: object) -> Callable[[T], T]:
    """Register a class (or function) as `family=name`; the facts are read from the source by `entries`."""

    def add(part: T) -> T:
        _registered[family, name] = part
        return part

    return add


def registrations(node: ast.stmt) -> list[tuple[str, str, dict[str, Any]]]:
    """The (family, name, facts) of each `@register(...)` on a class or function, from its syntax tree."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    for d in node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []:
        if isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "register":
            family, name = (ast.literal_eval(a) for a in d.args)
            found.append((family, name, {k.arg: ast.literal_eval(k.value) for k in d.keywords if k.arg}))
    return found


@cache
def entries() -> dict[tuple[str, str], Entry]:
    """Every registered part by (family, name), in the order of the sources. Raises ValueError on a name used twice."""
    found: dict[tuple[str, str], Entry] = {}
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).glob("*.py")):
            source = path.read_text(encoding="utf-8")
            if "@register(" not in source:
                continue
            for node in ast.parse(source).body:
                for family, name, facts in registrations(node):
                    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
                    if (family, name) in found:
                        raise ValueError(f"{family}={name} is registered twice, the second time in {path}")
                    module = f"lecture04.{folder.replace('/', '.')}.{path.stem}"
                    summary = (ast.get_docstring(node) or "").partition("\n")[0]
                    found[family, name] = Entry(family, name, module, node.name, facts, summary)
    return found


def names(family: str) -> list[str]:
    """The names that a family offers."""
    return [name for f, name in entries() if f == family]


def entry(family: str, name: str) -> Entry:
    """The entry of one part. Raises ValueError naming the choices."""
    if (family, name) not in entries():
        raise ValueError(f"{family}={name}: no such {family}. Choices: {', '.join(names(family))}.")
    return entries()[family, name]


def fact(family: str, name: str, key: str, default: Any) -> Any:
    """A fact stated in the part's `@register` line."""
    return entry(family, name).facts.get(key, default)


def lookup(family: str, name: str) -> Any:
    """The class or function itself; imports the module that holds it."""
    importlib.import_module(entry(family, name).module)
    return _registered[family, name]
