"""docs/conformance.md is what the suite wrote, of these versions."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import transformers

PAGE = (Path(__file__).parents[3] / "docs" / "conformance.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("| ").split(" | ")
    for line in PAGE.partition("## ")[0].splitlines()
    if line.startswith("| ") and re.search(r"\de-\d", line)
]


def test_it_is_of_the_versions_installed(request):
    if request.config.getoption("write_conformance", default=False):
        pytest.skip("the page is being written")
    assert f"\ntransformers {transformers.__version__}, x-transformers {version('x-transformers')} and torch" in PAGE


def test_every_figure_is_within_its_tolerance():
    assert len(ROWS) > 100
    for title, _, *figures in ROWS:
        for figure, allowed in zip(figures[:2], (1e-5, 1e-10), strict=True):
            assert not figure.strip() or float(figure) < allowed, title


def test_every_family_is_there():
    for name in ("Llama", "Mistral", "GPT-2", "GPT-NeoX", "MPT", "T5", "DeepSeek-V3", "Gemma", "Qwen3"):
        assert any(row[0].startswith(name) for row in ROWS), name
