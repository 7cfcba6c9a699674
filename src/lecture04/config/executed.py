"""Statements as what they do, and the names that they load.

Left out is what changes no result: comments, docstrings, annotations, the text of an error, what a logger is told, the
line that describes a registered part, and blocks for type checkers.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

# Keywords that are read by people alone, by the last name of what is called.
TOLD = {"register": {"about"}, "Outcome": {"why"}}
# What an evaluation alone executes, by the last name of what is called: a new measure makes no new run.
MEASURED = {"Splits": {"measures"}, "Corpus": {"measures"}}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
SAYING = {"abs", "float", "format", "int", "len", "list", "max", "min", "repr", "round", "sorted", "str", "sum", "type"}


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds. `name` is None for a module itself; `level` counts the dots.

    `whole` is False for `import a.b`, which binds `a`.
    """

    bound: str
    module: str
    name: str | None
    level: int = 0
    whole: bool = True

    @staticmethod
    def all_of(node: ast.Import | ast.ImportFrom) -> "Iterator[Import]":
        """The names of an import statement."""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                yield Import(alias.asname or alias.name, node.module or "", alias.name, node.level)
            else:
                bound = alias.asname or alias.name.partition(".")[0]
                yield Import(bound, alias.name, None, whole=alias.asname is not None or "." not in alias.name)

    def __str__(self) -> str:
        return f"{'.' * self.level}{self.module}{':' if self.name else ''}{self.name or ''}"


