"""What `lecture04 convert` says, and when it does not do what was asked for."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from lecture04.cli import train
from lecture04.config import Evaluation
from lecture04.config.errors import UserError
from lecture04.config.fields import asked
from lecture04.config.resolve import fill
from lecture04.data.garden.garden import WORDS
from lecture04.data.types import Split, Splits
from lecture04.huggingface import command, folders
from lecture04.records.record import Record, Status
from lecture04.training import checkpoint


@pytest.fixture
def run(model_of, tmp_path):
    """A run's folder, as training leaves it."""

    def make(*overrides, status=Status.finished):
        cfg, model = model_of("data.n_val=4", "data.n_test=4", *overrides)
        record = Record(tmp_path / "runs" / "run")
        record.folder.mkdir(parents=True)
        record.start(cfg, fill(Evaluation, asked(Evaluation), cfg), "python train.py")
        checkpoint.save(model, record.folder)
        record.finish(status, cfg, "", metrics={})
        return record.folder, model

    return make


def write(run, folder, architecture=None):
    return command.write(run, folder, architecture, checkpoint.load)


def test_a_finished_run_is_written(run, tmp_path, some_tokens):
    folder, model = run("recipe=llama")
    n_params = sum(p.numel() for p in model.parameters()) + model.embed.weight.numel()
    assert write(folder, tmp_path / "hf") == (
        f"{tmp_path / 'hf'}: written as llama (LlamaForCausalLM), {n_params:,} parameters. "
        "Its embeddings are scaled, so the head that it shares with them was written on its own."
    )
    assert torch.allclose(folders.load(tmp_path / "hf")[1](some_tokens), model(some_tokens), atol=1e-5)
    said = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert (said["pad_token_id"], said["bos_token_id"], said["eos_token_id"]) == (0, 1, 2)


def test_special_tokens_are_those_of_the_source(compose):
    """A row of a stream begins with the end of a document, so that texts do too."""
    nothing = Split(np.zeros(0, np.int16), np.zeros(1, np.int64))
    known = Splits(nothing, nothing, nothing, vocab_size=9, bos=3, eos=4)
    assert command.special_tokens(compose(), known) == {"bos_token_id": 3, "eos_token_id": 4}
    assert command.special_tokens(compose("layout=stream"), known) == {"bos_token_id": 4, "eos_token_id": 4}
    assert command.special_tokens(compose(), replace(known, bos=None, eos=None, pad=0)) == {"pad_token_id": 0}


def test_the_tokenizer_is_written_beside_the_model(run, tmp_path):
    folder, _ = run("recipe=llama")
    write(folder, tmp_path / "hf")
    ours = Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    assert ours.encode("<bos> the king <eos>").ids == [WORDS.index(word) for word in ("<bos>", "the", "king", "<eos>")]
    (tmp_path / "hf" / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UserError, match="which was not written here"):
        write(folder, tmp_path / "hf")


def test_data_that_are_gone_keep_no_model_from_being_written(run, tmp_path):
    folder, _ = run("recipe=llama", "data.vocab_size=93")
    said = write(folder, tmp_path / "hf")
    assert said.endswith(" No tokenizer was written: data=garden has 92 tokens, and the model 93.")
    assert sorted(path.name for path in (tmp_path / "hf").iterdir()) == ["config.json", "model.safetensors"]


def test_a_head_that_stays_shared_is_not_spoken_of(run, tmp_path):
    folder, model = run("recipe=llama", "model.embed_scale=1")
    n_params = sum(p.numel() for p in model.parameters())
    assert write(folder, tmp_path / "hf").endswith(f"(LlamaForCausalLM), {n_params:,} parameters.")


def test_an_architecture_can_be_chosen(run, tmp_path):
    folder, _ = run("recipe=llama")
    assert "written as mistral (MistralForCausalLM)" in write(folder, tmp_path / "hf", "mistral")
    with pytest.raises(UserError, match=r"norm\.name=rmsnorm: gpt2 has none"):
        write(folder, tmp_path / "other", "gpt2")


@pytest.mark.parametrize("status", [Status.failed, Status.diverged])
def test_a_run_that_did_not_finish_is_not_written(run, tmp_path, status):
    folder, _ = run("recipe=llama", status=status)
    with pytest.raises(UserError, match=f"run: the run is {status}, not finished"):
        write(folder, tmp_path / "hf")


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(UserError, match=r"config\.yaml: there is no such file, so no run lies there"):
        write(tmp_path, tmp_path / "hf")


def test_a_run_with_a_torn_checkpoint_has_not_finished(run, tmp_path):
    folder, _ = run("recipe=llama")
    (folder / checkpoint.NAME).write_bytes((folder / checkpoint.NAME).read_bytes()[:-9])
    with pytest.raises(UserError, match="run: the run is missing, not finished"):
        write(folder, tmp_path / "hf")


def test_reading_prints_overrides_that_compose_and_a_line_that_resolves(written, compose):
    folder, cfg, _ = written("qwen2")
    text = command.read(folder)
    lines = text.splitlines()
    n_params = sum(t.numel() for t in load_file(folder / "model.safetensors").values())
    assert lines[0] == f"{folder}: qwen2 (Qwen2ForCausalLM), {n_params:,} parameters."
    assert lines[1] == "Its vocabulary has 92 words, its rows at most 64."
    parts = compose(*shlex.split(lines[4]))
    assert (parts.ffn.name, parts.attention.output_bias, parts.attention.bias) == ("swiglu", False, True)
    python, script, *line = shlex.split(lines[-1])
    assert (python, script) == ("python", "train.py")
    assert compose(*line).attention.n_kv_heads == 1


@pytest.mark.parametrize("name", ["it's a=b, ü 日本", 'a "folder"\\', "${x} #1"])
def test_the_line_can_be_pasted_back_whatever_the_folder_is_called(written, tmp_path, name):
    folder, *_ = written("llama", "attention=mha")
    folder.rename(tmp_path / name)
    _, _, *line = shlex.split(command.read(tmp_path / name).splitlines()[-1])
    run = train.resolved_settings(train.composed(line)).run
    assert run.init.folder == str(tmp_path / name)
    assert run.attention.n_kv_heads == 2


def test_reading_says_why_a_folder_cannot_be_trained_here(written):
    folder, *_ = written("deepseek_v3")
    assert command.read(folder).endswith(
        "It cannot be trained here: init=uptrain merges key and value heads, and a latent has none."
    )


def test_a_config_that_is_refused_takes_no_torch(written):
    folder, *_ = written("llama")
    (folder / "config.json").write_text('{"model_type": "bloom"}')
    code = (
        "import sys\nfrom pathlib import Path\nfrom lecture04.huggingface import command\n"
        "from lecture04.config.errors import UserError\n"
        f"try: command.read(Path({str(folder)!r}))\nexcept UserError as e: print(e)\nassert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == f"{folder}/config.json: model_type=bloom: there is no part here for a norm on the embeddings.\n"
    )
