"""The modules that are ours, parsed and not imported: where they lie, what they bind, what a name in them stands for.

Ours are the package, and files below the `own` folders (a user's file and its helpers). The standard library and
installed packages are not, and nothing is followed into them.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lecture04.config.executed import Import, Use, is_main_block, is_text, is_typing_block, uses_of

NAME = "lecture04"
INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class Definition:
    """A name that a file binds at its top level; `ON_IMPORT` for what it does when it is imported."""

    file: Path
    name: str


@dataclass(frozen=True)
class Whole:
    """A module as a value; the folder itself where a package has no __init__."""

    path: Path


Target = Definition | Whole


@dataclass
class Module:
    """A parsed file: what it binds and imports, and what it does when it is imported."""

    file: Path
    bound: dict[str, list[ast.stmt]] = field(default_factory=lambda: dict[str, list[ast.stmt]]())
    imports: dict[str, list[Import]] = field(default_factory=lambda: dict[str, list[Import]]())
    stars: list[Import] = field(default_factory=lambda: list[Import]())
    statements: list[ast.stmt] = field(default_factory=lambda: list[ast.stmt]())

    def __post_init__(self) -> None:
        self._add(ast.parse(self.file.read_text(encoding="utf-8")).body)

    def _add(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if is_typing_block(statement):
                assert isinstance(statement, ast.If)
                self._add(statement.orelse)
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                self._import(statement)
            elif not (is_text(statement) or isinstance(statement, ast.Pass) or is_main_block(statement)):
                self.statements.append(statement)
                for name in _binds(statement):
                    self.bound.setdefault(name, []).append(statement)
                for node in _at_top(statement):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        self._import(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for found in Import.all_of(node):
            if found.name == "*":
                self.stars.append(found)
            else:
                self.imports.setdefault(found.bound, []).append(found)

    @cached_property
    def loggers(self) -> frozenset[str]:
        """The names `log` and `logger`, where they are the module's logger."""
        return frozenset(
            name
            for name in ("log", "logger")
            for s in self.bound.get(name, [])
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and last_name(s.value.func) == "getLogger"
        )

    @cached_property
    def cleaned(self) -> dict[int, ast.stmt]:
        """Statements as what they do, by the id of the original; filled by `Sources`."""
        return {}

    @cached_property
    def measured(self) -> dict[int, list[ast.expr]]:
        """What an evaluation alone executes of a statement, by the same id."""
        return {}


