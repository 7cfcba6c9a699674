"""A feed-forward layer of your own: lecture04.yaml names this file, conf/ffn/mine.yaml makes it `ffn=mine`."""

import torch.nn.functional as F
from torch import Tensor

from lecture04 import register
from lecture04.nn import PlainFFN


@register("ffn", "mine")
class Mine(PlainFFN):
    """x tanh(softplus(x)), Mish (Misra 2019).

    `PlainFFN` brings the two matrices: down(activation(up(x))), x_BTD -> x_BTD with F hidden units between. A gated
    layer builds on `GatedFFN`, which has three. The first line stands in `lecture04 train --help`: say what the part
    computes and where it comes from. A part is pure: no `.item()`, no branch on its data, no state changed in place.
    """

    def activation(self, x: Tensor) -> Tensor:
        """x tanh(softplus(x))."""
        return F.mish(x)
