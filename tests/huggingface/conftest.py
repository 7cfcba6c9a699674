"""Models of every architecture with random parameters, and the folders that they are written into."""

import os
from copy import deepcopy
from functools import cache

# Read when torch is imported: small models are fastest on one thread, and tests run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hydra
import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from lecture04.cli import train as cli
from lecture04.config.overrides import CONF
from lecture04.config.resolve import resolve
from lecture04.huggingface import folders
from lecture04.nn.init import build
from lecture04.training import start

GARDEN = ("data.vocab_size=92", "data.max_len=64")
LLAMA = ("recipe=llama", "model.tied=false", "model.embed_scale=1", "posenc=rope_half")
PLAIN = ("placement=pre", "norm=layernorm", "attention=mha", "model.embed_scale=1")
# Architecture -> overrides that its config.json says in one way alone, so that they come back as they were.
EXPRESSED = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": (*LLAMA, "attention.bias=true", "attention.output_bias=false"),
    "qwen3": (*LLAMA, "attention.qk_norm=true"),
    "gemma": ("recipe=llama", "ffn=geglu_tanh", "posenc=rope_half"),
    "gemma2": ("recipe=llama", "ffn=geglu", "placement=sandwich", "attention.scale=0.25", "posenc=rope_half"),
    "gpt2": (*PLAIN, "posenc=learned", "ffn=gelu_tanh"),
    "gpt_neox": (*PLAIN, "posenc=rope_half", "posenc.width=2", "ffn=gelu", "model.tied=false"),
    "mpt": (*PLAIN, "posenc=alibi", "ffn=gelu", "ffn.d_ff=64", "model.bias=false"),
    "deepseek_v2": (*LLAMA, "posenc=rope", "attention=mla", "attention.d_rope=6", "norm.eps=1e-6"),
    "deepseek_v3": (*LLAMA, "posenc=rope", "attention=mla", "attention.d_latent=10", "norm.eps=1e-6"),
}


SMALL = (
    *("model.d_model=16", "model.n_layers=2", "model.n_heads=4", "ffn.d_ff=24"),
    *("data.vocab_size=15", "data.max_len=16", "data.n_train=64", "trainer.batch_size=8", "trainer.steps=24"),
)


@cache
def chosen(groups):
    """The config of these choices of groups: Hydra takes its time over each."""
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra.compose("config", overrides=list(groups))


def composed(overrides):
    """The settings of a command line. Values are set after the groups, as Hydra does it, which are composed once."""
    values = [line for line in overrides if "." in line.partition("=")[0]]
    cfg = deepcopy(chosen(tuple(line for line in overrides if line not in values)))
    for line in OverridesParser.create().parse_overrides(values):
        OmegaConf.update(cfg, line.key_or_group, line.value())
    return cli.settings_of(cfg)


@cache
def run_of(overrides):
    return resolve(composed(overrides), start.finder(cli.composed)).run


@pytest.fixture(scope="session")
def compose():
    """`compose("ffn=swiglu")`: the run that these overrides come to, resolved."""
    return lambda *overrides: run_of(overrides)


@pytest.fixture(scope="session")
def small():
    """`compose` for a model of a few thousand parameters; further overrides win."""
    return lambda *overrides: run_of((*SMALL, *overrides))


@pytest.fixture(scope="session")
def expressed():
    """Architecture -> overrides."""
    return EXPRESSED


@pytest.fixture(scope="session")
def model_of(small):
    """`model_of("recipe=llama")`: a run on the Garden World, and its model with random values.

    Gains are near 1: Gemma keeps them less 1, which is exact from 1/2 on.
    """

    def make(*overrides, seed=0):
        cfg = small(*GARDEN, *overrides)
        model, g = build(cfg), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                # MPT's norms have no biases to be written as.
                if not (cfg.posenc.name == "alibi" and name.endswith("norm.bias")):
                    spread = 0.2 if parameter.ndim > 1 else 0.08
                    parameter.add_(spread * torch.randn(parameter.shape, generator=g))
        return cfg, model

    return make


@pytest.fixture
def written(model_of, tmp_path):
    """`written("gpt2")`: a folder of that architecture, with what was written into it."""

    def write(architecture, *overrides):
        cfg, model = model_of(*EXPRESSED[architecture], *overrides)
        folders.save(model, cfg, tmp_path / architecture, architecture)
        return tmp_path / architecture, cfg, model

    return write


@pytest.fixture(scope="session")
def some_tokens():
    return torch.randint(92, (2, 40), generator=torch.Generator().manual_seed(1))
