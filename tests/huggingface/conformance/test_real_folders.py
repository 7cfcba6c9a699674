"""A run trained, written, loaded by transformers; its folder uptrained and written again: the commands, as typed."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers

from lecture04.cli import convert as command
from lecture04.records.config_file import read_config
from lecture04.training import checkpoint

ROOT = Path(__file__).parents[3]
SMALL = (
    *("trainer.steps=20", "trainer.batch_size=8", "trainer.log_every=10", "trainer.diverged_margin=-9"),
    *("data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none"),
)


def done(folder, *arguments):
    result = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    return result.stdout


def train(folder, *arguments):
    done(folder, str(ROOT / "train.py"), *arguments, *SMALL)


def runs(folder, part):
    return [path for path in (folder / "outputs" / "runs").iterdir() if part in path.name]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A Llama trained and written, and a second run from that folder, with half the heads, written too."""
    folder = tmp_path_factory.mktemp("workplace")
    train(folder, "recipe=llama", "attention=mha", "ffn.d_ff=88", "seed=3")
    (trained,) = runs(folder, "-mha-")
    said = done(folder, "-m", "lecture04.cli.main", "convert", "write", str(trained.relative_to(folder)), "hf")
    assert said.startswith("hf: written as llama (LlamaForCausalLM)")
    train(folder, *shlex.split(command.read(folder / "hf").splitlines()[-1])[2:], "seed=3")
    (merged,) = runs(folder, "-gqa-")
    command.write(merged, folder / "merged", None)
    return folder, trained, merged


def ours_and_theirs(run, folder):
    """The largest difference of logits between a run's checkpoint and the folder as transformers loads it."""
    cfg = read_config(run)
    tokens = torch.randint(cfg.data.vocab_size, (3, 64), generator=torch.Generator().manual_seed(0))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        ours, other = checkpoint.load(cfg, run)(tokens), theirs.eval()(input_ids=tokens).logits
    return (ours - other).abs().max().item(), theirs


def test_transformers_gives_the_logits_of_the_trained_run(workplace):
    folder, trained, _ = workplace
    off, theirs = ours_and_theirs(trained, folder / "hf")
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
    _, trained, merged = workplace
    first, second = (
        [json.loads(line)["train/loss"] for line in (run / "metrics.jsonl").read_text().splitlines() if "loss" in line]
        for run in (trained, merged)
    )
    assert second[0] < first[0] - 0.5
