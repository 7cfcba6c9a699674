"""Gradient norms at the first step, by layer (section 2.2; Xiong et al. 2020).

One batch of training documents a seed, causal mean cross-entropy, no clipping. "Layer l" is the gradient of its FFN's
output matrix, ||dL/dW_2^l||_2 over all entries; "total" that of all parameters together. How even the layers are is
said of these matrices, and of all parameters of each layer: the lecture's words allow both.

Nor does the lecture name the initial values, the depths and the activation of this measurement. Its four figures are
the last layer's norm in pre-norm, 0.87 at the shallowest to 0.44 at 24 layers, and in post-norm a last layer near 1 and
a total of 3.5 to 8.1. They are met best (each to a tenth) by torch's values for Linear layers, embeddings of N(0, 1/D)
times sqrt(D), a tied head, 2 to 24 layers and GELU; ReLU makes the last layer's norm larger by three tenths. An untied
head of torch's values, Xavier's values, and embeddings of N(0, 0.02^2) or N(0, 1) do not meet them: post-norm's last
layer is then near 0.2, 0.6 or 10, or its total of another size. So items.py asks the probe for ReLU and for GELU.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
import torch
from scipy.stats import t as student

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.types import Batch, load
from lecture04.lecture.probes.common import stacked
from lecture04.lecture.probes.options import GradNorms
from lecture04.lecture.probes.text import labelled, listed, number
from lecture04.nn.init import build
from lecture04.training.loop import batch_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS = (2, 3, 6, 12, 24)  # exercise 5 has three layers
PLACEMENTS = ("pre", "post")
# Quantities; LABELS has them as they are shown.
LAYER, TOTAL, EVENNESS, WHOLE_EVENNESS = "layer", "total", "evenness", "whole_evenness"
LABELS = {
    TOTAL: "total",
    EVENNESS: "largest / smallest layer",
    WHOLE_EVENNESS: "the same of all of a layer's parameters",
}


def depths(run: config.Run, asked: list[int] | None) -> list[int]:
    """Those asked for; all five for the standard model, else the model's own."""
    if asked is not None:
        return asked
    return list(DEPTHS) if run.model.n_layers == config.Model.n_layers else [run.model.n_layers]


def norms(run: config.Run, batch: Batch) -> list[tuple[str, int | None, float]]:
    """(quantity, layer from 1, value) of a new model on one batch: each layer's FFN output matrix, and the total."""
    model = build(run)
    batch_loss(model, batch).backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    layers = [grads[f"blocks.{i}.ffn.down.weight"].norm().item() for i in range(run.model.n_layers)]
    whole = [
        torch.nn.utils.get_total_norm([g for name, g in grads.items() if name.startswith(f"blocks.{i}.")]).item()
        for i in range(run.model.n_layers)
    ]
    total = torch.nn.utils.get_total_norm(grads.values()).item()
    found: list[tuple[str, int | None, float]] = [(LAYER, i, norm) for i, norm in enumerate(layers, 1)]
    ratios = [(q, None, max(of) / min(of)) for q, of in ((EVENNESS, layers), (WHOLE_EVENNESS, whole))]
    return [*found, (TOTAL, None, total), *ratios]


