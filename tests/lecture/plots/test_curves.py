"""Plots of curves: everything that they should show is in them."""

import json

import numpy as np
import pytest

from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.plots import curves as plots
from lecture04.lecture.plots import save
from lecture04.report.figures.style import LOOKS

ENCODINGS = {"sinusoidal": 3.0, "learned": 4.0, "T5": 0.3, "RoPE": 0.2, "NoPE": 0.9, "ALiBi": 0.0, "RoPE, YaRN": 0.1}


@pytest.fixture
def extrapolated(kit):
    """Runs whose excess is 0.05 up to position 64 and rises from there."""
    results = kit.made_up("extrapolation", {"test/nll": {row: kit.around(1.4) for row in ENCODINGS}}, folder=kit.folder)
    rng = np.random.default_rng(0)
    for row, rise in ENCODINGS.items():
        for seed in range(3):
            x = np.arange(512)
            excess = 0.05 + rise * np.clip((x - 64) / 448, 0, None) ** 0.5 + rng.normal(0, 0.05, 512)
            evals = results.records[row][seed].folder / "evals"
            evals.mkdir(parents=True)
            curves = {"position": x.tolist(), "nll": (1.3 + excess).tolist(), "excess": excess.tolist()}
            (evals / "key.json").write_text(json.dumps({"metrics": {}, "curves": curves}))
    return Evidence(sweeps={"extrapolation": results})


@pytest.fixture
def warmed(kit):
    slices = ("lr 1e-3, no warm-up", "lr 1e-3, 200 steps", "lr 5e-3, no warm-up", "lr 5e-3, 200 steps")
    of = {f"{slice_}: {row}": slice_ for slice_ in slices for row in ("pre", "post")}
    ends = {row: kit.around(42.0 if row == "lr 5e-3, no warm-up: post" else 4.2, 0.1) for row in of}
    results = kit.made_up("warmup", {"val/ppl": ends}, design="grid", slices=of, folder=kit.folder)
    for row, values in ends.items():
        for seed, value in enumerate(values):
            kit.write_curve(results, row, seed, [{"step": 500, "val/ppl": value}])
    line = ("unigram", "val", "unigram", "perplexity", 44.0)
    return Evidence(sweeps={"warmup": results}, probes={"unigram": kit.rows("claim split model quantity value", line)})


@pytest.fixture
def uptrained(kit):
    direct, later = {"MHA": 3.85}, {"MHA": 3.85, "GQA-2 from scratch": 3.86, "MQA from scratch": 3.83}
    for kind, worse in (("GQA-2", 1.0), ("MQA", 2.0)):
        for how, ppl in (("mean", 4.6), ("first", 5.2), ("random", 12.0)):
            direct[f"{kind}, {how}"] = ppl * worse
            later |= {f"{kind}, {how}, 75": 3.9 + (ppl - 4.6) * 0.1, f"{kind}, {how}, 250": 3.87}
    return Evidence(
        sweeps={
            "uptrain_direct": kit.made_up(
                "uptrain_direct", {"test/ppl": {k: kit.around(v, v / 30) for k, v in direct.items()}}
            ),
            "uptrain": kit.made_up("uptrain", {"test/ppl": {k: kit.around(v, 0.02) for k, v in later.items()}}),
        }
    )


def saved(figure, kit, name):
    path = kit.folder / f"{name}.png"
    save(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_xticklabels()
    assert figure.axes[0].get_ylabel()


def test_extrapolation_has_a_line_and_a_band_a_row(extrapolated, kit):
    figure = plots.extrapolation(extrapolated)
    saved(figure, kit, "extrapolation")
    for axes in figure.axes:
        curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
        assert [line.get_label() for line in curves] == list(ENCODINGS)
        looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in curves}
        assert len(looks) == len(ENCODINGS)
        assert len(axes.collections) == len(ENCODINGS)
        assert any(list(line.get_xdata()) == [64, 64] for line in axes.lines)
    assert "nats a token" in figure.axes[0].get_ylabel()


def test_smoothing_is_over_stretches_of_16_positions():
    np.testing.assert_allclose(plots.smoothed(np.arange(40.0)), [7.5, 23.5])


def test_without_curves_there_is_no_plot_yet(kit):
    results = kit.made_up("extrapolation", {"test/nll": {"RoPE": kit.around(1.4)}}, folder=kit.folder)
    with pytest.raises(NotYetError):
        plots.extrapolation(Evidence(sweeps={"extrapolation": results}))


def test_warmup_has_every_seed_of_every_cell(warmed, kit):
    figure = plots.warmup(warmed)
    saved(figure, kit, "warmup")
    (axes,) = figure.axes
    seeds = [line for line in axes.lines if line.get_gid() == "seeds"]
    assert len(seeds) == 24
    (legend,) = figure.legends
    assert [label.get_text() for label in legend.get_texts()] == ["pre-norm", "post-norm", "diverged"]
    assert not [line for line in seeds if line.get_marker() == LOOKS["diverged"].marker]


def test_a_cell_that_diverged_has_crosses(kit, cases):
    (axes,) = plots.warmup(cases["post_needs_warmup"](kit, True)).axes
    seeds = [line for line in axes.lines if line.get_gid() == "seeds"]
    crosses = [line for line in seeds if line.get_marker() == LOOKS["diverged"].marker]
    assert len(crosses) == 3
    assert min(float(line.get_ydata()[0]) for line in crosses) > 40


def test_stability_has_a_line_a_seed_and_a_cross_where_one_diverged(kit, cases):
    (axes,) = plots.stability(cases["stability"](kit, True)).axes
    assert sum(line.get_gid() == "seeds" for line in axes.lines) == 6
    crosses = [line for line in axes.lines if line.get_marker() == LOOKS["diverged"].marker and len(line.get_xdata())]
    assert len(crosses) == 3


def test_uptraining_has_a_line_a_merge(uptrained, kit):
    figure = plots.uptraining(uptrained)
    saved(figure, kit, "uptraining")
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines][:3] == ["mean", "first", "random"]
