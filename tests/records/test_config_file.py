"""A run's config read back from its folder is what was written, for every choice there is."""

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir

from lecture04 import config
from lecture04.cli import train as cli
from lecture04.config import AdamW, Match, Root, Rope, Schedule, Sweep
from lecture04.config.messages import UserError
from lecture04.records import reading
from lecture04.records.config_file import read_config
from lecture04.records.identity import as_recorded, fingerprint
from lecture04.records.record import Record

CONF = ROOT / "conf"
GROUPS = sorted(path.name for path in CONF.iterdir() if path.is_dir() and path.name not in ("hydra", "probe"))
CHOICES = [f"{group}={path.stem}" for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))]
# What a choice cannot do without.
NEEDED = {"init=uptrain": ("attention=gqa", "init.source=['attention=mha','posenc=sinusoidal']")}
OTHERS = (
    "ffn.match=model",
    "optim.schedule=linear",
    "optim.clip=null",
    "optim.lr=1e-5",
    "runs.reuse=config",
    "trainer.steps=7",
    "model.budget=90000",
    "seed=3",
)


@cache
def _settled(overrides: tuple[str, ...]) -> Root:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return cli.settled(hydra_compose("config", overrides=list(overrides)))


@pytest.fixture(scope="module")
def settled() -> Callable[..., Root]:
    """`settled("ffn=swiglu")`: the config of a run, as the command line settles it."""
    return lambda *overrides: deepcopy(_settled(overrides))


def written(cfg: Root, folder: Path) -> dict[str, Any]:
    """What the run's file says."""
    folder.mkdir(exist_ok=True)
    Record(folder).start(cfg, "python train.py")
    return yaml.safe_load((folder / "config.yaml").read_text())


@pytest.fixture
def alter(settled, tmp_path):
    """`alter(lambda content: ...)`: a run's folder whose config.yaml was changed by hand."""

    def alter(change, *overrides):
        content = written(settled(*overrides), tmp_path)
        change(content)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
        return tmp_path

    return alter


def test_the_choices_are_found():
    assert {"ffn=swiglu", "posenc=rope", "recipe=llama", "model=six_layers", "logger=wandb"} < set(CHOICES)


@pytest.mark.parametrize("override", [*CHOICES, *OTHERS])
def test_a_round_trip_changes_nothing(settled, tmp_path, override):
    cfg = settled(override, *NEEDED.get(override, ()))
    content = written(cfg, tmp_path)
    back = read_config(tmp_path)
    assert back == cfg
    assert as_recorded(back) == content
    assert fingerprint(back) == fingerprint(cfg)


def test_parts_have_dataclasses_of_their_own_and_enums_are_members(settled, tmp_path):
    written(settled("posenc=rope", "ffn=swish", "ffn.match=model"), tmp_path)
    back = read_config(tmp_path)
    assert type(back.posenc) is Rope
    assert type(back.ffn) is config.Swish
    assert type(back.optim) is AdamW
    assert back.ffn.match is Match.model
    assert back.optim.schedule is Schedule.cosine


def test_the_run_that_another_starts_from_is_a_config_too(settled, tmp_path):
    cfg = settled("init=uptrain", "attention=mqa", "init.source=['attention=gqa','optim.lr=1e-3']")
    content = written(cfg, tmp_path)
    back = read_config(tmp_path)
    assert isinstance(back.init, config.Uptrain)
    assert isinstance(back.init.run, Root)
    assert back.init.run.attention.n_kv_heads == 2
    assert type(back.init.run.optim) is AdamW
    assert config.source_of(back) == config.source_of(cfg)
    del content["init"]["run"]["optim"]["eps"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"init\.run\.optim\.eps: the setting is missing\."):
        read_config(tmp_path)


