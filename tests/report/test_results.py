"""From records to rows; and the files that are written from them."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from lecture04 import report
from lecture04.config.messages import UserError
from lecture04.records.record import Status
from lecture04.report.comparison import judge_all
from lecture04.report.results import collect
from lecture04.report.screen import screen
from lecture04.stats import judge

PPL = {"base": (3.822, 3.815, 3.824), "rmsnorm": (3.825, 3.816, 3.829), "swiglu": (3.790, 3.785, 3.795)}
ODD = {**PPL, "bad": (3.9, math.nan, 3.8), "half": (3.8, None, "failed")}
FILES = ("table.txt", "table.md", "table.tex", "runs.csv", "contrasts.csv")


def write(folder):
    results = collect(folder)
    report.write(folder, results, judge_all(results))


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_values_and_statuses_are_those_of_the_records(table_folder):
    results = collect(table_folder(ODD))
    values = results.values("test/ppl")
    assert values["base"] == dict(enumerate(PPL["base"]))
    assert math.isnan(values["bad"][1])
    assert values["half"] == {0: 3.8}
    assert [results.status("half", seed) for seed in range(3)] == [Status.finished, Status.missing, Status.failed]
    assert results.status("half", 9) is Status.missing


def test_a_run_that_was_not_trained_enough_is_shown_and_compared_and_its_row_says_so(table_folder):
    folder = table_folder(PPL)
    finished = collect(folder)
    runs = json.loads((folder / "sweep.json").read_text())["rows"]["swiglu"]["runs"]
    for seed in ("0", "2"):
        summary = folder.parents[1] / "runs" / runs[seed] / "summary.json"
        summary.write_text(summary.read_text().replace("finished", "undertrained"))
    results = collect(folder)
    assert results.status("swiglu", 2) is Status.undertrained
    assert results.values("test/nll") == finished.values("test/nll")
    assert judge_all(results)[0].verdicts == judge_all(finished)[0].verdicts
    write(folder)
    said = (folder / "table.txt").read_text()
    assert "3.785" in said
    assert "not trained enough to beat the unigram model: 2 of 3 seeds" in said
    assert "diverged" not in said
    assert "not trained enough to beat the unigram model: swiglu" in screen(results, judge_all(results)[0])


def test_a_table_that_is_not_there_is_one_sentence_with_the_choices(table_folder):
    folder = table_folder(PPL)
    with pytest.raises(UserError, match="Choices: mine"):
        collect(folder.parent / "yours")


@pytest.mark.parametrize("key", ["delta", "looks", "rows", "design", "title"])
def test_a_manifest_that_lacks_a_key_names_the_command_that_writes_it_again(key, table_folder):
    folder = table_folder(PPL)
    manifest = json.loads((folder / "sweep.json").read_text())
    del manifest[key]
    (folder / "sweep.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=rf"says nothing of {key}; `python train.py -m sweeps=mine` writes it again"):
        collect(folder)


def test_a_row_that_lacks_a_key_and_a_manifest_without_its_command_are_said_too(table_folder):
    folder = table_folder(PPL, design="grid")
    manifest = json.loads((folder / "sweep.json").read_text())
    del manifest["command"]
    (folder / "sweep.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"says nothing of command, slice; `python train.py -m sweeps=mine`"):
        collect(folder)


def test_reporting_twice_gives_the_same_files_and_says_where(table_folder):
    folder = table_folder(ODD)
    said = list(report.report(folder))
    first = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    page = (folder / "report.html").stat()
    assert list(report.report(folder)) == said
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == first
    assert (folder / "report.html").stat().st_mtime_ns == page.st_mtime_ns, "what did not change is not made again"
    assert {*FILES, "report.html"} <= set(first)
    assert str(folder / "report.html") in said[-1]


def test_the_answer_is_there_before_anything_is_written(table_folder):
    folder = table_folder(PPL)
    answer = next(report.report(folder))
    assert "swiglu (-0.79 %) is better than base" in answer
    assert [path.name for path in folder.iterdir()] == ["sweep.json"]
    assert "family-adjusted p" not in answer
    assert "family-adjusted p" in next(report.report(folder, verbose=True))


def test_any_file_comes_back_from_the_records_alone(table_folder):
    folder = table_folder(ODD)
    write(folder)
    for name in FILES:
        before = (folder / name).read_bytes()
        (folder / name).unlink()
        write(folder)
        assert (folder / name).read_bytes() == before


def test_runs_csv_has_a_line_a_run_and_metric(table_folder):
    folder = table_folder(ODD)
    write(folder)
    lines = read(folder / "runs.csv")
    assert len({(line["row"], line["seed"], line["metric"]) for line in lines}) == len(lines)
    ppl = {
        (line["row"], int(line["seed"])): float(line["value"])
        for line in lines
        if line["metric"] == "test/ppl" and line["value"]
    }
    assert ppl == {
        (row, i): x for row, seeds in ODD.items() for i, x in enumerate(seeds) if isinstance(x, float) and x == x
    }
    assert {(line["row"], line["seed"], line["status"]) for line in lines if not line["metric"]} == {
        ("half", "1", "missing"),
        ("half", "2", "failed"),
    }


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        (ODD, {}),
        (PPL, {"design": "path", "delta": 0.005, "looks": 2}),
        (PPL, {"design": "grid", "slices": {"base": "x", "rmsnorm": "x", "swiglu": "y"}}),
    ],
    ids=["star", "path", "grid"],
)
def test_contrasts_csv_has_every_field_of_every_verdict(values, settings, table_folder):
    folder = table_folder(values, **settings)
    write(folder)
    lines = read(folder / "contrasts.csv")
    judged = judge_all(collect(folder))
    assert len(lines) == sum(len(one.verdicts) for one in judged)
    assert len({(line["metric"], line["family"], line["row"]) for line in lines}) == len(lines)
    assert {line["metric"] for line in lines if line["corrected"] == "True"} == {"test/nll"}
    assert {line["verdict"] for line in lines if line["corrected"] == "False"} <= {""}, "on the primary metric alone"
    expected = judge(
        judged[0].values,
        design=settings.get("design", "star"),
        slices=settings.get("slices"),
        delta=settings.get("delta"),
        looks=settings.get("looks", 1),
    )
    for v, line in zip(expected, lines, strict=False):
        assert (line["row"], line["reference"], line["family"]) == (v.row, v.reference, v.family)
        assert line["verdict"] == v.verdict
        numbers = {
            **{name: getattr(v, name) for name in ("delta", "half_width", "lower", "upper", "s", "q", "p_adjusted")},
            **{name: getattr(v, name) for name in ("p_welch", "alpha", "sd", "sd_reference", "smallest_effect")},
            **{name: getattr(v, name) for name in ("n", "n_reference", "df", "seeds_for_margin")},
            "margin": math.nan if v.margin is None else v.margin,
            "seeds_agree": v.favour,
            "seeds_paired": v.pairs,
            "seeds_needed": v.seeds_needed.n,
            "seeds_needed_least": v.seeds_needed.least,
            "seeds_needed_most": v.seeds_needed.most,
            "shown": 100 * math.expm1(v.delta),
            "diverged": v.diverged.m if v.diverged else 0,
        }
        for name, number in numbers.items():
            found = float(line[name]) if line[name] else math.nan
            assert found == pytest.approx(number, nan_ok=True), name
        assert line["blocked"] == str(v.blocked)
        assert line["excluded"] == "; ".join(v.excluded)


def test_a_table_of_one_row_has_no_contrasts_but_their_names(table_folder):
    folder = table_folder({"a": (3.8, 3.9)})
    write(folder)
    assert read(folder / "contrasts.csv") == []
    assert "verdict" in (folder / "contrasts.csv").read_text().split(",")


def test_a_table_that_cannot_be_read_keeps_no_other_from_being_rebuilt(table_folder):
    folder = table_folder(PPL)
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "sweep.json").write_text("{}")
    command = [sys.executable, "-m", "lecture04.cli.main", "report", "--outputs", str(folder.parents[1])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "swiglu" in done.stdout
    assert "broken/sweep.json: says nothing of name" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_report_is_rebuilt_without_torch(table_folder):
    folder = table_folder(PPL)
    script = (
        "import sys; from lecture04.report import report; from pathlib import Path\n"
        "list(report(Path(sys.argv[1]))); assert not {'torch', 'wandb'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)  # makes the page; the next one does not
    command = [sys.executable, "-m", "lecture04.cli.main", "report"]
    there = ["--outputs", str(folder.parents[1])]
    done = subprocess.run([*command, "mine", *there], capture_output=True, text=True, check=True)
    assert "swiglu" in done.stdout
    none = subprocess.run([*command, "--outputs", str(folder)], capture_output=True, text=True)
    assert none.returncode == 1
    assert "no table lies there yet" in none.stderr
    assert "Traceback" not in none.stderr


def test_a_metric_of_tokens_says_nothing_of_rows_with_other_tokens(make_results):
    results = make_results({"bytes": (3.8, 3.9), "char": (3.7, 3.6), "bytes too": (3.5, 3.4)})
    rows = {row: replace(about, tokens=row[:4]) for row, about in results.manifest.rows.items()}
    apart = results.under(replace(results.manifest, rows=rows))
    assert apart.other_tokens == ["char"]
    assert apart.values("test/ppl") == results.values("test/ppl") | {"char": {}}
    assert apart.of_row("char", "params") == results.of_row("char", "params"), "it is a fact of the model"
    assert results.other_tokens == []
