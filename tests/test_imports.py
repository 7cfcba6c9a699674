"""Imports point one way; and a command that trains nothing imports nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lecture04

PACKAGE = Path(lecture04.__file__).parent
OURS = {f"lecture04.{path.stem}" for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}

# Part of the package -> what none of its files may import, however deep in a function the import stands.
FORBIDDEN = {
    "config": {"torch", "numpy", *OURS - {"lecture04.config"}},
    "registry": {"torch", "numpy", *OURS - {"lecture04.config", "lecture04.config.registry"}},
    "counts": {"torch", "numpy", *OURS - {"lecture04.config", "lecture04.config.registry", "lecture04.config.sizes"}},
    "settle": {
        "torch",
        "numpy",
        *OURS - {"lecture04.config", "lecture04.config.registry", "lecture04.config.sizes", "lecture04.config.resolve"},
    },
    "nn": {"hydra", "wandb", "pandas", *OURS - {"lecture04.config", "lecture04.config.registry", "lecture04.nn"}},
    "convert": {
        *("hydra", "wandb", "pandas", "transformers"),
        *(
            "lecture04.cli.train",
            "lecture04.training.run",
            "lecture04.sweep",
            "lecture04.report",
            "lecture04.lecture.probes",
        ),
    },
    "data": {
        "hydra",
        "wandb",
        "pandas",
        *OURS - {"lecture04.config", "lecture04.config.registry", "lecture04.config.code", "lecture04.data"},
    },
    "train": {
        "hydra",
        "wandb",
        "pandas",
        "lecture04.report",
        "lecture04.stats",
        "lecture04.sweep",
        "lecture04.cli.train",
    },
    "runs": {
        "torch",
        "numpy",
        "pandas",
        "hydra",
        *OURS
        - {
            "lecture04.config",
            "lecture04.config.messages",
            "lecture04.config.registry",
            "lecture04.config.code",
            "lecture04.records",
        },
    },
    "stats": {"torch", "pandas", "hydra", "omegaconf", *OURS - {"lecture04.stats"}},
    "probes": {"wandb", "lecture04.sweep", "lecture04.lecture"},
    "report": {
        "torch",
        "hydra",
        "lecture04.nn",
        "lecture04.training",
        "lecture04.data",
        "lecture04.cli.train",
        "lecture04.training.run",
    },
}


def sources(part: str) -> list[Path]:
    file = PACKAGE / f"{part}.py"
    return [file] if file.exists() else sorted((PACKAGE / part).rglob("*.py"))


def imported(source: str, package: str) -> set[str]:
    """Every module that a source names in an import statement, as `a.b.c`, each with the packages that it lies in."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *base.split(".")])
            # `from lecture04 import config` names a module by its alias.
            found |= {base.rstrip("."), *(f"{base.rstrip('.')}.{alias.name}" for alias in node.names)}
    return {".".join(name.split(".")[:n]) for name in found for n in range(1, name.count(".") + 2)}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_imports_point_one_way(part):
    assert sources(part)
    for path in sources(part):
        package = ".".join(["lecture04", *path.relative_to(PACKAGE).parent.parts])
        wrong = imported(path.read_text(), package) & FORBIDDEN[part]
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch.nn.functional as F", "torch"),
        ("from lecture04 import nn", "lecture04.nn"),
        ("from lecture04.nn.model import X", "lecture04.nn"),
        ("from ..nn import model", "lecture04.nn"),
        ("from .. import nn", "lecture04.nn"),
        ("def f():\n    from torch import nn", "torch"),
    ],
)
def test_every_form_of_an_import_is_seen(source, expected):
    assert expected in imported(source, "lecture04.data")


def in_a_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


HEAVY = ("torch", "numpy", "pandas", "scipy", "wandb", "joblib", "rich", "safetensors")
CHECK = f"import sys; bad = set({HEAVY!r}) & set(sys.modules); assert not bad, bad"


def test_a_command_line_and_a_composed_config_import_nothing_heavy():
    """What stands between TAB, --cfg or a config error and the answer; Hydra's plugin scan is on that way."""
    in_a_process(
        "from hydra import compose, initialize_config_dir\n"
        "from lecture04 import cli\n"
        "with initialize_config_dir(str(CONF), version_base='1.3'):\n"
        "    cfg = compose('config', overrides=['recipe=llama'])\n"
        "assert cli.settled(cfg).ffn.name == 'swiglu'\n" + CHECK
    )


@pytest.mark.parametrize("module", ["lecture04.records.record", "lecture04.sweep.command", "lecture04.records.metrics"])
def test_looking_up_runs_and_planning_import_nothing_heavy(module):
    in_a_process(f"import {module}; {CHECK}")


def test_reports_and_statistics_do_without_torch():
    in_a_process(
        "import sys, lecture04.stats, lecture04.report.results, lecture04.report.table, lecture04.report.text\n"
        "assert 'torch' not in sys.modules"
    )
