"""The table of section 5.1, as data: models.yaml, which names its sources."""

import pandas as pd

from lecture04.config import Request
from lecture04.config.registry import register
from lecture04.lecture.probes.common import published
from lecture04.lecture.probes.options import Probe
from lecture04.lecture.probes.text import counted, listed

# Llama's parts: what stands in the table, and how it is said.
LLAMA = {
    "ffn": ("SwiGLU", "SwiGLU"),
    "norm": ("RMSNorm", "RMSNorm"),
    "placement": ("pre", "pre-norm"),
    "position": ("RoPE", "RoPE"),
    "bias": ("no", "no biases"),
}


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


def sentence(table: pd.DataFrame) -> str:
    """How many of the models have each of Llama's parts, and which have all."""
    has = pd.DataFrame({said: table[column].str.split(",").str[0] == part for column, (part, said) in LLAMA.items()})
    each = listed([f"{n} {'have ' * (not i)}{said}" for i, (said, n) in enumerate(has.sum().items())])
    every = list(table.model[has.all(axis=1)])
    said = f"{listed(every)} {'have' if len(every) > 1 else 'has'} all of them" if every else "none has all of them"
    return f"Of {counted(len(table), 'model')} from {table.year.min()} to {table.year.max()}, {each}; {said}."
