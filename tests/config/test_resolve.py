"""Open sizes resolve to the nearest match, and every error is said at once."""

import math
from copy import deepcopy
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lecture04 import config
from lecture04.config import Attention, Match, UserError, asked, registry
from lecture04.config import sizes as counts
from lecture04.config.resolve import MISMATCH_WARNING, architecture, resolve, resolve_for_training
from lecture04.config.schema import PARTS
from lecture04.data.garden import garden, garden1
from lecture04.data.garden.words import MAX_LENGTH

CONF = Path(__file__).parents[2] / "conf"
PATH = ["placement=pre", "norm=rmsnorm", "ffn=swiglu", "posenc=rope", "attention=gqa", "model.bias=false"]


@pytest.fixture(scope="session")
def standard(settings):
    return settings()


def errors(asked, check=resolve):
    """What is said of settings, a sentence each; nothing where they are sound."""
    try:
        check(asked)
    except UserError as e:
        return str(e).splitlines()
    return []


@pytest.mark.parametrize(("n_changes", "d_ff"), list(enumerate([256, 256, 257, 171, 171, 192, 196])))
def test_the_recipe_path_has_the_designs_sizes(requested, n_changes, d_ff):
    request = requested("recipe=transformer_2017", "ffn.match=model", *PATH[:n_changes])
    assert request.run.ffn.d_ff == d_ff
    assert abs(request.mismatch) < MISMATCH_WARNING


def test_the_path_ends_at_llama(compose):
    path = compose("recipe=transformer_2017", "ffn.match=model", *PATH)
    assert compose("recipe=llama", "ffn.match=model") == path


@pytest.mark.parametrize("path", sorted((CONF / "recipe").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_recipe_sets_what_it_says(settings, path):
    recipe, cfg = yaml.safe_load(path.read_text()), settings(f"recipe={path.stem}")
    for choice in recipe.pop("defaults"):
        ((group, name),) = choice.items()
        assert getattr(cfg, group.removeprefix("override /")).name == name
    for node, settings_ in recipe.items():
        for key, value in settings_.items():
            assert getattr(getattr(cfg, node), key) == value, f"{node}.{key}"


@pytest.mark.parametrize("bias", [True, False])
def test_biases_follow_the_models(compose, bias):
    cfg = compose(f"model.bias={str(bias).lower()}")
    assert (cfg.ffn.bias, cfg.attention.bias) == (bias, bias)
    assert compose(f"model.bias={str(bias).lower()}", "ffn.bias=true").ffn.bias is True


@st.composite
def open_settings(draw, standard):
    """Sound settings whose d_ff is open."""
    found = deepcopy(standard)
    n_heads = draw(st.sampled_from([1, 2, 4, 8]))
    n_kv_heads = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= n_heads]))
    found.model.d_model = n_heads * draw(st.integers(1, 24)) * 2
    found.model.n_layers, found.model.n_heads = draw(st.integers(1, 6)), n_heads
    found.model.bias, found.model.tied = True, draw(st.booleans())
    ffn, match = draw(st.sampled_from(registry.names("ffn"))), draw(st.sampled_from(Match))
    found.ffn = asked(registry.options_of("ffn", ffn, config.FFN), name=ffn, match=match, bias=draw(st.booleans()))
    found.norm.name = draw(st.sampled_from(registry.names("norm")))
    found.placement.name = draw(st.sampled_from(registry.names("placement")))
    found.attention = asked(Attention, name="gqa", n_kv_heads=n_kv_heads, bias=draw(st.booleans()))
    if match is Match.model and draw(st.booleans()):
        least = counts.params(architecture(found, vocab_size=92, n_ctx=64, d_ff=1))
        found.model.budget = least + draw(st.integers(0, 50 * found.model.d_model))
    return found


def budget_and_params(found, d_ff):
    """What the docs of `Match` say is compared, counted here once more."""
    c = architecture(found, vocab_size=92, n_ctx=64, d_ff=d_ff)
    if found.ffn.match is Match.ffn:
        d, bias = c.model.d_model, c.ffn.bias
        plain = 4 * d * d + 4 * d * bias + 4 * d * d + d * bias
        return plain, c.ffn.params(c)
    return found.model.budget or counts.standard_params(c.model, c.vocab_size), counts.params(c)


