"""Sizes settle to the nearest match, and every error is said at once."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture04 import config
from lecture04.config import Attention, Data, Match, Model, Optim, registry
from lecture04.config import sizes as counts
from lecture04.config.resolve import (
    GARDEN_MAX_LEN,
    GARDEN_VOCAB,
    MISMATCH_WARNING,
    mismatch,
    settle,
    steps_per_epoch,
    training_errors,
    validate,
)
from lecture04.data import garden

CONF = Path(__file__).parents[2] / "conf"
PATH = ["placement=pre", "norm=rmsnorm", "ffn=swiglu", "posenc=rope", "attention=gqa", "model.bias=false"]


@pytest.fixture(scope="session")
def standard(compose):
    return compose()


@pytest.mark.parametrize(("n_changes", "d_ff"), list(enumerate([256, 256, 257, 171, 171, 192, 196])))
def test_the_recipe_path_settles_to_the_designs_sizes(compose, n_changes, d_ff):
    cfg = compose("recipe=transformer_2017", "ffn.match=model", *PATH[:n_changes])
    assert cfg.ffn.d_ff == d_ff
    assert abs(mismatch(cfg)) < MISMATCH_WARNING


def test_the_path_ends_at_llama(compose):
    path = compose("recipe=transformer_2017", "ffn.match=model", *PATH)
    assert compose("recipe=llama", "ffn.match=model") == path


@pytest.mark.parametrize("path", sorted((CONF / "recipe").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_recipe_sets_what_it_says(compose, path):
    recipe, cfg = yaml.safe_load(path.read_text()), compose(f"recipe={path.stem}")
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
def open_configs(draw, standard):
    """Sound configs whose d_ff is open."""
    n_heads = draw(st.sampled_from([1, 2, 4, 8]))
    n_kv_heads = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= n_heads]))
    d_model = n_heads * draw(st.integers(1, 24)) * 2
    match = draw(st.sampled_from(Match))
    model = Model(
        d_model=d_model, n_layers=draw(st.integers(1, 6)), n_heads=n_heads, bias=True, tied=draw(st.booleans())
    )
    cfg = replace(
        standard,
        model=model,
        ffn=replace(
            standard.ffn,
            name=draw(st.sampled_from(registry.names("ffn"))),
            d_ff=None,
            match=match,
            bias=draw(st.booleans()),
        ),
        norm=replace(standard.norm, name=draw(st.sampled_from(registry.names("norm")))),
        placement=replace(standard.placement, name=draw(st.sampled_from(registry.names("placement")))),
        attention=Attention(name="gqa", n_kv_heads=n_kv_heads, bias=draw(st.booleans())),
    )
    if match is Match.model and draw(st.booleans()):
        least = counts.params(replace(cfg, ffn=replace(cfg.ffn, d_ff=1)))
        model = replace(model, budget=least + draw(st.integers(0, 50 * model.d_model)))
    return replace(cfg, model=model)


def budget_and_params(cfg, d_ff):
    """What the docs of `Match` say is compared, counted here once more."""
    if cfg.ffn.match is Match.ffn:
        d, bias = cfg.model.d_model, cfg.ffn.bias
        plain = 4 * d * d + 4 * d * bias + 4 * d * d + d * bias
        return plain, counts.ffn_params(d, d_ff, gated=counts.is_gated(cfg.ffn), bias=bias)
    model = cfg.model
    whole = counts.params(replace(cfg, ffn=replace(cfg.ffn, d_ff=d_ff)))
    return model.budget or counts.standard_params(model, cfg.data.vocab_size), whole


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_no_other_d_ff_is_nearer_to_the_budget(standard, data):
    cfg = data.draw(open_configs(standard))
    d_ff = settle(cfg).ffn.d_ff

    def off(width):
        budget, params = budget_and_params(cfg, width)
        return abs(params - budget)

    assert off(d_ff) <= off(d_ff + 1)
    assert d_ff == 1 or off(d_ff) <= off(d_ff - 1)


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_the_mismatch_is_what_is_left_of_the_budget(standard, data):
    cfg = settle(data.draw(open_configs(standard)))
    budget, params = budget_and_params(cfg, cfg.ffn.d_ff)
    assert mismatch(cfg) == pytest.approx((params - budget) / budget)


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_settling_twice_changes_nothing(standard, data):
    once = settle(data.draw(open_configs(standard)))
    assert settle(once) == once


def test_settling_leaves_nothing_open_and_its_argument_alone(standard):
    before = replace(
        standard,
        ffn=replace(standard.ffn, d_ff=None),
        attention=replace(standard.attention, n_kv_heads=None),
        trainer=replace(standard.trainer, steps=None, epochs=2.0),
    )
    after = settle(before)
    assert (before.ffn.d_ff, before.attention.n_kv_heads, before.trainer.steps) == (None, None, None)
    assert (after.ffn.d_ff, after.attention.n_kv_heads, after.trainer.steps) == (256, 4, 500)
    assert after.trainer.epochs is None, "two ways to say one length would be two fingerprints of one run"


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
@settings(deadline=None)
def test_an_epoch_sees_every_document_once(standard, n_train, batch_size):
    cfg = replace(
        standard,
        data=Data(name="garden", vocab_size=9, max_len=9, n_train=n_train),
        trainer=replace(standard.trainer, batch_size=batch_size),
    )
    assert steps_per_epoch(cfg) == len(range(0, n_train, batch_size))


def changed(cfg, path, value):
    node, _, key = path.partition(".")
    return replace(cfg, **{node: replace(getattr(cfg, node), **{key: value})})


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


def test_a_sound_config_has_no_errors(standard):
    assert validate(standard) == []


@pytest.mark.parametrize(("path", "value"), TOO_SMALL)
def test_an_error_names_the_field_and_the_value(standard, path, value):
    (error,) = validate(changed(standard, path, value))
    assert error.startswith(f"{path}={value}: must be ")


def test_only_uptraining_may_have_no_steps(standard):
    (error,) = training_errors(changed(standard, "trainer.steps", 0))
    assert error.startswith("trainer.steps=0: must be at least 1")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["eval.length=512"], "eval.length=512: data=garden is tested on whole documents"),
        (["data=garden_packed", "posenc=learned", "eval.length=512"], "eval.length=512: posenc=learned has no vector"),
        (["eval.scaling.name=ntk"], "eval.scaling.name=ntk: posenc=sinusoidal rotates nothing"),
        (["posenc=rope", "posenc.width=2", "eval.scaling.name=ntk"], "eval.scaling.name=ntk: needs at least 4"),
    ],
)
def test_what_cannot_be_asked_of_the_test_is_said(compose, overrides, said):
    (error,) = training_errors(compose(*overrides))
    assert error.startswith(said)


def test_a_stretch_for_the_test_settles_to_what_the_length_asks_for(compose):
    line = ["data=garden_packed", "posenc=rope", "eval.length=512", "eval.scaling.name=linear"]
    assert (compose(*line).eval.scaling.factor, compose(*line).eval.scaling.n_original) == (8.0, 64)
    assert compose(*line, "eval.scaling.factor=4").eval.scaling.factor == 4
    assert settle(compose(*line)) == compose(*line)


@pytest.mark.parametrize("epochs", [0.0, -1.0, math.inf, math.nan])
def test_epochs_must_be_a_length(standard, epochs):
    cfg = replace(standard, trainer=replace(standard.trainer, steps=None, epochs=epochs))
    (error,) = validate(cfg)
    assert error.startswith(f"trainer.epochs={epochs}: must be ")


def test_epochs_do_not_matter_where_steps_are_set(standard):
    cfg = replace(standard, trainer=replace(standard.trainer, steps=10, epochs=None))
    assert validate(cfg) == []


def test_no_length_at_all_is_an_error(standard):
    cfg = replace(standard, trainer=replace(standard.trainer, steps=None, epochs=None))
    (error,) = validate(cfg)
    assert "trainer.steps=null" in error
    assert "trainer.epochs=null" in error


def test_heads_must_divide_the_width(standard):
    (error,) = validate(changed(standard, "model.n_heads", 5))
    assert error.startswith("model.n_heads=5: must divide model.d_model=64. Choices: 1, 2, 4, 8, 16, 32, 64.")


def test_kv_heads_must_divide_the_heads(compose):
    (error,) = validate(changed(compose("attention=gqa"), "attention.n_kv_heads", 3))
    assert error.startswith("attention.n_kv_heads=3: must divide model.n_heads=4. Choices: 1, 2, 4.")


@pytest.mark.parametrize(("name", "own"), [("mha", 4), ("mqa", 1)])
def test_kv_heads_are_a_choice_of_grouped_attention_alone(compose, name, own):
    cfg = compose(f"attention={name}")
    assert validate(changed(cfg, "attention.n_kv_heads", own)) == []
    (error,) = validate(changed(cfg, "attention.n_kv_heads", 2))
    assert error.startswith(f"attention.n_kv_heads=2: {name} has {own}")
    assert "attention=gqa" in error


@pytest.mark.parametrize("posenc", [name for (_, name), schema in config.SCHEMAS.items() if schema is config.Rope])
def test_rotated_heads_must_be_even(compose, posenc):
    cfg = changed(compose(f"posenc={posenc}"), "model.d_model", 12)
    (error,) = validate(cfg)
    assert error.startswith(f"model.n_heads=4: posenc={posenc} ")
    assert "even d_head" in error
    assert "is 3" in error
    assert validate(changed(cfg, "model.d_model", 24)) == []


@pytest.mark.parametrize("budget", [1, 5000])
def test_a_budget_that_leaves_nothing_for_the_ffn_is_an_error(standard, budget):
    cfg = changed(changed(standard, "ffn.d_ff", None), "ffn.match", Match.model)
    (error,) = validate(changed(cfg, "model.budget", budget))
    assert error.startswith("ffn.match=model: ")
    assert str(budget) in error
    assert "ffn.d_ff" in error
    assert "model.budget" in error


def test_several_errors_come_together(standard):
    cfg = standard
    wrong = [("model.n_layers", 0), ("optim.lr", -1.0), ("trainer.batch_size", 0), ("norm.eps", 0.0)]
    for path, value in wrong:
        cfg = changed(cfg, path, value)
    errors = validate(cfg)
    assert len(errors) == len(wrong)
    for path, value in wrong:
        assert any(error.startswith(f"{path}={value}: ") for error in errors)
    with pytest.raises(ValueError, match="model.n_layers=0") as caught:
        settle(cfg)
    assert str(caught.value).splitlines() == errors


def test_errors_between_fields_come_together(compose):
    cfg = changed(compose("attention=gqa", "posenc=rope"), "attention.n_kv_heads", 3)
    cfg = changed(cfg, "model.d_model", 12)
    errors = validate(cfg)
    assert len(errors) == 2
    assert any("attention.n_kv_heads=3" in error for error in errors)
    assert any("even d_head" in error for error in errors)


def test_clipping_can_be_left_out(standard):
    assert validate(changed(standard, "optim.clip", None)) == []
    assert Optim(name="adamw").clip == 1.0


def test_facts_of_the_garden_world_are_those_of_its_grammar():
    assert len(garden.VOCAB) == GARDEN_VOCAB
    assert garden.MAX_LENGTH == GARDEN_MAX_LEN


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("data.max_len=63", "data.max_len=63: must be at least 64"),
        ("data.vocab_size=50", "data.vocab_size=50: the Garden World has 92 words"),
        ("attention.causal=false", "attention.causal=false: a model that sees what it predicts"),
    ],
)
def test_what_cannot_be_trained_is_said_before_training(compose, override, said):
    (error,) = training_errors(compose(override))
    assert error.startswith(said)
    assert training_errors(compose()) == []
