"""Family and name -> class. The names are read from the sources, so that listing them imports no torch.

A part registers beside its code: `@register("ffn", "swiglu", options=GatedFFN)`. Its options class says what can be set
of it and what follows from that (see config/fields.py); a part without `options` has those of its family, and is built
without memory where it has to be counted.

Parts from outside the package are named by file or module (`parts=[mine.py]`), and are then listed, completed, checked
and hashed like our own.
"""

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from lecture04.config.errors import UserError, nearest

T = TypeVar("T")
PACKAGE = Path(__file__).parents[1]
# The folders in which parts live; a new file in one of them is found automatically.
FOLDERS = ("nn", "data", "training", "records", "report", "lecture/probes")


@dataclass(frozen=True)
class Entry:
    """A registered part, as its source states it: where it is, the name of its options class, and what it is."""

    family: str
    name: str
    module: str
    attribute: str
    options: str
    about: str
    file: Path
    ours: bool = True


_registered: dict[tuple[str, str], Any] = {}
_options: dict[tuple[str, str], type] = {}
_outside: dict[str, Path] = {}


def register(family: str, name: str, *, options: type | None = None, about: str = "") -> Callable[[T], T]:
    """Register a class (or function) as `family=name`.

    `options` is the dataclass of what can be set of it; `about` is what `--help` says of it, its docstring's first line
    where nothing is given.

    A part lies in a file, which `parts=[cubed.py]` names: its code is part of what a run is.

    >>> from pathlib import Path
    >>> written = Path("cubed.py").write_text('''
    ... import lecture04 as l4
    ... from lecture04.nn import PlainFFN
    ...
    ... @l4.register("ffn", "cubed", about="x^3")
    ... class Cubed(PlainFFN):
    ...     def activation(self, x):
    ...         return x**3
    ... ''')
    >>> from lecture04.config.registry import load, names
    >>> load(["cubed.py"])
    >>> "cubed" in names("ffn")
    True
    """

    def add(part: T) -> T:
        _registered[family, name] = part
        if options is not None:
            _options[family, name] = options
        return part

    return add


@dataclass(frozen=True)
class Registration:
    """One `@register(...)`, from its syntax tree."""

    family: str
    name: str
    options: str = ""
    about: str = ""


def registrations(node: ast.stmt) -> list[Registration]:
    """Each `@register(...)` on a class or function, from its syntax tree."""
    found: list[Registration] = []
    for d in node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []:
        if (
            isinstance(d, ast.Call)
            and isinstance(d.func, ast.Name | ast.Attribute)
            and _last_name(d.func) == "register"
        ):
            if [type(getattr(a, "value", None)) for a in d.args] != [str, str]:
                raise SyntaxError(
                    'write the family and the name as texts: @register("ffn", "mine")', ("", d.lineno, 0, "")
                )
            family, name = (str(ast.literal_eval(a)) for a in d.args)
            keywords = {k.arg: k.value for k in d.keywords}
            options = _last_name(keywords["options"]) if "options" in keywords else ""
            about = ast.literal_eval(keywords["about"]) if "about" in keywords else ""
            found.append(Registration(family, name, options, about))
    return found


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def read_entries(path: Path, module: str, *, ours: bool) -> Iterator[Entry]:
    """The registered parts of one source file."""
    source = path.read_text(encoding="utf-8")
    if "register(" not in source:
        return
    for node in ast.parse(source, str(path)).body:
        for said in registrations(node):
            assert isinstance(node, ast.ClassDef | ast.FunctionDef)
            about = said.about or (ast.get_docstring(node) or "").partition("\n")[0]
            yield Entry(said.family, said.name, module, node.name, said.options, about, path, ours)


