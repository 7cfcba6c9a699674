"""Random config.json files of theirs: our logits are theirs, or the file is refused by the setting's name.

Every field that a config class of the installed transformers has is varied, those of its rotary settings and of MPT's
attention too. A failure prints the config.
"""

import json
import random
import re
from contextlib import suppress
from dataclasses import MISSING, fields

import pytest
import torch
import transformers
from transformers.modeling_rope_utils import RopeParameters
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.mpt.configuration_mpt import MptAttentionConfig

from lecture04.huggingface import ARCHITECTURES, folders
from lecture04.huggingface.rope import OF_TYPE
from lecture04.nn.model import LanguageModel

FEW, MANY = 4, 150
"""Configs an architecture, in the fast suite and in the slow one."""


def own_fields(cls):
    """The fields of a config class with their defaults; those of the class that all share too."""
    return {f.name: None if f.default is MISSING else f.default for f in fields(cls)}


def types(cls):
    """The type of each field, as text."""
    return {f.name: str(f.type) for f in fields(cls)}


def sizes(rng, model_type):
    """Sizes that go together, by the names of the architecture."""
    heads, d_head = rng.choice([1, 2, 4]), rng.choice([2, 4, 6, 8])
    layers, width = rng.choice([1, 2]), heads * d_head
    usual = {
        "vocab_size": 17,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": rng.choice([8, 24, 32]),
        "intermediate_size": rng.choice([3, 24]),
        "num_key_value_heads": rng.choice([n for n in (1, 2, 4) if heads % n == 0]),
        "head_dim": d_head,
        # what no part here does, off
        "layer_types": ["full_attention"] * layers,
        "sliding_window": 8 if model_type == "gemma2" else None,
        "use_parallel_residual": False,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "query_pre_attn_scalar": rng.choice([1, 7, 16]),
        "first_k_dense_replace": layers,
        "kv_lora_rank": rng.choice([4, 6]),
        "q_lora_rank": None,
        "qk_nope_head_dim": d_head,
        "qk_rope_head_dim": rng.choice([2, 4, 6]),
        "v_head_dim": d_head,
        # experts are built in no layer, and would be large
        "n_routed_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 3,
    }
    if model_type.startswith("deepseek"):
        usual |= {"head_dim": usual["qk_rope_head_dim"], "num_key_value_heads": heads}
    if model_type in ("gpt2", "mpt"):  # nothing is beyond the last position
        usual["max_position_embeddings"] = 32
    cls = CONFIG_MAPPING[model_type]
    named = {cls.attribute_map.get(name, name): value for name, value in usual.items()}
    named["max_seq_len"] = 32
    found = {name: value for name, value in named.items() if name in own_fields(cls)}
    return found | ({"rotary_pct": rng.choice([0.5, 1.0])} if model_type == "gpt_neox" else {})


