"""What a gradient meets on its way from x_3 to x_0 (exercise 5): the Jacobian of three layers, at their first values.

Shapes: T tokens, D d_model, N = T D: a Jacobian J_NN = d x_3 / d x_0 is of the whole stream.
"""

from collections.abc import Callable
from typing import cast

import pandas as pd
import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, stacked, words
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import counted, labelled, number
from lecture04.nn.block import Block
from lecture04.nn.init import RESIDUAL_WRITERS, build
from lecture04.nn.model import LanguageModel

N_LAYERS, N_TOKENS = 3, 3
ROUNDING = 1e-9  # in float64, of entries of about 1
# The quantities of the table, as they are shown.
LABELS = {
    "identity_gap": "max |J - I|",
    "branches_gap": "max |J - (I + branches)|",
    "product_gap": "max |J - product of the layers'|",
    "smallest_singular": "smallest singular value",
    "largest_singular": "largest singular value",
    "lost_rank": "rank that is lost",
}


def new_model(run: config.Run, placement: str, *, zeroed: bool) -> LanguageModel:
    """Three layers in float64; where `zeroed`, every sublayer's result is 0."""
    model = build(stacked(run, placement, N_LAYERS)).double()
    writers = tuple(name.removesuffix(".weight") for name in RESIDUAL_WRITERS)
    with torch.no_grad():
        for name, module in model.named_modules():
            if zeroed and name.endswith(writers):
                for p in module.parameters():
                    p.zero_()
    return model


def layers(model: LanguageModel) -> list[Callable[[Tensor], Tensor]]:
    """Each layer as a function of the stream, x_TD -> x_TD."""
    pos = torch.arange(N_TOKENS)
    context = model.attention_context(pos, pos)
    return [lambda x_TD, b=block: cast(Block, b)(x_TD[None], context)[0][0] for block in model.blocks]


def through(fs: list[Callable[[Tensor], Tensor]], x_TD: Tensor) -> Tensor:
    """The stream after all layers."""
    for f in fs:
        x_TD = f(x_TD)
    return x_TD


def jacobian_of(f: Callable[[Tensor], Tensor], x_TD: Tensor) -> Tensor:
    """d f(x) / d x as a matrix, J_NN."""
    return cast(Tensor, jacobian(f, x_TD)).flatten(2).flatten(0, 1)


def chained(fs: list[Callable[[Tensor], Tensor]], x_TD: Tensor) -> Tensor:
    """The product of the layers' own Jacobians, each at the stream that enters it."""
    product = torch.eye(x_TD.numel(), dtype=x_TD.dtype)
    for f in fs:
        product = jacobian_of(f, x_TD) @ product
        x_TD = f(x_TD)
    return product


def branches(model: LanguageModel, x_TD: Tensor) -> Tensor:
    """The sum of what the sublayers give on the way from x_TD, before any norm behind them."""
    given: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor, object]) -> None:
        given.append(output[0] if isinstance(output, tuple) else output)

    sublayers = [part for block in model.blocks for part in (cast(Block, block).attention, cast(Block, block).ffn)]
    hooks = [part.register_forward_hook(keep) for part in sublayers]
    through(layers(model), x_TD)
    for hook in hooks:
        hook.remove()
    return torch.stack([g[0] if g.dim() == 3 else g for g in given]).sum(0)


def singular(j_NN: Tensor) -> list[tuple[str, float]]:
    """What a Jacobian loses: its smallest singular value, its rank, and its size beside that of I."""
    values = torch.linalg.svdvals(j_NN)
    rank = int((values > 1e-10 * values[0]).sum())
    return [
        ("smallest_singular", values[-1].item()),
        ("largest_singular", values[0].item()),
        ("lost_rank", len(values) - rank),
    ]


@register("probe", "residual_paths")
def residual_paths(request: config.Request, options: Probe) -> pd.DataFrame:
    """Whether the way back from x_3 to x_0 holds an identity, in pre-norm and in post-norm.

    Columns: claim, placement, sublayers (initial or zero), quantity (see LABELS), value. Depends on all parts of the
    model.
    """
    rows: list[tuple[str, str, str, float]] = []
    for placement in ("pre", "post"):
        for zeroed in (False, True):
            model = new_model(request.run, placement, zeroed=zeroed)
            pos = torch.arange(N_TOKENS)
            with torch.no_grad():
                embedded = model.embed(words(request.run, 1, N_TOKENS)) * model.embed_scale
                x_TD = model.posenc.embed(embedded, pos)[0]
            fs, eye = layers(model), torch.eye(x_TD.numel(), dtype=x_TD.dtype)
            j_NN = jacobian_of(lambda x, fs=fs: through(fs, x), x_TD)
            branches_NN = jacobian_of(lambda x, m=model: branches(m, x), x_TD)
            found = [
                ("identity_gap", largest(j_NN - eye)),
                ("branches_gap", largest(j_NN - eye - branches_NN)),
                ("product_gap", largest(j_NN - chained(fs, x_TD))),
                *singular(j_NN),
            ]
            state = "zero" if zeroed else "initial"
            rows += [(placement, state, quantity, value) for quantity, value in found]
    table = pd.DataFrame(rows, columns=["placement", "sublayers", "quantity", "value"])
    table.insert(0, "claim", "residual_paths")
    return table


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A column for each placement and state."""
    table = labelled(table, LABELS)
    wide = table.assign(of=table.placement + ", " + table.sublayers)
    wide = wide.pivot(index="quantity", columns="of", values="value")
    title = "J = d x_3 / d x_0 by placement, sublayers zero or at their initial values"
    return {title: wide.loc[table.quantity.unique(), wide.columns[::-1]].reset_index()}


def sentence(table: pd.DataFrame) -> str:
    """Whether an identity is in the way back, for each placement."""
    wide = table.pivot(index=["placement", "sublayers"], columns="quantity", values="value")

    def said(placement: str) -> str:
        zero, initial = wide.loc[(placement, "zero")].identity_gap, wide.loc[(placement, "initial")]
        gap = max(zero, initial.branches_gap)
        how = "" if gap < ROUNDING else "not "
        lost = counted(int(initial.lost_rank), "direction") if initial.lost_rank else "no direction"
        return f"n {placement}-norm J is {how}I plus its branches (gap {number(gap)}) and loses {lost} of the gradient"

    return f"I{said('pre')}; i{said('post')}."
