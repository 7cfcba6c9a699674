"""Every exact claim that a probe answers: reproduced on the probe's own table, and not on a spoilt one."""

import pandas as pd
import pytest

from lecture04.lecture.claims import Kind, claims
from lecture04.lecture.evidence import Evidence

EXACT = {c.id: c.sources[0].partition(":")[2] for c in claims() if c.kind is Kind.exact and "probe:" in c.sources[0]}


def shifted(table: pd.DataFrame) -> pd.DataFrame:
    """Every figure another one."""
    return table.assign(value=2 * table["value"] + 1)


# Where a larger figure would agree all the same.
SPOILT = {
    "mla_rope_clash": lambda table: table.assign(value=0.0),
    "models_table": lambda table: table[table["model"] != "BERT"],
    "t5_buckets": lambda table: table.assign(bucket=table["bucket"] // 2),
}


@pytest.mark.parametrize("claim", EXACT)
def test_reproduced(claim, real, kit):
    evidence = Evidence(probes={EXACT[claim]: real(EXACT[claim])})
    assert kit.verdict(claim, evidence) == "reproduced"


@pytest.mark.parametrize("claim", EXACT)
def test_not_reproduced_where_the_figures_are_others(claim, real, kit):
    spoilt = SPOILT.get(claim, shifted)(real(EXACT[claim]))
    assert kit.verdict(claim, Evidence(probes={EXACT[claim]: spoilt})) == "not reproduced"
