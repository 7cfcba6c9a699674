"""A run's config read back from its folder is what was written, for every choice there is."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lecture04 import config
from lecture04.cli import train as cli
from lecture04.config import AdamW, Request, Rope, Run, Schedule, UserError, registry
from lecture04.config.places import CONF
from lecture04.config.schema import ARCHITECTURE, PARTS
from lecture04.records import config_file
from lecture04.records.config_file import read_config, read_run, written
from lecture04.records.identity import evaluation_key, identified, identity, plain
from lecture04.records.record import Record

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
    "eval.window=2",
)


@cache
def _asked(overrides: tuple[str, ...]) -> Request:
    return cli.resolved_settings(cli.composed(list(overrides)))


@pytest.fixture(scope="module")
def asked() -> Callable[..., Request]:
    """`asked("ffn=swiglu")`: what the command line comes to, with the run that it starts from."""
    return lambda *overrides: _asked(overrides)


def keep(request: Request, folder: Path) -> dict[str, Any]:
    """What the run's file says."""
    folder.mkdir(exist_ok=True)
    Record(folder).start(request.run, request.evaluation, "python train.py")
    return yaml.safe_load((folder / "config.yaml").read_text())


def hold_a_round_trip(request: Request, folder: Path) -> None:
    content = keep(request, folder)
    run, evaluation = read_config(folder)
    assert (run, evaluation) == (request.run, request.evaluation)
    assert read_run(folder) == run
    assert written(run, evaluation) == content
    assert identity(run) == identity(request.run)
    assert evaluation_key(run, evaluation) == evaluation_key(request.run, request.evaluation)
    for family in PARTS.keys() - {"logger"}:
        assert type(getattr(run, family)) is type(getattr(request.run, family))


@pytest.fixture
def alter(asked, tmp_path):
    """`alter(lambda content: ...)`: a run's folder whose config.yaml was changed by hand."""

    def alter(change, *overrides):
        content = keep(asked(*overrides), tmp_path)
        change(content)
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
        return tmp_path

    return alter


def test_the_choices_are_found():
    assert {"ffn=swiglu", "posenc=rope", "recipe=llama", "model=six_layers", "logger=wandb"} < set(CHOICES)


@pytest.mark.parametrize("override", [*CHOICES, *OTHERS])
def test_a_round_trip_changes_nothing(asked, tmp_path, override, text_lines):
    more = text_lines if override == "data=text" else NEEDED.get(override, ())
    hold_a_round_trip(asked(override, *more), tmp_path)


ANY_OF = {family: st.sampled_from(registry.names(family)) for family in (*ARCHITECTURE, "optim", "layout")}
HELD: list[bool] = []
VALUES = st.lists(
    st.sampled_from(
        [
            "model.n_heads=2",
            "model.bias=false",
            "model.embed_scale=1",
            "ffn.match=model",
            "ffn.d_ff=37",
            "trainer.steps=3",
            "optim.clip=null",
            "optim.schedule=constant",
            "eval.window=7",
            "eval.n_docs=3",
            "data.world_seed=2",
            "seed=5",
        ]
    ),
    unique=True,
    max_size=5,
)


@given(choices=st.fixed_dictionaries({}, optional=ANY_OF), values=VALUES, uptrain=st.booleans())
@hypothesis_settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_round_trip_of_any_config_changes_nothing(settings, tmp_path, choices, values, uptrain):
    """Also of one that starts from a run of the same parts with twice as many key and value heads."""
    lines = [*(f"{family}={name}" for family, name in choices.items()), *values]
    try:
        if uptrain:
            kept = [line for line in lines if not line.startswith(("attention", "layout", "eval", "data", "seed"))]
            found = settings(*lines, "init=uptrain")
            found.attention = settings("attention=mqa", *values).attention
            found.init.source = [*kept, "attention=gqa"]
            request = cli.resolve_for_training(found, cli.start.finder(lambda lines: settings(*lines)))
            assert isinstance(request.run.init.start, Run)
        else:
            request = cli.resolve_for_training(settings(*lines))
    except UserError:
        return
    hold_a_round_trip(request, tmp_path)
    HELD.append(uptrain)


def test_runs_that_start_anew_and_from_another_were_frequent():
    assert min(HELD.count(True), HELD.count(False)) > 5


