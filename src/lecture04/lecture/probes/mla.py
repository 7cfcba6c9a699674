"""Absorbing MLA's up-projections (section 3.3): where it is exact, where RoPE forbids it, and the way out.

    restored  q . (W_UK c)         absorbed  (W_UK^T q) . c              scores
    restored  W_O (w W_UV c)       absorbed  (W_O W_UV) (w c)            outputs, w the attention's weights

Shapes: B batch, T queries, S keys, H heads, D d_model, K d_head, L d_latent, R d_rope. Matrices are drawn so that
queries, latents and restored keys have entries of variance 1, whatever their widths; scores are not scaled.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import pandas as pd
import torch
from torch import Tensor

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, open_attention, open_part, opened, plain_rope, with_parts
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import labelled, listed, number
from lecture04.nn.attention import AttentionContext
from lecture04.nn.block import Block
from lecture04.nn.init import build
from lecture04.nn.mla import LatentAttention
from lecture04.nn.model import LanguageModel
from lecture04.nn.rope import RoPE

BATCH, N_TOKENS = 2, 24
# Quantities and positions; LABELS and POSITIONS have them as they are shown.
SCORES, OUTPUTS, LARGEST = "score_gap", "output_gap", "largest_score"
LABELS = {
    SCORES: "gap of scores",
    OUTPUTS: "gap of outputs",
    LARGEST: "largest score",
}
POSITIONS = {
    "none": "no positions",
    "decoupled": "RoPE in a part of its own",
    "restored": "RoPE on restored keys",
}

ROUNDING = 1e-9  # of the largest score, in float64

Row = tuple[str, str, str, str, float]


class Layer(NamedTuple):
    """One layer of MLA with what it makes of its tokens; positions are in q_BHTR and r_B1SR alone."""

    part: LatentAttention
    context: AttentionContext
    q_BHTK: Tensor
    q_BHTR: Tensor
    c_B1SL: Tensor
    r_B1SR: Tensor

    @property
    def up_HKL(self) -> Tensor:
        """W_UK of each head."""
        return self.part.k_up.weight.unflatten(0, (self.part.n_heads, -1))

    @property
    def k_BHSK(self) -> Tensor:
        """The keys restored from the latents."""
        return self.c_B1SL @ self.up_HKL.mT

    @property
    def output_HDL(self) -> Tensor:
        """W_O W_UV of each head: from an attended latent to what the head adds to the layer's output."""
        down_HKL = self.part.v_up.weight.unflatten(0, (self.part.n_heads, -1))
        output_HDK = self.part.output.weight.unflatten(1, (self.part.n_heads, -1)).transpose(0, 1)
        return output_HDK @ down_HKL


def parts(run: config.Run) -> config.Run:
    """One layer of the run's model with MLA and RoPE in it, with its own options where it chose them."""
    rope = open_part(run, "posenc", run.posenc.name if isinstance(run.posenc, config.Rope) else "rope")
    rope.width = None
    model = replace(opened(run.model, run), n_layers=1)
    return with_parts(run, {"model": model, "attention": open_attention(run, "mla"), "posenc": rope})


def unit_variance(model: LanguageModel, seed: int) -> LatentAttention:
    """The model's attention with matrices of variance 1/fan-in, from a seed: what has unit variance keeps it."""
    latent = cast(LatentAttention, cast(Block, model.blocks[0]).attention)
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in latent.parameters():
            if p.ndim == 2:
                p.normal_(0, p.shape[1] ** -0.5, generator=g)
    return latent


def layer(run: config.Run, dtype: torch.dtype) -> Layer:
    """The layer on the same random input x_BTD, in one number format."""
    model = build(run)
    latent = unit_variance(model, run.seed)
    model.to(dtype)
    g = torch.Generator().manual_seed(run.seed + 1)
    x_BTD = torch.randn(BATCH, N_TOKENS, run.model.d_model, generator=g).to(dtype)
    pos = torch.arange(N_TOKENS)
    context = model.attention_context(pos, pos)
    q_BHTK, q_BHTR = latent.heads(latent.q(x_BTD)).split([latent.d_head, latent.d_rope], dim=-1)
    c_B1SL = latent.kv_norm(latent.kv_down(x_BTD)).unsqueeze(1)
    r_B1SR = context.rotate(latent.k_rope(x_BTD).unsqueeze(1))
    return Layer(latent, context, q_BHTK, context.rotate(q_BHTR), c_B1SL, r_B1SR)


def absorbed_scores(at: Layer) -> Tensor:
    """(W_UK^T q) . c of every query and key, scores_BHTS."""
    return (at.q_BHTK @ at.up_HKL) @ at.c_B1SL.mT


def causal_weights(scores_BHTS: Tensor, scale: float) -> Tensor:
    """softmax(scale scores) over what a query may see."""
    hidden = torch.ones(scores_BHTS.shape[-2:], dtype=torch.bool).triu(1)
    return (scale * scores_BHTS).masked_fill(hidden, -torch.inf).softmax(-1)