def test_what_a_file_leaves_out_is_its_default(settled, tmp_path):
    cfg = settled("ffn=relu")
    cfg = replace(cfg, origin=replace(cfg.origin, sweep="ffn"), sweep=Sweep(name="ffn", seeds=[1]))
    written(cfg, tmp_path)
    back = read_config(tmp_path)
    assert (back.sweep, back.origin) == (Sweep(), config.Origin())
    assert fingerprint(back) == fingerprint(cfg)


def test_no_file(tmp_path):
    with pytest.raises(UserError, match=r"config\.yaml: there is no such file"):
        read_config(tmp_path)


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "\x00"])
def test_a_file_that_is_no_config(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError, match=r"config\.yaml: "):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(sed=1), r"sed: no such setting\. Did you mean seed\?"),
        (lambda c: c["optim"].update(lrr=1), r"optim\.lrr: no such setting\. Did you mean lr\?"),
        (lambda c: c.pop("ffn"), r"ffn: the setting is missing\."),
        (lambda c: c["trainer"].pop("steps"), r"trainer\.steps: the setting is missing\."),
        (lambda c: c["ffn"].update(match="all"), r"ffn\.match=all: there is no such choice\. Choices: ffn, model\."),
        (lambda c: c["ffn"].update(name="relux"), r"ffn=relux: no such ffn is registered\. Did you mean relu\?"),
        (lambda c: c["ffn"].update(d_ff="many"), r"ffn\.d_ff='many': must be int\."),
        (lambda c: c["ffn"].update(d_ff=True), r"ffn\.d_ff=True: must be int\."),
        (lambda c: c["ffn"].update(bias=1), r"ffn\.bias=1: must be bool\."),
        (lambda c: c["optim"].update(lr=None), r"optim\.lr=None: must be float\."),
        (lambda c: c.update(model=3), r"model: must be settings below keys, not 3\."),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_the_key(alter, change, said):
    folder = alter(change)
    with pytest.raises(UserError, match=said) as e:
        read_config(folder)
    assert str(e.value).startswith(f"{folder / 'config.yaml'}: ")


def test_a_whole_number_will_do_for_a_fraction(alter):
    back = read_config(alter(lambda c: c["optim"].update(clip=2)))
    assert back.optim.clip == 2.0
    assert type(back.optim.clip) is float


class Kind(Enum):
    """Two names with values of another spelling."""

    one = "1"
    two = "2"


@dataclass
class Inner:
    kind: Kind = Kind.one
    factor: float = 1.0


@dataclass
class Outer:
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None
    source: Root | None = None
    free: dict[str, Any] = field(default_factory=dict)
    either: int | str = 0
    many: list[Inner] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=dict)


def test_nested_settings_of_any_depth(settled):
    """What config.py may yet hold: settings inside settings, lists of them, and a whole config inside one."""
    content = {
        "inner": {"kind": "two", "factor": 2},
        "maybe": {"kind": "one", "factor": 0.5},
        "source": as_recorded(settled("posenc=rope")),
        "free": {"a": [1, None]},
        "either": "x",
        "many": [{"kind": "one", "factor": 1.0}, {"kind": "two", "factor": 3.0}],
        "named": {"a": [1, 2]},
    }
    assert reading._settings(Outer, content, "") == Outer(
        Inner(Kind.two, 2.0),
        Inner(Kind.one, 0.5),
        settled("posenc=rope"),
        {"a": [1, None]},
        "x",
        [Inner(), Inner(Kind.two, 3.0)],
        {"a": [1, 2]},
    )
    content["many"][1]["kind"] = "3"
    with pytest.raises(reading._UnfitError, match=r"many\[1\]\.kind=3: there is no such choice"):
        reading._settings(Outer, content, "")
    del content["many"], content["source"]["posenc"]["base"]
    with pytest.raises(reading._UnfitError, match=r"source\.posenc\.base: the setting is missing"):
        reading._settings(Outer, content, "")


def test_reading_imports_nothing_heavy():
    code = (
        "import sys, lecture04.records.config_file\n"
        "bad = {'torch', 'numpy', 'pandas', 'scipy', 'wandb', 'rich'} & set(sys.modules); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
