"""Pictures of probes' tables."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lecture04.lecture.claims import claim
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.judges.figures import lines
from lecture04.lecture.plots.common import (
    QUIET,
    SEED,
    SERIES,
    bars,
    beside,
    legend_below,
    note,
    panels,
    plot,
    row_panels,
    stroke,
    values_by,
)

OURS, OTHER = SERIES[0].light, SERIES[1].light
ROUNDING = 1e-4
"""Below it a difference is rounding, in single precision."""
FLOOR = 1e-17
"""Where a difference of exactly 0 is drawn on a logarithmic scale."""


def log_rows(cases: Mapping[str, Sequence[float]], said: str, *, rounding: float = ROUNDING) -> Figure:
    """Sizes of differences on a logarithmic scale, a row a case; what is left of the line is rounding."""
    figure, (axes,) = row_panels(list(cases))
    for y, values in enumerate(cases.values()):
        shown = [max(value, FLOOR) for value in values]
        colour = OTHER if max(values) > rounding else OURS
        axes.plot(shown, [y] * len(shown), "o", color=colour, markersize=6, alpha=0.8, gid="cases")
        beside(
            axes,
            y,
            "0" if max(values) == 0 else f"{max(values):.1e}" if max(values) < 0.01 else f"{max(values):.2f}",
            colour,
        )
    axes.set_xscale("log")
    axes.axvspan(FLOOR / 5, rounding, color="0.93", zorder=0)
    axes.set_xlim(FLOOR / 5, max(100.0, *(max(values) for values in cases.values())))
    axes.set_xticks([FLOOR, 1e-12, 1e-8, 1e-4, 1], ["exactly 0", "1e-12", "1e-8", "1e-4", "1"])
    axes.minorticks_off()
    axes.set_xlabel(f"{said}\n(grey: no more than rounding)")
    return figure


@plot
def activations(evidence: Evidence) -> Figure:
    """The probe's own picture: a table holds too few points of a curve."""
    table = evidence.probe("activations")
    from lecture04.lecture.probes import activations as probe  # imports torch

    return probe.plot(table)


@plot
def norm_invariance(evidence: Evidence) -> Figure:
    """What a norm sees of a scale and a shift."""
    table = evidence.probe("norm_invariance")
    wanted = {"scale_change": "input times 3", "shift_change": "input plus 5"}
    cases = {
        f"{name}, {said}": [float(x) for x in lines(table, quantity=quantity, norm=name).value]
        for quantity, said in wanted.items()
        for name in ("layernorm", "rmsnorm")
    }
    named = {k.replace("layernorm", "LayerNorm").replace("rmsnorm", "RMSNorm"): v for k, v in cases.items()}
    return log_rows(named, "largest change of the output")


@plot
def cached_gap(evidence: Evidence) -> Figure:
    """The cache against the whole sequence, by attention."""
    table = lines(evidence.probe("kv_cache"), part="own", quantity="cached_gap")
    cases = {name.upper(): gaps for (name,), gaps in values_by(table, "attention").items()}
    return log_rows(cases, "largest difference of a logit")


@plot
def mla(evidence: Evidence) -> Figure:
    """The absorbed form against restored keys."""
    table = lines(evidence.probe("mla"), quantity="score_gap")
    names = {
        "mla_absorb": "no positions",
        "mla_rope_clash": "RoPE on the same k",
        "mla_decoupled": "RoPE on a part of its own",
    }
    cases = {
        f"{names[of_claim]}, {dtype}": gaps for (of_claim, dtype), gaps in values_by(table, "claim", "dtype").items()
    }
    return log_rows(cases, "largest difference of a score")


@plot
def order_blind(evidence: Evidence) -> Figure:
    """What permuting the input does, with and without a causal mask."""
    table = evidence.probe("order_blind")
    how = {False: "no mask", True: "causal mask"}
    cases = {
        f"{name}, {how[bool(causal)]}": gaps for (name, causal), gaps in values_by(table, "posenc", "causal").items()
    }
    return log_rows(cases, "largest change of a logit")


@plot
def position_shift(evidence: Evidence) -> Figure:
    """What moving all positions does to the scores."""
    table = lines(evidence.probe("position_shift"), quantity="scores_change")
    cases = {name: gaps for (name,), gaps in values_by(table, "posenc").items()}
    return log_rows(cases, "largest change of a score")


@plot
def residual_paths(evidence: Evidence) -> Figure:
    """The way back through three layers: how far it is from I, and from I plus branches."""
    table = evidence.probe("residual_paths")
    wanted = {"zero": ("identity_gap", "empty sublayers, from I"), "initial": ("branches_gap", "from I plus branches")}
    cases = {
        f"{placement}-norm, {said}": [
            float(x) for x in lines(table, placement=placement, sublayers=sublayers, quantity=quantity).value
        ]
        for sublayers, (quantity, said) in wanted.items()
        for placement in ("pre", "post")
    }
    return log_rows(cases, "largest difference of the Jacobian")


