"""Random models of ours, written as theirs: transformers and we read the same function, or an option is refused.

Every option of every part that makes up a model is varied. A failure prints the model.
"""

import random
from dataclasses import asdict, fields
from enum import Enum

import pytest
import torch
import transformers

from lecture04 import config
from lecture04.config import registry
from lecture04.config.errors import UserError
from lecture04.config.fields import hints
from lecture04.config.schema import ARCHITECTURE, PARTS
from lecture04.huggingface import ARCHITECTURES, files, folders
from lecture04.huggingface.overrides import overrides
from lecture04.huggingface.settings import Sizes, resolved
from lecture04.nn.model import LanguageModel

FEW, MANY = 3, 150
"""Models an architecture, in the fast suite and in the slow one."""

LLAMA = {"ffn": "swiglu", "norm": "rmsnorm", "placement": "pre", "attention": "gqa", "posenc": "rope_half"}
GPT = {"ffn": "gelu", "norm": "layernorm", "placement": "pre", "attention": "mha"}
DEEPSEEK = LLAMA | {"attention": "mla", "norm.eps": 1e-6}
USUAL = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA | {"attention.bias": True, "attention.output_bias": False},
    "qwen3": LLAMA | {"attention.qk_norm": True},
    "gemma": LLAMA | {"ffn": "geglu_tanh", "model.embed_scale": None},
    "gemma2": LLAMA | {"ffn": "geglu", "placement": "sandwich"},
    "gpt2": GPT | {"posenc": "learned", "ffn.bias": True, "attention.bias": True},
    "gpt_neox": GPT | {"posenc": "rope", "ffn.bias": True, "attention.bias": True},
    "mpt": GPT | {"posenc": "alibi", "ffn.d_ff": "4 d_model"},
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
}


def options(cls):
    """The options that a class has, with their types."""
    return {f.name: hints(cls)[f.name] for f in fields(cls)}


def random_option(rng, name, kind):
    """Any value of an option of ours, by its type."""
    if isinstance(kind, type) and issubclass(kind, config.Options):
        return config.asked(
            kind, **{f: random_option(rng, f, k) for f, k in options(kind).items() if rng.random() < 0.5}
        )
    if isinstance(kind, type) and issubclass(kind, Enum):
        return rng.choice(list(kind))
    if kind is bool:
        return rng.random() < 0.5
    if kind is int:
        return rng.choice([1, 2, 3, 4] if name == "model.n_layers" else [1, 2, 3, 4, 6, 8, 32, 64])
    assert kind is float, (name, kind)
    return rng.choice([1e-6, 0.25, 0.5, 1.0, 2.0, 4.0, 500.0])


def our_random_model(rng, model_type):
    """An architecture: what theirs has a place for, with some parts and options of any value; None if there is none."""
    heads, d_head = rng.choice([1, 2, 4]), rng.choice([2, 4, 6, 14])
    chosen = {"model.n_heads": heads, "model.d_model": heads * d_head, "model.n_layers": rng.choice([1, 2])}
    chosen |= {"ffn.d_ff": rng.choice([3, 24]), "ffn.bias": False, "attention.bias": False, "model.bias": False}
    chosen |= USUAL[model_type]
    if chosen["ffn.d_ff"] == "4 d_model":
        chosen["ffn.d_ff"] = 4 * heads * d_head
    for family in rng.sample(ARCHITECTURE, rng.choice([0, 0, 0, 1])):
        chosen[family] = rng.choice(registry.names(family))
    classes = {family: registry.options_of(family, chosen[family], PARTS[family]) for family in ARCHITECTURE}
    classes["model"] = config.Model
    kinds = {f"{family}.{name}": kind for family, cls in classes.items() for name, kind in options(cls).items()}
    kinds = {path: kind for path, kind in kinds.items() if kind is not str}  # a part's name is chosen
    often = ["posenc.scaling", "posenc.width"] * ("posenc.scaling" in kinds)
    for path in rng.sample([*sorted(kinds), *often], rng.choice([0, 1, 1, 2, 3])):
        chosen[path] = random_option(rng, path, kinds[path])
    own = {family: {} if family == "model" else {"name": chosen[family]} for family in classes}
    for path, value in chosen.items():
        family, _, name = path.partition(".")
        if name in options(classes[family]):
            own[family][name] = value
    asked = {family: config.asked(cls, **own[family]) for family, cls in classes.items()}
    try:
        return resolved(Sizes(asked.pop("model"), 17, rng.choice([24, 64])), **asked)
    except ValueError:
        return None


