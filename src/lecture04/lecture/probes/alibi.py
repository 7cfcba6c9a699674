"""ALiBi in figures (exercise 7): what each head takes off a score for every token of distance."""

import pandas as pd
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import number
from lecture04.nn.posenc import ALiBi

DISTANCES = (0, 1, 16, 64, 512)


@register("probe", "alibi")
def alibi(request: config.Request, options: Probe) -> pd.DataFrame:
    """ALiBi's slope of each head, and the bias that it makes of a distance.

    Columns: claim, head, quantity (slope or bias), distance (of a bias), value. Depends on model.n_heads; the
    lecture's is 4.
    """
    encoding = ALiBi(config.PosEnc(name="alibi"), request.run.model)
    far = torch.tensor(DISTANCES)
    bias_HTS = encoding.bias(far, torch.zeros(1, dtype=torch.long))
    rows: list[tuple[str, int, str, int | None, float]] = []
    for head, slope in enumerate(encoding.slopes.tolist(), 1):
        rows.append(("alibi_slopes", head, "slope", None, slope))
        biases = bias_HTS[head - 1, :, 0].tolist()
        rows += [("", head, "bias", d, b) for d, b in zip(DISTANCES, biases, strict=True)]
    return pd.DataFrame(rows, columns=["claim", "head", "quantity", "distance", "value"]).astype({"distance": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A row a head."""
    label = ["slope per token" if d is pd.NA else f"bias at distance {d}" for d in table.distance]
    wide = table.assign(label=label).pivot(index="head", columns="label", values="value")[list(dict.fromkeys(label))]
    return {"What ALiBi adds to a score, by head; distances in tokens": wide.reset_index()}


def sentence(table: pd.DataFrame) -> str:
    """How far the nearest-sighted and the farthest-sighted head look."""
    slopes, far = table[table.quantity == "slope"].set_index("head").value, max(DISTANCES)
    taken = -table[table.distance == far].set_index("head").value
    near, wide = slopes.idxmax(), slopes.idxmin()
    said = f"Head {near} takes {number(slopes[near])} off a score for each token of distance"
    if slopes[near] == slopes[wide]:
        return f"{said}, as every head does: {number(taken[near])} at distance {far}."
    return (
        f"{said}, head {wide} only {number(slopes[wide])}; at distance {far} that is {number(taken[near])} against "
        f"{number(taken[wide])}."
    )
