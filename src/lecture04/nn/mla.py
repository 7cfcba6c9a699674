"""Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2): keys and values are restored from a small latent.

Shapes: B batch, T queries, S keys, H heads, D d_model, K d_head, L d_latent, R d_rope.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import register
from lecture04.nn.attention import AttentionContext, explicit, fused
from lecture04.nn.kv_cache import KVCache
from lecture04.nn.posenc import PosEnc


@register(
    "attention",
    "mla",
    options=config.MLA,
    about="Keys and values restored from a cached latent (DeepSeek-AI 2024, DeepSeek-V2).",
)
class LatentAttention(nn.Module):
    """Head i attends with keys [W_UK,i c_s ; r_s] and values W_UV,i c_s, c = norm(W_DKV x) of L numbers.

    The cache holds c and r alone, L + R numbers a token, whatever the number of heads. Positions cannot be rotated into
    keys that are restored from c, so they are carried by R more dimensions of each query and by one key r, shared by
    the heads (the decoupled RoPE); where the position encoding rotates nothing, r is a shared key without a position.
    Scores are scaled by 1/sqrt(K + R).

    Decoding is absorbed: q^T (W_UK c) = (W_UK^T q)^T c, and W_UV is applied to the attended latent, so that a step
    meets the cached latents as they are: attention with one key and value head. The up-projections have no bias, which
    could not be absorbed. Queries are not compressed here, as in DeepSeek-V2-Lite.
    """

    def __init__(
        self,
        options: config.MLA,
        model: config.Model,
        posenc: PosEnc,
        new_norm: Callable[[int], nn.Module],
    ) -> None:
        super().__init__()
        self.n_heads, self.d_head, self.d_rope = model.n_heads, model.d_head, options.d_rope
        self.scale = options.scale * posenc.score_factor
        self.q = nn.Linear(model.d_model, model.n_heads * (model.d_head + options.d_rope), bias=options.bias)
        self.kv_down = nn.Linear(model.d_model, options.d_latent, bias=options.bias)
        self.kv_norm = new_norm(options.d_latent)
        self.k_rope = nn.Linear(model.d_model, options.d_rope, bias=options.bias)
        self.k_up = nn.Linear(options.d_latent, model.n_heads * model.d_head, bias=False)
        self.v_up = nn.Linear(options.d_latent, model.n_heads * model.d_head, bias=False)
        self.output = nn.Linear(model.n_heads * model.d_head, model.d_model, bias=options.output_bias)
        self.attend = partial(explicit if posenc.needs_scores else fused, scale=self.scale, relative=None)

    def empty_cache(self, batch: int) -> KVCache:
        """A cache without tokens: rotated keys r as its keys, latents c as its values, one head of each."""
        like = self.kv_down.weight
        return KVCache(like.new_empty(batch, 1, 0, self.d_rope), like.new_empty(batch, 1, 0, self.kv_down.out_features))

    def heads(self, x: Tensor) -> Tensor:
        """x_BT(H.) -> x_BHT."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(
        self, x_BTD: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> tuple[Tensor, KVCache | None]:
        """The attended values y_BTD, and the cache with the new tokens in it where one was given."""
        q_BHTK, q_BHTR = self.heads(self.q(x_BTD)).split([self.d_head, self.d_rope], dim=-1)
        q_BHTR = context.rotate(q_BHTR)
        c_B1SL = self.kv_norm(self.kv_down(x_BTD)).unsqueeze(1)
        r_B1SR = context.rotate(self.k_rope(x_BTD).unsqueeze(1))
        if cache is None:
            return self.output(self.restored(q_BHTK, q_BHTR, c_B1SL, r_B1SR, context)), None
        cache = cache.append(r_B1SR, c_B1SL)
        return self.output(self.absorbed(q_BHTK, q_BHTR, cache.v, cache.k, context)), cache

    def restored(
        self, q_BHTK: Tensor, q_BHTR: Tensor, c_B1SL: Tensor, r_B1SR: Tensor, context: AttentionContext
    ) -> Tensor:
        """Every head's keys and values restored, y_BT(HK): for whole sequences, where each is used T times."""
        k_BHSK, v_BHSK = self.heads(self.k_up(c_B1SL.squeeze(1))), self.heads(self.v_up(c_B1SL.squeeze(1)))
        k = torch.cat([k_BHSK, r_B1SR.expand(-1, self.n_heads, -1, -1)], dim=-1)
        y_BHTK = self.attend(torch.cat([q_BHTK, q_BHTR], dim=-1), k, v_BHSK, context)
        return y_BHTK.transpose(1, 2).flatten(2)

    def absorbed(
        self, q_BHTK: Tensor, q_BHTR: Tensor, c_B1SL: Tensor, r_B1SR: Tensor, context: AttentionContext
    ) -> Tensor:
        """The same without restoring any, y_BT(HK): for decoding, where the latents are read as they lie."""
        up_HKL, down_HKL = (w.weight.unflatten(0, (self.n_heads, -1)) for w in (self.k_up, self.v_up))
        q_BHTL = q_BHTK @ up_HKL
        k = torch.cat([c_B1SL, r_B1SR], dim=-1)
        y_BHTL = self.attend(torch.cat([q_BHTL, q_BHTR], dim=-1), k, c_B1SL, context)
        return (y_BHTL @ down_HKL.mT).transpose(1, 2).flatten(2)
