"""The figures for papers: what they draw is what the runs and the protocol say, and the files need no fonts."""

import json
import math
import re
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest

from lecture04.report.comparison import judge_primary
from lecture04.report.figures import SETTINGS, data, paper, write
from lecture04.report.figures.style import LOOKS, kind
from lecture04.report.results import collect

NAN = math.nan
ROWS = {"base": (3.80, 3.82, 3.81), "$x_1$ & <b>": (3.30, 3.31, 3.33), "wild": (3.9, NAN, NAN), "later": (None,) * 3}


@pytest.fixture
def sweep(table_folder):
    """`sweep(rows, ...)`: a table's folder whose runs have learning curves and curves by position."""

    def make(rows, **settings):
        folder = table_folder(rows, **settings)
        manifest = json.loads((folder / "sweep.json").read_text())
        for row, about in manifest["rows"].items():
            for seed, name in about["runs"].items():
                run, value = folder.parents[1] / "runs" / name, rows[row][int(seed)]
                if not run.exists():
                    continue
                lines = [{"step": s, "train/loss": int(seed) + 1.0 + 10 / s} for s in (10, 20, 30)]
                (run / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines) + '{"step": 40, "tra')
                evaluation = run / "evals" / "key.json"
                if evaluation.exists() and not math.isnan(value):
                    curves = {"position": list(range(64)), "excess": [1 / (1 + p) for p in range(64)]}
                    evaluation.write_text(json.dumps(json.loads(evaluation.read_text()) | {"curves": curves}))
        return folder

    return make


def test_a_learning_curve_is_the_mean_of_the_finished_seeds_in_their_range(sweep):
    results = collect(sweep(ROWS))
    curves = data.learning(results, "train/loss")
    assert curves["base"].x == [10, 20, 30], "a torn last line does not count"
    assert curves["base"].mean == pytest.approx([3.0, 2.5, 2 + 1 / 3])
    assert curves["base"].low == pytest.approx([2.0, 1.5, 1 + 1 / 3])
    assert curves["base"].high == pytest.approx([4.0, 3.5, 3 + 1 / 3])
    assert curves["wild"].n == 1, "diverged runs are left out where another finished"
    assert "later" not in curves
    assert data.learning(results, "no such quantity") == {}


def test_a_curve_by_position_has_means_over_stretches(sweep):
    curves = data.positions(collect(sweep(ROWS)))
    assert curves["base"].x[:2] == [0.5, 2.5], "64 positions in 32 stretches"
    assert curves["base"].mean[0] == pytest.approx((1 + 1 / 2) / 2)
    assert curves.keys() == {"base", "$x_1$ & <b>", "wild"}


def test_long_curves_are_thinned_and_keep_their_ends():
    curve = data._curve([{float(x): x * 2.0 for x in range(1000)}])
    assert curve is not None
    assert len(curve.x) == data.MOST_POINTS
    assert (curve.x[0], curve.x[-1]) == (0, 999)
    assert curve.mean == [2 * x for x in curve.x]


def test_the_axis_shows_what_was_reached_and_not_the_first_steps():
    curve = data.Curve([1, 50, 100], [900.0, 3.0, 2.0], [800.0, 2.9, 1.9], [1000.0, 3.1, 2.1], 3)
    low, high = data.y_range([curve])
    assert 1.5 < low < 1.9
    assert 3.1 < high < 3.5
    low, _ = data.y_range([curve], best=0.0)
    assert -1 < low < 0, "the best possible stands on it, with room for its label"


def test_a_waterfall_goes_from_mean_to_mean_and_stops_at_a_diverged_row(sweep):
    rows = {"start": (3.8, 3.9), "a": (3.5, 3.6), "bad": (3.4, NAN), "b": (3.3, 3.2)}
    start, a, bad, b = data.waterfall(judge_primary(collect(sweep(rows, design="path"))))
    geometric = math.sqrt(3.5 * 3.6)
    assert math.isnan(start.start)
    assert (start.end, a.start, a.end) == pytest.approx((math.sqrt(3.8 * 3.9), math.sqrt(3.8 * 3.9), geometric))
    assert a.low < a.end < a.high
    assert (bad.verdict, b.verdict) == ("diverged 1/2", "no verdict")
    assert math.isnan(bad.end)
    assert math.isnan(b.low)


def test_a_strip_has_every_run_that_ended(sweep):
    results = collect(sweep(ROWS))
    seeds = data.strip(results, judge_primary(results))
    assert [(s.row, s.seed) for s in seeds] == [(row, seed) for row in list(ROWS)[:3] for seed in range(3)]
    assert sum(math.isnan(s.value) for s in seeds) == 2


