"""Rows of a sweep: every seed, a mean that looks like its verdict, and the noise behind it."""

import math
import re
from pathlib import Path

import pytest

from lecture04 import lecture
from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.plots import PLOTS
from lecture04.lecture.plots.rows import rows_of
from lecture04.report.comparison import judge_metric
from lecture04.report.figures.style import LOOKS, kind

PPL = {"2017": 3.815, "+ pre-norm": 3.9, "+ RMSNorm": 3.905, "+ SwiGLU": 3.9, "+ RoPE": 3.7, "+ GQA": 3.701}


@pytest.fixture
def walked(kit):
    values = {"test/ppl": {row: kit.around(mean, 0.008) for row, mean in PPL.items()}}
    return Evidence(sweeps={"recipe": kit.made_up("recipe", values, design="path")})


def of(axes, gid):
    return [artist for artist in [*axes.lines, *axes.patches] if artist.get_gid() == gid]


def test_a_step_is_drawn_in_the_look_of_its_verdict(walked):
    """One that is better is not in the colour of worse."""
    figure = PLOTS["recipe"](walked)
    (axes,) = figure.axes
    verdicts = judge_metric(walked.sweep("recipe"), "test/ppl").by_row("step")
    found = {v.verdict for v in verdicts.values()}
    assert {"better", "worse", "within noise"} <= found
    means = dict(zip(PPL, of(axes, "mean"), strict=True))
    for row, v in verdicts.items():
        look = LOOKS[kind(v.verdict)]
        assert means[row].get_color() == look.colour.light
        assert means[row].get_marker() == look.marker
        assert (means[row].get_markerfacecolor() == look.colour.light) == look.filled


def test_every_seed_is_there_and_the_noise_lies_round_the_row_before(walked):
    results = walked.sweep("recipe")
    (axes,) = PLOTS["recipe"](walked).axes
    values = results.values("test/ppl")
    assert [sorted(line.get_xdata()) for line in of(axes, "seeds")] == [sorted(values[row].values()) for row in PPL]
    verdicts = judge_metric(results, "test/ppl").by_row("step")
    for bar, v in zip(of(axes, "noise"), verdicts.values(), strict=True):
        logs = [math.log(x) for x in values[v.reference].values()]
        mean = sum(logs) / len(logs)
        ends = bar.get_x(), bar.get_x() + bar.get_width()
        assert ends == pytest.approx((math.exp(mean - v.half_width), math.exp(mean + v.half_width)))


def test_a_diverged_row_has_its_seeds_that_did_not_and_no_mean(kit):
    results = kit.made_up("x", {"test/ppl": {row: kit.around(3.8) for row in "abc"}}, statuses={("b", 0): "diverged"})
    (axes,) = rows_of(results, "test/ppl").axes
    assert [len(line.get_xdata()) for line in of(axes, "seeds")] == [3, 2, 3]
    assert len(of(axes, "mean")) == 2
    assert any(text.get_text() == "diverged 1/3" for text in axes.texts)


def test_a_missing_run_is_no_plot_yet(kit):
    results = kit.made_up("x", {"test/ppl": {"a": kit.around(3.8)}}, statuses={("a", 1): "missing"})
    with pytest.raises(NotYetError):
        rows_of(results, "test/ppl")


def test_some_rows_alone(kit, cases):
    figure = PLOTS["scratch"](cases["scratch_gqa"](kit, True))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["MHA", "GQA-2 from scratch", "MQA from scratch"]


def test_the_cache_of_each_row_is_a_bar(kit, cases):
    evidence = cases["kv_per_token"](kit, True)
    (axes,) = PLOTS["recipe_cache"](evidence).axes
    kept = evidence.sweep("recipe").values("kv_per_token")
    assert [bar.get_width() for bar in axes.patches] == [seeds[0] for seeds in kept.values()]


def test_a_share_of_collapses_counts_the_diverged_runs(kit):
    statuses = {("post", seed): "diverged" for seed in range(7)}
    values = {"val/ppl": {row: [4.0 + 0.01 * seed for seed in range(10)] for row in ("pre", "post")}}
    evidence = Evidence(sweeps={"collapse": kit.made_up("collapse", values, statuses=statuses)})
    (axes,) = PLOTS["collapse"](evidence).axes
    assert [float(line.get_xdata()[0]) for line in of(axes, "share")] == [0.0, 0.7]


def test_the_seeds_stand_beside_the_lectures(kit, cases):
    evidence = cases["standard_model"](kit, True)
    (axes,) = PLOTS["seeds"](evidence).axes
    values = evidence.sweep("norm").values("test/ppl")["LayerNorm"]
    (ours,), (theirs,) = of(axes, "seeds"), of(axes, "lecture")
    assert sorted(ours.get_xdata()) == sorted(values.values())
    assert list(theirs.get_xdata()) == [3.851]


@pytest.mark.parametrize("name", ["zeros", "dead_units"])
def test_units_are_counted_by_row_and_seed(kit, cases, name):
    evidence = Evidence(probes={**cases["relu_sparsity"](kit, True).probes, **cases["relu_high_lr"](kit, True).probes})
    (axes,) = PLOTS[name](evidence).axes
    rows = {"zeros": 3 * 2, "dead_units": 3 + 4}
    assert len(axes.get_yticks()) == rows[name]
    points = sum(len(line.get_xdata()) for line in of(axes, "seeds"))
    assert points == {"zeros": 3 * 2 * 3, "dead_units": 3 * 2 * 3 + 4}[name]


def test_no_colour_is_of_the_lectures_own():
    """Verdicts and lines look as in every table and page: report/figures/style.py has the one palette."""
    folder = Path(lecture.__file__).parent
    own = {
        file.name: re.findall(r"#[0-9a-fA-F]{6}\b", file.read_text(encoding="utf-8"))
        for file in folder.rglob("*.*")
        if file.suffix in (".py", ".css", ".jinja")
    }
    assert "rows.py" in own
    assert "lecture.css" in own
    assert {name: found for name, found in own.items() if found} == {}
