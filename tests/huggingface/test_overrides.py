"""What a folder's parts are called on a command line: composed, they are those parts again."""

from dataclasses import asdict

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from lecture04.config.typed import plain
from lecture04.huggingface import ARCHITECTURES, files
from lecture04.huggingface.overrides import overrides, uptraining

OTHERS = {
    "scaled": ("llama", "posenc.scaling.name=yarn", "posenc.scaling.factor=4", "posenc.scaling.n_original=8"),
    "llama3": ("llama", "posenc.scaling.name=llama3", "posenc.scaling.factor=8", "posenc.scaling.beta_fast=5"),
    "biases": ("llama", "model.bias=true", "posenc.base=500", "attention=mqa"),
    "larger": ("llama", "model.d_model=24", "model.n_layers=3", "model.n_heads=6", "attention.n_kv_heads=3"),
}


def alike(one, other):
    """Whether two attentions differ in name alone: gqa of all heads is mha."""
    return asdict(one) | {"name": ""} == asdict(other) | {"name": ""}


@pytest.mark.parametrize("case", [*ARCHITECTURES, *OTHERS])
def test_they_come_to_the_parts_of_the_folder(written, compose, case):
    folder, *_ = written(*OTHERS.get(case, (case,)))
    _, read = files.read_settings(folder)
    composed = compose(*overrides(read))
    for family in ("model", "ffn", "norm", "placement", "posenc"):
        assert getattr(composed, family) == getattr(read, family)
    assert alike(composed.attention, read.attention)


def test_what_a_part_has_by_itself_is_not_typed(written):
    folder, *_ = written("gpt2")
    typed = overrides(files.read_settings(folder)[1])
    assert typed == [
        *("model.d_model=16", "model.embed_scale=1.0", "ffn=gelu_tanh", "ffn.d_ff=24"),
        *("norm=layernorm", "placement=pre", "attention=mha", "posenc=learned", "posenc.n_positions=64"),
    ]


@pytest.mark.parametrize(
    ("architecture", "own", "merged"),
    [
        ("gpt2", (), ["attention=gqa", "attention.n_kv_heads=2"]),
        ("llama", (), ["attention=mqa"]),
        ("llama", ("attention=mqa",), ["attention=mqa"]),
        ("llama", ("model.d_model=24", "model.n_heads=6", "attention.n_kv_heads=3"), ["attention=mqa"]),
        (
            "llama",
            ("model.d_model=36", "model.n_heads=9", "attention=mha"),
            ["attention=gqa", "attention.n_kv_heads=3"],
        ),
    ],
)
def test_uptraining_merges_half_the_heads(written, architecture, own, merged):
    folder, *_ = written(architecture, *own)
    line = uptraining(files.read_settings(folder)[1], "hf")
    assert [item for item in line if item.startswith(("attention=", "attention.n_kv"))] == merged
    assert line[-2:] == ["init=uptrain", "init.folder=hf"]


def test_what_cannot_be_uptrained_is_said(written):
    folder, *_ = written("deepseek_v2")
    assert "a latent has none" in uptraining(files.read_settings(folder)[1], "hf")
    folder, *_ = written("llama", "data.vocab_size=93")
    assert "no data here of 93 words" in uptraining(files.read_settings(folder)[1], "hf")


@pytest.mark.parametrize("text", ["hf", "out/hf-2_b", "./hf", "../hf", "/tmp/x.y"])
def test_usual_paths_need_no_quotes(text):
    assert plain(text) == text


@given(
    st.text(st.sampled_from("ab1.$${}{}\\\\\\''\" \n\t=,#~[]():%-_/ü日😀"), min_size=1, max_size=9)
    | st.text(min_size=1)
)
@hypothesis_settings(deadline=None, max_examples=40)
def test_a_quoted_text_is_read_back_by_hydra_and_omegaconf(text):
    override = OverridesParser.create().parse_override(f"init.folder={plain(text)}")
    assert not override.is_sweep_override()
    cfg = OmegaConf.create({"init": {"folder": ""}})
    OmegaConf.update(cfg, "init.folder", override.value())
    assert cfg.init.folder == text


@pytest.mark.parametrize("text", ["null", "1e3", ".5", "007", "True", "nan", "${x}", "\\${x}", "a\\", "it's", "a=b, c"])
def test_words_that_hydra_reads_as_something_else(text):
    test_a_quoted_text_is_read_back_by_hydra_and_omegaconf.hypothesis.inner_test(text)
