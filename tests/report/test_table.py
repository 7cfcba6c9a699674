"""Tables from records written to disk: what a cell says is what the records and the statistics say."""

import json
import math
import re
import subprocess
import sys

import pytest

from lecture04.errors import UserError
from lecture04.report import write
from lecture04.report.collect import collect
from lecture04.report.faces import markdown, terminal
from lecture04.report.table import build
from lecture04.stats.band import band

PPL = {"base": (3.822, 3.815, 3.824), "rmsnorm": (3.825, 3.816, 3.829), "swiglu": (3.790, 3.785, 3.795)}


@pytest.fixture
def table_folder(tmp_path):
    """`table_folder(ppl, design=...)`: a sweep's folder with runs of these perplexities; NaN diverged, None missing."""

    def make(ppl, *, design="star", columns=("test/ppl", "possessive/accuracy", "params"), **manifest):
        rows = {}
        for row, values in ppl.items():
            rows[row] = {"overrides": [], "mismatch": 0.0, "runs": {}, "other_code": []}
            for seed, value in enumerate(values):
                name = f"{re.sub('[^a-z0-9]', '', row)}-s{seed}"
                rows[row]["runs"][str(seed)] = name
                if value is not None:
                    run = tmp_path / "runs" / name
                    (run / "evals").mkdir(parents=True)
                    diverged = math.isnan(value)
                    summary = {"status": "diverged" if diverged else "finished", "metrics": {"params": 105_984}}
                    metrics = {
                        "test/ppl": None if diverged else value,
                        "possessive/accuracy": 0.98,
                        "possessive/n": 500,
                    }
                    metrics["test/nll"] = None if diverged else math.log(value)
                    (run / "summary.json").write_text(json.dumps(summary))
                    (run / "evals" / "key.json").write_text(json.dumps({"metrics": metrics}))
        folder = tmp_path / "sweeps" / "mine"
        folder.mkdir(parents=True)
        content = {
            "name": "mine",
            "title": "Mine",
            "design": design,
            "primary": "test/nll",
            "columns": list(columns),
            "evaluation": "key",
            "command": "python train.py -m sweeps=mine",
            "rows": rows,
        }
        (folder / "sweep.json").write_text(json.dumps(content | manifest))
        return folder

    return make


def cell(table, row, heading):
    return next(r for r in table.rows if r[0] == row)[table.headings.index(heading)]


def test_a_cells_difference_and_band_are_those_of_the_statistics(table_folder):
    table, *_ = build(collect(table_folder(PPL)))
    logs = {row: dict(enumerate(map(math.log, values))) for row, values in PPL.items()}
    for contrast in band(logs, design="star"):
        text = cell(table, contrast.row, "vs base, %")
        delta, half = map(float, re.findall(r"[-+]?\d+\.\d+", text))
        assert delta == pytest.approx(100 * math.expm1(contrast.delta), abs=0.006)
        # The band is symmetric in logs; the table shows half of its width in percent.
        width = 100 * (math.expm1(contrast.upper) - math.expm1(contrast.lower))
        assert half == pytest.approx(width / 2, abs=0.006)
        assert text.endswith("*") == (abs(contrast.delta) > contrast.half_width)


def test_every_seeds_value_stands_in_its_row(table_folder):
    table, *_ = build(collect(table_folder(PPL)))
    for row, values in PPL.items():
        assert [cell(table, row, f"seed {seed}") for seed in range(3)] == [f"{value:.3f}" for value in values]
        assert cell(table, row, "test ppl") == f"{sum(values) / 3:.3f}"


def test_a_path_has_steps_and_totals(table_folder):
    table, *_ = build(collect(table_folder(PPL, design="path")))
    last = [float(cell(table, "swiglu", h).split()[0]) for h in ("vs row before, %", "vs base, %")]
    means = {row: sum(map(math.log, values)) / 3 for row, values in PPL.items()}
    assert last[0] == pytest.approx(100 * math.expm1(means["swiglu"] - means["rmsnorm"]), abs=0.006)
    assert last[1] == pytest.approx(100 * math.expm1(means["swiglu"] - means["base"]), abs=0.006)


def test_a_diverged_row_says_so_and_is_never_compared(table_folder):
    table, *_ = build(collect(table_folder({**PPL, "bad": (3.9, math.nan, 3.8)})))
    assert cell(table, "bad", "test ppl") == "diverged 1/3"
    assert cell(table, "bad", "vs base, %") == ""
    assert cell(table, "bad", "seed 1") == "diverged"
    assert cell(table, "bad", "params") == "105,984"
    assert any("1 of 3 seeds diverged" in line for line in table.legend)


def test_rows_that_are_not_there_yet_are_dashes(table_folder):
    table, *_ = build(collect(table_folder({**PPL, "later": (None, None, None), "half": (3.8, None, None)})))
    assert cell(table, "later", "test ppl") == "-"
    assert cell(table, "half", "seed 0") == "3.800"
    assert cell(table, "half", "seed 2") == "-"


def test_one_seed_gives_no_band_and_says_what_it_takes(table_folder):
    table, *_ = build(collect(table_folder({"a": (3.8,), "b": (3.9,)})))
    assert "±" not in cell(table, "b", "vs a, %")
    assert any("No band" in line for line in table.legend)


def test_a_mismatch_of_parameters_is_warned_of(table_folder):
    folder = table_folder(PPL, columns=("test/ppl", "d_ff"))
    manifest = json.loads((folder / "sweep.json").read_text())
    manifest["rows"]["swiglu"]["mismatch"] = 0.031
    (folder / "sweep.json").write_text(json.dumps(manifest))
    assert any("swiglu" in line and "parameters" in line for line in build(collect(folder))[0].legend)


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_the_terminals_text_keeps_every_figure_and_the_width(table_folder, width):
    tables = build(collect(table_folder(PPL)))
    text = terminal(tables, width)
    assert all(len(line) <= width for line in text.splitlines())
    for row in tables[0].rows:
        for figure in row:
            assert figure in text


def test_names_with_marks_do_not_break_markdown(table_folder):
    text = markdown(build(collect(table_folder({"a|b": (3.8, 3.9), "<c> *d*": (3.7, 3.8)}))))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert "a\\|b" in text
    assert "<c>" not in text
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines[:4]}) == 1


def test_writing_twice_gives_the_same_files_and_says_where(table_folder):
    folder = table_folder(PPL)
    said = write(folder)
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert write(folder) == said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    for name in ("table.md", "table.txt", "runs.csv"):
        assert name in said
        assert name in first


def test_the_report_is_rebuilt_without_torch(table_folder):
    folder = table_folder(PPL)
    script = (
        "import sys; from lecture04.report import write; from pathlib import Path\n"
        "write(Path(sys.argv[1])); assert 'torch' not in sys.modules and 'wandb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "lecture04.report", "mine", "--outputs", str(folder.parents[1])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "swiglu" in done.stdout


def test_a_table_that_is_not_there_is_one_sentence_with_the_choices(table_folder):
    folder = table_folder(PPL)
    with pytest.raises(UserError, match="Choices: mine"):
        collect(folder.parent / "yours")
