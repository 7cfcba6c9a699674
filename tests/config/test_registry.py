"""What is registered, what conf/ offers, and what the sources say agree."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lecture04.config import registry
from lecture04.config.registry import Family
from lecture04.config.schema import PARTS
from lecture04.nn.ffn import FFNS

CONF = Path(__file__).parents[2] / "conf"
FAMILIES = tuple(PARTS)
CHOICES = [(family, name) for family in FAMILIES for name in registry.names(family)]
PRESETS = {"garden_packed", "shakespeare"}
"""Choices of a group that choose another one's too, and have no part of their own."""
FILES = [path for f in FAMILIES for path in sorted((CONF / f).glob("*.yaml")) if path.stem not in PRESETS]


@pytest.mark.parametrize("family", FAMILIES)
def test_registry_and_conf_offer_the_same_names(family):
    files = {path.stem for path in (CONF / family).glob("*.yaml")} - PRESETS
    assert files
    assert set(registry.names(family)) == files


def test_no_family_escapes_these_tests():
    assert {family for family, _ in registry.entries()} - {*FAMILIES} <= {
        "probe",
        "architecture",
        "settle",
        "metric",
        "column",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_names_its_part(path):
    content = yaml.safe_load(path.read_text())
    assert content.get(path.parent.name, content)["name"] == path.stem


@pytest.mark.parametrize(("family", "name"), CHOICES)
def test_a_composed_choice_names_its_part(requested, family, name, text_lines):
    request = requested(f"{family}={name}", *(text_lines if name == "text" else ()))
    assert getattr(request.run, family, request.session.logger).name == name


@pytest.mark.parametrize(("family", "name"), CHOICES)
def test_a_part_says_what_it_is(family, name):
    entry = registry.entry(family, name)
    part = Family(family).lookup(name)
    assert part.__name__ == entry.attribute
    assert part.__doc__, "a docstring of its own, not an inherited one"
    several = [e for e in registry.entries().values() if (e.module, e.attribute) == (entry.module, entry.attribute)]
    assert entry.about == part.__doc__.splitlines()[0].strip() or f'about="{entry.about}"' in entry.file.read_text()
    assert len({e.about for e in several}) == len(several), "each name of one class says what it is"
    assert len(entry.about) > 20 or family == "logger"
    assert entry.about.endswith((".", ")", ":"))


def test_reading_names_and_options_imports_no_torch():
    code = (
        "import sys; from lecture04.config import FFN, registry\n"
        "assert registry.names('ffn'); assert registry.options_of('ffn', 'swiglu', FFN).n_matrices == 3\n"
        "assert registry.options_of('ffn', 'relu', FFN).n_matrices == 2\n"
        "bad = {'torch', 'numpy'} & set(sys.modules); assert not bad, bad\n"
        "registry.Family('ffn').lookup('relu'); assert 'torch' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "ask",
    [lambda name: registry.entry("ffn", name), FFNS.lookup, lambda name: registry.options_of("ffn", name, object)],
)
def test_an_unknown_name_lists_the_choices(ask):
    with pytest.raises(ValueError, match=r"ffn=swigul: no such ffn\. Did you mean swiglu\?") as caught:
        ask("swigul")
    assert all(name in str(caught.value) for name in FFNS.names())


def ours(folder, monkeypatch):
    """The parts of a package that lies in another folder."""
    monkeypatch.setattr(registry, "PACKAGE", folder)
    return registry._ours.__wrapped__()


def test_a_name_registered_twice_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "nn").mkdir()
    for module in ("one", "two"):
        (tmp_path / "nn" / f"{module}.py").write_text('@register("ffn", "same")\nclass Part: ...\n')
    with pytest.raises(ValueError, match=r"ffn=same is registered twice, the second time in .*two\.py"):
        ours(tmp_path, monkeypatch)


def test_a_new_file_is_found_by_itself(tmp_path, monkeypatch):
    (tmp_path / "nn").mkdir()
    path = tmp_path / "nn" / "new.py"
    path.write_text(
        '@register("ffn", "new", options=config.GatedFFN)\n@register("ffn", "newer", about="Said here.")\n'
        'class New:\n    """A part.\n\n    It."""\n'
    )
    new, newer = ours(tmp_path, monkeypatch).values()
    assert new == registry.Entry("ffn", "new", "lecture04.nn.new", "New", "GatedFFN", "A part.", path)
    assert (newer.about, newer.options) == ("Said here.", "")
