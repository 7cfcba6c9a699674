"""A run trained, written and loaded by transformers; its folder uptrained by the line that is printed, and written."""

import json
import shlex

import pytest
import torch
import transformers

from lecture04.cli import train as cli
from lecture04.huggingface import command
from lecture04.records.config_file import read_run
from lecture04.records.record import find
from lecture04.training import checkpoint
from lecture04.training.run import run

SMALL = (
    *("trainer.steps=20", "trainer.batch_size=8", "trainer.log_every=10", "trainer.diverged_margin=-9"),
    *("data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none", "seed=3"),
)


def trained(folder, *overrides):
    """The folder of a run, trained."""
    request = cli.resolved_settings(cli.composed([*overrides, *SMALL, f"paths.outputs={folder}/outputs"]))
    record = find(request.run, request.session)
    run(request, record, command="", progress=lambda step, row: None)
    return record.folder


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A Llama trained and written, and a second run from that folder, with half the heads, written too."""
    folder = tmp_path_factory.mktemp("workplace")
    first = trained(folder, "recipe=llama", "attention=mha", "ffn.d_ff=88")
    said = command.write(first, folder / "hf", None, checkpoint.load)
    assert said.startswith(f"{folder}/hf: written as llama (LlamaForCausalLM)")
    merged = trained(folder, *shlex.split(command.read(folder / "hf").splitlines()[-1])[2:])
    assert "-gqa-" in merged.name
    command.write(merged, folder / "merged", None, checkpoint.load)
    return folder, first, merged


def ours_and_theirs(run, folder):
    """The largest difference of logits between a run's checkpoint and the folder as transformers loads it."""
    cfg = read_run(run)
    tokens = torch.randint(cfg.vocab_size, (3, 64), generator=torch.Generator().manual_seed(0))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        ours, other = checkpoint.load(cfg, run)(tokens), theirs.eval()(input_ids=tokens).logits
    return (ours - other).abs().max().item(), theirs


def test_transformers_gives_the_logits_of_the_trained_run(workplace):
    folder, first, _ = workplace
    off, theirs = ours_and_theirs(first, folder / "hf")
    assert off < 1e-5
    assert theirs.config.num_key_value_heads == 4


def test_the_uptrained_run_has_half_the_heads_and_loads_too(workplace):
    folder, _, merged = workplace
    off, theirs = ours_and_theirs(merged, folder / "merged")
    assert off < 1e-5
    assert theirs.config.num_key_value_heads == 2
    assert theirs.model.layers[0].self_attn.k_proj.weight.shape == (32, 64)


def test_nothing_was_trained_but_the_two_runs(workplace):
    folder, *_ = workplace
    assert len(list((folder / "outputs" / "runs").iterdir())) == 2


def test_uptraining_began_where_the_folder_was(workplace):
    """After as many steps again the loss is well below what it was after the first."""
    _, first, merged = workplace
    before, after = (
        [json.loads(line)["train/loss"] for line in (run / "metrics.jsonl").read_text().splitlines() if "loss" in line]
        for run in (first, merged)
    )
    assert after[0] < before[0] - 0.5
