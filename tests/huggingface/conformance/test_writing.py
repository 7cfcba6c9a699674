"""Models of ours written as theirs: config and parameters build a model of transformers that is the same function."""

from dataclasses import replace

import pytest
import torch
import transformers

from lecture04.huggingface import ARCHITECTURES, read_state, write_state
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel

SMALL = ("data.vocab_size=17", "data.max_len=32", "ffn.d_ff=24")
LLAMA = ("recipe=llama", "model.n_heads=4")
GEMMA = (*LLAMA, "ffn=geglu_tanh", "norm.eps=1e-6")
NEOX = ("placement=pre", "norm=layernorm", "attention=mha", "ffn=gelu", "model.bias=true", "model.tied=false")
DEEPSEEK = ("recipe=llama", "attention=mla", "attention.d_rope=6", "norm.eps=1e-6")
YARN = ("posenc.scaling.name=yarn", "posenc.scaling.factor=4", "posenc.scaling.n_original=8")
LLAMA3 = ("posenc.scaling.name=llama3", *YARN[1:])
CASES = [
    ("llama", LLAMA),
    ("llama", (*LLAMA, "posenc=rope_half", "model.tied=false")),
    ("llama", (*LLAMA, "model.embed_scale=1")),
    ("llama", (*LLAMA, "model.bias=true", "attention=mha", "posenc.base=500")),
    ("llama", (*LLAMA, *YARN)),
    ("llama", (*LLAMA, *LLAMA3)),
    ("llama", (*LLAMA, "posenc.scaling.name=linear", "posenc.scaling.factor=3")),
    ("llama", (*LLAMA, "posenc.scaling.name=ntk", "posenc.scaling.factor=3")),
    ("llama", (*LLAMA, "posenc.scaling.name=dynamic", "posenc.scaling.factor=3", "data.max_len=16")),
    ("mistral", LLAMA),
    ("qwen2", (*LLAMA, "attention.bias=true", "attention.output_bias=false")),
    ("qwen3", (*LLAMA, "attention.qk_norm=true")),
    ("gemma", GEMMA),
    ("gemma", (*GEMMA, "model.embed_scale=1")),
    ("gemma2", (*GEMMA, "placement=sandwich", "ffn=geglu", "attention.scale=0.2")),
    ("gpt2", ("recipe=gpt2",)),
    ("gpt2", ("recipe=gpt2", "model.embed_scale=1", "ffn=relu")),
    ("gpt_neox", (*NEOX, "posenc=rope", "posenc.width=2")),
    ("gpt_neox", (*NEOX, "posenc=rope_half", "ffn=silu")),
    ("mpt", ("placement=pre", "norm=layernorm", "ffn=gelu", "posenc=alibi", "model.bias=false", "ffn.d_ff=64")),
    ("deepseek_v2", DEEPSEEK),
    ("deepseek_v3", (*DEEPSEEK, "posenc=rope_half")),
    ("deepseek_v3", (*DEEPSEEK, *YARN)),
    ("deepseek_v2", (*DEEPSEEK, *YARN, "posenc.scaling.on_scores=true", "posenc.scaling.temperature=0.07")),
]


@pytest.fixture(params=CASES, ids=lambda case: " ".join([case[0], *case[1]]))
def case(request, small, harness):
    """Their architecture, our run, and our model with random parameters."""
    model_type, overrides = request.param
    cfg = small(*SMALL, *overrides)
    model = harness.randomised(build(cfg).double())
    if model_type == "mpt":
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("norm.bias"):
                    parameter.zero_()
    return ARCHITECTURES[model_type], cfg, model


def built(their, cfg, model, harness):
    """Theirs, from what was written."""
    settings = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    their_config = transformers.AutoConfig.for_model(their.model_type, **their.write_config(cfg), **settings)
    their_config._attn_implementation = "eager"
    cls = getattr(transformers, their.class_name)
    with harness.float32_is(torch.float64):
        theirs = cls(their_config).double().eval()
    result = theirs.load_state_dict(write_state(their.table, model.state_dict(), cfg), strict=False)
    assert not result.unexpected_keys
    assert set(result.missing_keys) <= ({"lm_head.weight"} if their_config.tie_word_embeddings else set())
    theirs.tie_weights()
    return theirs


def test_what_is_written_is_the_same_function(case, harness):
    their, cfg, model = case
    theirs = built(their, cfg, model, harness)
    with torch.no_grad(), harness.float32_is(torch.float64):
        other = theirs(input_ids=harness.tokens()).logits
    assert harness.difference(model(harness.tokens()), other) < 1e-10


def test_what_is_written_is_read_back(case, harness):
    """The function is the same, and so are config and parameters where theirs says it in one way alone."""
    their, cfg, model = case
    theirs = built(their, cfg, model, harness)
    read = their.read(theirs.config.to_dict())
    state = read_state(their.table, dict(theirs.named_parameters()), read)
    again = LanguageModel(read).double()
    again.load_state_dict(state)
    with torch.no_grad():
        assert harness.difference(again(harness.tokens()), model(harness.tokens())) < 1e-10
    written = their.write_config(read)
    kept = replace(read, model=replace(read.model, tied=cfg.model.tied))
    assert their.write_config(kept) | {"tie_word_embeddings": 0} == their.write_config(cfg) | {"tie_word_embeddings": 0}
    assert written.keys() == their.write_config(cfg).keys()
    if read.posenc == cfg.posenc and read.model == cfg.model:
        assert all(torch.equal(state[name], p) for name, p in model.state_dict().items())