@dataclass(frozen=True)
class Use:
    """A name that is loaded, with the attributes that are read of it; `imported` where a local import binds it."""

    name: str
    attributes: tuple[str, ...] = ()
    imported: Import | None = None


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or another constant that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_typing_block(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def is_main_block(node: ast.AST) -> bool:
    """Whether a statement is `if __name__ == "__main__":`, which no import runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")


class Cleaner(ast.NodeTransformer):
    """Leaves of a statement what it does. `loggers` are the module's; `fielded` the ids of classes made of fields.

    `carries` says of an exception whether what it is raised with is more than its text.
    """

    def __init__(self, loggers: Iterable[str], fielded: set[int], carries: Callable[[ast.expr], bool]) -> None:
        self.loggers, self.fielded, self.carries = set(loggers), fielded, carries
        self.in_class = False  # of which annotations are kept
        self.parameters: list[set[str]] = []
        self.measured: list[ast.expr] = []  # what was taken out because only an evaluation executes it

    def clean(self, statement: ast.stmt) -> ast.stmt:
        """The statement itself, cleaned, or what stands in its place; `pass` where nothing is left.

        What it measures is in `measured` afterwards.
        """
        return self.visit(statement) or ast.Pass()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(body := getattr(node, "body", None), list):
            kept = [s for s in body if not (is_text(s) or isinstance(s, ast.Pass))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
        for name in ("orelse", "finalbody"):
            if isinstance(body := getattr(node, name, None), list):
                setattr(node, name, [s for s in body if not (is_text(s) or isinstance(s, ast.Pass))])
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        call = node.value
        if isinstance(call, ast.Constant):
            return None
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=level)) if (
                name in self.loggers and level in LEVELS and not any(name in own for own in self.parameters)
            ):
                said = [n for a in (*call.args, *(k.value for k in call.keywords)) for n in ast.walk(a)]
                if not any(_happens(n) for n in said):
                    return None
            case _:
                pass
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt] | None:
        if is_typing_block(node):
            return [kept for s in node.orelse if (kept := self.visit(s)) is not None]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        if not any(isinstance(d, ast.Attribute) and d.attr == "register" for d in node.decorator_list):
            for a in ast.walk(node.args):  # functools.singledispatch alone reads them
                if isinstance(a, ast.arg):
                    a.annotation = None
        _without_type_params(node)
        arguments = node.args
        names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        self.parameters.append({a.arg for a in names if a})
        self.in_class, before = False, self.in_class
        self.generic_visit(node)
        self.in_class = before
        self.parameters.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        _without_type_params(node)
        self.in_class, before = id(node) in self.fielded, self.in_class
        self.generic_visit(node)
        self.in_class = before
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if self.in_class:
            kinds = {n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in ast.walk(node.annotation)}
            written = ast.unparse(node.annotation)  # annotations may be quoted
            kind = [k for k in ("ClassVar", "InitVar", "KW_ONLY") if k in kinds or k in written]
            node.annotation = ast.Constant(kind[0] if kind else ...)
            return self.generic_visit(node)
        if node.value is None:
            return None
        return self.generic_visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call) and not self.carries(node.exc.func):
            node.exc = node.exc.func
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.msg = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        measured = MEASURED.get(name, set[str]())
        self.measured += [k.value for k in node.keywords if k.arg in measured]
        left_out = TOLD.get(name, set[str]()) | measured
        node.keywords = [k for k in node.keywords if k.arg not in left_out]
        return self.generic_visit(node)


def _without_type_params(node: ast.AST) -> None:
    if getattr(node, "type_params", None):
        node.type_params = []  # type: ignore[attr-defined]


def _happens(node: ast.AST) -> bool:
    """Whether evaluating a node may do something, beside making a text."""
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in SAYING)
    return isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


def uses_of(statement: ast.stmt) -> tuple[list[Use], list[Import]]:
    """The names of the module's top level that a (cleaned) statement loads, and the imports that stand in it."""
    visitor = _Uses()
    visitor.visit(statement)
    return visitor.found, visitor.imports


class _Uses(ast.NodeVisitor):
    """Names by Python's scopes: what a function binds is its own; a class's names are not its methods'."""

    def __init__(self) -> None:
        self.found: list[Use] = []
        self.imports: list[Import] = []
        self.scopes: list[dict[str, list[Import]]] = []

    def _load(self, name: str, attributes: tuple[str, ...] = ()) -> None:
        for scope in reversed(self.scopes):
            if name in scope:
                self.found += [Use(name, attributes, found) for found in scope[name]]
                return
        self.found.append(Use(name, attributes))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._load(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._load(node.target.id)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        attributes, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            attributes.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            self._load(base.id, tuple(reversed(attributes)))
        else:
            self.visit(base)

    def visit_Call(self, node: ast.Call) -> None:
        """`importlib.import_module("a.b")` brings the module."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("import_module", "__import__") and node.args and isinstance(text := node.args[0], ast.Constant):
            self.found.append(Use(str(text.value), (), Import("", str(text.value), None)))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        # Found again when its name is loaded; outside of functions (in a class, or under an `if`) it is at once.
        self.imports += Import.all_of(node)
        if not self.scopes:
            self.found += [Use(found.bound, (), found) for found in Import.all_of(node) if found.name != "*"]

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(outside)
        self._inside(node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(outside)
        self._inside(node.args, [node.body])

    def _inside(self, arguments: ast.arguments, body: list[ast.stmt] | list[ast.expr]) -> None:
        names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        scope: dict[str, list[Import]] = {a.arg: [] for a in names if a}
        dropped = _bind(body, scope)
        for name in dropped:
            scope.pop(name, None)
        self.scopes.append(scope)
        for node in body:
            self.visit(node)
        self.scopes.pop()

    def visit_comprehension_of(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        """The first iterable is evaluated outside; its targets are the comprehension's own."""
        self.visit(node.generators[0].iter)
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.scopes.append({name: [] for name in own})
        for i, generator in enumerate(node.generators):
            if i:
                self.visit(generator.iter)
            for part in (generator.target, *generator.ifs):
                self.visit(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_comprehension_of  # noqa: N815


def _bind(body: Iterable[ast.AST], scope: dict[str, list[Import]]) -> set[str]:
    """Add what a function's body binds to its scope; returns the names that it declares global or nonlocal."""
    elsewhere, waiting = set[str](), [(node, False) for node in body]
    while waiting:
        node, in_comprehension = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.setdefault(node.name, [])
                waiting += [(d, in_comprehension) for d in node.decorator_list]
                continue
            case ast.Lambda():
                continue
            case ast.Global() | ast.Nonlocal():
                elsewhere |= set(node.names)
            case ast.Import() | ast.ImportFrom():
                for found in Import.all_of(node):
                    scope.setdefault(found.bound, []).append(found)
            case ast.NamedExpr(target=ast.Name(id=name)):
                scope.setdefault(name, [])
            case ast.Name(ctx=ast.Store() | ast.Del()) if not in_comprehension:
                scope.setdefault(node.id, [])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.setdefault(name, [])
            case ast.MatchMapping(rest=str(name)):
                scope.setdefault(name, [])
            case _:
                pass
        inside = in_comprehension or isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return elsewhere
