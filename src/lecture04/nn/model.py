"""The language model: embeddings, blocks, a head; every part chosen when it is built.

Names of parameters are roles (`blocks.0.ffn.down.weight`), the same whatever part plays the role, so that a seed gives
the same start to every parameter that two models share.

Shapes: B batch, T tokens, S tokens with those cached, D d_model, V vocabulary.
"""

from functools import partial
from typing import TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lecture04 import config
from lecture04.config.registry import register
from lecture04.config.sizes import Counts
from lecture04.nn.attention import ATTENTIONS, AttentionContext
from lecture04.nn.block import PLACEMENTS, Block
from lecture04.nn.ffn import FFNS
from lecture04.nn.kv_cache import KVCache
from lecture04.nn.norm import NORMS
from lecture04.nn.posenc import POSENCS, PosEnc

Cache: TypeAlias = tuple[KVCache, ...]


def family_of(name: str) -> str:
    """The family that a parameter belongs to, by its name: names are roles."""
    roles = name.split(".")[:-1]
    if any(role.endswith("norm") for role in roles):
        return "norm"
    return next(
        (family for family in ("ffn", "posenc") if family in roles), "posenc" if "relative" in roles else "attention"
    )


@register("architecture", "causal")
class LanguageModel(nn.Module):
    """A causal Transformer of the parts that an architecture names. Initial values come from nn/init.py."""

    @staticmethod
    def counted(c: config.Architecture) -> Counts:
        """What the model has, built on torch's meta device, without memory."""
        with torch.device("meta"):
            model = LanguageModel(c)
        params: dict[str, int] = {"attention": 0, "ffn": 0, "norm": 0, "posenc": 0}
        weights = dict(params)
        for name, parameter in model.named_parameters():
            if not name.startswith(("embed.", "head.")):
                params[family_of(name)] += parameter.numel()
            if name.startswith("blocks.0.") and parameter.ndim > 1:
                weights[family_of(name)] += parameter.numel()
        cache = cast(Block, model.blocks[0]).attention.empty_cache(1)
        kv_numbers = sum(t.shape[1] * t.shape[3] for t in (cache.k, cache.v))
        return Counts(params, weights, kv_numbers)

    def __init__(self, c: config.Architecture) -> None:
        super().__init__()
        model = c.model
        norm_of = partial(NORMS.lookup(c.norm.name), c.norm)
        new_norm = partial(norm_of, model.d_model)
        block = PLACEMENTS.lookup(c.placement.name)
        attention, ffn = ATTENTIONS.lookup(c.attention.name), FFNS.lookup(c.ffn.name)
        self.embed = nn.Embedding(c.vocab_size, model.d_model)
        # Entries of variance 1/D are brought to variance 1, so that a tied head starts with logits of order 1.
        self.embed_scale = model.embed_scale
        self.posenc: PosEnc = POSENCS.lookup(c.posenc.name)(c.posenc, model)
        self.blocks = nn.ModuleList(
            block(attention(c.attention, model, self.posenc, norm_of), ffn(c.ffn, model), new_norm)
            for _ in range(model.n_layers)
        )
        self.is_causal = c.attention.causal
        self.final_norm = new_norm() if c.placement.has_final_norm else nn.Identity()
        self.head = None if model.tied else nn.Linear(model.d_model, c.vocab_size, bias=False)

    def forward(self, tokens_BT: Tensor, pos_BT: Tensor | None = None, document_BT: Tensor | None = None) -> Tensor:
        """logits_BTV of the next token at each token.

        `pos_BT` and `document_BT` are for rows that hold several documents end to end: the position of each token in
        its document, and a number for the document, beyond which no token looks. Without them a row is one sequence.
        """
        pos = torch.arange(tokens_BT.shape[1], device=tokens_BT.device) if pos_BT is None else pos_BT
        logits_BTV, _ = self.forward_with_cache(
            tokens_BT, pos, self.attention_context(pos, pos, document_BT), (None,) * len(self.blocks)
        )
        return logits_BTV

    def decode(self, tokens_BT: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """logits_BTV for T new tokens behind those in the cache, and the cache with them in it."""
        pos_k = torch.arange(cache[0].n_tokens + tokens_BT.shape[1], device=tokens_BT.device)
        pos = pos_k[cache[0].n_tokens :]
        logits_BTV, grown = self.forward_with_cache(tokens_BT, pos, self.attention_context(pos, pos_k), cache)
        return logits_BTV, cast(Cache, grown)

    def forward_with_cache(
        self, tokens_BT: Tensor, pos: Tensor, context: AttentionContext, cache: tuple[KVCache | None, ...]
    ) -> tuple[Tensor, tuple[KVCache | None, ...]]:
        """Embeddings, blocks and head: logits_BTV, and each layer's cache with the new tokens where one was given."""
        x_BTD = self.posenc.embed(self.embed(tokens_BT) * self.embed_scale, pos)
        grown = []
        for block, layer_cache in zip(self.blocks, cache, strict=True):
            x_BTD, layer_cache = block(x_BTD, context, layer_cache)
            grown.append(layer_cache)
        return self.logits(x_BTD), tuple(grown)

    def empty_cache(self, batch: int) -> Cache:
        """A cache without tokens, one part a layer. Raises ValueError for a model that is not causal."""
        if not self.is_causal:
            raise ValueError("attention.causal=false: each token changes those before it, so nothing can be cached.")
        return tuple(cast(Block, block).attention.empty_cache(batch) for block in self.blocks)

    def attention_context(self, pos_q: Tensor, pos_k: Tensor, document_BT: Tensor | None = None) -> AttentionContext:
        """What queries at these positions see of keys at those, for all layers (see `AttentionContext`)."""
        rotate = partial(self.posenc.rotate, rotation=self.posenc.rotation(pos_q))
        bias = self.posenc.bias(pos_q, pos_k)
        plain = document_BT is None and pos_q is pos_k and bias is None and not self.posenc.needs_scores
        if plain:
            return AttentionContext(pos_q, pos_k, None, self.is_causal, rotate)
        hidden = pos_k[..., None, :] > pos_q[..., :, None] if self.is_causal else pos_k.new_zeros((), dtype=torch.bool)
        if document_BT is not None:
            hidden = hidden | (document_BT[:, None, :] != document_BT[:, :, None])
        if hidden.ndim == 3:  # each row of the batch has its own; the same for all heads
            hidden = hidden.unsqueeze(1)
        if bias is None:
            bias = torch.zeros((), dtype=self.embed.weight.dtype, device=pos_q.device)
        return AttentionContext(pos_q, pos_k, torch.where(hidden, -torch.inf, bias), False, rotate)

    def logits(self, x_BTD: Tensor) -> Tensor:
        """The last norm and the head, logits_BTV; a tied head is the embedding's own matrix."""
        x_BTD = self.final_norm(x_BTD)
        return F.linear(x_BTD, self.embed.weight) if self.head is None else self.head(x_BTD)
