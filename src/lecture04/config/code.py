"""The code that a run executes, hashed definition by definition: "has anything changed that could change a result?".

What is followed and what counts as executed: `closure` and `executed`. Nothing is imported for it, torch least of all.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from lecture04.config import closure
from lecture04.config.closure import Definition, Sources, Stops

Root = tuple[str | Path, str]
"""Where following begins: a module, by its dotted name or its file, and a name in it."""


@dataclass(frozen=True)
class Code:
    """The digest of every definition, {"nn/ffn.py::SwiGLU": ...}, and one of them all."""

    definitions: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        """Six hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.definitions, sort_keys=True).encode()).hexdigest()[:6]

    def __str__(self) -> str:
        return self.digest


def code(
    package: Path,
    roots: Iterable[Root],
    own: Iterable[Path] = (),
    stops: Iterable[str] = (),
    *,
    measures: bool = False,
) -> Code:
    """The code that these roots lead to; kept for the life of the process, in which Python's own modules stay too.

    `own` are the folders of parts from outside the package; `stops` name modules (with all below) and single names
    (`package.module:name`) that are not followed. `measures`: what a source of data measures of a trained model is
    followed too.

    Raises ValueError for a root that is not there.
    """
    folders = tuple(Path(folder).resolve() for folder in own)
    return _kept(Path(package).resolve(), folders, frozenset(roots), frozenset(stops), measures)


@cache
def _kept(package: Path, own: tuple[Path, ...], roots: frozenset[Root], stops: frozenset[str], measures: bool) -> Code:
    return code_of(closure.sources(package, own), roots, stops, measures=measures)


def code_of(sources: Sources, roots: Iterable[Root], stops: Iterable[str] = (), *, measures: bool = False) -> Code:
    """As `code`, from sources that the caller keeps."""
    found, _ = sources.reached(definitions_of(sources, roots), Stops(sources, stops, measures=measures))
    digests = {(d, sources.digest(d)) for d in found}
    named = {f"{sources.label(d.file)}::{d.name}": digest for d, digest in digests if digest}
    return Code(dict(sorted(named.items())))


def definitions_of(sources: Sources, roots: Iterable[Root]) -> list[Definition]:
    """The definitions that roots name, re-exports followed. Raises ValueError for one that is not there."""
    found = list[Definition]()
    for module, name in roots:
        file = module.parent.resolve() / module.name if isinstance(module, Path) else sources.locate(module)
        if file is None or not sources.is_ours(file):
            raise ValueError(f"{module}: no module of the package's or of the folders {[str(f) for f in sources.own]}.")
        meant = sources.resolve(file, name.partition(".")[0])
        definitions = [target for target in meant if isinstance(target, Definition)]
        if not definitions:
            raise ValueError(f"{module}: no {name} is defined there.")
        found += definitions
    return found


@cache
def statements(file: Path) -> tuple[ast.stmt, ...]:
    """A file's top-level statements, without docstrings and the strings that stand alone after a constant."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return tuple(tree.body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
