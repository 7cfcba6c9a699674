"""What the norms of section 2.4 do not see. Shapes: B rows, D width."""

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn

from lecture04 import config
from lecture04.config import sizes
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, open_part, with_parts
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import labelled, listed, number
from lecture04.nn.norm import NORMS

Rows = list[tuple[str, str, str, float]]
SEEN = 1e-3  # a change of outputs of variance 1 that is neither rounding nor an eps of 1e-5
# The quantities of the table, as they are shown; the width is filled in.
LABELS = {
    "scale_change": "max |f(3x) - f(x)|",
    "shift_change": "max |f(x + 5) - f(x)|",
    "gap_to_torch": "max |ours - torch.nn.RMSNorm|",
    "gap_to_formula": "max |ours - x rsqrt(mean(x^2) + eps)|",
    "centred_gap": "max |rmsnorm - layernorm| on rows of mean 0",
    "params": "parameters at one place, d_model {width}",
    "model_params": "parameters of all norms of the model",
    "initial_weight": "initial weight",
    "initial_bias": "initial bias",
}


def sample_BD() -> Tensor:
    """The lecture's input: 8 rows of 10 numbers of unit variance, from torch's seed 0."""
    return torch.randn(8, 10, generator=torch.Generator().manual_seed(0))


def normed(run: config.Run, name: str) -> config.Run:
    """The same run with another norm, of the same eps."""
    norm = open_part(run, "norm", name)
    norm.eps = run.norm.eps
    return with_parts(run, {"norm": norm})


def new(run: config.Run, name: str, width: int) -> nn.Module:
    """A norm as it starts."""
    return NORMS.lookup(name)(normed(run, name).norm, width)


def change(f: Callable[[Tensor], Tensor], x: Tensor, moved: Tensor) -> float:
    """max |f(moved) - f(x)|."""
    return largest(f(moved) - f(x))


@register("probe", "norm_invariance")
def norm_invariance(request: config.Request, options: Probe) -> pd.DataFrame:
    """Which changes of its input a norm does not see: scales and shifts.

    Columns: claim, quantity (see LABELS), norm, value, width. Depends on norm.eps, and for the counts on the model.
    """
    x, run = sample_BD(), request.run
    rows: Rows = []
    for name in NORMS.names():
        f = new(run, name, x.shape[-1])
        rows.append(("norm_scale", "scale_change", name, change(f, x, 3 * x)))
        rows.append(("norm_shift", "shift_change", name, change(f, x, x + 5)))
    rms, layer = new(run, "rmsnorm", x.shape[-1]), new(run, "layernorm", x.shape[-1])
    eps = run.norm.eps
    torchs, formula = nn.RMSNorm(x.shape[-1], eps=eps), x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    centred = x - x.mean(-1, keepdim=True)
    rows += [
        ("rms_reference", "gap_to_torch", "rmsnorm", largest(rms(x) - torchs(x))),
        ("rms_reference", "gap_to_formula", "rmsnorm", largest(rms(x) - formula)),
        ("rms_centred", "centred_gap", "both", largest(rms(centred) - layer(centred))),
    ]
    for name in ("layernorm", "rmsnorm"):
        module = new(run, name, run.model.d_model)
        at_one_place = sum(p.numel() for p in module.parameters())
        rows.append(("rms_params", "params", name, at_one_place))
        rows.append(("rms_params", "model_params", name, sizes.params_by_part(normed(run, name))["norm"]))
        for role, p in module.named_parameters():
            rows.append(("rms_params", f"initial_{role}", name, p.mean().item()))
    table = pd.DataFrame(rows, columns=["claim", "quantity", "norm", "value"])
    return table.assign(width=[run.model.d_model if claim == "rms_params" else x.shape[-1] for claim in table.claim])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The norms side by side."""
    (width,) = table.width[table.quantity == "params"].unique()
    table = labelled(table, {quantity: label.format(width=width) for quantity, label in LABELS.items()})
    table = table.assign(norm=table.norm.replace("both", "rmsnorm"))  # the label names both
    wide = table.pivot(index="quantity", columns="norm", values="value").loc[table.quantity.unique()]
    return {"Changes and gaps of outputs, and numbers of parameters": wide.reset_index()}


def sentence(table: pd.DataFrame) -> str:
    """Which norm sees a shift of its input, which its scale, and what each costs."""
    wide = table.pivot(index="quantity", columns="norm", values="value")

    def changed(quantity: str) -> str:
        change = wide.loc[quantity, NORMS.names()].astype(float)
        seen, unseen = (
            listed([f"{name} (by {number(value)})" for name, value in group.items()])
            for group in (change[change > SEEN], change[change <= SEEN])
        )
        if not seen:
            return f"hardly changes the output of {unseen}"
        return f"changes the output of {seen}{f', hardly that of {unseen}' if unseen else ''}"

    n = wide.loc["params"]
    return (
        f"Shifting the input by 5 {changed('shift_change')}; multiplying it by 3 {changed('scale_change')}. "
        f"One layernorm has {n.layernorm:,.0f} parameters, one rmsnorm {n.rmsnorm:,.0f}."
    )
