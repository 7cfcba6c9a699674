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
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from lecture04.config.effects import Effects
from lecture04.config.executed import Cleaner, Import, Use, uses_of
from lecture04.config.modules import INSTALLED, NAME, Definition, Module, Modules, Target, Whole

__all__ = ["INSTALLED", "MADE_ON_IMPORT", "ON_IMPORT", "Definition", "Sources", "Stops", "sources"]

ON_IMPORT, MADE_ON_IMPORT = "on import", "made on import"
"""The names under which a module's own effects stand among its definitions, and the values that it calls code for."""


class Sources(Modules):
    """Modules, and what follows from which of their definitions; each is looked at once."""

    def __init__(self, package: Path, own: Iterable[Path] = (), name: str = NAME) -> None:
        super().__init__(package, own, name)
        self.effects = Effects(self)
        self._uses: dict[Definition, tuple[Use, ...]] = {}
        self._targets: dict[Definition, tuple[frozenset[Target], frozenset[Path]]] = {}
        self._local_imports: dict[Definition, list[Import]] = {}
        self._digests: dict[Definition, str] = {}

    def with_changed(self, file: Path) -> "Sources":
        """The same with one file read again, which sees to a change without parsing all of them anew."""
        other = Sources(self.package, self.own, self.name)
        other._modules = {path: module for path, module in self._modules.items() if path != file}
        other._uses = {d: uses for d, uses in self._uses.items() if d.file != file}
        other._local_imports = self._local_imports | {}
        other._digests = {d: digest for d, digest in self._digests.items() if d.file != file}
        other._found = self._found
        return other

    def cleaned(self, module: Module, statement: ast.stmt) -> ast.stmt:
        """A statement as what it does."""
        if id(statement) not in module.cleaned:
            reads = {
                id(n)
                for n in ast.walk(statement)
                if isinstance(n, ast.ClassDef) and self.effects.reads_hints(module, n)
            }
            cleaner = Cleaner(module.loggers, reads, lambda raised: self.effects.carries(module, raised))
            module.cleaned[id(statement)] = cleaner.clean(statement)
            module.measured[id(statement)] = cleaner.measured
        return module.cleaned[id(statement)]

    def statements(self, definition: Definition) -> list[ast.stmt]:
        """The statements of a definition, as what they do."""
        module = self.module(definition.file)
        if definition.name in (ON_IMPORT, MADE_ON_IMPORT):
            made = definition.name == MADE_ON_IMPORT
            found = [s for s in module.statements if isinstance(s, ast.Assign | ast.AnnAssign) == made]
            found = [s for s in found if self.effects.has_effect(module, s)]
            found = [s for s in found if not isinstance(self.cleaned(module, s), ast.Pass)]
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
                found.update(self.meant(definition.file, use))
            for line in self._local_imports[definition]:
                files |= self.files_of(definition.file, line)
            self._targets[definition] = frozenset(found - {definition}), frozenset(files)
        return self._targets[definition]

    def measured(self, definition: Definition) -> frozenset[Target]:
        """What a definition leads to in an evaluation alone."""
        module = self.module(definition.file)
        statements = module.bound.get(definition.name, [])
        expressions = [e for s in statements if self.cleaned(module, s) for e in module.measured[id(s)]]
        uses = (use for e in expressions for use in uses_of(ast.Expr(e))[0])
        return frozenset(target for use in uses for target in self.meant(definition.file, use))

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
                    waiting += [Whole(path) for star in module.stars if (path := self.imported_file(target.path, star))]
                continue
            led_to, imported = self.targets(target)
            waiting += led_to
            if stops.measures:
                waiting += self.measured(target)
            new_files += [target.file, *imported]
        return {d for d in found if isinstance(d, Definition)}, files


class Stops:
    """Where following ends: modules (`lecture04.records`, with all below) and names in them (`pkg.module:name`).

    What is measured of a trained model is followed with `measures` alone.
    """

    def __init__(self, sources: Sources, stops: Iterable[str], *, measures: bool = False) -> None:
        self.measures = measures
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
