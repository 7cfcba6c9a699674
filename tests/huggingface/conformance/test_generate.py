"""Generation against transformers: its logits processors, its `generate`, its AutoTokenizer."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessorList
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from lecture04.data.garden.garden import WORDS
from lecture04.data.tokenizer import of_words
from lecture04.huggingface import folders
from lecture04.nn.generate import Sampling, generate, warped


def theirs(how):
    """What transformers makes of these settings, in its order."""
    found = [TemperatureLogitsWarper(how.temperature)]
    found += [TopKLogitsWarper(how.top_k)] if how.top_k is not None else []
    return LogitsProcessorList(found + ([TopPLogitsWarper(how.top_p)] if how.top_p < 1 else []))


@settings(deadline=None)  # the first call imports
@given(
    how=st.builds(
        Sampling,
        temperature=st.floats(0.05, 5),
        top_k=st.none() | st.integers(1, 60),
        top_p=st.just(1.0) | st.floats(0.01, 1),
    ),
    seed=st.integers(0, 2**31),
    spread=st.floats(0, 10),
    has_ties=st.booleans(),
)
def test_what_is_left_out_and_what_remains_is_theirs(how, seed, spread, has_ties):
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(seed)) * spread
    logits = logits.round() if has_ties else logits
    assert torch.equal(warped(logits, how), theirs(how)(torch.zeros(5, 1, dtype=torch.long), logits))


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma2", "gpt2", "gpt_neox", "mpt", "deepseek_v3"])
def test_the_likeliest_tokens_are_those_that_their_generate_takes(written, architecture):
    folder, _, model = written(architecture)
    prompt, n = [1, 30, 7, 55], 20
    their = AutoModelForCausalLM.from_pretrained(folder).double()
    text = their.generate(
        torch.tensor([prompt]), do_sample=False, min_new_tokens=n, max_new_tokens=n, pad_token_id=0, use_cache=True
    )
    ours = generate(model.double(), prompt, n_tokens=n, how=Sampling(temperature=0), seed=0, rows=[0])
    assert ours == [text[0, len(prompt) :].tolist()]


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_their_auto_tokenizer_reads_what_is_written(model_of, expressed, tmp_path, architecture):
    cfg, model = model_of(*expressed[architecture])
    ours = of_words(WORDS, unknown="<pad>")
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    for _ in range(2):  # what was written here is written anew
        folders.save(model, cfg, tmp_path / "hf", architecture, ids, ours)
    their = AutoTokenizer.from_pretrained(tmp_path / "hf")
    text = "the king waters his rose . the hen sees Lucifer <eos>"
    assert their(text)["input_ids"] == ours.encode(text).ids
    assert their.decode(range(92)) == ours.decode(list(range(92)), skip_special_tokens=False) == " ".join(WORDS)
    assert {name: getattr(their, name) for name in ids} == ids
    assert their.model_max_length == cfg.n_ctx
    assert len(their) == 92, "no token was added"
    two = their(["the king", "the"], padding=True, return_tensors="pt")
    assert sorted(two["attention_mask"].sum(-1).tolist()) == [1, 2]
    told = transformers.AutoConfig.from_pretrained(tmp_path / "hf")
    assert {name: getattr(told, name) for name in ids} == ids