@plot
def ffn_params(evidence: Evidence) -> Figure:
    """Parameters of three feed-forward layers, by the claims that name them."""
    table = evidence.probe("ffn_params")
    wanted = ("ffn_plain_256", "ffn_swiglu_256", "ffn_swiglu_171")
    built = [lines(table, claim=id, quantity="layer_params", by="model").iloc[0] for id in wanted]
    names = [f"{'plain' if row.ffn == 'relu' else 'SwiGLU'}, width {int(row.d_ff)}" for row in built]
    sizes = dict(zip(names, (float(row.value) for row in built), strict=True))
    return bars(sizes, f"parameters of one layer, d_model {int(built[0].d_model)}")


@plot
def models(evidence: Evidence) -> Figure:
    """The parts of well-known models; in colour, those that Llama 3 has too."""
    table = evidence.probe("models").sort_values("year", kind="stable")
    parts = ["ffn", "attention", "norm", "placement", "position", "bias"]
    short = {part: [re.split(r",| \(", str(cell))[0] for cell in table[part]] for part in parts}
    names = [f"{model} ({year})" for model, year in zip(table.model, table.year, strict=True)]
    llama = list(table.model).index("Llama 3")
    figure, (axes,) = row_panels(names, more=0.5)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.set_xlim(-0.1, len(parts) - 0.6)
    axes.set_xticks(range(len(parts)), parts, ha="left", fontsize=9)
    axes.tick_params(axis="x", length=0, top=False, labeltop=True, labelbottom=False)
    for x, part in enumerate(parts):
        for y, said in enumerate(short[part]):
            same = said == short[part][llama]
            said = "\n".join(textwrap.wrap(said, 11))
            axes.text(
                x, y, said, va="center", fontsize=9, color=OURS if same else QUIET, weight="bold" if same else None
            )
    return figure


@plot
def kv_cache(evidence: Evidence) -> Figure:
    """GiB of one cache of published models: their own, as MHA, and the weights."""
    table = lines(evidence.probe("kv_cache"), part="published")
    sizes = values_by(lines(table, quantity="cache_gib"), "model", "attention")
    weights = values_by(lines(table, quantity="weights_gib"), "model")
    models = list(dict.fromkeys(model for model, _ in sizes))
    figure, (axes,) = row_panels(models, more=1.3)
    for y, model in enumerate(models):
        own = {attention: gib[0] for (of_model, attention), gib in sizes.items() if of_model == model}
        name = min(own, key=own.__getitem__)
        least, full = own[name], own["mha"]
        axes.plot([least, full], [y, y], color=QUIET, linewidth=1)
        axes.plot(full, y, "s", color=OTHER, markerfacecolor="white", markersize=8, label="cache with full heads (MHA)")
        axes.plot(least, y, "o", color=OURS, markersize=8, label="cache as it is")
        axes.plot(weights[(model,)][0], y, "|", color=SEED, markersize=16, markeredgewidth=2, label="weights")
        beside(axes, y, f"{name.upper()}\n{least:.3g} GiB", OURS)
    axes.set_xscale("log")
    axes.set_xticks([2, 5, 10, 20, 50, 100, 200, 400], ["2", "5", "10", "20", "50", "100", "200", "400"])
    axes.minorticks_off()
    axes.set_xlabel("GiB (log scale)")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[:3], labels[:3], loc="outside lower center", ncols=3, frameon=False, columnspacing=1.0)
    return figure


@plot
def grad_norms(evidence: Evidence) -> Figure:
    """Gradient norms of a model with ReLU by layer, a line a depth; a panel a placement."""
    return by_layer(evidence.probe("grad_norms"))


@plot
def grad_norms_gelu(evidence: Evidence) -> Figure:
    """Gradient norms of a model with GELU by layer, a line a depth; a panel a placement."""
    return by_layer(evidence.probe("grad_norms_gelu"))


def by_layer(found: pd.DataFrame) -> Figure:
    """The gradient norm of each layer, its mean and 95 % interval over the seeds, of one table of the probe."""
    from scipy.stats import t as student  # half a second

    table = lines(found, quantity="layer")
    placements = list(dict.fromkeys(table.placement))
    figure, both = panels(len(placements), 2.5)
    for axes, placement in zip(both, placements, strict=True):
        for i, (n_layers, of_depth) in enumerate(table[table.placement == placement].groupby("n_layers")):
            of_layer = of_depth.groupby("layer").value.agg(["mean", "std", "count"]).reset_index()
            factor = [student.ppf(0.975, n - 1) / math.sqrt(n) if n > 1 else math.nan for n in of_layer["count"]]
            x, mean, half = of_layer.layer, of_layer["mean"], of_layer["std"] * np.array(factor)
            look = stroke(i)
            axes.plot(x, mean, marker=".", label=f"{n_layers} layers", **look)
            axes.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.15, linewidth=0)
        axes.set_title(f"{placement}-norm", loc="left")
        axes.set_ylabel("gradient norm")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    low, high = (f(axes.get_ylim()[i] for axes in both) for i, f in ((0, min), (1, max)))
    for axes in both:
        axes.set_ylim(low, high)
    both[-1].set_xlabel("layer, counted from the input")
    legend_below(figure, both[0], 3)
    return figure


