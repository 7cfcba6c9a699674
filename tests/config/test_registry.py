"""What is registered, what conf/ offers, and what the sources say agree."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lecture04 import config
from lecture04.config import registry

CONF = Path(__file__).parents[2] / "conf"
FAMILIES = ("ffn", "norm", "placement", "attention", "posenc", "init", "optim", "data")
PARTS = [(family, name) for family in FAMILIES for name in registry.names(family)]
FILES = [path for family in FAMILIES for path in sorted((CONF / family).glob("*.yaml"))]


@pytest.mark.parametrize("family", FAMILIES)
def test_registry_and_conf_offer_the_same_names(family):
    files = {path.stem for path in (CONF / family).glob("*.yaml")}
    assert files
    assert set(registry.names(family)) == files


def test_a_registered_logger_has_its_file():
    """Loggers need not be registered ("none" is no code); those that are must be choices."""
    assert set(registry.names("logger")) <= {path.stem for path in (CONF / "logger").glob("*.yaml")}


def test_no_family_escapes_these_tests():
    assert {family for family, _ in registry.entries()} <= {*FAMILIES, "logger", "probe"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_names_its_part(path):
    assert yaml.safe_load(path.read_text())["name"] == path.stem


@pytest.mark.parametrize(("family", "name"), PARTS)
def test_a_composed_choice_names_its_part(compose, family, name):
    assert getattr(compose(f"{family}={name}"), family).name == name


@pytest.mark.parametrize(("family", "name"), [key for key in config.SCHEMAS if key[0] in FAMILIES])
def test_a_schema_belongs_to_a_part_and_its_file_uses_it(compose, family, name):
    assert name in registry.names(family)
    assert type(getattr(compose(f"{family}={name}"), family)) is config.SCHEMAS[family, name]


@pytest.mark.parametrize(("family", "name"), PARTS)
def test_a_part_says_what_it_is(family, name):
    entry = registry.entry(family, name)
    part = registry.lookup(family, name)
    assert part.__name__ == entry.attribute
    assert part.__doc__, "a docstring of its own, not an inherited one"
    assert entry.summary == part.__doc__.splitlines()[0].strip()
    assert len(entry.summary) > 20
    assert entry.summary.endswith((".", ")", ":"))


def test_reading_names_and_facts_imports_no_torch():
    code = (
        "import sys; from lecture04 import registry;"
        "assert registry.names('ffn'); assert registry.fact('ffn', 'swiglu', 'gated', False) is True;"
        "assert registry.fact('ffn', 'relu', 'gated', False) is False;"
        "bad = {'torch', 'numpy'} & set(sys.modules); assert not bad, bad;"
        "registry.lookup('ffn', 'relu'); assert 'torch' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ask", [registry.entry, registry.lookup, lambda *key: registry.fact(*key, "gated", False)])
def test_an_unknown_name_lists_the_choices(ask):
    with pytest.raises(ValueError, match="ffn=swigul: no such ffn") as caught:
        ask("ffn", "swigul")
    assert all(name in str(caught.value) for name in registry.names("ffn"))


def test_a_name_registered_twice_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "nn").mkdir()
    for module in ("one", "two"):
        (tmp_path / "nn" / f"{module}.py").write_text('@register("ffn", "same")\nclass Part: ...\n')
    monkeypatch.setattr(registry, "PACKAGE", tmp_path)
    with pytest.raises(ValueError, match="ffn=same is registered twice"):
        registry.entries.__wrapped__()


def test_a_new_file_is_found_by_itself(tmp_path, monkeypatch):
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn" / "new.py").write_text(
        '@register("ffn", "new", gated=True)\nclass New:\n    """A part.\n\n    It."""\n'
    )
    monkeypatch.setattr(registry, "PACKAGE", tmp_path)
    (found,) = registry.entries.__wrapped__().values()
    assert found == registry.Entry("ffn", "new", "lecture04.nn.new", "New", {"gated": True}, "A part.")