class Modules:
    """The files of the package and of folders outside it, each parsed once.

    `own` are folders; the first ones win where two hold a module of the same name.
    """

    def __init__(self, package: Path, own: Iterable[Path] = (), name: str = NAME) -> None:
        self.package, self.name = package.resolve(), name
        self.own = tuple(dict.fromkeys(folder.resolve() for folder in own))
        outside = (*self.own, *(Path(entry or ".").resolve() for entry in sys.path))
        self._roots = tuple(dict.fromkeys(outside)) if self.own else ()
        self._modules: dict[Path, Module] = {}
        self._imported: dict[Path, frozenset[Path]] = {}
        self._found: dict[tuple[Path | None, str], Path | None] = {}

    def is_ours(self, path: Path) -> bool:
        """Whether a file is followed."""
        if path.is_relative_to(self.package):
            return True
        return any(path.is_relative_to(f) and not INSTALLED & set(path.relative_to(f).parts) for f in self.own)

    def label(self, file: Path) -> str:
        """How a file is named: from the package, or from the user's folder that holds it."""
        if file.is_relative_to(self.package):
            return file.relative_to(self.package).as_posix()
        folder = next(f for f in self.own if file.is_relative_to(f))
        label = file.relative_to(folder).as_posix() if file != folder else file.name
        return f"./{label}" if (self.package / label).exists() else label

    def locate(self, dotted: str, base: Path | None = None) -> Path | None:
        """The file (or folder without __init__) of a module of ours, by name or from a folder; None for others'."""
        key = (base, dotted)
        if key not in self._found:
            self._found[key] = self._locate(dotted, base)
        return self._found[key]

    def _locate(self, dotted: str, base: Path | None) -> Path | None:
        parts = dotted.split(".") if dotted else []
        if base is not None:
            return self._below(base, parts)
        if parts[0] == self.name:
            return self._below(self.package, parts[1:])
        return next((found for root in self._roots if (found := self._below(root, parts))), None)

    def _below(self, root: Path, parts: list[str]) -> Path | None:
        path = root.joinpath(*parts)
        for found in (path / "__init__.py", path.with_suffix(".py") if parts else path / "__init__.py"):
            if found.is_file():
                return found if self.is_ours(found) else None
        return path if path.is_dir() and self.is_ours(path) else None

    def module(self, file: Path) -> Module:
        """A file, parsed. Raises SyntaxError or OSError where it cannot be."""
        if file not in self._modules:
            self._modules[file] = Module(file)
        return self._modules[file]

    def imported_file(self, importing: Path, found: Import) -> Path | None:
        """The module that an import statement names, where it is ours."""
        if not found.level:
            return self.locate(found.module)
        return self.locate(found.module, importing.parents[found.level - 1])

    def resolve(
        self, file: Path, name: str, seen: frozenset[tuple[Path, str]] = frozenset(), *, bare: bool = False
    ) -> frozenset[Target]:
        """What a name of a module's top level stands for in our files; empty for builtins and what is others'.

        `bare`: where it is loaded in the module itself, which asks no `__getattr__`.
        """
        if (file, name) in seen or file.suffix != ".py":
            return frozenset(self._submodule(file, name))
        module, seen = self.module(file), seen | {(file, name)}
        found: set[Target] = {Definition(file, name)} if name in module.bound else set()
        for line in module.imports.get(name, []):
            found |= self.imported(file, line, seen)
        for star in module.stars if not found else []:
            path = self.imported_file(file, star)
            if path and (not name.startswith("_") or name in _exported(self.module(path))):
                found |= {t for t in self.resolve(path, name, seen) if not isinstance(t, Whole)}
        found = found or set(self._submodule(file, name))
        if not found and not bare and "__getattr__" in module.bound:
            found.update(self._lazily(file, name, seen))
        return frozenset(found)

    def imported(self, file: Path, found: Import, seen: frozenset[tuple[Path, str]] = frozenset()) -> frozenset[Target]:
        """What an import statement binds its name to."""
        if found.name is None and found.whole is False:  # `import a.b` binds a
            path = self.locate(found.module.partition(".")[0])
            return frozenset([Whole(path)] if path else [])
        path = self.imported_file(file, found)
        if path is None:
            return frozenset()
        return self.resolve(path, found.name, seen) if found.name else frozenset([Whole(path)])

    def _submodule(self, path: Path, name: str) -> Iterator[Target]:
        folder = path.parent if path.name == "__init__.py" else path
        if folder.is_dir() and (found := self.locate(name, folder)):
            yield Whole(found)

    def _lazily(self, file: Path, name: str, seen: frozenset[tuple[Path, str]]) -> Iterable[Target]:
        """A name that a module's `__getattr__` gives: what the texts in it, and in the tables it reads, may mean."""
        module = self.module(file)
        statements = list(module.bound["__getattr__"])
        for use in (use for s in module.bound["__getattr__"] for use in uses_of(s)[0]):
            statements += module.bound.get(use.name, [])
        yield Definition(file, "__getattr__")
        folder = file.parent
        for text in {n.value for s in statements for n in ast.walk(s) if isinstance(n, ast.Constant)}:
            if not isinstance(text, str) or not text.replace(".", "").replace(":", "").replace("_", "a").isalnum():
                continue
            dotted, _, attribute = text.partition(":")
            for path in (
                self.locate(dotted) if dotted.strip(".") == dotted else None,
                self.locate(dotted.lstrip("."), folder) if dotted.strip(".") else None,
            ):
                if path and path != file and path.suffix == ".py":
                    yield from self.resolve(path, attribute or name, seen)

    def meant(self, file: Path, use: Use) -> Iterable[Target]:
        """What a name that a file loads stands for, its attributes followed as far as modules go."""
        here = self.imported(file, use.imported) if use.imported else self.resolve(file, use.name, bare=True)
        for attribute in use.attributes:
            modules = {target for target in here if isinstance(target, Whole)}
            if not modules:
                return here
            # An attribute that the module does not show at its top level is taken for the module as a whole.
            here = here - modules | {t for m in modules for t in self.resolve(m.path, attribute) or {m}}
        return here

    def files_of(self, file: Path, found: Import) -> set[Path]:
        """The files that an import statement runs: the module, those of its packages, and a module that it names."""
        path = self.imported_file(file, found)
        if path is None and found.name is None:
            path = self.locate(found.module.partition(".")[0])
        paths = [path] if path else []
        if path and found.name and found.name != "*":
            paths += [target.path for target in self._submodule(path, found.name) if isinstance(target, Whole)]
        return {file for path in paths for file in self._with_packages(path)}

    def _with_packages(self, path: Path) -> Iterator[Path]:
        if path.suffix == ".py":
            yield path
        for folder in path.parents:
            if (folder / "__init__.py").is_file() and self.is_ours(folder / "__init__.py"):
                yield folder / "__init__.py"
            if folder in (self.package, *self.own):
                return

    def imported_by(self, file: Path) -> frozenset[Path]:
        """The files of ours that a file imports at its top level, those of its own packages included."""
        if file not in self._imported:
            module = self.module(file)
            lines = [line for lines in module.imports.values() for line in lines] + module.stars
            found = {path for line in lines for path in self.files_of(file, line)}
            self._imported[file] = frozenset(found | set(self._with_packages(file)))
        return self._imported[file]


def last_name(node: ast.expr) -> str:
    """The last name of `a.b.c`, what stands in brackets left away; empty where it is none."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


OWN_SCOPE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def _at_top(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that run with the module: not those in functions, classes and comprehensions."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, OWN_SCOPE):
            waiting += ast.iter_child_nodes(node)


def _binds(statement: ast.stmt) -> set[str]:
    found = set[str]()
    for node in _at_top(statement):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(node.id)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case _:
                pass
    return found


def _exported(module: Module) -> set[str]:
    """What `__all__` lists, where it is written out."""
    lists = (s.value for s in module.bound.get("__all__", []) if isinstance(s, ast.Assign))
    return {str(n.value) for value in lists for n in ast.walk(value) if isinstance(n, ast.Constant)}
