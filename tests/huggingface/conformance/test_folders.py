"""Folders between us and transformers: each writes, the other loads, and the logits are the same."""

import json

import pytest
import torch
import transformers

from lecture04.config.errors import UserError
from lecture04.huggingface import ARCHITECTURES, folders
from lecture04.huggingface.files import read_settings
from lecture04.nn.init import build

DEEPSEEK = {
    "num_key_value_heads": 4,
    "q_lora_rank": None,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 6,
    "v_head_dim": 4,
    "first_k_dense_replace": 2,
    "rms_norm_eps": 1e-6,
}
GEMMA = {"num_key_value_heads": 1, "head_dim": 4}
NO_CAPS = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
# What `save_pretrained` is given: a model of theirs that our parts make up.
THEIRS = {
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": None},
    "qwen2": {"num_key_value_heads": 2, "tie_word_embeddings": True},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 4},
    "gemma": GEMMA,
    "gemma2": {**GEMMA, **NO_CAPS, "layer_types": ["full_attention"] * 2, "query_pre_attn_scalar": 7},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 24, "n_positions": 32},
    "gpt_neox": {
        "use_parallel_residual": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5},
    },
    "mpt": {"n_layers": 2, "max_seq_len": 32, "d_model": 16, "n_heads": 4},
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
}
SMALL = ("data.vocab_size=17", "data.max_len=32", "ffn.d_ff=24")
LLAMA = ("recipe=llama", "model.n_heads=4")
OURS = {
    "llama": LLAMA,
    "mistral": (*LLAMA, "model.tied=false"),
    "qwen2": (*LLAMA, "attention.bias=true", "attention.output_bias=false", "model.embed_scale=1"),
    "qwen3": (*LLAMA, "attention.qk_norm=true"),
    "gemma": (*LLAMA, "ffn=geglu_tanh"),
    "gemma2": (*LLAMA, "ffn=geglu", "placement=sandwich", "attention.scale=0.2"),
    "gpt2": ("recipe=gpt2",),
    "gpt_neox": ("norm=layernorm", "ffn=gelu", "posenc=rope", "posenc.width=2"),
    "mpt": ("norm=layernorm", "ffn=gelu", "posenc=alibi", "model.bias=false", "ffn.d_ff=64"),
    "deepseek_v2": (*LLAMA, "attention=mla", "norm.eps=1e-6"),
    "deepseek_v3": (*LLAMA, "attention=mla", "norm.eps=1e-6", "posenc=rope_half"),
}


def test_every_architecture_is_here():
    assert THEIRS.keys() == OURS.keys() == ARCHITECTURES.keys()


@pytest.fixture
def their_model(harness):
    """Their model of an architecture, with random parameters, float32."""

    def make(architecture):
        cls = getattr(transformers, ARCHITECTURES[architecture].class_name)
        return harness.randomised(cls(harness.their_config(architecture, **THEIRS[architecture]))).eval()

    return make


def logits_of(folder, tokens):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not any(info.values()), info  # nothing missing, nothing unexpected, nothing of another shape
    with torch.no_grad():
        return model.eval()(input_ids=tokens).logits


@pytest.mark.parametrize("architecture", OURS)
def test_a_folder_of_ours_loads_there(small, harness, figures, tmp_path, architecture):
    cfg = small(*SMALL, *OURS[architecture])
    model = harness.randomised(build(cfg))
    if architecture == "mpt":
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("norm.bias"):
                    parameter.zero_()
    their = folders.save(model, cfg, tmp_path / "hf", architecture)
    theirs = logits_of(tmp_path / "hf", harness.tokens())
    with torch.no_grad():
        off = harness.difference(model(harness.tokens()), theirs)
    figures.check(f"{their.class_name}, a folder of ours", {"logits": off}, torch.float32, "loaded by transformers")


