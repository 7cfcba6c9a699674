"""The KV cache of one attention layer, as an immutable value: appending returns a new one.

Shapes: B batch, G key and value heads, S cached tokens, K d_head.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KVCache:
    """Keys and values seen so far, k_BGSK and v_BGSK."""

    k: Tensor
    v: Tensor

    def append(self, k_BGTK: Tensor, v_BGTK: Tensor) -> "KVCache":
        """The cache with T more tokens behind those it has."""
        return KVCache(torch.cat([self.k, k_BGTK], dim=2), torch.cat([self.v, v_BGTK], dim=2))

    @property
    def n_tokens(self) -> int:
        """How many tokens are cached."""
        return self.k.shape[2]

    @property
    def n_bytes(self) -> int:
        """Bytes that the cached tensors hold."""
        return sum(t.numel() * t.element_size() for t in (self.k, self.v))
