"""From an options class to the schema of what may still be open."""

from dataclasses import MISSING as NO_DEFAULT
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from enum import Enum
from types import SimpleNamespace
from typing import ClassVar

import pytest
from omegaconf import II, MISSING, OmegaConf
from omegaconf.errors import MissingMandatoryValue, ValidationError

from lecture04 import config
from lecture04.config import Options, bounded, opened
from lecture04.config.fields import asked, hints, schema_of
from lecture04.config.registry import entries, options_of
from lecture04.config.resolve import fill
from lecture04.config.schema import PARTS
from lecture04.config.validate import bound_errors


class Kind(Enum):
    one = "1"
    two = "2"


@dataclass(frozen=True, kw_only=True)
class Inner(Options):
    kind: Kind = Kind.one
    n: int = opened(lambda own, c: 2 * c.width, at_least=1)


@dataclass(frozen=True, kw_only=True)
class Window(Options):
    asked_only: ClassVar = {"match": (Kind, Kind.one), "budget": (int | None, bounded(None, at_least=1))}
    about: ClassVar[str] = "no setting"

    name: str
    width: int = bounded(8, at_least=1)
    n_sinks: int = opened(lambda own, c: own.width + c.width, at_least=0)
    known: int = opened(at_least=1)
    bias: bool = II("model.bias")
    clip: float | None = bounded(1.0, above=0)
    inner: Inner


@dataclass(frozen=True, kw_only=True)
class Wider(Window):
    n_sinks: int = opened(lambda own, c: 7)
    more: int = 1


C = SimpleNamespace(width=3)


def test_open_fields_alone_may_be_null():
    types = hints(schema_of(Window))
    assert types["n_sinks"] == int | None
    assert types["known"] == int | None
    assert (types["width"], types["name"], types["bias"]) == (int, str, bool)
    assert types["clip"] == float | None, "null is a value of it"
    cfg = OmegaConf.structured(schema_of(Window)(name="x", bias=True))
    assert (cfg.width, cfg.n_sinks, cfg.known) == (8, None, None)
    cfg.n_sinks = 4
    with pytest.raises(ValidationError):
        cfg.width = None
    with pytest.raises(ValidationError):
        cfg.n_sinks = "many"


def test_what_has_no_default_is_missing():
    cfg = OmegaConf.structured(schema_of(Window))
    assert OmegaConf.is_missing(cfg, "name")
    with pytest.raises(MissingMandatoryValue):
        _ = cfg.name
    assert {f.name for f in fields(Window) if f.default is NO_DEFAULT} >= {"name", "n_sinks", "inner"}
    assert schema_of(Window)().name == MISSING


def test_what_is_asked_only_is_no_part_of_the_result():
    asked_for = {f.name for f in fields(schema_of(Window))}
    resolved = {f.name for f in fields(Window)}
    assert asked_for - resolved == {"match", "budget"}
    assert resolved <= asked_for
    assert "about" not in asked_for
    assert bound_errors(asked(Window, name="x", bias=True, budget=0), "") == ["budget=0: must be at least 1."]


def test_a_schema_is_derived_from_that_of_its_base():
    assert issubclass(schema_of(Wider), schema_of(Window))
    assert schema_of(Wider) is schema_of(Wider), "one class, or Hydra would not take one for the other"
    assert {f.name for f in fields(schema_of(Wider))} == {f.name for f in fields(schema_of(Window))} | {"more"}
    assert fill(Wider, asked(Wider, name="x", known=1, bias=True), C).n_sinks == 7


def test_nested_options_have_schemas_too():
    made = schema_of(Window)(name="x")
    assert type(made.inner) is schema_of(Inner)
    assert made.inner.n is None
    assert made.inner is not schema_of(Window)(name="y").inner


def test_an_interpolation_follows_its_setting_where_nothing_is_said():
    tree = {
        "model": {"bias": False},
        "part": schema_of(Window)(name="x"),
        "own": schema_of(Window)(name="x", bias=True),
    }
    cfg = OmegaConf.create(tree)
    assert (cfg.part.bias, cfg.own.bias) == (False, True)
    assert OmegaConf.to_object(cfg)["part"].bias is False


def test_null_stands_for_what_its_function_gives():
    found = fill(Window, asked(Window, name="x", bias=True), C, known=5)
    inner = Inner(kind=Kind.one, n=6)
    assert found == Window(name="x", width=8, n_sinks=11, known=5, bias=True, clip=1.0, inner=inner)
    said = fill(Window, asked(Window, name="x", bias=True, width=2, n_sinks=0, clip=None), C, known=5)
    assert (said.n_sinks, said.clip) == (0, None)


def test_options_are_frozen_and_schemas_are_not():
    open_ = asked(Window, name="x", bias=True)
    open_.width = 3
    found = fill(Window, open_, C, known=1)
    for options in (found, found.inner):
        with pytest.raises(FrozenInstanceError):
            setattr(options, fields(options)[0].name, "other")
    assert replace(found, width=4).width == 4


@pytest.mark.parametrize(("family", "name"), [key for key in entries() if key[0] in PARTS])
def test_every_parts_options_are_frozen_and_have_a_schema(family, name):
    cls = options_of(family, name, PARTS[family])
    assert issubclass(cls, PARTS[family])
    assert issubclass(cls, Options)
    assert cls.__dataclass_params__.frozen
    assert not schema_of(cls).__dataclass_params__.frozen
    assert issubclass(schema_of(cls), schema_of(PARTS[family]))
    assert schema_of(cls).__doc__ == cls.__doc__


def test_the_settings_of_a_command_line_are_schemas(settings):
    found = settings("posenc=rope")
    assert type(found.posenc) is schema_of(config.Rope)
    assert type(found.model) is schema_of(config.Model)
    assert found.posenc.scaling.beta_fast is None
