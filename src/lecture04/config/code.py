"""Source files as what they do: statements without docstrings and comments, to ask whether code has changed."""

import ast
from functools import cache
from pathlib import Path


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