@cache
def _ours() -> dict[tuple[str, str], Entry]:
    files = [path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    found: dict[tuple[str, str], Entry] = {}
    for path in dict.fromkeys(files):
        module = ".".join(("lecture04", *path.relative_to(PACKAGE).with_suffix("").parts))
        _add(found, read_entries(path, module.removesuffix(".__init__"), ours=True))
    return found


def _add(found: dict[tuple[str, str], Entry], entries: Iterable[Entry]) -> None:
    for entry in entries:
        key = entry.family, entry.name
        if key in found:
            raise ValueError(f"{entry.family}={entry.name} is registered twice, the second time in {entry.file}")
        found[key] = entry


@cache
def _all(outside: tuple[tuple[str, Path], ...]) -> dict[tuple[str, str], Entry]:
    found = dict(_ours())
    for module, path in outside:
        _add(found, read_entries(path, module, ours=False))
    return found


def entries() -> dict[tuple[str, str], Entry]:
    """Every registered part by (family, name), ours first. Raises ValueError on a name used twice."""
    return _all(tuple(_outside.items()))


def load(parts: Iterable[str], folder: Path | None = None) -> None:
    """Make the parts of files and modules from outside known, from `folder` on (else the working folder).

    A module is imported only where that says more than its source does: for options, metrics and columns. Raises
    UserError where there is no such file, it is no Python, or its name or one of its parts' is taken.
    """
    for part in parts:
        module = list_parts([part], folder)[0]
        text = _outside[module].read_text(encoding="utf-8")
        own = [entry for entry in entries().values() if entry.module == module]
        if re.search(r"\b(measure|declare|column)\(", text) or not own or any(entry.options for entry in own):
            try:
                with _said_of(part):
                    importlib.import_module(module)
            except UserError:
                _outside.pop(module, None)
                raise


def list_parts(parts: Iterable[str], folder: Path | None = None) -> list[str]:
    """As `load`, from the sources alone: enough to list parts, and nothing is imported. Returns the modules' names."""
    modules = list[str]()
    importlib.invalidate_caches()  # a file may be newer than this process
    for part in parts:
        module, path = _locate(part, folder or Path.cwd())
        modules.append(module)
        if _outside.get(module) != path:
            _outside[module] = path
            try:
                with _said_of(part):
                    _check_families(module)
            except UserError:
                del _outside[module]
                raise
    return modules


def _check_families(module: str) -> None:
    """Raise ValueError where a part from outside is of a family that there is not."""
    known = {family for family, _ in _ours()}
    for family, name in (key for key, entry in entries().items() if entry.module == module):
        if family not in known:
            raise ValueError(f"{family}={name}: there is no such family." + nearest(family, sorted(known)))


@contextmanager
def _said_of(part: str) -> Generator[None]:
    """What is wrong with a part from outside, in one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as e:
        what = f"line {e.lineno}: {e.msg}" if isinstance(e, SyntaxError) else str(e) or type(e).__name__
        raise UserError(f"parts={part}: {' '.join(what.split()).rstrip('.')}.") from e


def _locate(part: str, folder: Path) -> tuple[str, Path]:
    """The module's name and file. A file's folder joins the path, here and in the processes that are started."""
    if part.endswith(".py") or os.sep in part:
        path = (folder / part).resolve()
        if not path.is_file():
            raise UserError(f"parts={part}: there is no such file.")
        name, there = path.stem, str(path.parent)
        if there not in sys.path:
            sys.path.append(there)
            # joblib's and submitit's workers import parts by name too.
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), there]))
    else:
        name = part
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(folder)]))
        path = None
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise UserError(f"parts={part}: there is no such module.")
    if path is not None and Path(spec.origin).resolve() != path:
        raise UserError(
            f"parts={part}: a module called {name} is there already, {spec.origin}; give the file another name."
        )
    return name, Path(spec.origin).resolve()


def outside() -> dict[str, Path]:
    """{module: file} of the parts from outside that are known."""
    return dict(_outside)


def names(family: str) -> list[str]:
    """The names that a family offers."""
    return [name for f, name in entries() if f == family]


def entry(family: str, name: str) -> Entry:
    """The entry of one part. Raises ValueError naming the choices."""
    if (family, name) not in entries():
        raise ValueError(f"{family}={name}: no such {family}." + nearest(name, names(family)))
    return entries()[family, name]


def options_of(family: str, name: str, base: type) -> type:
    """The options class of a part; `base`, its family's, where it names none."""
    wanted = entry(family, name)
    if not wanted.options:
        return base
    if wanted.ours:  # without the part's own module, which imports torch
        return _our_options(wanted)
    importlib.import_module(wanted.module)
    return _options[family, name]


def _our_options(wanted: Entry) -> type:
    """The options class of a part of ours, from the files of config/parts/."""
    for path in sorted((PACKAGE / "config" / "parts").glob("*.py")):
        found = getattr(importlib.import_module(f"lecture04.config.parts.{path.stem}"), wanted.options, None)
        if found is not None:
            return found
    raise ValueError(f"{wanted.file}: options={wanted.options}: there is no such class in config/parts/.")


class Family(Generic[T]):
    """The parts of one family, each a T: what its classes are called with, and what they offer."""

    def __init__(self, name: str) -> None:
        self.name = name

    def names(self) -> list[str]:
        """What can be chosen."""
        return names(self.name)

    def lookup(self, name: str) -> T:
        """The class or function itself; imports the module that holds it. Raises ValueError naming the choices."""
        wanted = entry(self.name, name)
        if wanted.ours:
            importlib.import_module(wanted.module)
        else:
            with _said_of(str(wanted.file)):
                importlib.import_module(wanted.module)
        return _registered[self.name, name]
