"""Section 1.4 and exercise 6 on finished runs; the lecture's own figures need runs of full size (the slow test)."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from lecture04.config.places import ROOT
from lecture04.data.types import load
from lecture04.lecture.probes import sparsity
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.finished import of_table
from lecture04.lecture.probes.sparsity import D_FF, DEAD, PPL, ZEROS

N_DOCS = 6


@pytest.fixture
def outputs(swept):
    return f"paths.outputs={swept}"


@pytest.fixture
def table(ask, outputs):
    return ask("sparsity", f"probe.n_docs={N_DOCS}", outputs)


def test_a_figure_for_every_run_and_layer(table):
    assert list(table.columns) == ["claim", "row", "seed", "layer", "quantity", "value"]
    counted = table.groupby(["row", "seed", "quantity"]).size()
    assert len(counted) == 4 * 2 * 4
    assert all(n == (1 if quantity == PPL else 2) for (*_, quantity), n in counted.items())
    assert set(table.layer.dropna()) == {1, 2}
    widths = table[table.quantity == D_FF].groupby("row").value.unique()
    assert {row: width.tolist() for row, width in widths.items()} == {
        "ReLU": [256],
        "GELU": [256],
        "SiLU": [256],
        "SwiGLU": [171],
    }


def test_the_figures_are_those_of_the_hidden_layers(table, swept):
    """One run written out: every document by itself, what stands in front of the down-projection."""
    found = of_table(str(swept), "ffn")[1]
    model, corpus = trained(found), load(found.run, swept)
    hidden = {0: [], 1: []}
    for layer, kept in hidden.items():
        ffn = model.blocks[layer].ffn
        ffn.register_forward_pre_hook(lambda module, inputs, kept=kept: kept.append(module.hidden(inputs[0])[0]))
    with torch.no_grad():
        for i in range(N_DOCS):
            tokens = corpus.val.tokens[corpus.val.offsets[i] : corpus.val.offsets[i + 1] - 1]
            model(torch.from_numpy(tokens.astype(np.int64))[None])
    ours = table[(table.row == "ReLU") & (table.seed == 1)]
    for layer, kept in hidden.items():
        zero_NF = torch.cat(kept) == 0
        of_layer = ours[ours.layer == layer + 1].set_index("quantity").value
        assert of_layer[ZEROS] == pytest.approx(zero_NF.double().mean().item())
        assert of_layer[DEAD] == zero_NF.all(dim=0).sum().item()


def test_fewer_documents_leave_more_units_dead(ask, table, outputs):
    one = ask("sparsity", "probe.n_docs=1", outputs)
    few, many = (t[(t.row == "ReLU") & (t.quantity == DEAD)].value.sum() for t in (one, table))
    assert few > many


def test_relu_is_zero_for_many_words_and_smooth_activations_for_none(table):
    zeros = table[table.quantity == ZEROS].groupby("row").value
    assert zeros.min()["ReLU"] > 0.2
    assert all(zeros.max()[row] < 0.001 for row in ("GELU", "SiLU", "SwiGLU"))


def test_claims_are_said_of_the_rows_that_they_are_about(table, resolved):
    said = table[table.claim != ""].groupby("claim")[["row", "quantity"]].agg(lambda column: sorted(set(column)))
    assert said.loc["relu_sparsity"].tolist() == [["GELU", "ReLU", "SiLU"], [ZEROS]]
    assert said.loc["no_dead_units"].tolist() == [["ReLU"], [DEAD]]
    assert len(said) == 2
    run = resolved("probe=world")[0].run
    assert [sparsity.claim(run, "relu_high_lr", quantity) for quantity in (ZEROS, DEAD, PPL)] == [
        "",
        "relu_high_lr",
        "relu_high_lr",
    ]
    assert not sparsity.claim(run, "recipe", ZEROS)


def test_shown_has_mean_and_range_over_the_seeds(table):
    frames = sparsity.shown(table)
    assert [len(frame) for frame in frames.values()] == [8, 8, 4]
    zeros = frames["Share of exact zeros"]
    line = zeros[(zeros.row == "ReLU") & (zeros.layer == 2)].iloc[0]
    found = table[(table.row == "ReLU") & (table.layer == 2) & (table.quantity == ZEROS)].value
    assert len(found) == line.seeds == 2
    assert (line["mean"], line.lowest, line.highest) == pytest.approx((found.mean(), found.min(), found.max()))
    assert frames["Units never active"]["of"].tolist() == [256] * 6 + [171] * 2


def probe(folder, *arguments):
    command = [sys.executable, str(ROOT / "probe.py"), "probe=sparsity", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_a_missing_table_is_one_sentence_with_the_command_and_leaves_no_folder(tmp_path):
    done = probe(tmp_path)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"probe.sweep=ffn: no such table lies in outputs; make it: python {ROOT}/train.py -m sweeps=ffn\n"
    )
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_a_missing_run_is_one_sentence_with_the_command(swept, tmp_path):
    folder = shutil.copytree(swept, tmp_path / "outputs")
    run = next((folder / "runs").glob("*-gelu-*"))
    (run / "summary.json").unlink()
    done = probe(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("probe.sweep=ffn: 1 of its 8 runs not there (GELU seed ")
    assert "train them: python train.py sweeps=ffn" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_from_the_command_line(swept, tmp_path):
    shutil.copytree(swept, tmp_path / "outputs")
    done = probe(tmp_path, "probe.n_docs=2")
    assert done.returncode == 0, done.stderr
    assert "Share of exact zeros" in done.stdout
    assert (tmp_path / "outputs" / "probes" / "sparsity" / "table.csv").exists()


@pytest.mark.slow
def test_relu_sparsity_and_no_dead_units(ask, tmp_path):
    """Both claims on full-size runs of one seed."""
    outputs = f"paths.outputs={tmp_path}"
    command = [sys.executable, str(ROOT / "train.py"), "-m", "sweeps=ffn", "seed=0", "logger=none", outputs]
    subprocess.run(command, check=True, capture_output=True)
    (folder,) = (path for path in (tmp_path / "sweeps").iterdir() if path.is_dir())  # beside it lies the index
    folder.rename(tmp_path / "sweeps" / "ffn")
    table = ask("sparsity", outputs)
    zeros = table[table.claim == "relu_sparsity"].groupby("row").value.mean()  # over layers of equal width
    assert 0.45 < zeros["ReLU"] < 0.75
    assert zeros["GELU"] < 0.001
    assert zeros["SiLU"] < 0.001
    assert table[table.claim == "no_dead_units"].value.tolist() == [0, 0]
