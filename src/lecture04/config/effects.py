"""What happens when a module is imported, and what a class makes of its annotations: judged from the syntax tree."""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from lecture04.config.executed import is_text, uses_of
from lecture04.config.modules import Definition, Module, Modules, Target, Whole, last_name

# Calls that only make a value: a module may make one without anybody using it, and nothing has happened.
MAKERS = {
    *("abc", "collections", "contextlib", "dataclasses", "enum", "fractions", "functools", "itertools", "logging"),
    *("math", "operator", "pathlib", "re", "string", "types", "typing", "typing_extensions", "omegaconf"),
}
DOERS = {"__import__", "compile", "delattr", "eval", "exec", "globals", "input", "next", "open", "print", "setattr"}
# Rooms that keep, show and compare results: what is declared to them changes none.
BESIDE = ("records", "report", "sweep", "cli", "lecture")
READERS = {
    *("copy", "format", "get", "items", "join", "keys", "lower", "replace", "split", "strip", "upper", "values"),
    *("exists", "is_dir", "is_file", "read_text"),
}


@dataclass(frozen=True)
class Scope:
    """A function's parameters, and the names that it binds itself."""

    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()


NO_SCOPE = Scope()


class Effects:
    """Judges statements of modules that are ours."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._pure: dict[int, bool] = {}

    def has_effect(self, module: Module, statement: ast.stmt) -> bool:
        """Whether a top-level statement does more than to bind a name to a value."""
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
            case ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Assert():
                return True
            case _:
                return any(self._happens(module, n) for n in _run_with(statement))

    def _happens(self, module: Module, node: ast.AST) -> bool:
        """Whether one node of a statement that runs on import does something."""
        match node:
            case ast.Call():
                return self._call_acts(module, node.func)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.AugAssign() | ast.Delete():
                return self.has_effect(module, node)
            case _:
                return False

    def _decorator_acts(self, module: Module, decorator: ast.expr) -> bool:
        """Whether a decorator may do anything; `register` only adds what somebody chooses, and so does what declares
        a metric or a column.
        """
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        return not all(self._only_adds(target) for target in self._of_expression(module, call))

    def _only_adds(self, target: Target) -> bool:
        # A package's own __getattr__ stands between `from lecture04 import register` and the registry.
        registers = isinstance(target, Definition) and target.name in ("register", "__getattr__")
        ours = isinstance(target, Definition) and target.file.is_relative_to(self.modules.package)
        return (registers and ours) or self._is_beside(target)

    def _of_expression(self, module: Module, node: ast.expr) -> list[Target]:
        uses, _ = uses_of(ast.Expr(node))
        return [target for use in uses for target in self.modules.meant(module.file, use)]

    def _acts(self, module: Module, value: ast.expr) -> bool:
        """Whether an expression calls something that may do more than make a value."""
        return any(isinstance(n, ast.Call) and self._call_acts(module, n.func) for n in _run_with(value))

    def _call_acts(self, module: Module, called: ast.expr, scope: Scope = NO_SCOPE) -> bool:
        if isinstance(called, ast.Attribute) and called.attr in READERS:
            return False
        base = called
        while isinstance(base, ast.Attribute | ast.Subscript | ast.Call):
            base = base.func if isinstance(base, ast.Call) else base.value
        if not isinstance(base, ast.Name):
            return not isinstance(base, ast.Constant | ast.JoinedStr | ast.List | ast.Dict | ast.Set | ast.Tuple)
        if base.id in scope.parameters:
            return True
        if base.id in scope.own:
            return False
        if base.id in module.loggers:
            return False
        if base.id in module.imports:
            tops = {line.module.partition(".")[0] for line in module.imports[base.id] if not line.level}
            if tops and tops <= MAKERS:
                return False
        elif base.id not in module.bound and hasattr(builtins, base.id):
            return base.id in DOERS
        found = self._of_expression(module, called)
        if found and all(self._is_beside(target) for target in found):
            return False
        return not found or not all(self._only_makes(target) for target in found)

    def _is_beside(self, target: Target) -> bool:
        path = target.path if isinstance(target, Whole) else target.file
        return any(path.is_relative_to(self.modules.package / room) for room in BESIDE)

    def _only_makes(self, target: Target) -> bool:
        """Whether calling a function or class of ours makes a value and does nothing else."""
        if isinstance(target, Whole):
            return False
        module = self.modules.module(target.file)
        return all(
            self._is_pure(module, s)
            if isinstance(s, ast.FunctionDef)
            else isinstance(s, ast.ClassDef) and all(self._is_pure(module, f, of=s) for f in _constructors(s))
            for s in module.bound.get(target.name, [])
        )

    def _is_pure(self, module: Module, function: ast.FunctionDef, of: ast.ClassDef | None = None) -> bool:
        """Whether a function changes nothing but what it made itself; a constructor (`of` a class) its object too."""
        if id(function) not in self._pure:
            self._pure[id(function)] = True  # where it calls itself
            parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            own = {n.id for n in names} - parameters
            if of and function.args.args:
                first = function.args.args[0].arg
                parameters, own = parameters - {first}, own | {first}
            scope = Scope(frozenset(parameters), frozenset(own))
            self._pure[id(function)] = not any(self._changes(module, n, scope) for n in ast.walk(function))
        return self._pure[id(function)]

    def _changes(self, module: Module, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Global() | ast.Nonlocal() | ast.Import() | ast.ImportFrom():
                return True
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                base = node.value
                while isinstance(base, ast.Attribute | ast.Subscript):
                    base = base.value
                return not (isinstance(base, ast.Name) and base.id in scope.own)
            case ast.Call():
                return self._call_acts(module, node.func, scope)
            case _:
                return False

    def carries(self, module: Module, raised: ast.expr) -> bool:
        """Whether an exception keeps what it is raised with as more than its text: one of ours with fields."""
        for target in self._of_expression(module, raised):
            parent = self.modules.module(target.file) if isinstance(target, Definition) else module
            classes = [s for s in parent.bound.get(last_name(raised), []) if isinstance(s, ast.ClassDef)]
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
                    parent = self.modules.module(target.file)
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
            k.arg == "metaclass"
            and (not isinstance(k.value, ast.Name | ast.Attribute) or last_name(k.value) != "ABCMeta")
            for c in (node, *(c for _, c in self._ancestors(module, node)))
            for k in c.keywords
        )
        return metaclass or any(hooks)

    def reads_hints(self, module: Module, node: ast.ClassDef) -> bool:
        """Whether the names of a class's annotations make its fields: dataclasses, named tuples and the like."""
        decorators = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
        classes = (node, *(c for _, c in self._ancestors(module, node)))
        fielded = {"NamedTuple", "TypedDict", "BaseModel", "Struct"}
        return (
            any(last_name(d) != "register" for d in decorators)
            or any(last_name(base) in fielded for c in classes for base in c.bases)
            or self._is_watched(module, node)
        )


def _constructors(node: ast.ClassDef) -> list[ast.FunctionDef]:
    made_by = ("__init__", "__post_init__", "__new__")
    return [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name in made_by]


def _run_with(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run with a node: not those inside of functions and classes that it defines."""
    waiting: list[ast.AST] = [node]
    while waiting:
        here = waiting.pop()
        yield here
        if not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(here)
