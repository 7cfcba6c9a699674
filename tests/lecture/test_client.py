"""The lecture is a client of the workbench: nothing imports it, and it takes public names alone."""

import ast
from pathlib import Path

import lecture04

PACKAGE = Path(lecture04.__file__).parent
LECTURE = PACKAGE / "lecture"


def imported(file: Path) -> list[str]:
    """Every dotted name that a file imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def test_nothing_imports_the_lecture():
    """The command names it in its table of subcommands, as text."""
    files = [f for f in PACKAGE.rglob("*.py") if LECTURE not in f.parents]
    assert not [f for f in files if any(name.startswith("lecture04.lecture") for name in imported(f))]


def test_the_lecture_takes_public_names():
    for file in sorted(LECTURE.rglob("*.py")):
        names = imported(file)
        assert not [name for name in names if "._" in name], file.name
        modules = {name.rpartition(".")[2] for name in names}
        tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        private = [n for n in tree if isinstance(n, ast.Attribute) and n.attr.startswith("_") and n.attr != "_replace"]
        assert not [n.attr for n in private if isinstance(n.value, ast.Name) and n.value.id in modules], file.name