@plot
def t5_buckets(evidence: Evidence) -> Figure:
    """The bucket of each distance."""
    table = evidence.probe("t5_buckets")
    figure, (axes,) = panels(1, 2.9)
    axes.step(table.distance, table.bucket, where="post", color=OURS, linewidth=1.6)
    bounds = claim("t5_buckets").bounds
    axes.plot(bounds["distances"], bounds["buckets"], "x", color=SEED, markersize=7, label="the lecture's figures")
    axes.axvline(bounds["far"], color=QUIET, linewidth=1, linestyle=":")
    note(axes, f"from {bounds['far']} on: the last one", (bounds["far"], 0.5), ("data", "axes fraction"))
    axes.set(xlabel="distance, tokens", ylabel="bucket")
    axes.legend(frameon=False, loc="lower right")
    return figure


@plot
def alibi(evidence: Evidence) -> Figure:
    """What each head takes off a score."""
    table = lines(evidence.probe("alibi"), quantity="bias")
    slopes = lines(evidence.probe("alibi"), quantity="slope").set_index("head").value
    figure, (axes,) = panels(1, 2.9)
    for i, (head, of_head) in enumerate(table.groupby("head", sort=False)):
        axes.plot(of_head.distance, of_head.value, label=f"head {head}: slope 1/{1 / slopes[head]:.0f}", **stroke(i))
    axes.set(xlim=(0, 64), ylim=(-16.5, 0.5), xlabel="distance, tokens", ylabel="added to the score")
    legend_below(figure, axes, 2)
    return figure


@plot
def rope_decay(evidence: Evidence) -> Figure:
    """The score of ones with ones by distance, beside the lecture's."""
    table = lines(evidence.probe("rope"), quantity="ones_score")
    x = [abs(q - k) for q, k in zip(table.q_pos, table.k_pos, strict=True)]
    figure, (axes,) = panels(1, 2.9)
    axes.plot(x, list(table.value), "-o", color=OURS, markersize=5, label="ours")
    axes.plot(x, claim("rope_decay").bounds["scores"], "x", color=SEED, markersize=8, label="the lecture's figures")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks(
        [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
        ["0", "1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"],
    )
    axes.minorticks_off()
    axes.set(xlabel="distance, tokens (log scale)", ylabel="score", ylim=(0, None))
    axes.legend(frameon=False)
    return figure


@plot
def rope_places(evidence: Evidence) -> Figure:
    """One q and one k at the same distance, further and further into the text."""
    table = evidence.probe("rope")
    figure, (axes,) = panels(1, 2.9)
    names: list[str] = []
    for i, (quantity, label) in enumerate((("rope_score", "RoPE"), ("added_score", "sinusoids added"))):
        found = lines(table, quantity=quantity)
        names = [f"{int(q)} and {int(k)}" for q, k in zip(found.q_pos, found.k_pos, strict=True)]
        axes.plot(range(len(names)), list(found.value), marker="os"[i], label=label, **stroke(i))
    theirs = claim("additive_absolute").bounds["scores"]
    score = [claim("rope_relative").bounds["score"]] * len(theirs)
    for values in (theirs, score):
        axes.plot(range(len(values)), values, "x", color=SEED, markersize=8, zorder=5)
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="positions of q and k", ylabel="score")
    axes.margins(x=0.1)
    legend_below(figure, axes, 2)
    return figure


PAIRINGS = {
    "unseen": "never seen",
    "seen_1": "seen 1 to 2 times",
    "seen_3": "seen 3 to 10 times",
    "seen_11": "seen 11 to 100 times",
    "seen_101": "seen more often",
    "no_pairing": "no pairing",
}


@plot
def excess(evidence: Evidence) -> Figure:
    """Where the standard model loses to the true distribution: shares of the words and of the excess."""
    table = lines(evidence.probe("world"), part="expected")
    there = [str(name) for name in dict.fromkeys(lines(table, quantity="excess_share").pairing) if name != "all"]
    everything = lines(table, pairing="all", quantity="tokens").value.iloc[0]
    figure, (axes,) = row_panels([PAIRINGS.get(name, name) for name in there], more=1.3)
    for y, name in enumerate(there):
        by_seed = [float(x) for x in lines(table, pairing=name, quantity="excess_share").value]
        of_tokens = table[(table.pairing == name) & (table.quantity == "tokens")].value
        share = sum(by_seed) / len(by_seed)
        if len(of_tokens):
            axes.barh(
                y - 0.2,
                of_tokens.iloc[0] / everything,
                height=0.36,
                color="0.75",
                label="of the probability",
            )
        axes.barh(y + 0.2, share, height=0.36, color=OURS, label="of the excess")
        axes.plot(by_seed, [y + 0.2] * len(by_seed), ".", color=SEED, markersize=5, gid="seeds")
        beside(axes, y, f"{share:.1%}\nof the excess", OURS)
    axes.axvline(0, color=SEED, linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_xlabel("share; small dots: seeds")
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=2, frameon=False)
    return figure