@given(data=st.data())
@hypothesis_settings(max_examples=150, deadline=None)
def test_no_other_d_ff_is_nearer_to_the_budget(standard, data):
    found = data.draw(open_settings(standard))
    d_ff = resolve(found).run.ffn.d_ff

    def off(width):
        budget, params = budget_and_params(found, width)
        return abs(params - budget)

    assert off(d_ff) <= off(d_ff + 1)
    assert d_ff == 1 or off(d_ff) <= off(d_ff - 1)


@given(data=st.data())
@hypothesis_settings(max_examples=50, deadline=None)
def test_the_mismatch_is_what_is_left_of_the_budget(standard, data):
    found = data.draw(open_settings(standard))
    request = resolve(found)
    budget, params = budget_and_params(found, request.run.ffn.d_ff)
    assert request.mismatch == pytest.approx((params - budget) / budget)


def test_resolving_leaves_its_argument_alone(standard):
    found = deepcopy(standard)
    found.trainer.epochs = 2.0
    before = deepcopy(found)
    after = resolve(found).run
    assert found == before
    assert (found.ffn.d_ff, found.attention.n_kv_heads, found.trainer.steps) == (None, None, None)
    assert (after.ffn.d_ff, after.attention.n_kv_heads, after.trainer.steps) == (256, 4, 500)
    assert resolve(found).run == after


def test_two_ways_to_say_one_length_are_one_run(compose):
    assert (
        compose("trainer.epochs=2") == compose("trainer.steps=500") == compose("trainer.steps=500", "trainer.epochs=1")
    )


def nulls(value, path=""):
    """Every setting below a resolved config that is null, by its whole name."""
    if is_dataclass(value):
        return {name for f in fields(value) for name in nulls(getattr(value, f.name), f"{path}.{f.name}")}
    return {path} if value is None else set()


EVERY_CHOICE = [f"{family}={name}" for family in PARTS for name in registry.names(family)]


@pytest.mark.parametrize("override", EVERY_CHOICE)
def test_nothing_is_open_in_what_is_resolved(requested, override, text_lines):
    """But where null is a value: nothing is clipped, the test has the blocks of training, all of the training split is
    measured, no source was looked for."""
    request = requested(override, "optim.clip=null", *(text_lines if override == "data=text" else ()))
    may_be = {".run.optim.clip", ".evaluation.length", ".evaluation.train_tokens", ".run.init.start"}
    may_be |= {".session.checkpoint_every"}  # by the clock
    assert ".run.optim.clip" in nulls(request) <= may_be
    for family in PARTS:
        part = getattr(request.run, family, request.session.logger)
        assert type(part) is registry.options_of(family, part.name, PARTS[family])


@pytest.mark.parametrize(
    ("override", "path", "expected"),
    [
        ("model.d_model=36", "model.embed_scale", 6.0),
        ("attention=mha", "attention.n_kv_heads", 4),
        ("attention=mqa", "attention.n_kv_heads", 1),
        ("model.d_model=36", "attention.scale", 1 / 3),
        ("attention=mla", "attention.scale", 24**-0.5),
        ("attention.bias=false", "attention.output_bias", False),
        ("data.max_len=80", "layout.length", 80),
        ("posenc=learned", "posenc.n_positions", 64),
        ("posenc=rope", "posenc.width", 16),
    ],
)
def test_null_stands_for_its_function(compose, override, path, expected):
    node, _, key = path.partition(".")
    assert getattr(getattr(compose(override), node), key) == pytest.approx(expected)


def test_rope_in_latent_attention_rotates_the_part_that_is_apart_for_it(compose):
    assert compose("posenc=rope", "attention=mla").posenc.width == 8
    assert compose("posenc=learned", "layout=stream", "layout.length=100").posenc.n_positions == 100