def test_the_forests_points_intervals_and_grey_band_are_drawn_where_they_belong(sweep):
    judged = judge_primary(collect(sweep(ROWS, delta=0.02)))
    figure = paper.forest(judged, "star")
    assert figure is not None
    axes = figure.axes[0]
    verdict = judged.by_row("star").get("$x_1$ & <b>")
    assert verdict is not None
    bars = {bar.get_y() + 0.5: (bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches}
    assert bars[0] == pytest.approx((judged.shown(-verdict.half_width), judged.shown(verdict.half_width)))
    points = [x for x in axes.lines if x.get_marker() == LOOKS["better"].marker]
    assert [x.get_xdata()[0] for x in points] == pytest.approx([judged.shown(verdict.delta)])
    dotted = sorted(x.get_xdata()[0] for x in axes.lines if x.get_linestyle() == ":")
    assert dotted == pytest.approx([judged.shown(-0.02), judged.shown(0.02)])
    assert "better" in {text.get_text() for text in axes.texts}


def test_verdicts_differ_without_their_colours():
    assert len({(look.shape, look.filled) for look in LOOKS.values()}) == len(LOOKS)
    assert {kind(word) for word in ("diverged 1/3", "better")} == {"diverged", "better"}


@pytest.mark.parametrize(
    ("rows", "settings", "expected"),
    [
        (ROWS, {}, {"forest", "strip", "curves", "positions"}),
        ({"a": (3.8, 3.9), "b": (3.7, 3.6)}, {"design": "path"}, {"forest-step", "forest-total", "strip", "waterfall"}),
        ({"a": (NAN, NAN), "b": (NAN, NAN)}, {}, {"curves"}),
        ({"a": (None,), "b": (None,)}, {}, set()),
        pytest.param(
            {f"row {i}": (3.8, 3.9 - i / 100) for i in range(40)},
            {},
            {"forest", "strip", "curves", "positions"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_figure_that_can_be_filled_is_written_in_each_format(rows, settings, expected, sweep, recwarn):
    folder = sweep(rows, **settings)
    files = write(folder)
    assert {path.stem for path in files} >= expected
    assert "waterfall" in expected or "waterfall" not in {path.stem for path in files}
    for name in {path.stem for path in files}:
        assert (folder / "figures" / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert {path.suffix for path in files if path.stem == name} == {".png", ".svg", ".pdf"}
    said = [w for w in recwarn if not issubclass(w.category, ResourceWarning)]  # those are of other tests' commands
    assert not [str(w.message) for w in said if "Glyph" not in str(w.message)]
    assert_letters_are_in(files)


def assert_letters_are_in(files):
    """Outlines in SVG, whole fonts in PDF."""
    for path in files:
        if path.suffix == ".svg":
            text = path.read_text()
            assert "<text" not in text, "letters are outlines"
            assert "font-family" not in text
        if path.suffix == ".pdf":
            content = path.read_bytes()
            streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S)
            whole = content + b"".join(zlib.decompress(s) for s in streams if s[:1] == b"x")
            assert b"/Type3" not in whole
            assert b"/FontFile2" in whole


@pytest.mark.slow
def test_writing_twice_gives_the_same_bytes_and_leaves_no_old_figure(sweep):
    folder = sweep(ROWS)
    first = {path: path.read_bytes() for path in write(folder)}
    (folder / "figures" / "waterfall.png").write_bytes(b"of an older table")
    assert {path: path.read_bytes() for path in write(folder)} == first
    assert {*(folder / "figures").iterdir()} == {*first}


def test_names_are_no_formulas(sweep):
    with matplotlib.rc_context(SETTINGS):
        made = paper.figures(collect(sweep({"$x_1$": (3.8, 3.9), "$ broken": (3.7, 3.6)})))
        for figure in made.values():
            figure.canvas.draw()  # a formula that is none would raise
    labels = [label.get_text() for label in made["strip"].axes[0].get_yticklabels()]
    assert labels == ["$x_1$", "$ broken"]


@pytest.mark.slow
def test_the_command_says_where_it_put_things_and_imports_no_torch(sweep):
    folder = sweep(ROWS)
    code = "import sys; from lecture04.cli.main import main\nmain()\nassert not {'torch', 'wandb'} & set(sys.modules)"
    command = [sys.executable, "-c", code, "report", "--figures", "mine", "--outputs", str(folder.parents[1])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    where, names = done.stdout.strip().split(": ")
    assert Path(where) == folder / "figures"
    assert all((Path(where) / f"{name}.svg").exists() for name in names.split(", "))


def test_a_seeds_difference_is_to_the_same_seed_and_their_mean_is_the_difference_shown(sweep):
    judged = judge_primary(collect(sweep(ROWS)))
    verdict = judged.by_row("star")["$x_1$ & <b>"]
    dots = data.seed_differences(judged, verdict)
    assert dots == pytest.approx({s: 100 * (ROWS["$x_1$ & <b>"][s] / ROWS["base"][s] - 1) for s in range(3)})
    mean = sum(math.log1p(x / 100) for x in dots.values()) / 3
    assert mean == pytest.approx(verdict.delta)
    assert data.dots_in_words(judged, "star", "base") == "small dots: the single seeds, each less the same seed of base"
    assert data.seed_differences(judged, judged.by_row("star")["wild"]) == {}


def test_where_a_seed_is_missing_the_differences_are_to_the_references_mean(sweep):
    judged = judge_primary(collect(sweep({"base": (3.8, 3.9, None), "b": (3.6, 3.7, 3.8)})))
    (verdict,) = judged.verdicts
    dots = data.seed_differences(judged, verdict)
    mean = math.sqrt(3.8 * 3.9)
    assert dots == pytest.approx({0: 100 * (3.6 / mean - 1), 1: 100 * (3.7 / mean - 1), 2: 100 * (3.8 / mean - 1)})
    assert "less that row's mean" in data.dots_in_words(judged, "star", "base")
    assert sum(math.log1p(x / 100) for x in dots.values()) / 3 == pytest.approx(verdict.delta)


def test_the_forest_of_a_paper_has_every_seed_and_says_which_side_is_better(sweep):
    judged = judge_primary(collect(sweep(ROWS)))
    axes = paper.forest(judged, "star").axes[0]
    (dots, *_) = [x for x in axes.lines if x.get_gid() == "seeds"]
    verdict = judged.by_row("star")["$x_1$ & <b>"]
    assert list(dots.get_xdata()) == pytest.approx([*data.seed_differences(judged, verdict).values()])
    assert axes.get_xlabel() == "test ppl: difference to base in % (left is better)"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([5.0], [5.0]),
        ([2.0, 8.0], [2.0, 8.0]),
        ([5.0, 5.0], [4.5, 5.5]),
        ([5.2, 5.0, 5.1], [6.1, 4.1, 5.1]),
        ([0.0, 0.0, 9.0], [0.0, 1.0, 9.0]),
        ([10.0, 10.0], [9.0, 10.0]),
        ([4.0, 4.9, 5.7], [pytest.approx(3.8666667), pytest.approx(4.8666667), pytest.approx(5.8666667)]),
        ([5.0] * 21, [i / 2 for i in range(21)]),
        ([], []),
    ],
)
def test_labels_are_spread_as_little_as_can_be(wanted, expected):
    assert data.spread(wanted, 1.0, 0.0, 10.0) == pytest.approx(expected)


def test_the_floor_is_the_nll_less_the_excess_and_the_same_for_all_runs(sweep):
    folder = sweep({"base": (3.80, 3.82), "b": (3.30, NAN)})
    assert data.floor(collect(folder), "val") is None, "a source without a true distribution has none"
    for file in sorted(folder.parents[1].glob("runs/*/evals/key.json")):
        content = json.loads(file.read_text())
        nll = content["metrics"]["test/nll"]
        more = {"test/excess": nll and nll - 1.1, "val/nll": nll and nll + 0.2, "val/excess": nll and nll - 1.1}
        file.write_text(json.dumps(content | {"metrics": content["metrics"] | more}))
    results = collect(folder)
    assert data.floor(results, "val") == pytest.approx(1.3)
    assert data.best_possible(results, "test/ppl") == pytest.approx(math.exp(1.1))
    assert data.best_possible(results, "test/nll") == pytest.approx(1.1)
    assert data.best_possible(results, "pronouns/accuracy") is None
    axes = paper.curves(results).axes
    assert not [x for x in axes[0].lines if x.get_linestyle() == ":"], "train/excess is not known"
    first = next(folder.parents[1].glob("runs/0-s0/evals/key.json"))
    content = json.loads(first.read_text())
    first.write_text(json.dumps(content | {"metrics": content["metrics"] | {"val/excess": 0.0}}))
    assert data.floor(collect(folder), "val") is None, "one run was measured on other tokens"


def test_curves_have_their_names_at_their_ends(sweep):
    figure = paper.curves(collect(sweep(ROWS)))
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"base", "$x_1$ & <b>", "wild"}
    assert figure.axes[0].get_ylabel().endswith("(lower is better)")
    assert not figure.legends


def test_a_grid_is_drawn_from_slice_to_slice_with_a_line_a_row(sweep):
    rows = {"x: a": (3.0, 3.2), "x: b": (4.0, 4.4), "y: a": (5.0, NAN), "y: b": (6.0, 6.2)}
    slices = {row: row[0] for row in rows}
    results = collect(sweep(rows, slices=slices, design="grid"))
    judged = judge_primary(results)
    found = data.grid(results, judged)
    assert list(found) == ["a", "b"]
    assert found["b"] == {"x": [4.0, 4.4], "y": [6.0, 6.2]}
    figure = paper.grid(results, judged)
    assert figure is not None
    (axes,) = figure.axes
    a, dots, b, _ = (line.get_ydata() for line in axes.lines)
    assert list(a) == pytest.approx([3.1, 5.0]), "a run that diverged is left out"
    assert list(dots) == pytest.approx([3.0, 3.2, 5.0])
    assert list(b) == pytest.approx([4.2, 6.1])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["x", "y"]


def test_a_table_of_one_slice_or_of_another_design_has_no_grid(sweep):
    results = collect(sweep(ROWS))
    assert paper.grid(results, judge_primary(results)) is None
    one = results.under(replace(results.manifest, design="grid"))
    assert data.grid(one, judge_primary(results)) == {}
