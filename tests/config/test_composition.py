"""Whatever is typed gives a request or a sentence: random overrides and sweeps against the way the CLI goes."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from omegaconf.errors import OmegaConfBaseException

from lecture04.cli import train as cli
from lecture04.config import Design, Request, Settings, Table, UserError, registry
from lecture04.config import messages as errors
from lecture04.config import overrides as arguments
from lecture04.config import sizes as counts
from lecture04.config.fields import schema_of
from lecture04.config.places import CONF
from lecture04.config.schema import PARTS
from lecture04.records.identity import identity
from lecture04.records.metrics import METRICS
from lecture04.sweep import command

CHOICES = {**arguments.groups(), "recipe": sorted(path.stem for path in (CONF / "recipe").glob("*.yaml"))}
THOROUGH = hypothesis_settings(
    max_examples=70,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def leaves(schema: type, path: str) -> set[str]:
    """Every setting below a dataclass, by its whole name."""
    found = set[str]()
    for f in fields(schema):
        kind = get_type_hints(schema)[f.name]
        found |= leaves(kind, f"{path}{f.name}.") if is_dataclass(kind) else {f"{path}{f.name}"}
    return found


OF_PARTS = [
    (f, schema_of(registry.options_of(f, name, base))) for f, base in PARTS.items() for name in registry.names(f)
]
SETTINGS = sorted(leaves(Settings, "").union(*(leaves(schema, f"{family}.") for family, schema in OF_PARTS)))

VISIBLE = st.characters(exclude_categories=("C", "Zl", "Zp"))  # no control characters, no line breaks
NUMBERS = ["0", "1", "2", "3", "4", "16", "64", "100", "-1", "0.5", "1e-3", "-0.0", "1_000", "0x10", "1000000", "1e18"]
NUMBERS += ["1" + "0" * 30, "1" + "0" * 400, "1e307"]
ODD = [
    "",
    " ",
    "null",
    "NULL",
    "true",
    "False",
    "nan",
    "inf",
    "-inf",
    "???",
    "abc",
    "cosine",
    "linear",
    "model",
    "größe",
]
ODD += ["日本", "☃", "'q'", '"q"', "'open", "a'b", "\\", "\\'", "=", "a=b", "@", "~", "*", "#", ":", "$", "%s", "{0}"]
NESTED = ["[]", "{}", "[1,2]", "[[1],[2,[3]]]", "{a:1}", "{a:{b:[c]}}", "[", "]", "{", "[}", "(", "[ffn=relu]", "a,b"]
NESTED += [
    ",",
    "1,2",
    "choice(1,2)",
    "range(1,3)",
    "range(3,1)",
    "glob(*)",
    "interval(0,1)",
    "shuffle(1,2)",
    "int(3.7)",
]
LINKS = ["${model.d_model}", "${foo}", "${ffn}", "${seed}", "${", "${}", "${oc.env:HOME}", "${oc.env:NOPE}", "${x:1}"]
LINKS += ["${run_name:}", "${model.n_heads}", "${trainer.epochs}", "${..seed}", "${hydra:job.name}"]
VALUES = st.one_of(
    *map(st.sampled_from, (NUMBERS, ODD, NESTED, LINKS)),
    st.integers(-10, 300).map(str),
    st.floats(allow_nan=False).map(str).filter(lambda text: "e+" not in text or len(text) < 8),
    st.text(VISIBLE, max_size=8),
)
GOOD_CHOICES = st.sampled_from([f"{group}={name}" for group, names in CHOICES.items() for name in names])
# Mostly what users type; a sound part and a sound size are frequent, so that requests are too.
OVERRIDES = st.one_of(
    GOOD_CHOICES,
    st.sampled_from(
        ["model.n_heads=2", "model.d_model=32", "optim.lr=1e-2", "trainer.steps=7", "seed=3", "ffn.d_ff=9"]
    ),
    st.builds("{}={}".format, st.sampled_from(SETTINGS), st.sampled_from(NUMBERS)),
    st.builds("{}={}".format, st.sampled_from(SETTINGS), VALUES),
    st.builds("{}={}".format, st.sampled_from(sorted(CHOICES)), VALUES),
    st.builds("{}{}={}".format, st.sampled_from(["+", "++", "~", "x.", "ffn@", ""]), st.sampled_from(SETTINGS), VALUES),
    st.text(VISIBLE, max_size=12).filter(lambda text: text[:1] != "-"),
)


def composed(overrides: list[str]) -> Any:
    """The settings as Hydra composes them."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return cli.settings_of(hydra_compose("config", overrides=overrides))


def requested_by(overrides: list[str]) -> Request:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return cli.resolved(hydra_compose("config", overrides=overrides))


@pytest.mark.parametrize(
    "overrides",
    [
        ("recipe=llama", "seed=3", "model.bias=false", "optim.clip=null"),
        ("posenc=rope", "posenc.scaling.name=yarn", "attention=mla", "eval.length=70"),
        ("init=uptrain", "attention=gqa", "init.source=['a=b','c=d']", "model.bias=false", "ffn.bias=true"),
        ("norm=rmsnorm", "ffn=swish", "posenc=t5", "attention=gqa", "model.bias=false", "init=gpt2", "optim=sgd"),
        ("data=garden_packed", "layout.length=32", "logger=none"),
    ],
    ids=" ".join,
)
def test_the_tests_own_composition_is_hydras(settings, overrides):
    """conftest.py sets single values by itself, to be fast."""
    assert settings(*overrides) == composed(list(overrides))


