"""Pages from made-up evidence and a few real probes, in a folder as `make lecture` leaves it."""

import sys
from dataclasses import replace

import pandas as pd
import pytest

from lecture04.config import registry
from lecture04.lecture import ledger
from lecture04.lecture.claims import claims
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.items import ITEMS, Kind
from lecture04.lecture.pages import Builder, html, markdown
from lecture04.lecture.probes import text

REAL = ("activations", "models", "rope", "t5_buckets", "alibi")
MADE_UP = (
    *("floor", "unseen_pairs", "relu_sparsity", "pre_grads", "unigram"),
    *("standard_model", "ffn_in_noise", "post_needs_warmup", "uptrain_direct", "nope_by_document", "possessives"),
    *("stability", "textbook_equal"),
)
SEEDS, COLUMNS = 12, ("test/excess", "train/nll", "pronouns/accuracy", "params", "d_ff", "kv_per_token", "val/ppl")


def wide(kit):
    """A table as wide as they come: many seeds, many columns, long names."""
    rows = {f"lr {lr}: {ffn}, a rather long name of a row": 3.9 for lr in ("0.01", "0.03") for ffn in ("ReLU", "GELU")}
    slices = {row: row.partition(":")[0] for row in rows}
    ppl = {row: [3.9 + 0.01 * ((seed * 7 + i) % 5) for seed in range(SEEDS)] for i, row in enumerate(rows)}
    values = {"test/ppl": ppl, "pronouns/n": {row: [1458.0] * SEEDS for row in rows}}
    for column in COLUMNS:
        share = column == "pronouns/accuracy"
        values[column] = {row: [0.99 if share else x * 1000 for x in xs] for row, xs in ppl.items()}
    results = kit.made_up("relu_high_lr", values, design="grid", slices=slices)
    return results.under(replace(results.manifest, columns=list(COLUMNS)))


@pytest.fixture(scope="session")
def evidence(kit_in, cases, real, tmp_path_factory):
    """What is there for most pages; something is missing too."""

    def new_kit():
        return kit_in(tmp_path_factory.mktemp("kit"))

    found = [cases[name](new_kit(), True) for name in MADE_UP]
    probes = {name: table for one in found for name, table in one.probes.items()} | {name: real(name) for name in REAL}
    sweeps = {name: results for one in found for name, results in one.sweeps.items()}
    tests = {name: figures for one in found for name, figures in one.tests.items()}
    return Evidence(probes, sweeps | {"relu_high_lr": wide(new_kit())}, tests, {})


@pytest.fixture(scope="session")
def outputs(tmp_path_factory):
    """The folder of all results."""
    return tmp_path_factory.mktemp("results") / "outputs"


@pytest.fixture(scope="session")
def known(outputs, evidence):
    """The items, with the tables of the probes that are there."""
    items = [replace(item, folder=outputs / f"{item.kind}s" / item.name) for item in ITEMS]
    for item in items:
        if item.kind is Kind.probe and item.name in evidence.probes:
            frame = evidence.probes[item.name]
            item.folder.mkdir(parents=True)
            module = sys.modules[registry.entry("probe", item.name).module] if item.name in REAL else None
            frames = module.shown(frame) if hasattr(module, "shown") else {item.name: frame}
            sentence = module.sentence(frame) if module else f"What {item.name} says."
            body = text.markdown(frames, sentence)
            (item.folder / "table.md").write_text(f"# {item.name}\n\n{body}\nMade by `probe.py`.\n", encoding="utf-8")
            frame.to_csv(item.folder / "table.csv", index=False)
    return items


@pytest.fixture(scope="session")
def findings(evidence):
    """What the judges find."""
    return ledger.judge(claims(), evidence)


@pytest.fixture(scope="session")
def builder(outputs, evidence, findings, known):
    """Makes the pages."""
    folder = outputs / "lecture"
    folder.mkdir(parents=True)
    return Builder(folder, claims(), findings, evidence, range(6), "lecture04 lecture", {}, known)


@pytest.fixture(scope="session")
def lecture(builder):
    """The pages, written into outputs/lecture."""
    pd.DataFrame({"id": []}).to_csv(builder.folder / "claims.csv")
    lecture = builder.lecture()
    markdown.write(lecture, builder.folder)
    html.write(lecture, builder.folder)
    return lecture


@pytest.fixture(scope="session")
def written(lecture, builder):
    """The folder with all pages."""
    return builder.folder
