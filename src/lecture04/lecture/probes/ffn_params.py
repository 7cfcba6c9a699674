"""The counts of section 1.2 and exercise 2: from the parts' formulas, and from built layers and models.

What is only counted is built on the meta device, which makes shapes and no numbers.
"""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import nn

from lecture04 import config
from lecture04.config import sizes
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, llama_like, open_part, opened, published, with_parts
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import counted, listed, number, times
from lecture04.nn.ffn import FFNS
from lecture04.nn.model import LanguageModel

# claim, quantity, ffn, d_model, d_ff, bias, by, value
Row = tuple[str, str, str, int | None, int | None, bool | None, str, float]

# The quantities of the table, as they are shown; filled in with the row's other columns.
LABELS = {
    "layer_params": "{ffn}, d_model {d_model}, d_ff {d_ff}, {biases}",
    "eight_d_squared": "8 d_model^2, d_model {d_model}",
    "quadratic_gap": "max |f(2x) - 4 f(x)|, bilinear without biases",
    "rounded_d_ff": "8/3 of {d_model}, rounded up to a multiple of 256",
    "rounding_share": "over 8/3 of {d_model}, as a share",
    "model_params": "Llama 2 7B",
}
COUNTS = ("layer_params", "eight_d_squared", "model_params")


def n_params(module: nn.Module) -> int:
    """The parameters that a module holds; a tied matrix counts once."""
    return sum(p.numel() for p in module.parameters())


def sized(run: config.Run, name: str, d_model: int, d_ff: int, *, bias: bool) -> config.Run:
    """The same run with a feed-forward layer of these sizes."""
    ffn, model = open_part(run, "ffn", name), replace(opened(run.model, run), d_model=d_model)
    ffn.d_ff, ffn.bias = d_ff, bias
    return with_parts(run, {"model": model, "ffn": ffn})


def layer(c: config.Architecture) -> nn.Module:
    """One feed-forward layer."""
    return FFNS.lookup(c.ffn.name)(c.ffn, c.model)


def rounded_up(size: float, multiple: int) -> int:
    """The next multiple: matrix kernels are fastest at sizes that divide well (Llama takes 256)."""
    return math.ceil(size / multiple) * multiple


def layer_rows(claim: str, c: config.Architecture) -> list[Row]:
    """A layer's parameters by formula and as built."""
    with torch.device("meta"):
        built = layer(c)
    by = (("formula", sizes.ffn_params(c)), ("model", n_params(built)))
    return [(claim, "layer_params", c.ffn.name, c.model.d_model, c.ffn.d_ff, c.ffn.bias, how, n) for how, n in by]


def quadratic_gap(c: config.Architecture) -> float:
    """max |f(2x) - 4 f(x)| of a bilinear layer without biases: 0, since doubling is exact in binary."""
    g = torch.Generator().manual_seed(0)
    f, d_model = layer(c), c.model.d_model
    with torch.no_grad():
        for p in f.parameters():
            p.normal_(0, d_model**-0.5, generator=g)
        x_BD = torch.randn(8, d_model, generator=g)
        return largest(f(2 * x_BD) - 4 * f(x_BD))


def llama_2_7b() -> config.Architecture:
    """Llama 2 7B."""
    return llama_like(published("shapes.yaml")["Llama 2 7B"])


@register("probe", "ffn_params")
def ffn_params(request: config.Request, options: Probe) -> pd.DataFrame:
    """What a gated FFN costs, at full width and at two thirds, and Llama 2 7B's parameters to the last one.

    Columns: claim, quantity (see LABELS), ffn, d_model, d_ff, bias, by (formula or model), value. Depends on
    model.d_model; the lecture's is 64.
    """
    run, d = request.run, request.run.model.d_model
    rows = layer_rows("ffn_plain_256", sized(run, "relu", d, 4 * d, bias=True))
    rows += layer_rows("ffn_swiglu_256", sized(run, "swiglu", d, 4 * d, bias=True))
    rows += layer_rows("ffn_swiglu_171", sized(run, "swiglu", d, round(8 * d / 3), bias=True))
    # Three times the width, so that 8/3 of it is a whole number.
    rows.append(("eight_thirds", "eight_d_squared", "", 3 * d, None, None, "formula", 8 * (3 * d) ** 2))
    rows += layer_rows("eight_thirds", sized(run, "relu", 3 * d, 12 * d, bias=False))
    rows += layer_rows("eight_thirds", sized(run, "swiglu", 3 * d, 8 * d, bias=False))
    gap = quadratic_gap(sized(run, "bilinear", d, 4 * d, bias=False))
    rows.append(("bilinear_quadratic", "quadratic_gap", "bilinear", d, 4 * d, False, "model", gap))
    llama = llama_2_7b()
    width = llama.model.d_model
    eight_thirds = 8 / 3 * width
    d_ff = rounded_up(eight_thirds, 256)
    rows += [
        ("llama_d_ff", "rounded_d_ff", "swiglu", width, d_ff, False, "formula", d_ff),
        ("llama_d_ff", "rounding_share", "swiglu", width, d_ff, False, "formula", d_ff / eight_thirds - 1),
    ]
    with torch.device("meta"):
        model = LanguageModel(replace(llama, ffn=replace(llama.ffn, d_ff=d_ff)))
    rows += [
        ("llama2_7b", "model_params", "swiglu", width, d_ff, False, "formula", sizes.params(llama)),
        ("llama2_7b", "model_params", "swiglu", width, d_ff, False, "model", n_params(model)),
    ]
    table = pd.DataFrame(rows, columns=["claim", "quantity", "ffn", "d_model", "d_ff", "bias", "by", "value"])
    return table.astype({"d_model": "Int64", "d_ff": "Int64", "bias": "boolean"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Parameters by formula and of the model side by side; and below them what is no number of parameters."""
    table = table.assign(label=[label(row) for row in table.to_dict("records")])
    counts = table[table.quantity.isin(COUNTS)]
    wide = counts.pivot(index="label", columns="by", values="value").loc[counts.label.unique()]
    others = table.loc[~table.quantity.isin(COUNTS), ["label", "value"]]
    frames = {"Parameters": wide.reset_index(), "Sizes and gaps": others}
    return {title: frame.rename(columns={"label": "quantity"}) for title, frame in frames.items()}


def sentence(table: pd.DataFrame) -> str:
    """What the gate costs at the same width and at two thirds of it; and where formula and model differ."""
    count = table.loc[(table.quantity == "layer_params") & (table["by"] == "model")]
    (plain, full, narrow) = (
        count.loc[count.claim == claim].iloc[0] for claim in ("ffn_plain_256", "ffn_swiglu_256", "ffn_swiglu_171")
    )
    off = narrow.value / plain.value - 1
    as_many = f"{number(100 * abs(off))} % {'more' if off > 0 else 'fewer'}" if off else "as many"
    both = shown(table)["Parameters"].dropna()
    wrong = list(both.quantity[both.formula != both.model])
    agree = f"differ for {listed(wrong, 'and for')}" if wrong else f"agree in all {counted(len(both), 'count')}"
    return (
        f"At d_ff {full.d_ff} a SwiGLU has {times(full.value / plain.value)} the parameters of a ReLU layer "
        f"({full.value:,.0f} against {plain.value:,.0f}); at d_ff {narrow.d_ff} it has "
        f"{as_many}. Formula and model {agree}."
    )


def label(row: dict[str, Any]) -> str:
    """A row's quantity, as it is shown."""
    return LABELS[row["quantity"]].format(**row, biases="biases" if row["bias"] is True else "no biases")
