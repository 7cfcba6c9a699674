"""init.folder: a run that starts from a Hugging Face folder; what it is known by, and what does not fit."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from hydra.errors import HydraException
from safetensors.torch import load_file, save_file

from lecture04 import config
from lecture04.cli import train as cli
from lecture04.config.errors import UserError
from lecture04.config.validate import source_errors
from lecture04.huggingface import files, folders
from lecture04.huggingface.overrides import uptraining
from lecture04.records.config_file import read_config
from lecture04.records.identity import identity
from lecture04.records.record import Record
from lecture04.training import start


@pytest.fixture(scope="module")
def folder(model_of, tmp_path_factory):
    """A Llama of four heads, for the Garden World."""
    path = tmp_path_factory.mktemp("uptrain") / "hf"
    cfg, model = model_of("recipe=llama", "attention=mha", "model.tied=false", "model.embed_scale=1")
    folders.save(model, cfg, path)
    return path


@pytest.fixture(scope="module")
def line(folder):
    return uptraining(files.read_settings(folder)[1], str(folder))


def asked(*overrides):
    return cli.resolved_settings(cli.composed(list(overrides)))


def resolved(*overrides):
    return asked(*overrides).run


def began(run):
    return start.begin(run, config.Session())


def test_the_line_that_is_printed_is_a_run(line, folder):
    cfg = resolved(*line)
    assert source_errors(cfg) == []
    assert cfg.attention.n_kv_heads == 2
    assert start.source_run(cfg) is None  # there is no run to train first
    found = cfg.init.start
    assert (found.attention.n_kv_heads, found.vocab_size, found.ffn.d_ff) == (4, cfg.vocab_size, 24)
    assert cfg.init.digest == files.digest(folder)


def test_heads_are_merged_and_all_else_is_the_folders(line, folder):
    cfg, model = folders.load(folder)
    theirs, ours = model.state_dict(), began(resolved(*line)).state_dict()
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        if name.endswith((".k.weight", ".v.weight")):
            value = value.unflatten(0, (2, 2, cfg.model.d_head)).mean(dim=1).flatten(0, 1)
        assert torch.equal(ours[name], value), name


@pytest.mark.parametrize("posenc", ["rope", "rope_half"])
def test_either_layout_of_rope_is_the_same_function(line, folder, some_tokens, posenc):
    cfg = resolved(*line, "attention=mha", "attention.n_kv_heads=null", f"posenc={posenc}")
    assert cfg.init.start.posenc.name == posenc
    assert torch.allclose(began(cfg)(some_tokens), folders.load(folder)[1](some_tokens), atol=1e-5)


def test_d_ff_is_the_folders_where_it_is_null(line):
    assert resolved(*line, "ffn.d_ff=null").ffn.d_ff == 24


def test_a_run_is_known_by_what_the_folder_holds(line, folder, tmp_path):
    def of(path):
        return resolved(*line, f"init.folder={path}")

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    one = identity(of(folder))
    assert identity(of(copy)) == one
    assert identity(resolved(*line, "init.merge=first")) != one
    tensors = load_file(copy / "model.safetensors")
    tensors["model.norm.weight"] += 1
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    assert identity(of(copy)).config != one.config
    assert identity(of(copy)).code == one.code


def test_the_code_that_reads_the_folder_is_the_runs(line):
    cfg = resolved(*line)
    from_a_run = replace(cfg, init=replace(cfg.init, start=resolved("attention=mha")))
    assert identity(cfg).code != identity(from_a_run).code


def test_a_record_is_read_back(line, tmp_path):
    request = asked(*line)
    Record(tmp_path).start(request.run, request.evaluation, "")
    back, evaluation = read_config(tmp_path)
    assert (back, evaluation) == (request.run, request.evaluation)
    assert identity(back) == identity(request.run)


def test_a_folder_that_changed_meanwhile_is_not_taken_for_the_one_asked_for(line, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    cfg = resolved(*line, f"init.folder={copy}")
    with open(copy / "config.json", "a") as file:
        file.write("\n")
    with pytest.raises(ValueError, match="its files have changed since"):
        began(cfg)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["ffn=geglu"],
            r"init\.folder: its ffn\.name is swiglu, this run's geglu; init=uptrain changes n_kv_heads alone",
        ),
        (["norm.eps=1e-6"], r"init\.folder: its norm\.eps is 1e-05, this run's 1e-06"),
        (["model.n_layers=3"], r"init\.folder: its model\.n_layers is 2, this run's 3"),
        (["posenc=learned"], r"init\.folder: its posenc\.name is rope_half, this run's learned"),
        (["posenc.base=500"], r"init\.folder: its posenc\.base is 10000\.0, this run's 500\.0"),
        (["ffn.d_ff=25"], r"its ffn\.d_ff is 24, this run's 25"),
        (["attention.bias=true"], r"init\.folder: its attention has other settings"),
        (["attention=mla", "attention.n_kv_heads=null"], "a latent has none"),
        (
            ["data=garden_packed", "data.max_len=65"],
            r"config\.json: 64 positions: must be at least 65, the length of a row",
        ),
        (
            ["layout.length=65"],
            r"config\.json: 64 positions: must be at least 65, the length of a row \(layout\.length\)",
        ),
        (["init.source=['ffn=relu']"], r"^init\.source, init\.folder: a run starts from one of them"),
        (
            ["init.folder=''"],
            r"init\.source=\[\]: name the run to start from.* or a Hugging Face folder: init\.folder=",
        ),
        (["init.folder=nowhere"], r"init\.folder: nowhere/config\.json: there is no such folder"),
        (["optim.lr=-1"], r"^optim\.lr=-1\.0: must be above 0|^optim\.lr=-1\.0"),
    ],
)
def test_what_does_not_fit_is_said(line, changes, said):
    with pytest.raises(UserError, match=said):
        resolved(*line, *changes)


def test_every_field_that_does_not_fit_has_a_line(folder):
    with pytest.raises(UserError) as e:
        resolved("init=uptrain", f"init.folder={folder}", "attention=gqa")
    lines = str(e.value).splitlines()
    assert {line.split()[2].partition(".")[0] for line in lines} == {"model", "ffn", "norm", "posenc"}
    assert all(line.startswith("init.folder: its ") for line in lines)


def test_another_vocabulary_and_bad_tensors_are_said_before_the_run(line, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    tensors = load_file(copy / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(UserError, match=r"init\.folder: .*copy/model\.safetensors: model\.norm\.weight: missing"):
        resolved(*line, f"init.folder={copy}")
    said = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(said | {"vocab_size": 50}))
    with pytest.raises(UserError, match=r"init\.folder: .*config\.json: vocab_size=50: must be 92, the words of data"):
        resolved(*line, f"init.folder={copy}")


def test_a_path_of_any_characters_can_be_pasted(folder, tmp_path):
    odd = tmp_path / "it's a = folder, [1]"
    shutil.copytree(folder, odd)
    try:
        cfg = resolved(*uptraining(files.read_settings(odd)[1], str(odd)))
    except HydraException as e:
        pytest.fail(str(e))
    assert cfg.init.folder == str(odd)


def test_a_sweep_from_a_folder_has_nothing_to_train_before_it(line, folder, tmp_path):
    from lecture04.sweep.plan import make_plan
    from lecture04.sweep.rows import Row

    row = Row("merged", (*line, f"paths.outputs={tmp_path}"))
    plan = make_plan("mine", "", config.Table(name="mine"), [row], [0, 1], lambda overrides: asked(*overrides))
    assert plan.waves == [list(plan.jobs)]
    assert [job.request.run.init.digest for job in plan.jobs] == [files.digest(folder)] * 2
    assert len({job.record.folder for job in plan.jobs}) == 2


def test_a_scaled_rope_keeps_the_length_that_it_was_trained_on(model_of, tmp_path):
    """Of RoPE that is not scaled that length says nothing, and is the run's."""
    for name, scaling in (("plain", ()), ("scaled", ("posenc.scaling.name=linear", "posenc.scaling.factor=2"))):
        own = ("recipe=llama", "attention=mha", "model.tied=false", "model.embed_scale=1", "data.max_len=96", *scaling)
        cfg, model = model_of(*own)
        folders.save(model, cfg, tmp_path / name)
        run = resolved(*uptraining(files.read_settings(tmp_path / name)[1], str(tmp_path / name)))
        assert (run.n_ctx, run.posenc.scaling.n_original) == (64, 96 if scaling else 64)
        assert run.init.start.posenc == run.posenc