def test_what_is_resolved_cannot_be_assigned_to(requested):
    request = requested()
    run, session = request.run, request.session
    for node in (
        request,
        run,
        run.model,
        run.ffn,
        run.trainer,
        run.layout,
        request.evaluation,
        session,
        session.origin,
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(node, fields(node)[0].name, None)


def test_a_set_d_ff_is_left_as_it_is(compose):
    cfg = compose("ffn=swiglu", "ffn.d_ff=171", "ffn.match=model")
    assert cfg.ffn.d_ff == 171


def test_match_model_comes_near_a_given_budget(compose):
    cfg = compose("ffn=swiglu", "ffn.match=model", "model.budget=150000")
    one_unit = 3 * 64 * cfg.model.n_layers
    assert abs(counts.params(cfg) - 150_000) <= one_unit
    assert counts.params(cfg) != counts.params(compose("ffn=swiglu", "ffn.match=model"))


def test_the_budget_is_for_match_model_alone(compose):
    assert compose("ffn=swiglu", "model.budget=150000").ffn.d_ff == compose("ffn=swiglu").ffn.d_ff


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        (["trainer.epochs=6"], 1500),
        (["trainer.epochs=0.5"], 125),
        (["trainer.epochs=1", "data.n_train=33", "trainer.batch_size=8"], 5),
        (["trainer.epochs=1e-6"], 1),
        (["trainer.steps=7"], 7),
        (["trainer.steps=7", "trainer.epochs=null"], 7),
    ],
)
def test_steps_follow_from_epochs_unless_set(compose, overrides, steps):
    assert compose(*overrides).trainer.steps == steps


@given(n_train=st.integers(1, 500), batch_size=st.integers(1, 64))
@hypothesis_settings(deadline=None)
def test_an_epoch_sees_every_document_once(n_train, batch_size):
    facts = config.Garden(name="garden", n_train=n_train).facts()
    layout = config.Layout(name="documents", length=9)
    assert layout.steps_per_epoch(facts, batch_size) == len(range(0, n_train, batch_size))


def changed(asked, path, value):
    """The same settings but for one."""
    asked, (node, _, key) = deepcopy(asked), path.partition(".")
    setattr(getattr(asked, node), key, value)
    return asked


TOO_SMALL = [
    ("model.d_model", 0),
    ("model.n_layers", 0),
    ("model.n_heads", -1),
    ("model.budget", 0),
    ("ffn.d_ff", 0),
    ("attention.n_kv_heads", 0),
    ("trainer.steps", -1),
    ("trainer.batch_size", 0),
    ("trainer.threads", 0),
    ("trainer.log_every", 0),
    ("optim.warmup_steps", -1),
    ("eval.window", -1),
    ("data.n_train", 0),
    ("optim.lr", 0.0),
    ("optim.lr", math.nan),
    ("optim.lr", math.inf),
    ("optim.clip", 0.0),
    ("optim.clip", -1.0),
    ("norm.eps", 0.0),
]


def test_sound_settings_have_no_errors(standard):
    assert errors(standard) == []


@pytest.mark.parametrize(("path", "value"), TOO_SMALL)
def test_an_error_names_the_field_and_the_value(standard, path, value):
    (error,) = errors(changed(standard, path, value))
    assert error.startswith(f"{path}={value}: must be ")


def test_only_uptraining_may_have_no_steps(standard):
    assert errors(changed(standard, "trainer.steps", 0)) == []
    (error,) = errors(changed(standard, "trainer.steps", 0), resolve_for_training)
    assert error.startswith("trainer.steps=0: must be at least 1")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["eval.length=512"], "eval.length=512: layout=documents tests whole documents; see layout=stream."),
        (["data=garden_packed", "posenc=learned", "eval.length=512"], "eval.length=512: posenc=learned has no vector"),
        (["eval.scaling.name=ntk"], "eval.scaling.name=ntk: posenc=sinusoidal rotates nothing"),
        (["posenc=rope", "posenc.width=2", "eval.scaling.name=ntk"], "eval.scaling.name=ntk: needs at least 4"),
    ],
)
def test_what_cannot_be_asked_of_the_test_is_said(settings, overrides, said):
    (error,) = errors(settings(*overrides), resolve_for_training)
    assert error.startswith(said)


def test_a_scaling_for_the_test_is_what_the_length_asks_for(requested):
    line = ["data=garden_packed", "posenc=rope", "eval.length=512", "eval.scaling.name=linear"]
    scaling = requested(*line).evaluation.scaling
    assert (scaling.factor, scaling.n_original, scaling.beta_fast) == (8.0, 64, 32.0)
    assert requested(*line, "eval.scaling.factor=4").evaluation.scaling.factor == 4
    assert requested(*line).run == requested(*line[:2]).run, "no part of the run"


@pytest.mark.parametrize("epochs", [0.0, -1.0, math.inf, math.nan])
def test_epochs_must_be_a_length(standard, epochs):
    (error,) = errors(changed(standard, "trainer.epochs", epochs))
    assert error.startswith(f"trainer.epochs={epochs}: must be ")