def with_random_values(harness, c, model_type):
    """A model of it in float64, of which MPT's norms have no biases to be written."""
    model = harness.randomised(LanguageModel(c).double())
    if model_type == "mpt":
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("norm.bias"):
                    parameter.zero_()
    return model


def written_outcome(harness, c, model_type, folder):
    """ "equal" or "refused"; fails where transformers or we ourselves read another function from the folder."""
    try:
        folders.as_theirs(c, model_type)
    except UserError as e:
        for line in str(e).splitlines():
            family, _, name = line.partition("=")[0].partition(":")[0].partition(".")
            assert hasattr(getattr(c, family), name.split(".")[0]), f"{line!r} names no option of {c}"
        return "refused"
    model = with_random_values(harness, c, model_type)
    folders.save(model, c, folder, model_type)
    getattr(transformers, ARCHITECTURES[model_type].class_name)  # imported before its module is patched
    with harness.float32_is(torch.float64), torch.no_grad():
        torch.set_default_dtype(torch.float64)
        try:
            theirs, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder, attn_implementation="eager", dtype=torch.float64, output_loading_info=True
            )
        finally:
            torch.set_default_dtype(torch.float32)
        assert not any(info.values()), f"{info}: {c}"
        logits = theirs.eval()(input_ids=harness.tokens()).logits
    with torch.no_grad():
        off = harness.difference(model(harness.tokens()), logits)
    assert off < harness.TOLERANCE[torch.float64], f"{model_type}, off by {off:.2g}: {c}"
    their, back = files.read_settings(folder)
    again = LanguageModel(back).double()
    again.load_state_dict(folders.read_state(their.table, dict(theirs.named_parameters()), back))
    with torch.no_grad():
        off = harness.difference(again(harness.tokens()), logits)
    assert off < harness.TOLERANCE[torch.float64], f"{model_type}, read back, off by {off:.2g}: {c}"
    return "equal"


def written_outcomes(harness, model_type, n, folder, seed=0):
    rng = random.Random(f"{model_type} {seed}")
    models = filter(None, (our_random_model(rng, model_type) for _ in range(n)))
    return [written_outcome(harness, c, model_type, folder) for c in models]


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_a_few_models_of_ours_are_written_right_or_refused_by_name(harness, tmp_path, model_type):
    written_outcomes(harness, model_type, FEW, tmp_path / "hf")


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_any_model_of_ours_is_written_right_or_refused_by_name(harness, tmp_path, model_type):
    found = written_outcomes(harness, model_type, MANY, tmp_path / "hf", seed=1)
    assert found.count("equal") > MANY / 10, found
    assert found.count("refused") > MANY / 10, found


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_the_overrides_of_any_folder_come_to_its_parts(compose, model_type):
    """What `lecture04 convert read` prints, composed on the Garden World, whose rows have 64 tokens."""
    rng, their, n = random.Random(f"{model_type} 1"), ARCHITECTURES[model_type], 0
    for c in filter(None, (our_random_model(rng, model_type) for _ in range(MANY))):
        try:
            read = their.read(their.write_config(c))
        except ValueError:
            continue
        if read.n_ctx == 64:
            n += 1
            composed = compose(*overrides(read))
            for family in ("model", *ARCHITECTURE):
                ours, theirs = asdict(getattr(composed, family)), asdict(getattr(read, family))
                ours |= {"name": theirs["name"]} if family == "attention" else {}  # gqa of all heads is mha
                assert ours == theirs, f"{overrides(read)}: {read}"
    assert n > MANY / 20
