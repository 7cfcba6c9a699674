"""Starting from another model's parameters, with fewer key and value heads (Ainslie et al. 2023).

A group of H/G query heads comes to share a key and a value head. What was g = G_source/G heads is merged into one:

    mean      (W_1 + ... + W_g) / g, rows of the same place in each head
    first     W_1
    random    a new head at its initial values: what was learned is thrown away

Biases go with their matrices. Every other parameter is taken over as it is.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lecture04 import config
from lecture04.config import Merge
from lecture04.config.registry import register
from lecture04.nn.init import TorchInit
from lecture04.nn.model import LanguageModel

MERGED = (".attention.k.weight", ".attention.k.bias", ".attention.v.weight", ".attention.v.bias")

# (the source's heads, grouped GgK..., the new one's initial values G K...) -> the merged heads
MERGES: dict[Merge, Callable[[Tensor, Tensor], Tensor]] = {
    Merge.mean: lambda heads, new: heads.mean(dim=1),
    Merge.first: lambda heads, new: heads[:, 0],
    Merge.random: lambda heads, new: new,
}


@register("init", "uptrain", options=config.Uptrain)
class Uptrain(TorchInit):
    """Another run's parameters, its key and value heads merged to the new number (Ainslie et al. 2023).

    What the source does not give (heads that are drawn anew) starts as torch has it.
    """


@torch.no_grad()
def start_from(model: LanguageModel, source: dict[str, Tensor], merge: Merge, d_head: int) -> None:
    """Set a new model's parameters to those of its source, merged where their number of heads differs.

    Raises:
        RuntimeError: a parameter is missing, too many, or of another shape (`source_errors` keeps such away).
    """
    own = model.state_dict()
    merged = {
        name: merge_heads(value, own[name], merge, d_head) if name.endswith(MERGED) else value
        for name, value in source.items()
    }
    model.load_state_dict(merged)


def merge_heads(source: Tensor, new: Tensor, merge: Merge, d_head: int) -> Tensor:
    """(G_source K) x ... -> (G K) x ...; as it is where the number of heads is the same."""
    if source.shape == new.shape:
        return source
    n_heads = new.shape[0] // d_head
    heads = source.unflatten(0, (n_heads, -1, d_head))
    return MERGES[merge](heads, new.unflatten(0, (n_heads, d_head))).flatten(0, 1)