@pytest.mark.parametrize("architecture", THEIRS)
def test_a_folder_of_theirs_loads_here(their_model, harness, figures, tmp_path, architecture):
    """In one file, and in many: of 4 kB each."""
    theirs = their_model(architecture)
    for name, most in (("one", "1GB"), ("many", "4KB")):
        theirs.save_pretrained(tmp_path / name, max_shard_size=most)
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    cfg, model = folders.load(tmp_path / "one")
    with torch.no_grad():
        off = harness.difference(model(harness.tokens()), theirs(input_ids=harness.tokens()).logits)
    title = f"{ARCHITECTURES[architecture].class_name}, a folder of theirs"
    figures.check(title, {"logits": off}, torch.float32, "written by transformers, in one file and in many")
    again, sharded = folders.load(tmp_path / "many")
    assert again == cfg
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), sharded.parameters(), strict=True))


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma", "deepseek_v3"])
def test_there_and_back_is_equal_to_the_bit(their_model, tmp_path, architecture):
    """Theirs, read, written by us, loaded by them: every parameter as it was."""
    theirs = their_model(architecture)
    if architecture == "gemma":  # a gain below 1/2 is rounded where 1 is taken off again
        with torch.no_grad():
            for name, parameter in theirs.named_parameters():
                if "norm" in name:
                    parameter.copy_((1 + parameter.clamp(min=-0.4)) - 1)
    theirs.save_pretrained(tmp_path / "hf")
    cfg, model = folders.load(tmp_path / "hf")
    folders.save(model, cfg, tmp_path / "again", architecture)
    back = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again").state_dict()
    assert back.keys() == theirs.state_dict().keys()
    assert all(torch.equal(value, back[name]) for name, value in theirs.state_dict().items())


def test_the_body_of_gpt2_alone_is_read(their_model, harness, tmp_path):
    """As GPT-2 was published: no head, and names without their first part."""
    theirs = their_model("gpt2")
    theirs.transformer.save_pretrained(tmp_path / "hf")
    _, model = folders.load(tmp_path / "hf")
    with torch.no_grad():
        assert harness.difference(model(harness.tokens()), theirs(input_ids=harness.tokens()).logits) < 1e-5


def test_bfloat16_is_read(their_model, harness, tmp_path):
    their_model("llama").bfloat16().save_pretrained(tmp_path / "hf")
    _, model = folders.load(tmp_path / "hf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float32)
    with torch.no_grad():
        assert harness.difference(model(harness.tokens()), theirs(input_ids=harness.tokens()).logits) < 1e-5


@pytest.mark.parametrize("architecture", THEIRS)
def test_a_setting_that_a_config_leaves_out_is_what_transformers_takes_it_for(harness, tmp_path, architecture):
    """Each setting in turn: what we read without it is what we read of theirs, or we refuse."""
    cls = transformers.models.auto.configuration_auto.CONFIG_MAPPING[architecture]
    full = harness.their_config(architecture, **THEIRS[architecture]).to_dict()
    assert not isinstance(outcome(full, tmp_path), str)
    n_read = 0
    for key in full:
        less = {k: v for k, v in full.items() if k != key or k == "model_type"}
        if isinstance(ours := outcome(less, tmp_path), str):
            continue
        n_read += 1
        assert ours == outcome(cls.from_dict(less).to_dict(), tmp_path), key
    assert n_read > 10


def outcome(settings, folder):
    """Our config of these settings, or why there is none."""
    (folder / "config.json").write_text(json.dumps(settings, default=str))
    try:
        return read_settings(folder)[1]
    except UserError as e:
        return str(e)


@pytest.mark.parametrize(
    ("model_type", "said"),
    [
        ("bloom", "a norm on the embeddings"),
        ("mixtral", "experts"),
        ("gptj", "attention and feed-forward layer side by side"),
        ("gemma3_text", "attention windows"),
        ("t5", "an encoder"),
        ("mamba", "a recurrent state"),
    ],
)
def test_the_part_that_is_missing_is_said(tmp_path, model_type, said):
    config = transformers.models.auto.configuration_auto.CONFIG_MAPPING[model_type]()
    config.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=f"config.json: model_type={model_type}: there is no part here for {said}"):
        folders.load(tmp_path)


@pytest.mark.parametrize(
    ("architecture", "options", "said"),
    [
        ("mistral", {"sliding_window": 8}, "sliding_window=8: there is no part"),
        ("gpt_neox", {"use_parallel_residual": True}, "use_parallel_residual=True: there is no part"),
        ("gemma2", {"attn_logit_softcapping": 50.0}, r"attn_logit_softcapping=50\.0: there is no part"),
        ("deepseek_v3", {"q_lora_rank": 8}, "q_lora_rank=8: there is no part"),
        ("deepseek_v2", {"first_k_dense_replace": 1}, "there are no experts"),
        ("llama", {"head_dim": 8}, "head_dim=8: here it is"),
    ],
)
def test_a_setting_that_no_part_follows_is_said(harness, tmp_path, architecture, options, said):
    harness.their_config(architecture, **{**THEIRS[architecture], **options}).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=said):
        folders.load(tmp_path)
