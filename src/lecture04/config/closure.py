"""Which definitions a run reaches: names followed from file to file, without importing anything.

A definition is a name that a module binds at its top level (a class, a function, an assigned value), with all the
statements that bind it. From some roots every name that a definition loads is followed: into the same module, through
`from ... import`, a module's attribute, re-exports, star imports, relative and local imports. A module that is used as
a value brings all that it defines. What a module does when it is imported (its statements with effects) is reached as
soon as the module is imported, directly or by others.

Followed is what is ours: the package, and files below the `own` folders (a user's file and its helpers). The standard
library and installed packages are not.
"""

import ast
import builtins
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from lecture04.config.executed import Cleaner, Import, Use, is_main_block, is_text, is_typing_block, uses_of

NAME = "lecture04"
ON_IMPORT, MADE_ON_IMPORT = "on import", "made on import"
"""The names under which a module's own effects stand among its definitions, and the values that it calls code for."""
INSTALLED = {"site-packages", "dist-packages"}

# Calls that only make a value: a module may make one without anybody using it, and nothing has happened.
MAKERS = {
    *("abc", "collections", "contextlib", "dataclasses", "enum", "fractions", "functools", "itertools", "logging"),
    *("math", "operator", "pathlib", "re", "string", "types", "typing", "typing_extensions", "omegaconf"),
}
DOERS = {"__import__", "compile", "delattr", "eval", "exec", "globals", "input", "next", "open", "print", "setattr"}
READERS = {"copy", "format", "get", "items", "join", "keys", "lower", "replace", "split", "strip", "upper", "values"}


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
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and _last(s.value.func) == "getLogger"
        )

    @cached_property
    def cleaned(self) -> dict[int, ast.stmt]:
        """Statements as what they do, by the id of the original; filled by `Sources`."""
        return {}


