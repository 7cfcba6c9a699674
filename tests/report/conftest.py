"""Results made by hand: in memory, and as records on disk."""

import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from lecture04.report.manifest import Manifest
from lecture04.report.results import Results

MISSING, FAILED = None, "failed"
COLUMNS = ("test/ppl", "pronouns/accuracy", "params", "d_ff", "train/nll")


def manifest_of(values, slices=None, **settings):
    """The manifest of rows of perplexities."""
    rows = {
        row: {
            "overrides": [],
            "evaluation": "key",
            "mismatch": 0.0,
            "other_code": [],
            "runs": {str(seed): f"{i}-s{seed}" for seed in range(len(seeds))},
            **({"slice": slices[row]} if slices else {}),
        }
        for i, (row, seeds) in enumerate(values.items())
    }
    return {
        "name": "mine",
        "title": "Mine",
        "design": "star",
        "primary": "test/nll",
        "columns": list(COLUMNS),
        "delta": None,
        "looks": 1,
        "command": "python train.py -m sweeps=mine",
        "rows": rows,
    } | settings


def measured(ppl):
    """What a run of a perplexity measures, NaN for a diverged one; its accuracy falls as the perplexity rises."""
    nll = math.log(ppl)
    return {
        "test/ppl": ppl,
        "test/nll": nll,
        "train/nll": nll - 0.03,
        "pronouns/accuracy": 0.98 if math.isnan(ppl) else round(500 * (1 - ppl / 400)) / 500,
        "pronouns/n": 500,
        "params": 105_984,
        "d_ff": 256,
    }


@pytest.fixture
def make_results():
    """`make_results({row: perplexities}, design=..., delta=...)`; NaN diverged, MISSING and "failed" as they say."""

    def make(values, slices=None, **settings):
        content, lines = manifest_of(values, slices, **settings), []
        for row, seeds in values.items():
            for seed, value in enumerate(seeds):
                run = {"row": row, "seed": seed, "run": content["rows"][row]["runs"][str(seed)]}
                if value in (MISSING, FAILED):
                    lines.append(run | {"status": value or "missing", "metric": "", "value": math.nan})
                    continue
                diverged = math.isnan(value)
                for metric, x in measured(value).items():
                    hidden = diverged and metric == "pronouns/accuracy"
                    status = "diverged" if diverged else "finished"
                    lines.append(run | {"status": status, "metric": metric, "value": math.nan if hidden else x})
        columns = ["row", "seed", "metric", "value", "status", "run"]
        manifest = Manifest.from_json(content, file="sweep.json", name="mine")
        return Results(Path("outputs/sweeps/mine"), manifest, pd.DataFrame(lines, columns=columns))

    return make


@pytest.fixture
def table_folder(tmp_path):
    """As `make_results`, but written as records; it is the table's folder."""

    def make(values, slices=None, **settings):
        manifest = manifest_of(values, slices, **settings)
        for row, seeds in values.items():
            for seed, value in enumerate(seeds):
                run = tmp_path / "runs" / manifest["rows"][row]["runs"][str(seed)]
                if value is MISSING:
                    continue
                (run / "evals").mkdir(parents=True)
                if value == FAILED:
                    summary = {"status": "failed", "error": "boom", "metrics": {}}
                else:
                    summary = {"status": "diverged" if math.isnan(value) else "finished", "metrics": {}}
                    metrics = {name: None if math.isnan(x) else x for name, x in measured(value).items()}
                    (run / "evals" / "key.json").write_text(json.dumps({"metrics": metrics}))
                (run / "summary.json").write_text(json.dumps(summary))
        folder = tmp_path / "sweeps" / "mine"
        folder.mkdir(parents=True)
        (folder / "sweep.json").write_text(json.dumps(manifest))
        return folder

    return make


@pytest.fixture
def cell():
    """`cell(table, row, heading)`: the cell that stands there."""

    def cell(table, row, heading):
        (found,) = (cells for cells in table.rows if cells[0].text == row)
        return found[table.headings.index(heading)]

    return cell


@pytest.fixture
def words():
    """`words(table)`: the legend as one text, without line breaks."""
    return lambda table: re.sub(r"\s+", " ", "\n".join(map(str, table.legend)))