def said_or_requested(overrides: list[str]) -> Request | list[str]:
    """What `python train.py` does with its arguments before it trains: `cli.entry` and `errors.run`."""
    if bad := arguments.complaints(overrides):
        return bad
    try:
        return requested_by(overrides)
    except UserError as e:
        return str(e).split("\n")
    except (HydraException, OmegaConfBaseException) as e:
        return [errors.explain(e)]


def check_sentences(sentences: list[str]) -> None:
    assert sentences
    for sentence in sentences:
        assert sentence.strip()
        assert len(sentence.splitlines()) == 1
        assert "Traceback" not in sentence


REQUESTED, SAID = [], []


def check_outcome(overrides: list[str]) -> None:
    """A request that counts and has an identity, or sentences."""
    result = said_or_requested(overrides)
    if isinstance(result, list):
        SAID.append(overrides)
        check_sentences(result)
    else:
        REQUESTED.append(overrides)
        assert counts.params(result.run) > 0
        assert len(str(identity(result.run))) == 17


@hypothesis_settings(THOROUGH, max_examples=20)
@given(st.lists(OVERRIDES, min_size=1, max_size=3))
def test_any_overrides_give_a_request_or_sentences(overrides):
    check_outcome(overrides)


@pytest.mark.slow
@hypothesis_settings(THOROUGH, max_examples=200)
@given(st.lists(OVERRIDES, min_size=1, max_size=3))
def test_many_overrides_do(overrides):
    check_outcome(overrides)


def test_both_outcomes_were_frequent():
    """The property above means something: neither outcome is rare."""
    assert len(REQUESTED) > 3
    assert len(SAID) > 3


SOUND = st.sampled_from(["ffn=swiglu", "ffn=relu", "norm=rmsnorm", "model.n_heads=2", "recipe=llama", "posenc=rope"])
LINES = st.lists(SOUND | SOUND | SOUND | OVERRIDES, max_size=2)
METRIC = st.sampled_from(sorted(METRICS)) | st.text(VISIBLE, max_size=5)
JUDGED = st.sampled_from(["test/nll", "test/ppl", "test/excess", "val/nll"])
ROW = st.text(VISIBLE, min_size=1, max_size=6)
GOOD_ROWS = st.dictionaries(ROW, st.lists(SOUND, min_size=1, max_size=2), min_size=1, max_size=2)
SWEEPS = st.builds(
    Table,
    name=st.sampled_from(["mine", "mine", ""]),
    title=st.text(VISIBLE, max_size=8),
    design=st.sampled_from([Design.star, Design.star, *Design]),
    seeds=st.just([0, 1]) | st.just([0, 1]) | st.lists(st.integers(-1, 5), max_size=3),
    primary=JUDGED | JUDGED | JUDGED | METRIC,
    columns=st.just(["params"]) | st.just(["d_ff"]) | st.lists(METRIC, max_size=2),
    common=st.just([]) | st.just([]) | LINES,
    rows=GOOD_ROWS | GOOD_ROWS | st.dictionaries(st.text(VISIBLE, max_size=6), LINES, max_size=3),
)
SWEPT = st.sampled_from(["seed=0,1", "seed=range(0,2)", "ffn=relu,gelu", "ffn=relu,relu", "model.n_heads=2,4"])
ASKED = st.lists(SWEPT | st.builds("{}={}".format, st.sampled_from(["seed", "ffn", "optim.lr"]), VALUES), max_size=2)
PLANNED, REFUSED = [], []


@pytest.mark.slow
@hypothesis_settings(THOROUGH, max_examples=36)
@given(SWEEPS, ASKED)
def test_any_sweep_gives_a_plan_or_sentences(tmp_path, sweep, asked):
    outputs = f"paths.outputs={tmp_path}"
    try:
        if bad := arguments.complaints(asked):
            raise UserError("\n".join(bad))
        plan = command.plan(
            sweep,
            OverridesParser.create().parse_overrides(asked),
            is_group=CHOICES.__contains__,
            compose=lambda row: requested_by([*row, outputs]),
        )
    except UserError as e:
        REFUSED.append(sweep)
        check_sentences(str(e).split("\n"))
    except HydraException as e:  # of the command line itself; the rows' are in the plan's own words
        check_sentences([errors.explain(e)])
    else:
        PLANNED.append(plan)
        assert all(job.record.folder.name.endswith(str(identity(job.request.run))) for job in plan.jobs)
        assert len({(job.row, job.seed) for job in plan.jobs}) == len(plan.jobs) == len(plan.rows) * len(plan.seeds) > 0
        assert not list(Path(tmp_path).iterdir())


@pytest.mark.slow
def test_plans_and_refusals_were_frequent():
    assert len(PLANNED) > 3
    assert len(REFUSED) > 10
