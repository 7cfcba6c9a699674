"""What the FFN's hidden layers of a trained model do: how much of them is exactly zero, and which units never fire.

Shapes: B rows, T tokens, N predicted tokens, F d_ff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from lecture04.data.types import IGNORE, Batch
from lecture04.nn.model import LanguageModel


@dataclass(frozen=True)
class LayerActivity:
    """One layer's hidden units, h_NF = what enters the down-projection, over N predicted tokens.

    Attributes:
        layer: 0 is the one nearest to the input.
        zeros: the share of the N F numbers that are exactly 0.0, from 0 to 1.
        dead: how many units are exactly 0.0 at every one of the tokens.
        d_ff: how many units there are, F.
    """

    layer: int
    zeros: float
    dead: int
    d_ff: int


class _Tally:
    """Counts of one layer, batch after batch, kept where the model computes."""

    def __init__(self) -> None:
        self.n_tokens = 0
        self.n_zeros_F: Tensor | None = None

    def add(self, h_BTF: Tensor, real_BT: Tensor) -> None:
        """Count the tokens that are predicted."""
        h_NF = h_BTF[real_BT]
        zeros_F = (h_NF == 0).sum(dim=0)
        self.n_tokens += h_NF.shape[0]
        self.n_zeros_F = zeros_F if self.n_zeros_F is None else self.n_zeros_F + zeros_F

    def result(self, layer: int) -> LayerActivity:
        """What was counted."""
        assert self.n_zeros_F is not None
        n_zeros, d_ff = int(self.n_zeros_F.sum()), len(self.n_zeros_F)
        dead = int((self.n_zeros_F == self.n_tokens).sum())
        return LayerActivity(layer, n_zeros / (self.n_tokens * d_ff), dead, d_ff)


@torch.no_grad()
def activity(model: LanguageModel, batches: Iterable[Batch]) -> list[LayerActivity]:
    """Zeros and dead units of every layer over the predicted tokens of some batches; padding is left out.

    Read by a hook on each `blocks.i.ffn.down`, which is gone afterwards, in evaluation mode, without gradients; the
    model and its mode stay as they are. A layer whose FFN has no module `down` (a part of another shape) is left out. A
    unit that is not a number counts as active.

    Raises:
        ValueError: the batches hold no predicted token.
    """
    tallies: dict[int, _Tally] = {}
    real_BT = torch.zeros(0)

    def count(module: nn.Module, inputs: tuple[Tensor, ...], *, tally: _Tally) -> None:
        tally.add(inputs[0], real_BT)

    hooks = []
    for layer, block in enumerate(model.blocks):
        down = getattr(block.ffn, "down", None)
        if isinstance(down, nn.Module):
            tallies[layer] = _Tally()
            hooks.append(down.register_forward_pre_hook(partial(count, tally=tallies[layer])))
    was_training = model.training
    model.eval()
    n_tokens = 0
    try:
        for batch in batches:
            real_BT = batch.targets_BT != IGNORE
            n_tokens += int(real_BT.sum())
            model(batch.tokens_BT, batch.pos_BT, batch.document_BT)
    finally:
        for hook in hooks:
            hook.remove()
        model.train(was_training)
    if not n_tokens:
        raise ValueError("the batches hold no predicted token: nothing to measure the activity of.")
    return [tally.result(layer) for layer, tally in tallies.items()]