def test_parts_have_dataclasses_of_their_own_and_enums_are_members(asked, tmp_path):
    keep(asked("posenc=rope", "ffn=swish"), tmp_path)
    back = read_run(tmp_path)
    assert type(back.posenc) is Rope
    assert type(back.ffn) is config.Swish
    assert type(back.optim) is AdamW
    assert back.optim.schedule is Schedule.cosine


@pytest.mark.parametrize(("name", "beta"), [("yarn", 32.0), ("llama3", 4.0)])
def test_the_betas_left_open_are_recorded_and_belong_to_the_identity(asked, tmp_path, name, beta):
    line = ("posenc=rope", f"posenc.scaling.name={name}", "posenc.scaling.factor=2")
    request = asked(*line)
    assert keep(request, tmp_path)["posenc"]["scaling"]["beta_fast"] == beta
    assert identified(request.run)["posenc"]["scaling"]["beta_fast"] == beta
    assert identity(asked(*line, f"posenc.scaling.beta_fast={beta}").run) == identity(request.run)
    assert identity(asked(*line, "posenc.scaling.beta_fast=8").run) != identity(request.run)


def test_the_run_that_another_starts_from_is_a_config_too(asked, tmp_path):
    request = asked("init=uptrain", "attention=mqa", "init.source=['attention=gqa','optim.lr=1e-3']")
    content = keep(request, tmp_path)
    back = read_run(tmp_path)
    assert isinstance(back.init, config.Uptrain)
    assert isinstance(back.init.start, Run)
    assert back.init.start.attention.n_kv_heads == 2
    assert type(back.init.start.optim) is AdamW
    assert back.init.start == request.run.init.start
    del content["init"]["start"]["optim"]["eps"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"init\.start\.optim\.eps: the setting is missing\."):
        read_config(tmp_path)


def test_the_session_is_no_part_of_it(asked, tmp_path):
    request = asked("paths.outputs=elsewhere", "runs.reuse=config", "logger=none", "trainer.log_every=3")
    content = keep(request, tmp_path)
    assert content.keys() == {f.name for f in config_file.fields(Run)} | {"eval"}
    assert content["trainer"].keys() == {"steps", "batch_size", "threads", "diverged_margin"}
    assert identity(request.run) == identity(asked().run)


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
        (
            lambda c: c["optim"].update(schedule="step"),
            r"optim\.schedule=step: there is no such choice\. Choices: constant",
        ),
        (lambda c: c.pop("eval"), r"eval: the setting is missing\."),
        (lambda c: c["eval"].pop("window"), r"eval\.window: the setting is missing\."),
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
    back = read_run(alter(lambda c: c["optim"].update(clip=2)))
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
    source: Run | None = None
    free: Any = None
    either: int | str = 0
    many: list[Inner] = field(default_factory=list)
    named: tuple[int, ...] = ()


def test_nested_settings_of_any_depth(asked):
    """What config.py may yet hold: settings inside settings, lists of them, and a whole config inside one."""
    content = {
        "inner": {"kind": "two", "factor": 2},
        "maybe": {"kind": "one", "factor": 0.5},
        "source": plain(asked("posenc=rope").run),
        "free": {"a": [1, None]},
        "either": "x",
        "many": [{"kind": "one", "factor": 1.0}, {"kind": "two", "factor": 3.0}],
        "named": [1, 2],
    }
    assert config_file._settings(Outer, content, "") == Outer(
        Inner(Kind.two, 2.0),
        Inner(Kind.one, 0.5),
        asked("posenc=rope").run,
        {"a": [1, None]},
        "x",
        [Inner(), Inner(Kind.two, 3.0)],
        (1, 2),
    )
    content["many"][1]["kind"] = "3"
    with pytest.raises(config_file._UnfitError, match=r"many\[1\]\.kind=3: there is no such choice"):
        config_file._settings(Outer, content, "")
    content["many"] = []
    del content["source"]["posenc"]["base"]
    with pytest.raises(config_file._UnfitError, match=r"source\.posenc\.base: the setting is missing"):
        config_file._settings(Outer, content, "")


def test_reading_imports_nothing_heavy():
    code = (
        "import sys, lecture04.records.config_file\n"
        "bad = {'torch', 'numpy', 'pandas', 'scipy', 'wandb', 'rich'} & set(sys.modules); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
