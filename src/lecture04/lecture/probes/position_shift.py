"""What moves when every position is moved by the same number (sections 4.3 and 4.4). In float64.

Shapes: T queries, S keys, H heads, K d_head.
"""

import pandas as pd
import torch
from torch import Tensor

from lecture04.config import Request, UserError
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, open_attention, open_part, with_parts, words
from lecture04.lecture.probes.options import PositionShift
from lecture04.lecture.probes.text import labelled, listed, number
from lecture04.nn.block import Block
from lecture04.nn.init import build
from lecture04.nn.model import LanguageModel
from lecture04.nn.posenc import POSENCS

# The quantities of the table, as they are shown.
LABELS = {
    "scores_change": "change of scores",
    "scores_largest": "largest score",
    "logits_change": "change of logits",
    "logits_largest": "largest logit",
}
ROUNDING = 1e-9  # in float64, of scores of about 1


def first_scores(model: LanguageModel, tokens_BT: Tensor, pos_T: Tensor) -> Tensor:
    """What enters the first layer's softmax, scores_BHTS, without its norm; 0 where a query may not look."""
    block = model.blocks[0]
    assert isinstance(block, Block)
    layer = block.attention
    x_BTD = model.posenc.embed(model.embed(tokens_BT) * model.embed_scale, pos_T)
    rotation = model.posenc.rotation(pos_T)
    q_BHTK = model.posenc.rotate(layer.heads(layer.q(x_BTD)), rotation)
    k_BHSK = model.posenc.rotate(layer.heads(layer.k(x_BTD)), rotation)
    scores_BHTS = q_BHTK @ k_BHSK.mT
    if layer.relative is not None:
        scores_BHTS = scores_BHTS + layer.relative.score(q_BHTK, layer.relative.index(pos_T, pos_T))
    scores_BHTS = layer.scale * scores_BHTS
    bias = model.posenc.bias(pos_T, pos_T)
    return (scores_BHTS if bias is None else scores_BHTS + bias).tril()


@register("probe", "position_shift")
def position_shift(request: Request, options: PositionShift) -> pd.DataFrame:
    """What a constant shift of all positions changes, for every position encoding.

    Columns: claim, posenc, quantity (see LABELS), value, shift: the largest change of the first layer's scores and of
    the model's logits when probe.shift is added to every position, and their own largest value. Multi-head attention;
    all other parts of the model count. Weights are at their initial values.
    """
    run = request.run
    rows: list[tuple[str, str, float]] = []
    tokens_BT, pos_T = words(run, 2, options.n_tokens), torch.arange(options.n_tokens)
    # A learned table must reach as far as the shift.
    n_ctx = max(run.n_ctx, options.n_tokens + options.shift)
    for name in POSENCS.names():
        parts = {"attention": open_attention(run, "mha"), "posenc": open_part(run, "posenc", name)}
        try:
            shifted = with_parts(run, parts, n_ctx=n_ctx)
        except UserError:  # an encoding that the model cannot have
            continue
        model = build(shifted).double()
        with torch.no_grad():
            scores = [first_scores(model, tokens_BT, pos_T + by) for by in (0, options.shift)]
            logits = [model(tokens_BT, pos_T + by) for by in (0, options.shift)]
        for quantity, (before, after) in (("scores", scores), ("logits", logits)):
            rows.append((name, f"{quantity}_change", largest(after - before)))
            rows.append((name, f"{quantity}_largest", largest(before)))
    table = pd.DataFrame(rows, columns=["posenc", "quantity", "value"])
    table.insert(0, "claim", "shift_invariance")
    return table.assign(shift=options.shift)


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A row for each encoding."""
    table = labelled(table, LABELS)
    wide = table.pivot(index="posenc", columns="quantity", values="value")
    wide = wide.loc[table.posenc.unique(), table.quantity.unique()].reset_index()
    depends = ["distances" if change < ROUNDING else "positions" for change in wide[LABELS["scores_change"]]]
    return {f"All positions moved by {table['shift'].iloc[0]:,}": wide.assign(**{"scores depend on": depends})}


def sentence(table: pd.DataFrame) -> str:
    """Whose scores depend on distances alone."""
    change = table[table.quantity == "scores_change"].set_index("posenc").value
    same, moved = change[change < ROUNDING], change[change >= ROUNDING]
    by = [f"{name} (by {number(value)})" for name, value in moved.items()]
    names = listed(list(same.index))
    keep = f"stay with posenc {names} (they change by at most {number(same.max())}), so that distances count"
    changes = f"change with posenc {listed(by)}, so that positions themselves count"
    parts = [*([keep] if len(same) else []), *([changes] if len(moved) else [])]
    return f"When all positions move by {table['shift'].iloc[0]:,}, the first layer's scores {'; they '.join(parts)}."
