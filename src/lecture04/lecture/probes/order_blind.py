"""Attention alone does not see order (section 4.1). In float64."""

import pandas as pd
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.common import largest, open_attention, open_part, with_parts, words
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import listed, number
from lecture04.nn.init import build
from lecture04.nn.posenc import POSENCS

N_TOKENS = 24
ROUNDING = 1e-9  # in float64, of logits of about 1
SEEN = {False: "all tokens seen", True: "causal mask"}


def permuted_gap(run: config.Run) -> float:
    """max |f(P x) - P f(x)| for one permutation P of the tokens; both are 0 to rounding where f is blind to order."""
    model = build(run).double()
    tokens_BT = words(run, 2, N_TOKENS)
    order = torch.randperm(N_TOKENS, generator=torch.Generator().manual_seed(run.seed))
    with torch.no_grad():
        return largest(model(tokens_BT[:, order]) - model(tokens_BT)[:, order])


@register("probe", "order_blind")
def order_blind(request: config.Request, options: Probe) -> pd.DataFrame:
    """What permuting the input changes beyond permuting the output, by position encoding and mask.

    Columns: claim, posenc, causal, value: max |f(Px) - P f(x)| of the logits at initial values. An encoding that
    knows only what came before (T5's buckets) has no row without the mask.
    """
    rows: list[tuple[str, str, bool, float]] = []
    run = request.run
    for name in POSENCS.names():
        for causal in (False, True):
            seen = open_attention(run, run.attention.name)
            seen.causal = causal
            try:
                other = with_parts(run, {"attention": seen, "posenc": open_part(run, "posenc", name)})
            except config.UserError:
                continue
            rows.append(("order_blind", name, causal, permuted_gap(other)))
    return pd.DataFrame(rows, columns=["claim", "posenc", "causal", "value"])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """With and without the causal mask side by side."""
    wide = table.pivot(index="posenc", columns="causal", values="value").loc[table.posenc.unique()]
    wide = wide.rename(columns=SEEN).astype(object).where(wide.notna().to_numpy(), "cannot be")
    return {"max |f(Px) - P f(x)| of the logits": wide.reset_index()}


def sentence(table: pd.DataFrame) -> str:
    """Which cases are blind to the order of tokens, and how far the others are from it."""
    is_blind = table.value < ROUNDING
    blind, others = table.loc[is_blind], table.loc[~is_blind]
    rest = (
        f"in {'the others' if len(blind) else 'all cases'} the logits change, by {number(others.value.min())} or more"
    )
    if blind.empty:
        return f"No case is blind to the order of its tokens: {rest}."
    cases = [f"posenc={name} with {SEEN[causal]}" for name, causal in zip(blind.posenc, blind.causal, strict=True)]
    return (
        f"Blind to the order of tokens: {listed(cases)} (the logits change by at "
        f"most {number(blind.value.max())}){'; ' + rest if len(others) else ''}."
    )
