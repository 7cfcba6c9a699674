"""Parameters on disk: all of them, exactly, and no others."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from lecture04.config import registry
from lecture04.nn.init import build
from lecture04.training import checkpoint

FAMILIES = ("ffn", "norm", "placement", "attention", "posenc")
OVERRIDES = [f"{family}={name}" for family in FAMILIES for name in registry.names(family)] + ["model.tied=false"]


@pytest.mark.parametrize("override", OVERRIDES)
def test_a_round_trip_is_exact(small, tmp_path, override):
    cfg = small(override)
    model = build(cfg)
    checkpoint.save(model, tmp_path)
    back = checkpoint.load(cfg, tmp_path)
    assert model.state_dict().keys() == back.state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), back.state_dict().values(), strict=True))
    tokens = torch.arange(10)[None]
    assert torch.equal(model(tokens), back(tokens))


@pytest.mark.parametrize("tied", ["true", "false"])
def test_what_is_kept_are_the_parameters_by_their_names(small, tmp_path, tied):
    model = build(small("posenc=rope", f"model.tied={tied}"))
    checkpoint.save(model, tmp_path)
    assert load_file(tmp_path / checkpoint.NAME).keys() == dict(model.named_parameters()).keys()


def test_nothing_half_written_stays_behind(small, tmp_path):
    checkpoint.save(build(small()), tmp_path)
    checkpoint.save(build(small("seed=1")), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.NAME]
    assert torch.equal(checkpoint.load(small(), tmp_path).embed.weight, build(small("seed=1")).embed.weight)


def altered(model, folder, change):
    checkpoint.save(model, folder)
    tensors = load_file(folder / checkpoint.NAME)
    change(tensors)
    save_file(tensors, folder / checkpoint.NAME)


@pytest.mark.parametrize("name", ["embed.weight", "blocks.1.ffn.down.bias", "final_norm.weight"])
def test_a_missing_tensor_is_an_error_that_names_it(small, tmp_path, name):
    altered(build(small()), tmp_path, lambda tensors: tensors.pop(name))
    with pytest.raises(RuntimeError, match=name):
        checkpoint.load(small(), tmp_path)


def test_an_extra_tensor_is_an_error_that_names_it(small, tmp_path):
    altered(build(small()), tmp_path, lambda tensors: tensors.update(stray=torch.zeros(1)))
    with pytest.raises(RuntimeError, match="stray"):
        checkpoint.load(small(), tmp_path)


@pytest.mark.parametrize("other", ["ffn=swiglu", "placement=post", "attention=mqa", "model.d_model=32"])
def test_another_models_checkpoint_is_an_error(small, tmp_path, other):
    checkpoint.save(build(small()), tmp_path)
    with pytest.raises(RuntimeError):
        checkpoint.load(small(other), tmp_path)


def test_no_checkpoint_is_an_error(small, tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint.load(small(), tmp_path)


def test_a_torn_checkpoint_is_set_aside_and_counts_as_none(small, tmp_path, caplog):
    cfg = small()
    assert checkpoint.load_sound(cfg, tmp_path) is None
    checkpoint.save(build(cfg), tmp_path)
    assert checkpoint.load_sound(cfg, tmp_path) is not None
    path = tmp_path / checkpoint.NAME
    path.write_bytes(path.read_bytes()[:-100])
    assert checkpoint.load_sound(cfg, tmp_path) is None
    assert not path.exists()
    assert (tmp_path / f"{checkpoint.NAME}.unreadable").exists()
    assert "could not be read" in caplog.text