def absorption(at: Layer) -> tuple[float, float]:
    """Without positions: the largest difference of the scores, and that of the layer's outputs y_BTD."""
    restored_BHTS, absorbed_BHTS = at.q_BHTK @ at.k_BHSK.mT, absorbed_scores(at)
    scale = at.part.d_head**-0.5
    v_BHSK = at.part.heads(at.part.v_up(at.c_B1SL.squeeze(1)))
    y_BHTK = causal_weights(restored_BHTS, scale) @ v_BHSK
    restored_BTD = at.part.output(y_BHTK.transpose(1, 2).flatten(2))
    latent_BHTL = causal_weights(absorbed_BHTS, scale) @ at.c_B1SL
    absorbed_BTD = (latent_BHTL @ at.output_HDL.mT).sum(dim=1)
    if at.part.output.bias is not None:
        absorbed_BTD = absorbed_BTD + at.part.output.bias
    return largest(absorbed_BHTS - restored_BHTS), largest(absorbed_BTD - restored_BTD)


def clash(run: config.Run, at: Layer) -> tuple[float, float]:
    """With restored keys rotated: by how much absorbing as before is wrong, and the largest score.

    Right is (R_t q) . (R_s W_UK c); R_s stands between W_UK and what could be moved into q, and differs from key to
    key. Left out, as a cache of latents must, it gives (W_UK^T R_t q) . c.
    """
    assert isinstance(run.posenc, config.Rope)
    rope = RoPE(plain_rope(run.posenc.base, run.model.d_head), run.model)
    rotation = rope.rotation(torch.arange(N_TOKENS))
    q_BHTK, k_BHSK = rope.rotate(at.q_BHTK, rotation), rope.rotate(at.k_BHSK, rotation)
    right_BHTS = q_BHTK @ k_BHSK.mT
    return largest(absorbed_scores(at._replace(q_BHTK=q_BHTK)) - right_BHTS), largest(right_BHTS)


def decoupled(at: Layer) -> tuple[float, float]:
    """With positions in a part of their own: the differences of the scores and of the outputs, by the model's class."""
    k_BHSK = torch.cat([at.k_BHSK, at.r_B1SR.expand(-1, at.part.n_heads, -1, -1)], dim=-1)
    restored_BHTS = torch.cat([at.q_BHTK, at.q_BHTR], dim=-1) @ k_BHSK.mT
    absorbed_BHTS = absorbed_scores(at) + at.q_BHTR @ at.r_B1SR.mT
    inputs = (at.q_BHTK, at.q_BHTR, at.c_B1SL, at.r_B1SR, at.context)
    restored_BTD = at.part.output(at.part.restored(*inputs))
    absorbed_BTD = at.part.output(at.part.absorbed(*inputs))
    return largest(absorbed_BHTS - restored_BHTS), largest(absorbed_BTD - restored_BTD)


def figures(run: config.Run) -> Iterator[Row]:
    """The table's rows."""
    for dtype in (torch.float32, torch.float64):
        at, name = layer(run, dtype), str(dtype).removeprefix("torch.")
        for claim, what, found in (
            ("mla_absorb", "none", absorption(at)),
            ("mla_decoupled", "decoupled", decoupled(at)),
        ):
            for quantity, value in zip((SCORES, OUTPUTS), found, strict=True):
                yield claim, what, name, quantity, value
        wrong, size = clash(run, at)
        yield "mla_rope_clash", "restored", name, SCORES, wrong
        yield "mla_rope_clash", "restored", name, LARGEST, size


@register("probe", "mla")
def mla(request: config.Request, options: Probe) -> pd.DataFrame:
    """What absorbing MLA's up-projections changes: without positions, with RoPE apart, with rotated keys.

    Columns: claim, positions (see POSITIONS), dtype, quantity (see LABELS), value. One layer of the config's model with
    attention=mla (its own d_latent and d_rope, where it chose that) on random tokens; scores are those before their
    scaling.
    """
    with torch.no_grad():
        rows = list(figures(parts(request.run)))
    return pd.DataFrame(rows, columns=["claim", "positions", "dtype", "quantity", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A row for each way to tell positions, and number format."""
    table = labelled(table, LABELS).assign(positions=table.positions.map(POSITIONS))
    wide = table.pivot(index=["positions", "dtype"], columns="quantity", values="value")[list(LABELS.values())]
    rows = [(positions, dtype) for positions in POSITIONS.values() for dtype in table.dtype.unique()]
    return {"Largest gap between absorbed and restored": wide.loc[rows].reset_index()}


def sentence(table: pd.DataFrame) -> str:
    """Where absorbing changes nothing but the rounding, and where it is wrong."""
    exact = table.loc[table.dtype == "float64"]
    size = exact.value[exact.quantity == LARGEST].item()
    gaps = exact.loc[exact.quantity == SCORES].set_index("positions").value.rename(POSITIONS)
    is_same = gaps < ROUNDING * size
    said = []
    if is_same.any():
        said.append(
            f"With {listed(list(gaps.index[is_same]), 'or')} absorbing changes no score by more than "
            f"{number(gaps[is_same].max())} in float64, which is rounding"
        )
    if not is_same.all():
        said.append(
            f"with {listed(list(gaps.index[~is_same]), 'or')} it is wrong by up to {number(gaps[~is_same].max())}, "
            f"where the largest score is {number(size)}"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
