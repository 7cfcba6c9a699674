"""The tables of what a config.json may hold, against the config classes of the installed transformers."""

from dataclasses import MISSING, fields

import pytest
from transformers import GenerationConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS, RopeParameters
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.mpt.configuration_mpt import MptAttentionConfig

from lecture04.huggingface import ARCHITECTURES
from lecture04.huggingface.gpt import MPT_ATTENTION, MPT_INERT
from lecture04.huggingface.known import INERT, NEUTRAL
from lecture04.huggingface.rope import OF_ALL, OF_TYPE
from lecture04.huggingface.settings import Complete

# Settings of the other types of scaling, which are refused by their type.
OF_OTHER_TYPES = {"short_factor", "long_factor", "mrope_section"}


def defaults(cls):
    return {f.name: f.default for f in fields(cls)}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_field_of_the_class_is_read_or_known_to_change_nothing(architecture):
    their, own = ARCHITECTURES[architecture], defaults(CONFIG_MAPPING[architecture])
    known = {*their.needed, *their.absent, *their.inert, *INERT, *NEUTRAL}
    assert own.keys() - known == set()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_absent_is_what_the_class_has(architecture):
    """Where the class has none of its own it is an older name, or one that it computes."""
    their, own = ARCHITECTURES[architecture], defaults(CONFIG_MAPPING[architecture])
    for name, value in their.absent.items():
        if name in own and own[name] is not MISSING:
            assert value == own[name], name
    assert not set(their.absent) & INERT.union(their.inert)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_second_names_are_those_of_the_class(architecture):
    their = ARCHITECTURES[architecture]
    theirs = {own: usual for usual, own in CONFIG_MAPPING[architecture].attribute_map.items()}
    matter = {own: usual for own, usual in theirs.items() if own not in INERT.union(their.inert)}
    assert matter == their.aliases
    assert all({own, usual} <= INERT.union(their.inert) for own, usual in theirs.items() - matter.items())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_setting_of_the_table_is_looked_at(architecture):
    """An entry that no reader asks for would hide a setting; the sizes are those of the architecture's own class."""
    their, asked = ARCHITECTURES[architecture], set()

    class Watched(Complete):
        def __getitem__(self, key):
            asked.add(key)
            return super().__getitem__(key)

        def get(self, key, default=None):
            asked.add(key)
            return super().get(key, default)

    off = {
        **{"use_parallel_residual": False, "rotary_pct": 0.5, "sliding_window": None, "q_lora_rank": None},
        **{"attn_logit_softcapping": None, "final_logit_softcapping": None, "first_k_dense_replace": 4},
        **{"qk_nope_head_dim": 4, "v_head_dim": 4, "qk_rope_head_dim": 4, "head_dim": 4, "num_key_value_heads": 4},
        "layer_types": ["full_attention"] * 4,
    }
    said = {**dict.fromkeys(their.needed, 16), **{k: v for k, v in off.items() if k in their.absent}}
    heads = {key: 4 for key in their.needed if "head" in key or "layer" in key}
    their.read_config(Watched(said | heads, their.absent))
    assert {*their.needed, *their.absent} - asked == set()


def test_every_rotary_setting_is_of_a_type_that_is_read_or_refused():
    assert RopeParameters.__annotations__.keys() - {*OF_ALL, *(key for keys in OF_TYPE.values() for key in keys)} == (
        OF_OTHER_TYPES
    )
    assert OF_TYPE.keys() - {"default"} < ROPE_INIT_FUNCTIONS.keys()


def test_every_setting_of_mpts_attention_is_known():
    assert defaults(MptAttentionConfig).keys() - {*MPT_ATTENTION, *MPT_INERT, *INERT, *NEUTRAL} == set()
    own = defaults(MptAttentionConfig)
    assert all(own[name] == value for name, value in MPT_ATTENTION.items())


def test_settings_of_generation_change_no_logit():
    assert GenerationConfig._get_default_generation_params().keys() - INERT == set()
