"""The counts of section 1.2 and exercise 2: from the formulas of counts.py, and from built layers and models.

Large ones are built on the meta device, which makes shapes and no numbers.
"""

import math
from dataclasses import replace

import pandas as pd
import torch
from torch import nn

from lecture04 import config
from lecture04.config import sizes as counts
from lecture04.config.registry import lookup, register
from lecture04.lecture.probes.common import largest, llama_like, published
from lecture04.nn.model import LanguageModel

Rows = list[tuple[str, str, str, float]]


def n_params(module: nn.Module) -> int:
    """The parameters that a module holds; a tied matrix counts once."""
    return sum(p.numel() for p in module.parameters())


def layer(name: str, d_model: int, d_ff: int, *, bias: bool) -> nn.Module:
    """One feed-forward layer."""
    options = config.FFN(name=name, d_ff=d_ff, bias=bias)
    return lookup("ffn", name)(options, config.Model(d_model=d_model))


def rounded_up(size: float, multiple: int) -> int:
    """The next multiple: matrix kernels are fastest at sizes that divide well (Llama takes 256)."""
    return math.ceil(size / multiple) * multiple


def layer_rows(claim: str, name: str, d_model: int, d_ff: int, *, bias: bool) -> Rows:
    """A layer's parameters by formula and as built."""
    what = f"{name}, d_model {d_model}, d_ff {d_ff}, {'biases' if bias else 'no biases'}"
    formula = counts.ffn_params(d_model, d_ff, gated=name != "relu", bias=bias)
    return [(claim, what, "formula", formula), (claim, what, "model", n_params(layer(name, d_model, d_ff, bias=bias)))]


def quadratic_gap(d_model: int) -> float:
    """max |f(2x) - 4 f(x)| of a bilinear layer without biases: 0, since doubling is exact in binary."""
    g = torch.Generator().manual_seed(0)
    f = layer("bilinear", d_model, 4 * d_model, bias=False)
    with torch.no_grad():
        for p in f.parameters():
            p.normal_(0, d_model**-0.5, generator=g)
        x_BD = torch.randn(8, d_model, generator=g)
        return largest(f(2 * x_BD) - 4 * f(x_BD))


def llama_2_7b(cfg: config.Root) -> config.Root:
    """The settled config of Llama 2 7B."""
    return llama_like(cfg, published("shapes.yaml")["Llama 2 7B"])


@register("probe", "ffn_params")
def ffn_params(cfg: config.Root) -> pd.DataFrame:
    """What a gated FFN costs, how two thirds make up for it, and Llama 2 7B's parameters to the last one.

    Columns: claim, quantity, by (formula or model), value. Depends on model.d_model; the lecture's is 64.
    """
    d = cfg.model.d_model
    rows = layer_rows("ffn_plain_256", "relu", d, 4 * d, bias=True)
    rows += layer_rows("ffn_swiglu_256", "swiglu", d, 4 * d, bias=True)
    rows += layer_rows("ffn_swiglu_171", "swiglu", d, round(8 * d / 3), bias=True)
    # Three times the width, so that 8/3 of it is a whole number.
    rows += [("eight_thirds", f"8 d_model^2, d_model {3 * d}", "formula", 8 * (3 * d) ** 2)]
    rows += layer_rows("eight_thirds", "relu", 3 * d, 12 * d, bias=False)
    rows += layer_rows("eight_thirds", "swiglu", 3 * d, 8 * d, bias=False)
    rows.append(("bilinear_quadratic", "max |f(2x) - 4 f(x)|, bilinear without biases", "model", quadratic_gap(d)))
    llama = llama_2_7b(cfg)
    eight_thirds = 8 / 3 * llama.model.d_model
    d_ff = rounded_up(eight_thirds, 256)
    rows += [
        ("llama_d_ff", "8/3 of 4096, rounded up to a multiple of 256", "formula", d_ff),
        ("llama_d_ff", "over 8/3 of 4096, as a share", "formula", d_ff / eight_thirds - 1),
    ]
    with torch.device("meta"):
        model = LanguageModel(replace(llama, ffn=replace(llama.ffn, d_ff=d_ff)))
    rows += [
        ("llama2_7b", "Llama 2 7B", "formula", counts.params(llama)),
        ("llama2_7b", "Llama 2 7B", "model", n_params(model)),
    ]
    return pd.DataFrame(rows, columns=["claim", "quantity", "by", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Formula and model side by side."""
    wide = table.pivot(index="quantity", columns="by", values="value")
    return {"Parameters": wide.loc[table.quantity.unique()].reset_index()}