NUMBERS = (0.0, 0.5, 1.0, 1.5, 4.0)
NAMES = ("silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "swish", "tanh")


def random_value(rng, name, default, kind):
    """Any value of a field's type: by its default's where there is one."""
    if name in ("rope_parameters", "rope_scaling"):
        return random_rope(rng)
    if name == "attn_config":
        kinds = types(MptAttentionConfig)
        values = {f: random_value(rng, f, d, kinds[f]) for f, d in own_fields(MptAttentionConfig).items()}
        return {f: v for f, v in values.items() if rng.random() < 0.15}
    if name == "dtype":
        return rng.choice(["float32", "float64", None])
    if name == "layer_types":
        return [rng.choice(["full_attention", "sliding_attention"]) for _ in range(2)]
    if "drop" in name:
        return rng.choice([0.0, 0.5, 1.0])
    choices = [None] * ("None" in kind) + [True, False] * ("bool" in kind)
    choices += [0, 1, 2, 3, 4, 8] * ("int" in kind and "float" not in kind and "dict" not in kind)
    choices += list(NUMBERS) * ("float" in kind)
    if "str" in kind and "list" not in kind and "dict" not in kind:
        choices += NAMES if name in ("hidden_act", "hidden_activation", "activation_function") else [default, "other"]
    return rng.choice(choices or [default])


def random_rope(rng):
    """Rotary settings of any type with any of their keys."""
    kind = rng.choice([*OF_TYPE] * 4 + ["longrope", "proportional"])
    values = {
        "rope_theta": rng.choice([10_000.0, 500, 0.5]),
        "partial_rotary_factor": rng.choice([0.25, 0.5, 0.75, 1.0, 1.0]),
        "factor": rng.choice([1.0, 2.0, 2.0, 4, 4, 0.5]),
        "original_max_position_embeddings": rng.choice([4, 8, 32]),
        "attention_factor": rng.choice([0.5, 1.0, 1.7, None]),
        "beta_fast": rng.choice([4.0, 32, None]),
        "beta_slow": rng.choice([0.25, 1, 8.0, None]),
        "low_freq_factor": rng.choice([0.25, 1, 6.0]),
        "high_freq_factor": rng.choice([4.0, 2]),
        "mscale": rng.choice([0.0, 0.707, 1.0, None]),
        "mscale_all_dim": rng.choice([0.0, 0.707, 1.0, None]),
        "truncate": rng.choice([True, False]),
        "short_factor": [1.0, 2.0],
        "long_factor": [1.0, 2.0],
        "mrope_section": [1, 1],
    }
    assert values.keys() == RopeParameters.__annotations__.keys() - {"rope_type"}
    usual = OF_TYPE.get(kind, ())
    chance = {key: 0.97 if key == "factor" or "freq" in key else 0.5 for key in usual} | {"rope_theta": 0.8}
    given = {key: value for key, value in values.items() if rng.random() < chance.get(key, 0.02)}
    return given | {rng.choice(["rope_type", "rope_type", "type"]): kind}


def their_random_config(rng, model_type):
    """A config.json: sizes that go together, and some fields of the class, or of older files, at any value."""
    cls = CONFIG_MAPPING[model_type]
    kinds, own = types(cls), own_fields(cls)
    said = {"model_type": model_type, **sizes(rng, model_type)}
    older = {"rope_scaling", "rope_theta", "partial_rotary_factor", "rotary_pct", "rotary_emb_base"}
    if "rope_parameters" in own and rng.random() < 0.7:
        said[rng.choice(["rope_parameters", "rope_scaling"])] = random_rope(rng)
    extra = older | {"n_ctx", "head_dim", "hidden_size", "original_max_position_embeddings", "is_causal", "is_decoder"}
    for name in rng.sample(sorted(own.keys() | extra), rng.choice([0, 1, 1, 2, 3])):
        match name:
            case "transformers_version" | "vocab_size" | "max_seq_len":  # theirs is wrong beyond its length, unsaid
                continue
            case "rope_theta" | "rotary_emb_base":
                said[name] = rng.choice([500.0, 10_000])
            case "partial_rotary_factor" | "rotary_pct":
                said[name] = rng.choice([0.5, 1.0])
            case _ if name in own:
                said[name] = random_value(rng, name, own[name], kinds[name])
            case _:
                said[name] = random_value(rng, name, None, rng.choice(["int", "bool"]))
    for name in rng.sample(sorted(said.keys() - {"model_type"}), rng.choice([0, 0, 1])):
        del said[name]  # what silence means
    return said


def their_logits(harness, said):
    """Their model of a config.json and its logits; None where they cannot make any of it."""
    cls = getattr(transformers, ARCHITECTURES[said["model_type"]].class_name)
    large = ("hidden_size", "intermediate_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "n_layers")
    with harness.float32_is(torch.float64), torch.no_grad():
        try:
            torch.set_default_dtype(torch.float64)  # Gemma's scale of its embeddings is made so
            made = CONFIG_MAPPING[said["model_type"]].from_dict(json.loads(json.dumps(said)))
            if any(getattr(made, name, 0) > 100 for name in large):  # a size was left out, and defaults are large
                return None
            made._attn_implementation = "eager"
            model = harness.randomised(cls(made).double()).eval()
            return model, model(input_ids=harness.tokens(), use_cache=False, return_dict=True).logits
        except Exception:  # whatever a random config makes them fail with
            return None
        finally:
            torch.set_default_dtype(torch.float32)


def our_logits(harness, said, theirs):
    """Our logits with their parameters, or the sentences why there are none."""
    their = ARCHITECTURES[said["model_type"]]
    try:
        c = their.read(said)
    except ValueError as e:
        return str(e)
    state = folders.read_state(their.table, dict(theirs.named_parameters()), c)
    ours = LanguageModel(c).double()
    ours.load_state_dict(state)
    with torch.no_grad():
        return ours(harness.tokens())


def outcome(harness, said):
    """ "equal", "refused" or "neither can"; fails where logits differ, or what is refused is not named."""
    found = their_logits(harness, said)
    shown = json.dumps(said)
    if found is None:
        with suppress(ValueError):  # any other error would be a fault
            ARCHITECTURES[said["model_type"]].read(said)
        return "theirs fails"
    theirs, logits = found
    ours = our_logits(harness, said, theirs)
    if isinstance(ours, str):
        names = {*own_fields(type(theirs.config)), *RopeParameters.__annotations__, *own_fields(MptAttentionConfig)}
        for line in ours.splitlines():
            name = line.partition("=")[0].partition(":")[0].split(".")[-1].partition(",")[0]
            assert name in names | said.keys(), f"{line!r} names no setting of {shown}"
        return "refused"
    off = harness.difference(ours, logits)
    assert off < harness.TOLERANCE[torch.float64] or not logits.isfinite().all(), f"off by {off:.2g}: {shown}"
    return "equal"


def outcomes(harness, model_type, n, seed=0):
    rng = random.Random(f"{model_type} {seed}")
    return [outcome(harness, their_random_config(rng, model_type)) for _ in range(n)]


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_a_few_configs_of_theirs_are_read_right_or_refused_by_name(harness, model_type):
    outcomes(harness, model_type, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_any_config_of_theirs_is_read_right_or_refused_by_name(harness, model_type):
    found = outcomes(harness, model_type, MANY, seed=1)
    assert found.count("equal") > MANY / 10, found
    assert found.count("refused") > MANY / 10, found


LLAMA = {
    **{"model_type": "llama", "vocab_size": 17, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64, "rms_norm_eps": 1e-6},
}
MISTRAL = LLAMA | {"model_type": "mistral", "sliding_window": None}
QWEN2 = LLAMA | {"model_type": "qwen2"}
NEOX = LLAMA | {"model_type": "gpt_neox", "use_parallel_residual": False}
del NEOX["num_key_value_heads"], NEOX["rms_norm_eps"]
GPT2 = {"model_type": "gpt2", "vocab_size": 17, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32}
MPT = {"model_type": "mpt", "vocab_size": 17, "d_model": 16, "n_layers": 2, "n_heads": 4, "max_seq_len": 32}
GEMMA2 = LLAMA | {"model_type": "gemma2", "head_dim": 4, "attn_logit_softcapping": None}
GEMMA2 |= {"final_logit_softcapping": None, "layer_types": ["full_attention"] * 2}
DEEPSEEK = LLAMA | {"model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": None, "kv_lora_rank": 6}
DEEPSEEK |= {"qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4, "first_k_dense_replace": 2}
YARN = {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}
LINEAR = {"type": "linear", "factor": 4.0}
# A config.json and what of it is refused; nothing, where the logits are theirs.
CASES = {
    "YaRN's mscales": (LLAMA | {"rope_scaling": YARN | {"mscale": 1, "mscale_all_dim": 1}}, None),
    "YaRN's mscales differ": (LLAMA | {"rope_scaling": YARN | {"mscale": 1.3, "mscale_all_dim": 0.7}}, None),
    "one mscale alone, which is not looked at": (LLAMA | {"rope_scaling": YARN | {"mscale": 1.3}}, None),
    "an mscale of 0 is none": (LLAMA | {"rope_scaling": YARN | {"mscale": 1.3, "mscale_all_dim": 0}}, None),
    "YaRN's factor": (LLAMA | {"rope_scaling": YARN | {"attention_factor": 1.25}}, None),
    "YaRN's factor below 1": (LLAMA | {"rope_scaling": YARN | {"attention_factor": 0.8}}, "attention_factor=0.8"),
    "YaRN's betas": (LLAMA | {"rope_scaling": YARN | {"beta_fast": 8, "beta_slow": 0.5}}, None),
    "YaRN not truncated": (LLAMA | {"rope_scaling": YARN | {"truncate": False}}, "truncate=False"),
    "YaRN without a factor": (LLAMA | {"rope_scaling": {"rope_type": "yarn"}}, "factor: missing"),
    "DeepSeek's mscales": (DEEPSEEK | {"rope_scaling": YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}}, None),
    "DeepSeek's mscales differ": (
        DEEPSEEK | {"rope_scaling": YARN | {"mscale": 1, "mscale_all_dim": 0.7}},
        "mscale_all_dim=0.7",
    ),
    "DeepSeek's mscale of all scores, not of YaRN": (
        DEEPSEEK | {"rope_scaling": LINEAR | {"mscale_all_dim": 0.7}},
        "mscale_all_dim=0.7",
    ),
    "a rotated part in Llama": (LLAMA | {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
    "a rotated part below rope_parameters": (
        QWEN2 | {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}},
        "partial_rotary_factor=0.5",
    ),
    "a rotated part by NeoX's name": (NEOX | {"rotary_pct": 0.5}, None),
    "a rotated part by another name in NeoX": (NEOX | {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
    "an odd rotated part": (NEOX | {"rotary_pct": 0.75}, "partial_rotary_factor=0.75"),
    "a base by another name in NeoX": (NEOX | {"rotary_pct": 1.0, "rope_theta": 500.0}, "rope_theta=500.0"),
    "a base by NeoX's name": (NEOX | {"rotary_pct": 1.0, "rotary_emb_base": 500}, None),
    "NeoX's shares are not said": (NEOX, "partial_rotary_factor=0.25"),
    "both forms of rotary settings": (
        LLAMA | {"rope_scaling": LINEAR, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        "rope_scaling, rope_parameters: both are there and differ",
    ),
    "a key of another type": (LLAMA | {"rope_scaling": LINEAR | {"beta_fast": 4}}, "rope_scaling.beta_fast=4"),
    "a length beside the scaling": (
        LLAMA | {"rope_scaling": YARN, "original_max_position_embeddings": 8},
        "original_max_position_embeddings=8",
    ),
    "a dynamic length": (
        LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 8}},
        "original_max_position_embeddings=8",
    ),
    "both sides in Gemma": (
        LLAMA | {"model_type": "gemma", "head_dim": 4, "use_bidirectional_attention": True},
        "use_bidirectional_attention=True",
    ),
    "both sides anywhere": (LLAMA | {"is_causal": False}, "is_causal=False"),
    "a second name that says another number": (GPT2 | {"hidden_size": 8}, "hidden_size=8: another name of n_embd=16"),
    "a second name alone": ({k: v for k, v in GPT2.items() if k != "n_embd"} | {"hidden_size": 16}, None),
    "a bias in DeepSeek": (DEEPSEEK | {"attention_bias": True}, "attention_bias=True"),
    "keys that DeepSeek has by halves": (DEEPSEEK | {"rope_interleave": False}, "rope_interleave=False"),
    "RoPE's width in DeepSeek by another name": (DEEPSEEK | {"head_dim": 2}, "head_dim=2"),
    "one layer with another config": (LLAMA | {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}}, "per_layer_config="),
    "a setting of nobody": (LLAMA | {"hidden_act_scale": 2}, "hidden_act_scale=2: not known here"),
    "windows in some layers": (
        QWEN2 | {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types=[full_attention, sliding_attention]",
    ),
    "MPT's logits scaled": (MPT | {"logit_scale": 0.5}, "logit_scale=0.5"),
    "MPT's slopes": (MPT | {"attn_config": {"alibi_bias_max": 4}}, "alibi_bias_max=4"),
    "MPT's own scale": (MPT | {"attn_config": {"softmax_scale": 0.3}}, None),
    # of older versions
    "transformers 4": (
        LLAMA
        | {"rope_theta": 500.0, "rope_scaling": LINEAR, "torch_dtype": "float32", "pretraining_tp": 1}
        | {"attention_bias": False, "use_cache": True, "transformers_version": "4.31.0", "max_length": 20},
        None,
    ),
    "no scaling": (MISTRAL | {"rope_scaling": None, "rope_theta": 10_000.0, "attention_bias": False}, None),
    "no layer_types": (QWEN2 | {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 1}, None),
    "GPT-2 as published": (
        GPT2
        | {"n_ctx": 32, "activation_function": "gelu_new", "attn_pdrop": 0.1, "task_specific_params": {"a": {}}}
        | {"summary_type": "cls_index", "summary_proj_to_labels": True, "bos_token_id": 16, "is_decoder": False},
        None,
    ),
    "Gemma's old name": (LLAMA | {"model_type": "gemma", "head_dim": 4, "hidden_act": "gelu"}, None),
    "Gemma 2's two names": (GEMMA2 | {"hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid"}, None),
    "Gemma 2 of before layer_types": ({**GEMMA2, "layer_types": None}, "layer_types: absent, which means"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_file_says_is_computed_or_refused_by_its_name(harness, case):
    said, refused = CASES[case]
    if refused is None:
        assert outcome(harness, said) == "equal"
        return
    assert outcome(harness, said) != "equal"
    with pytest.raises(ValueError, match=re.escape(refused)) as e:
        ARCHITECTURES[said["model_type"]].read(said)
    assert len(str(e.value).splitlines()) == 1
