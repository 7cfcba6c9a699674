"""The table of section 5.1, as data: models.yaml, which names its sources."""

import pandas as pd

from lecture04.config import Request
from lecture04.config.registry import register
from lecture04.lecture.probes.common import published
from lecture04.lecture.probes.options import Probe


@register("probe", "models")
def models(request: Request, options: Probe) -> pd.DataFrame:
    """What ten well-known models are made of, from the 2017 Transformer on, with sources.

    Columns: model, year, ffn, attention, norm, placement, position, bias, source. Depends on no setting.
    """
    return pd.DataFrame([{"model": name} | parts for name, parts in published("models.yaml").items()])


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The parts, and below them the sources."""
    as_text = table.assign(year=table.year.astype(str))
    return {"Parts": as_text.drop(columns="source"), "Sources": table.loc[:, ["model", "source"]]}
