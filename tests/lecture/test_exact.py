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


@pytest.mark.parametrize("probe", sorted(set(EXACT.values())))
def test_reproduced_on_the_probes_own_table_and_not_on_another(probe, real, kit):
    table = real(probe)
    for claim in (claim for claim, source in EXACT.items() if source == probe):
        spoilt = SPOILT.get(claim, shifted)(table)
        assert kit.verdict(claim, Evidence(probes={probe: table})) == "reproduced", claim
        assert kit.verdict(claim, Evidence(probes={probe: spoilt})) == "not reproduced", claim
