"""Pictures of probes: every figure of the table is in them, beside the lecture's where it gives one."""

import math

import pytest

from lecture04.lecture.claims import claim
from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.plots import PLOTS, save
from lecture04.lecture.plots.probes import FLOOR, log_rows

FAST = ("activations", "ffn_params", "norm_invariance", "mla", "t5_buckets", "alibi", "models", "residual_paths")


def lines_of(axes):
    return [list(line.get_ydata()) for line in axes.lines]


@pytest.mark.parametrize("name", FAST)
def test_it_is_drawn_with_names_at_its_axes(real, tmp_path, name):
    figure = PLOTS[name](Evidence(probes={name: real(name)}))
    save(figure, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[-1].get_xlabel() or figure.axes[-1].get_xticklabels()
    assert figure.get_size_inches()[0] < 7  # a phone shows its letters


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_without_its_evidence_there_is_no_plot_yet(name):
    with pytest.raises(NotYetError):
        PLOTS[name](Evidence())


def test_ropes_scores_lie_on_the_lectures(real):
    evidence = Evidence(probes={"rope": real("rope")})
    ours, theirs = lines_of(PLOTS["rope_decay"](evidence).axes[0])
    assert theirs == claim("rope_decay").bounds["scores"]
    assert ours == pytest.approx(theirs, abs=0.06)
    rope, added, *marks = lines_of(PLOTS["rope_places"](evidence).axes[0])
    assert marks == [claim("additive_absolute").bounds["scores"], [claim("rope_relative").bounds["score"]] * 4]
    assert max(rope) - min(rope) < 1e-4 < max(added) - min(added)


def test_sizes_of_layers_are_those_of_the_table(real):
    figure = PLOTS["ffn_params"](Evidence(probes={"ffn_params": real("ffn_params")}))
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == [claim(id).bounds["params"] for id in ("ffn_plain_256", "ffn_swiglu_256", "ffn_swiglu_171")]


def test_a_gap_of_nothing_stands_at_the_left_and_rounding_looks_unlike_a_difference():
    figure = log_rows({"none": [0.0], "rounding": [1e-7, 2e-7], "real": [1e-9, 2.5]}, "gap")
    points = [line for line in figure.axes[0].lines if line.get_gid() == "cases"]
    assert [max(line.get_xdata()) for line in points] == [FLOOR, 2e-7, 2.5]
    none, rounding, real = (line.get_color() for line in points)
    assert none == rounding != real


def test_a_part_is_in_colour_where_llama_has_it(real):
    table = real("models")
    (axes,) = PLOTS["models"](Evidence(probes={"models": table})).axes
    bold = sum(text.get_fontweight() == "bold" for text in axes.texts)
    llama = table[table.model == "Llama 3"].iloc[0]
    parts = ["ffn", "attention", "norm", "placement", "position", "bias"]
    first = {part: table[part].str.split(r",| \(", regex=True).str[0] for part in parts}
    assert bold == sum((first[part] == llama[part].split(",")[0]).sum() for part in parts)


def test_gradients_have_a_line_a_depth_in_each_placement(kit, cases):
    evidence = cases["pre_grads"](kit, True)
    depths = sorted(set(evidence.probe("grad_norms").n_layers))
    figure = PLOTS["grad_norms"](evidence)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["pre-norm", "post-norm"]
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == [f"{n} layers" for n in depths]
    low, high = figure.axes[0].get_ylim()
    assert (low, high) == figure.axes[1].get_ylim()


def test_the_cache_of_a_model_is_never_larger_than_with_full_heads(kit):
    columns = "claim part model attention posenc n_kv_heads quantity value"
    rows = [
        ("", "published", model, attention, "", None, quantity, value)
        for model, sizes in {"A": {"mha": 16.0}, "B": {"gqa": 4.0, "mha": 16.0}}.items()
        for attention, gib in sizes.items()
        for quantity, value in (("cache_gib", gib), ("weights_gib", 13.0))
    ]
    (axes,) = PLOTS["kv_cache"](Evidence(probes={"kv_cache": kit.rows(columns, *rows)})).axes
    by_label = {}
    for line in axes.lines:
        by_label.setdefault(line.get_label(), []).append(float(line.get_xdata()[0]))
    assert by_label["cache as it is"] == [16.0, 4.0]
    assert by_label["cache with full heads (MHA)"] == [16.0, 16.0]
    assert by_label["weights"] == [13.0, 13.0]


def test_where_the_excess_lies_is_a_share_of_it(kit, cases):
    (axes,) = PLOTS["excess"](cases["unseen_pairs"](kit, True)).axes
    bars = [bar.get_width() for bar in axes.patches]
    assert any(math.isclose(width, 0.71) for width in bars)
    assert any(math.isclose(width, 31.5 / 50_000) for width in bars)