def test_epochs_do_not_matter_where_steps_are_set(standard):
    assert errors(changed(changed(standard, "trainer.steps", 10), "trainer.epochs", None)) == []


def test_no_length_at_all_is_an_error(standard):
    (error,) = errors(changed(standard, "trainer.epochs", None))
    assert "trainer.steps=null" in error
    assert "trainer.epochs=null" in error


def test_heads_must_divide_the_width(standard):
    (error,) = errors(changed(standard, "model.n_heads", 5))
    assert error.startswith("model.n_heads=5: must divide model.d_model=64. Choices: 1, 2, 4, 8, 16, 32, 64.")


def test_kv_heads_must_divide_the_heads(settings):
    (error,) = errors(changed(settings("attention=gqa"), "attention.n_kv_heads", 3))
    assert error.startswith("attention.n_kv_heads=3: must divide model.n_heads=4. Choices: 1, 2, 4.")


@pytest.mark.parametrize(("name", "own"), [("mha", 4), ("mqa", 1)])
def test_kv_heads_are_a_choice_of_grouped_attention_alone(settings, name, own):
    cfg = settings(f"attention={name}")
    assert errors(changed(cfg, "attention.n_kv_heads", own)) == []
    (error,) = errors(changed(cfg, "attention.n_kv_heads", 2))
    assert error.startswith(f"attention.n_kv_heads=2: {name} has {own}")
    assert "attention=gqa" in error


ROTATING = [n for n in registry.names("posenc") if registry.options_of("posenc", n, config.PosEnc) is config.Rope]


@pytest.mark.parametrize("posenc", ROTATING)
def test_rotated_heads_must_be_even(settings, posenc):
    cfg = changed(settings(f"posenc={posenc}"), "model.d_model", 12)
    (error,) = errors(cfg)
    assert error.startswith(f"model.n_heads=4: posenc={posenc} ")
    assert "even d_head" in error
    assert "is 3" in error
    assert errors(changed(cfg, "model.d_model", 24)) == []


@pytest.mark.parametrize("budget", [1, 5000])
def test_a_budget_that_leaves_nothing_for_the_ffn_is_an_error(standard, budget):
    cfg = changed(changed(standard, "ffn.d_ff", None), "ffn.match", Match.model)
    (error,) = errors(changed(cfg, "model.budget", budget))
    assert error.startswith("ffn.match=model: ")
    assert str(budget) in error
    assert "ffn.d_ff" in error
    assert "model.budget" in error


def test_several_errors_come_together(standard):
    cfg = standard
    wrong = [("model.n_layers", 0), ("optim.lr", -1.0), ("trainer.batch_size", 0), ("norm.eps", 0.0)]
    for path, value in wrong:
        cfg = changed(cfg, path, value)
    said = errors(cfg)
    assert len(said) == len(wrong)
    for path, value in wrong:
        assert any(error.startswith(f"{path}={value}: ") for error in said)


def test_errors_between_fields_come_together(settings):
    cfg = changed(settings("attention=gqa", "posenc=rope"), "attention.n_kv_heads", 3)
    cfg = changed(cfg, "model.d_model", 12)
    said = errors(cfg)
    assert len(said) == 2
    assert any("attention.n_kv_heads=3" in error for error in said)
    assert any("even d_head" in error for error in said)


def test_clipping_can_be_left_out(standard):
    assert errors(changed(standard, "optim.clip", None)) == []
    assert config.Optim(name="adamw").clip == 1.0


def test_facts_of_the_garden_world_are_those_of_its_grammar():
    assert len(garden.WORDS) == len(garden1.WORDS) == config.Garden.VOCAB_SIZE
    assert MAX_LENGTH == config.Garden.MAX_LEN


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("data.max_len=63", "data.max_len=63: must be at least 64"),
        ("layout.length=63", "layout.length=63: must be at least 64"),
        ("data.vocab_size=50", "data.vocab_size=50: the Garden World has 92 words"),
        ("attention.causal=false", "attention.causal=false: a model that sees what it predicts"),
    ],
)
def test_what_cannot_be_trained_is_said_before_training(settings, override, said):
    (error,) = errors(settings(override), resolve_for_training)
    assert error.startswith(said)
    assert errors(settings(), resolve_for_training) == []
