"""Which distances share a scalar in T5's position bias (section 4.3)."""

import pandas as pd
import torch

from lecture04 import config
from lecture04.config.registry import register
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import counted
from lecture04.nn.posenc import T5


@register("probe", "t5_buckets")
def t5_buckets(request: config.Request, options: Probe) -> pd.DataFrame:
    """Which distances share a bucket of T5's position bias.

    Columns: claim, distance, bucket, from 0 to twice the farthest. posenc.n_buckets and posenc.max_distance count where
    posenc=t5 is chosen.
    """
    run = request.run
    t5 = run.posenc if isinstance(run.posenc, config.T5) else config.T5(name="t5")
    distance = torch.arange(2 * t5.max_distance + 1)
    bucket = T5(t5, run.model).bucket(distance)
    return pd.DataFrame({"claim": "t5_buckets", "distance": distance.numpy(), "bucket": bucket.numpy()})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A row a bucket: the distances from and to which it holds."""
    grouped = table.groupby("bucket").distance.agg(["min", "max"]).reset_index()
    grouped = grouped.astype(object)
    grouped.loc[grouped.index[-1], "max"] = "and beyond"
    return {"Distances of each bucket, in tokens": grouped.rename(columns={"min": "from", "max": "to"})}


def sentence(table: pd.DataFrame) -> str:
    """How far each distance has a bucket of its own, and where all others share one."""
    sizes = table.groupby("bucket").distance.agg(["min", "count"])
    own = int((sizes["count"] == 1).cummin().sum())
    last = sizes.iloc[-1]["min"]
    widest = sizes["count"].iloc[:-1].max()
    shared = f", then up to {widest} share one," if widest > 1 else ","
    few = {0: "No distance has a bucket of its own", 1: "Distance 0 has a bucket of its own"}
    alone = few.get(own, f"The {own} shortest distances (0 to {own - 1}) have a bucket each")
    return f"{alone}{shared} and all from {last} on share the last of {counted(len(sizes), 'bucket')}."