class Sources:
    """The files of the package and of folders outside it, each parsed once, and what follows from which.

    `own` are folders; the first ones win where two hold a module of the same name.
    """

    def __init__(self, package: Path, own: Iterable[Path] = (), name: str = NAME) -> None:
        self.package, self.name = package.resolve(), name
        self.own = tuple(dict.fromkeys(folder.resolve() for folder in own))
        outside = (*self.own, *(Path(entry or ".").resolve() for entry in sys.path))
        self._roots = tuple(dict.fromkeys(outside)) if self.own else ()
        self._modules: dict[Path, Module] = {}
        self._uses: dict[Definition, tuple[Use, ...]] = {}
        self._targets: dict[Definition, tuple[frozenset[Target], frozenset[Path]]] = {}
        self._local_imports: dict[Definition, list[Import]] = {}
        self._digests: dict[Definition, str] = {}
        self._imported: dict[Path, frozenset[Path]] = {}
        self._found: dict[tuple[Path | None, str], Path | None] = {}

    def with_changed(self, file: Path) -> "Sources":
        """The same with one file read again, which sees to a change without parsing all of them anew."""
        other = Sources(self.package, self.own, self.name)
        other._modules = {path: module for path, module in self._modules.items() if path != file}
        other._uses = {d: uses for d, uses in self._uses.items() if d.file != file}
        other._local_imports = self._local_imports | {}
        other._found = self._found
        return other

    # Where modules lie.

    def is_ours(self, path: Path) -> bool:
        """Whether a file is followed."""
        if path.is_relative_to(self.package):
            return True
        return any(path.is_relative_to(f) and not INSTALLED & set(path.relative_to(f).parts) for f in self.own)

    def label(self, file: Path) -> str:
        """How a file is named: from the package, or from the folder of one's own that holds it."""
        if file.is_relative_to(self.package):
            return file.relative_to(self.package).as_posix()
        label = file.relative_to(next(f for f in self.own if file.is_relative_to(f))).as_posix()
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

    def _imported_file(self, importing: Path, found: Import) -> Path | None:
        if not found.level:
            return self.locate(found.module)
        return self.locate(found.module, importing.parents[found.level - 1])

    # What a name means.

    def resolve(self, file: Path, name: str, seen: frozenset[tuple[Path, str]] = frozenset()) -> frozenset[Target]:
        """What a name of a module's top level stands for in our files; empty for builtins and what is others'."""
        if (file, name) in seen or file.suffix != ".py":
            return frozenset(self._submodule(file, name))
        module, seen = self.module(file), seen | {(file, name)}
        found: set[Target] = {Definition(file, name)} if name in module.bound else set()
        for line in module.imports.get(name, []):
            found |= self.imported(file, line, seen)
        for star in module.stars if not found else []:
            path = self._imported_file(file, star)
            if path and (not name.startswith("_") or name in _exported(self.module(path))):
                found |= {t for t in self.resolve(path, name, seen) if not isinstance(t, Whole)}
        found = found or set(self._submodule(file, name))
        if not found and "__getattr__" in module.bound and not hasattr(builtins, name):
            found.update(self._lazily(file, name, seen))
        return frozenset(found)

    def imported(self, file: Path, found: Import, seen: frozenset[tuple[Path, str]] = frozenset()) -> frozenset[Target]:
        """What an import statement binds its name to."""
        if found.name is None and found.whole is False:  # `import a.b` binds a
            path = self.locate(found.module.partition(".")[0])
            return frozenset([Whole(path)] if path else [])
        path = self._imported_file(file, found)
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
        for use in self.uses(Definition(file, "__getattr__")):
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

    # What leads to what.

    def cleaned(self, module: Module, statement: ast.stmt) -> ast.stmt:
        """A statement as what it does."""
        if id(statement) not in module.cleaned:
            reads = {id(n) for n in ast.walk(statement) if isinstance(n, ast.ClassDef) and self._reads_hints(module, n)}
            module.cleaned[id(statement)] = Cleaner(
                module.loggers, reads, lambda raised: self._carries(module, raised)
            ).clean(statement)
        return module.cleaned[id(statement)]

    def statements(self, definition: Definition) -> list[ast.stmt]:
        """The statements of a definition, as what they do."""
        module = self.module(definition.file)
        if definition.name in (ON_IMPORT, MADE_ON_IMPORT):
            made = definition.name == MADE_ON_IMPORT
            found = [s for s in module.statements if isinstance(s, ast.Assign | ast.AnnAssign) == made]
            found = [s for s in found if self._has_effect(module, s)]
        else:
            found = module.bound.get(definition.name, [])
        return [self.cleaned(module, s) for s in found]

    def uses(self, definition: Definition) -> tuple[Use, ...]:
        """The names that a definition loads."""
        if definition not in self._uses:
            visited = [uses_of(s) for s in self.statements(definition)]
            self._uses[definition] = tuple(dict.fromkeys(use for found, _ in visited for use in found))
            self._local_imports[definition] = [line for _, lines in visited for line in lines]
        return self._uses[definition]

    def targets(self, definition: Definition) -> tuple[frozenset[Target], frozenset[Path]]:
        """What a definition leads to, and the files that it imports by itself."""
        if definition not in self._targets:
            found, files = set[Target](), set[Path]()
            for use in self.uses(definition):
                found |= self._meant(definition.file, use)
            for line in self._local_imports[definition]:
                files |= self._files_of(definition.file, line)
            self._targets[definition] = frozenset(found - {definition}), frozenset(files)
        return self._targets[definition]

    def digest(self, definition: Definition) -> str:
        """A hash of a definition's statements and of where the imported names in it come from; empty for no effects."""
        if definition not in self._digests:
            lines = [ast.unparse(statement) for statement in self.statements(definition)]
            module = self.module(definition.file)
            for use in self.uses(definition):
                known = [use.imported] if use.imported else module.imports.get(use.name, [])
                if not known and use.name not in module.bound and not hasattr(builtins, use.name):
                    known = module.stars
                lines += sorted(f"{use.name} = {found}" for found in known)
            text = "\n".join(dict.fromkeys(lines))
            self._digests[definition] = hashlib.sha256(text.encode()).hexdigest()[:16] if lines else ""
        return self._digests[definition]

    def _meant(self, file: Path, use: Use) -> Iterable[Target]:
        here = self.imported(file, use.imported) if use.imported else self.resolve(file, use.name)
        for attribute in use.attributes:
            modules = {target for target in here if isinstance(target, Whole)}
            if not modules:
                return here
            # An attribute that the module does not show at its top level is taken for the module as a whole.
            here = here - modules | {t for m in modules for t in self.resolve(m.path, attribute) or {m}}
        return here

    def _files_of(self, file: Path, found: Import) -> set[Path]:
        """The files that an import statement runs: the module, those of its packages, and a module that it names."""
        path = self._imported_file(file, found)
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
            found = {path for line in lines for path in self._files_of(file, line)}
            self._imported[file] = frozenset(found | set(self._with_packages(file)))
        return self._imported[file]

    def reached(self, roots: Iterable[Definition], stops: "Stops") -> tuple[set[Definition], set[Path]]:
        """Every definition that the roots lead to, and every file that is imported on the way."""
        waiting, found, files = list[Target](roots), set[Target](), set[Path]()
        new_files = [d.file for d in waiting if isinstance(d, Definition)]
        while waiting or new_files:
            while new_files:
                file = new_files.pop()
                if file not in files:
                    files.add(file)
                    new_files += self.imported_by(file)
                    waiting += [Definition(file, ON_IMPORT), Definition(file, MADE_ON_IMPORT)]
            target = waiting.pop() if waiting else None
            if target is None or target in found or stops.hold(target):
                continue
            found.add(target)
            if isinstance(target, Whole):
                if target.path.suffix == ".py":
                    new_files.append(target.path)
                    module = self.module(target.path)
                    waiting += [Definition(target.path, name) for name in module.bound]
                    waiting += [t for name in module.imports for t in self.resolve(target.path, name)]
                continue
            led_to, imported = self.targets(target)
            waiting += led_to
            new_files += [target.file, *imported]
        return {d for d in found if isinstance(d, Definition)}, files

    # What happens when a module is imported.

    def _has_effect(self, module: Module, statement: ast.stmt) -> bool:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return any(self._decorator_acts(module, d) for d in statement.decorator_list)
            case ast.ClassDef():
                plain = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.Pass
                acts = any(not isinstance(s, plain) and not is_text(s) for s in statement.body)
                decorated = any(self._decorator_acts(module, d) for d in statement.decorator_list)
                return acts or decorated or self._is_watched(module, statement)
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = [n for t in targets for n in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
                plain = all(isinstance(n, ast.Name) for n in names)
                return not plain or (statement.value is not None and self._acts(module, statement.value))
            case _:
                return not (type(statement).__name__ == "TypeAlias" or self._is_told(module, statement))

    def _is_told(self, module: Module, statement: ast.stmt) -> bool:
        return isinstance(self.cleaned(module, statement), ast.Pass)

    def _decorator_acts(self, module: Module, decorator: ast.expr) -> bool:
        """Whether a decorator is one of ours, which may do anything; `register` only adds what somebody chooses."""
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        registers = all(
            isinstance(t, Definition) and t.name == "register" and t.file.is_relative_to(self.package)
            for t in self._of_expression(module, call)
        )
        return not registers

    def _of_expression(self, module: Module, node: ast.expr) -> list[Target]:
        uses, _ = uses_of(ast.Expr(node))
        return [target for use in uses for target in self._meant(module.file, use)]

    def _acts(self, module: Module, value: ast.expr) -> bool:
        """Whether an expression calls something that may do more than make a value."""
        return any(isinstance(n, ast.Call) and self._call_acts(module, n.func) for n in _outside_lambdas(value))

    def _call_acts(self, module: Module, called: ast.expr) -> bool:
        if isinstance(called, ast.Attribute) and called.attr in READERS:
            return False
        base = called
        while isinstance(base, ast.Attribute | ast.Subscript | ast.Call):
            base = base.func if isinstance(base, ast.Call) else base.value
        if not isinstance(base, ast.Name):
            return not isinstance(base, ast.Constant)
        if base.id in module.imports:
            tops = {line.module.partition(".")[0] for line in module.imports[base.id] if not line.level}
            if tops and tops <= MAKERS:
                return False
        elif base.id not in module.bound and hasattr(builtins, base.id):
            return base.id in DOERS
        found = self._of_expression(module, called)
        return not found or not all(self._is_plain_class(t) for t in found)

    def _is_plain_class(self, target: Target) -> bool:
        """Whether calling it only fills in the fields of a dataclass or the like."""
        if isinstance(target, Whole):
            return False
        statements = self.module(target.file).bound.get(target.name, [])
        own = {"__init__", "__post_init__", "__new__", "__init_subclass__"}
        return all(
            isinstance(s, ast.ClassDef) and not any(isinstance(f, ast.FunctionDef) and f.name in own for f in s.body)
            for s in statements
        )

    def _carries(self, module: Module, raised: ast.expr) -> bool:
        """Whether an exception keeps what it is raised with as more than its text: one of ours with fields."""
        for target in self._of_expression(module, raised):
            parent = self.module(target.file) if isinstance(target, Definition) else module
            classes = [s for s in parent.bound.get(_last(raised), []) if isinstance(s, ast.ClassDef)]
            for found in (*classes, *(c for own in classes for _, c in self._ancestors(parent, own))):
                if found.decorator_list or any(getattr(f, "name", "") in ("__init__", "__new__") for f in found.body):
                    return True
        return False

    def _ancestors(self, module: Module, node: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
        """The classes of ours that a class derives from."""
        waiting, seen = [(module, node)], set[int]()
        while waiting:
            at, child = waiting.pop()
            for target in (t for base in child.bases for t in self._of_expression(at, base)):
                if isinstance(target, Definition):
                    parent = self.module(target.file)
                    classes = [s for s in parent.bound.get(target.name, []) if isinstance(s, ast.ClassDef)]
                    waiting += [(parent, c) for c in classes if id(c) not in seen]
                    seen |= {id(c) for c in classes}
                    yield from ((parent, c) for c in classes)

    def _is_watched(self, module: Module, node: ast.ClassDef) -> bool:
        """Whether making the class runs code of ours: a metaclass, or an ancestor's __init_subclass__."""
        hooks = (
            any(isinstance(f, ast.FunctionDef) and f.name == "__init_subclass__" for f in ancestor.body)
            for _, ancestor in self._ancestors(module, node)
        )
        metaclass = any(
            k.arg == "metaclass" and (not isinstance(k.value, ast.Name | ast.Attribute) or _last(k.value) != "ABCMeta")
            for c in (node, *(c for _, c in self._ancestors(module, node)))
            for k in c.keywords
        )
        return metaclass or any(hooks)

    def _reads_hints(self, module: Module, node: ast.ClassDef) -> bool:
        """Whether the names of a class's annotations make its fields: dataclasses, named tuples and the like."""
        decorators = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
        classes = (node, *(c for _, c in self._ancestors(module, node)))
        fielded = {"NamedTuple", "TypedDict", "BaseModel", "Struct"}
        return (
            any(_last(d) != "register" for d in decorators)
            or any(_last(base) in fielded for c in classes for base in c.bases)
            or self._is_watched(module, node)
        )


class Stops:
    """Where following ends: modules (`lecture04.records`, with all below) and names in them (`pkg.module:name`)."""

    def __init__(self, sources: Sources, stops: Iterable[str]) -> None:
        self.folders, self.definitions = set[Path](), set[Definition]()
        for stop in stops:
            dotted, _, name = stop.partition(":")
            if (path := sources.locate(dotted)) is None:
                continue
            if name:
                self.definitions.add(Definition(path, name))
            else:
                self.folders.add(path.parent if path.name == "__init__.py" else path)

    def hold(self, target: Target) -> bool:
        """Whether a target is left out; what a module does when it is imported never is."""
        if isinstance(target, Definition) and target.name == ON_IMPORT:
            return False
        if target in self.definitions:
            return True
        path = target.file if isinstance(target, Definition) else target.path
        return any(path.is_relative_to(folder) for folder in self.folders)


@cache
def sources(package: Path, own: tuple[Path, ...] = ()) -> Sources:
    """The sources of a process: parsed once, as Python imports them once."""
    return Sources(package, own)


def _last(node: ast.expr) -> str:
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


def _outside_lambdas(node: ast.expr) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [node]
    while waiting:
        here = waiting.pop()
        yield here
        if not isinstance(here, ast.Lambda):
            waiting += ast.iter_child_nodes(here)


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
    return {n.value for value in lists for n in ast.walk(value) if isinstance(n, ast.Constant)}