def banded(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over the seeds and the half-width of its 95 % interval by Student's t, a row for each quantity."""
    by = table.groupby(["placement", "n_layers", "quantity", "layer"], sort=False, dropna=False).value
    found = by.agg(["mean", "std", "count"]).reset_index()
    factor = [student.ppf(0.975, n - 1) / math.sqrt(n) for n in found["count"]]
    return found.assign(half_width=found["std"] * factor).drop(columns=["std", "count"])


@register("probe", "grad_norms")
def grad_norms(request: config.Request, options: GradNorms) -> pd.DataFrame:
    """Gradient norms at initialisation by layer and depth, pre-norm beside post-norm.

    Columns: claim, placement, n_layers, seed, quantity (layer, total, evenness: the largest over the smallest layer, or
    whole_evenness: the same of all parameters of each layer), layer (its number from 1), value. All parts but the
    placement count; probe.n_seeds seeds from `seed` on, each with initial values and a batch of its own, the same for
    every depth.
    """
    run, rows = request.run, list[tuple[str, str, int, int, str, int | None, float]]()
    corpus = load(run, request.session.outputs)
    for seed in range(run.seed, run.seed + options.n_seeds):
        batch = next(corpus.layout.training(corpus.train, seed=seed, batch_size=run.trainer.batch_size))
        for placement in PLACEMENTS:
            for n_layers in depths(run, options.depths):
                other = replace(stacked(run, placement, n_layers), seed=seed)
                for quantity, layer, value in norms(other, batch):
                    claim = "even_layers" if quantity in (EVENNESS, WHOLE_EVENNESS) else f"{placement}_grads"
                    rows.append((claim, placement, n_layers, seed, quantity, layer, value))
    columns = ["claim", "placement", "n_layers", "seed", "quantity", "layer", "value"]
    return pd.DataFrame(rows, columns=columns).astype({"layer": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """First and last layer, total and evenness at each depth, with their bands; then every layer of the deepest."""
    found = banded(table)
    found["text"] = [f"{m:.2f} ± {h:.2f}" for m, h in zip(found["mean"], found.half_width, strict=True)]
    n_seeds = table.seed.nunique()
    layers = found.loc[found.quantity == LAYER]
    last = layers.loc[layers.layer == layers.n_layers].assign(quantity="last layer")
    first = layers.loc[layers.layer == 1].assign(quantity="first layer")
    rest = labelled(found.loc[found.quantity != LAYER], LABELS)
    wide = pd.concat([first, last, rest]).pivot(index=["placement", "n_layers"], columns="quantity", values="text")
    wide = wide.loc[list(dict.fromkeys(zip(found.placement, found.n_layers, strict=True)))]
    summary = wide[["first layer", "last layer", *LABELS.values()]].reset_index().rename(columns={"n_layers": "layers"})
    deepest = layers.loc[layers.n_layers == layers.n_layers.max()]
    by_layer = deepest.pivot(index="layer", columns="placement", values="text")[deepest.placement.unique()]
    return {
        f"Gradient norms at initialisation (loss in nats), mean over {n_seeds} seeds ± 95 %": summary,
        f"The same of each layer's FFN output matrix, {found.n_layers.max()} layers": by_layer.reset_index(),
    }


def sentence(table: pd.DataFrame) -> str:
    """How the last layer's norm goes with depth; with one depth alone, how it stands to the first layer's."""
    found = banded(table)
    layers = found.loc[found.quantity == LAYER]
    low, high = layers.n_layers.min(), layers.n_layers.max()
    said = []
    for placement in PLACEMENTS:
        of = layers.loc[layers.placement == placement].set_index(["n_layers", "layer"])[["mean", "half_width"]]
        ends = [(low, low) if low < high else (high, 1), (high, high)]
        (before, band), (after, other) = of.loc[ends].to_numpy().tolist()
        said.append(f"{moved(before, after, within=band + other)} in {placement}-norm")
    way = (
        f"From {low} to {high} layers the last layer's gradient norm"
        if low < high
        else (f"From the first to the last of {high} layers the gradient norm")
    )
    return f"{way} {listed(said)}."


def moved(before: float, after: float, *, within: float) -> str:
    """What a mean does on its way; where it stays `within` its two bands, nothing that can be told."""
    ends = f"from {number(before)} to {number(after)}"
    if abs(after - before) <= within:
        return f"does not move beyond the seeds' bands ({ends})"
    return f"{'rises' if after > before else 'falls'} {ends}"


def plot(table: pd.DataFrame) -> "Figure":
    """By layer, a line and its band for each depth; pre-norm and post-norm side by side on one scale."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from lecture04.report.figures.style import DASHES

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    n_lines = table.n_layers.nunique()
    found = banded(table.loc[table.quantity == LAYER])
    for axes, placement in zip(figure.subplots(1, len(PLACEMENTS), sharey=True), PLACEMENTS, strict=True):
        for i, (n_layers, line) in enumerate(found[found.placement == placement].groupby("n_layers")):
            x, mean, half = line.layer.astype(int), line["mean"], line.half_width
            color = colormaps["viridis"](0.75 * i / max(1, n_lines - 1))  # in order, for the colour-blind and in grey
            axes.plot(x, mean, marker=".", color=color, dashes=DASHES[i % len(DASHES)], label=f"{n_layers} layers")
            axes.fill_between(x, mean - half, mean + half, color=color, alpha=0.15, linewidth=0)
            last = (max(x), list(mean)[-1])
            axes.annotate(str(n_layers), last, (6, 0), textcoords="offset points", va="center", weight="bold")
        axes.set(title=f"{placement}-norm", xlabel="layer, counted from the input")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.07)  # room for the labels
        axes.grid(alpha=0.3)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=n_lines, frameon=False, handlelength=4)
    figure.axes[0].set_ylabel("gradient norm of the FFN output matrix\n(loss in nats; shaded: 95 % over seeds)")
    return figure
