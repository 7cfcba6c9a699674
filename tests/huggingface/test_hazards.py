"""Folders that hold something else than they say: one sentence, soon; nothing is loaded, waited for or overwritten."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lecture04.config.errors import UserError
from lecture04.huggingface import command, files, folders
from lecture04.nn.model import LanguageModel

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def said_of(folder):
    """What reading a folder says: one line, within seconds."""
    began = time.monotonic()
    with pytest.raises(UserError) as e:
        command.read(folder)
    assert time.monotonic() - began < 10
    lines = str(e.value).splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def as_pipe(path):
    os.mkfifo(path)


def as_folder(path):
    path.mkdir()


def as_device(path):
    path.symlink_to("/dev/zero")


def as_socket(path):
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may have a hundred letters
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
    finally:
        os.chdir(here)


def as_long_file(path):
    with open(path, "wb") as file:
        file.truncate(10**12)  # holes: it takes no room


KINDS = {as_pipe: "a pipe", as_folder: "a folder", as_device: "a device", as_socket: "a socket"}


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_no_file_is_not_opened(written, name, kind):
    folder, *_ = written("llama")
    (folder / name).unlink()
    kind(folder / name)
    assert said_of(folder) == f"{folder}/{name}: is {KINDS[kind]}, not a file that can be read."
    with pytest.raises(UserError, match="not a file that can be read"):
        files.digest(folder)


def test_a_pipe_in_the_place_of_a_shard_is_not_opened(written):
    folder, *_ = written("llama")
    tensors = dict.fromkeys(load_file(folder / WEIGHTS), "shard.safetensors")
    (folder / WEIGHTS).unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": tensors}))
    os.mkfifo(folder / "shard.safetensors")
    assert said_of(folder) == f"{folder}/shard.safetensors: is a pipe, not a file that can be read."


def test_a_config_of_a_terabyte_is_not_read(written):
    folder, *_ = written("llama")
    as_long_file(folder / CONFIG)
    assert said_of(folder) == f"{folder}/config.json: has 1,000,000,000,000 bytes; no config.json is so long."


@pytest.mark.parametrize("length", [2**63 - 1, 10**10, 99_000_000])
def test_a_header_that_says_it_is_huge_is_torn(written, length):
    folder, *_ = written("llama")
    (folder / WEIGHTS).write_bytes(length.to_bytes(8, "little") + b"{}")
    assert said_of(folder).startswith(f"{folder}/{WEIGHTS}: torn, or no safetensors file")


@pytest.mark.parametrize(
    "settings",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 5 * 10**5, "hidden_size": 8},
        {"vocab_size": 10**14},
        {"hidden_size": 4 * 10**9, "head_dim": 10**9},
        {"intermediate_size": 10**14},
    ],
    ids=str,
)
def test_sizes_are_not_believed(written, monkeypatch, settings):
    """No model is built, not even one without numbers."""
    folder, *_ = written("llama")
    said = json.loads((folder / CONFIG).read_text()) | {"head_dim": None}
    (folder / CONFIG).write_text(json.dumps(said | settings))
    monkeypatch.setattr(LanguageModel, "__init__", lambda *_, **__: pytest.fail("a model was built"))
    line = said_of(folder)
    assert line.startswith(f"{folder}/{WEIGHTS}: holds 21 tensors of 6,864 numbers, but config.json describes ")


def test_heads_without_number_are_not_built(written):
    folder, *_ = written("mpt")
    said = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(said | {"d_model": 10**9, "n_heads": 10**9}))
    assert "but config.json describes 2 layers of" in said_of(folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "not a JSON file: its brackets stand too deep in each other"),
        ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "not a JSON file: Exceeds the limit"),
        ('{"model_type": ["llama"]}', "model_type=['llama']: how its parts are ours is not known here"),
        ("\ufeff{}", "model_type: missing"),
    ],
    ids=["deep", "digits", "a list", "a mark of the byte order"],
)
def test_texts_that_are_no_settings(written, text, said):
    folder, *_ = written("llama")
    (folder / CONFIG).write_text(text, encoding="utf-8")
    assert said in said_of(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rope_theta": 10**400}, "rope_theta=1000"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps=nan: must be a number above 0"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings='false': must be true or false"),
        ({"layer_types": [["full_attention"]]}, "layer_types=[['full_attention']]: not known here"),
        ({"rope_scaling": {"rope_type": []}}, "rope_type=[]: there is no part for it here"),
    ],
    ids=["rope_theta", "eps", "a text", "a list", "a type"],
)
def test_values_of_other_kinds(written, changed, said):
    folder, *_ = written("llama")
    settings = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(settings | changed))
    assert said in said_of(folder)


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "hf").write_text("")
    assert said_of(tmp_path / "hf") == f"{tmp_path}/hf: is a file, and a folder with config.json is needed."


def test_many_errors_are_not_all_said(written):
    folder, *_ = written("llama")
    settings = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(settings | {"num_hidden_layers": 9}))
    with pytest.raises(UserError) as e:
        command.read(folder)
    lines = str(e.value).splitlines()
    assert lines[-1] == "and 53 more like these."
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("architecture", "prefix", "said"),
    [
        ("llama", "_orig_mod.", "torch.compile puts there; save the model that it wraps, model._orig_mod"),
        ("llama", "module.", "DataParallel and DistributedDataParallel put there; save the model that they wrap"),
        ("llama", "module._orig_mod.", "DataParallel and DistributedDataParallel put there"),
        ("llama", "model.", "does not belong there; save the model with names that begin as in model.embed_tokens"),
        ("gpt2", "model.", "does not belong there; save the model with names that begin as in transformer.wte.weight"),
        ("gpt2", "_orig_mod.-transformer.", "torch.compile puts there"),
        ("gpt_neox", "_orig_mod.", "torch.compile puts there"),
    ],
)
def test_a_prefix_on_every_name_is_said_once(written, architecture, prefix, said):
    folder, *_ = written(architecture)
    tensors = load_file(folder / WEIGHTS)
    prefix, _, taken = prefix.partition("-")  # the name's own first part may be missing
    save_file({prefix + name.removeprefix(taken): tensor for name, tensor in tensors.items()}, folder / WEIGHTS)
    line = said_of(folder)
    assert line.startswith(f'{folder}/{WEIGHTS}: the name of every tensor begins with "{prefix}", which {said}')


def test_nothing_is_written_over_or_below_what_is_there(written, tmp_path, monkeypatch):
    _, cfg, model = written("llama")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    for target, said in (
        ("file", "file: is a file, and the name of a new folder is needed."),
        ("notes", "notes: holds mine.txt, which was not written here; name a new or an empty folder."),
        ("file/hf", "file/hf: cannot be written: Not a directory."),
        ("x" * 300, "cannot be written: File name too long."),
        ("/proc/hf", "/proc/hf: cannot be written: No such file or directory."),
    ):
        with pytest.raises(UserError) as e:
            folders.save(model, cfg, tmp_path / target)
        assert str(e.value).endswith(said)
    monkeypatch.chdir(tmp_path / "empty")
    for name in ("", "."):
        with pytest.raises(UserError, match="is the folder that the command is run in; name a new one"):
            folders.save(model, cfg, name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "llama", "notes"]
    assert (tmp_path / "file").read_text() == (tmp_path / "notes" / "mine.txt").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(written, tmp_path):
    _, cfg, model = written("llama")
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(UserError, match=r"closed/hf: cannot be written: Permission denied\."):
        folders.save(model, cfg, tmp_path / "closed" / "hf")


def test_a_link_is_written_through(written, tmp_path, some_tokens):
    _, cfg, model = written("llama")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    folders.save(model, cfg, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert torch.equal(folders.load(tmp_path / "there")[1](some_tokens), model(some_tokens))
