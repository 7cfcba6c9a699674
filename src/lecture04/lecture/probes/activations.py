"""The activations of section 1.1 as curves, in float64 and by autograd; nothing is differentiated by hand but SiLU."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd
import torch
from scipy.optimize import brentq
from torch import Tensor

from lecture04.config import Request
from lecture04.config.registry import register
from lecture04.lecture.probes.common import activation, largest
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import labelled, listed, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = (-5.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
SWISH = "swish {:g}".format  # by its beta
CURVES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": activation("relu"),
    "gelu": activation("gelu"),
    "gelu_tanh": activation("gelu_tanh"),
    "silu": activation("silu"),
    **{SWISH(beta): activation("swish", beta=beta) for beta in (0.1, 1.0, 10.0)},
}
# The quantities of the table, as they are shown.
LABELS = {
    "value": "value",
    "derivative": "derivative",
    "minimum": "minimum",
    "gap_to_gelu": "largest gap to gelu on [-5, 0]",
    "gap_to_half_x": "largest gap to x/2 on [-5, 5]",
    "gap_to_relu": "largest gap to relu on [-5, 5]",
    "gap_to_autograd": "largest gap to autograd on [-5, 5]",
}
# Those with one minimum, which lies between these two points.
BRACKETS = {
    "gelu": (-3.0, -0.1),
    "gelu_tanh": (-3.0, -0.1),
    "silu": (-3.0, -0.1),
    SWISH(0.1): (-30.0, -1.0),
    SWISH(10): (-0.3, -0.01),
}


# The curves to look at: swish 1 is silu.
DRAWN = {name: f for name, f in CURVES.items() if name != SWISH(1)}

LEGEND = {"gelu_tanh": "gelu_tanh, on gelu", "silu": "silu, which is swish 1"}


def points(low: float, high: float, n: int) -> Tensor:
    """n points from low to high, float64."""
    return torch.linspace(low, high, n, dtype=torch.float64)


def derivative(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f'(x) at each point, by autograd."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x).sum(), x)
    return slope


def silu_derivative(x: Tensor) -> Tensor:
    """sigmoid(x) (1 + x (1 - sigmoid(x)))."""
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))


def minimum(name: str) -> tuple[float, float]:
    """Where a curve is lowest, the root of its derivative, and its value there."""

    def slope(at: float) -> float:
        return derivative(CURVES[name], torch.tensor([at], dtype=torch.float64)).item()

    x = float(brentq(slope, *BRACKETS[name], xtol=1e-12))  # pyright: ignore[reportArgumentType]
    return x, CURVES[name](torch.tensor(x, dtype=torch.float64)).item()


@register("probe", "activations")
def activations(request: Request, options: Probe) -> pd.DataFrame:
    """ReLU, GELU, its tanh form, SiLU and Swish: values, derivatives, minima, and Swish's two limits.

    Columns: claim, quantity (see LABELS), function, x, value. Depends on no setting.
    """
    rows: list[tuple[str, str, str, float | None, float]] = []
    grid = torch.tensor(GRID, dtype=torch.float64)
    for name, f in CURVES.items():
        for quantity, y in (("value", f(grid)), ("derivative", derivative(f, grid))):
            rows += [("relu_dead_side", quantity, name, x, v) for x, v in zip(GRID, y.tolist(), strict=True)]
    for name in BRACKETS:
        claim = f"{name}_minimum" if name in ("gelu", "silu") else ""
        rows.append((claim, "minimum", name, *minimum(name)))
    x = points(-5, 0, 500_001)
    gap = (CURVES["gelu"](x) - CURVES["gelu_tanh"](x)).abs()
    rows.append(("gelu_tanh_gap", "gap_to_gelu", "gelu_tanh", x[gap.argmax()].item(), largest(gap)))
    x = points(-5, 5, 10_001)
    for beta in (0.1, 0.01, 0.001):
        off = largest(activation("swish", beta=beta)(x) - x / 2)
        rows.append(("swish_limits", "gap_to_half_x", SWISH(beta), None, off))
    for beta in (10.0, 100.0, 1000.0):
        off = largest(activation("swish", beta=beta)(x) - torch.relu(x))
        rows.append(("swish_limits", "gap_to_relu", SWISH(beta), None, off))
    off = largest(derivative(CURVES["silu"], x) - silu_derivative(x))
    rows.append(("silu_derivative", "gap_to_autograd", "silu", None, off))
    return pd.DataFrame(rows, columns=["claim", "quantity", "function", "x", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A grid for values, one for derivatives, and the rest as rows."""
    frames: dict[str, pd.DataFrame] = {}
    for quantity, title in (("value", "Values"), ("derivative", "Derivatives (autograd)")):
        part = table[table.quantity == quantity]
        frames[title] = part.pivot(index="x", columns="function", values="value")[list(DRAWN)].reset_index()
    rest = ~table.quantity.isin(["value", "derivative"])
    frames["Minima, gaps and limits"] = labelled(table.loc[rest, ["quantity", "function", "x", "value"]], LABELS)
    return frames


def sentence(table: pd.DataFrame) -> str:
    """Which functions are flat left of 0, how low the others fall, and how near their approximations come."""
    left = table[table.quantity.isin(["value", "derivative"]) & (table.x < 0)]
    sizes = left.value.abs().groupby(left.function, sort=False).max()
    flat, lowest = list(sizes[sizes == 0].index), table[table.quantity == "minimum"].set_index("function")
    falls = [
        f"{name} falls to {number(lowest.value[name])} at x = {number(lowest.x[name])}"
        for name in ("gelu", "silu")
        if name not in flat
    ]
    gap = float(table.value[table.quantity == "gap_to_gelu"].item())
    who = f"only {listed(flat)} {'is' if len(flat) == 1 else 'are'}" if flat else "no function is"
    return (
        f"Left of 0 {who} flat, value and slope 0{': ' + listed(falls) if falls else ''}. "
        f"gelu's tanh form is at most {number(gap)} away from gelu."
    )


def plot(table: pd.DataFrame) -> "Figure":
    """Values above derivatives, every curve with dashes of its own."""
    from matplotlib.figure import Figure

    from lecture04.report.figures.style import line

    figure = Figure(figsize=(6.4, 6.2), layout="constrained")
    x = points(-5, 5, 1001)
    for axes, of in zip(figure.subplots(2, 1, sharex=True), ("value", "derivative"), strict=True):
        for i, (name, f) in enumerate(DRAWN.items()):
            y = f(x) if of == "value" else derivative(f, x)
            colour, dashes = line(i)
            # The tanh form of GELU lies on GELU, which is therefore wide and pale.
            wide = {"linewidth": 5, "alpha": 0.35} if name == "gelu" else {"linewidth": 1.6, "dashes": dashes}
            axes.plot(x.tolist(), y.tolist(), label=LEGEND.get(name, name), color=colour.light, **wide)
        axes.set_ylabel({"value": "f(x)", "derivative": "f'(x)"}[of])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    figure.axes[-1].set_xlabel("x, the activation's input")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, handlelength=4)
    return figure
