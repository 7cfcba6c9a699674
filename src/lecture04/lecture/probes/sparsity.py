"""How many zeros and dead units the FFN's hidden layers of trained models have (section 1.4, exercise 6).

ReLU is 0 for every negative input. A smooth activation is 0 by rounding alone: GELU's x Phi(x) in float32 below about
-5.5.
"""

from collections.abc import Iterator

import pandas as pd

from lecture04 import config
from lecture04.config.registry import register
from lecture04.data.types import Corpus, load
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.finished import Finished, of_table
from lecture04.lecture.probes.options import Sparsity
from lecture04.lecture.probes.text import counted, listed, number
from lecture04.training.activity import activity

# Quantities; LABELS has the shown ones as titles.
ZEROS, DEAD, D_FF, PPL = "zero_share", "dead_units", "d_ff", "test_ppl"
LABELS = {ZEROS: "Share of exact zeros", DEAD: "Units never active", PPL: "Test perplexity"}
HIGH_LR = "relu_high_lr"
MOST_NAMED = 3
# The rows of sweeps/ffn that a claim is about, by their activation.
CLAIMED = {ZEROS: ("relu_sparsity", ("relu", "gelu", "silu")), DEAD: ("no_dead_units", ("relu",))}

Row = tuple[str, str, int, int | None, str, float]


def claim(run: config.Run, sweep: str, quantity: str) -> str:
    """The claim that a figure of a run answers; empty for none."""
    if sweep == HIGH_LR:
        return HIGH_LR if quantity != ZEROS else ""
    name, activations = CLAIMED.get(quantity, ("", ()))
    return name if sweep == "ffn" and run.ffn.name in activations else ""


def of_run(found: Finished, corpus: Corpus, n_docs: int) -> Iterator[tuple[int, str, float]]:
    """(layer, quantity, value) of one run; layers count from 1."""
    batches = corpus.layout.evaluation(corpus.val.first(n_docs))
    for layer in activity(trained(found), batches):
        yield layer.layer + 1, ZEROS, layer.zeros
        yield layer.layer + 1, DEAD, layer.dead
        yield layer.layer + 1, D_FF, layer.d_ff


@register("probe", "sparsity")
def sparsity(request: config.Request, options: Sparsity) -> pd.DataFrame:
    """How much of the FFN's hidden layers of trained runs is exactly zero, and which units never fire.

    Columns: claim, row, seed, layer, quantity, value. For every run of the table probe.sweep and each of its layers:
    zero_share, the share of exact zeros among what enters the down-projection; dead_units, which are 0 at every token;
    d_ff. All over the predicted tokens of the first probe.n_docs validation documents. test_ppl, where the run was
    evaluated, has no layer. Raises UserError where the table or one of its runs is not there.
    """
    outputs, sweep = request.session.outputs, options.sweep
    corpora: dict[str, Corpus] = {}
    rows: list[Row] = []
    for found in of_table(outputs, sweep):
        run, data = found.run, repr((found.run.data, found.run.layout))
        if data not in corpora:
            corpora[data] = load(run, outputs)
        for layer, quantity, value in of_run(found, corpora[data], options.n_docs):
            rows.append((claim(run, sweep, quantity), found.row, found.seed, layer, quantity, value))
        if (ppl := found.record.metrics(found.evaluation).get("test/ppl")) is not None:
            rows.append((claim(run, sweep, PPL), found.row, found.seed, None, PPL, ppl))
    table = pd.DataFrame(rows, columns=["claim", "row", "seed", "layer", "quantity", "value"])
    return table.astype({"layer": "Int64"})


def shown(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean and range over the seeds, a line per row and layer; and the test perplexities."""
    frames: dict[str, pd.DataFrame] = {}
    for quantity, title in LABELS.items():
        lines = table[table.quantity == quantity]
        if not len(lines):
            continue
        keys = ["row", "layer"] if quantity != PPL else ["row"]
        found = lines.groupby(keys, sort=False).value.agg(["mean", "min", "max", "count"])
        found = found.rename(columns={"min": "lowest", "max": "highest", "count": "seeds"}).reset_index()
        if quantity == DEAD:
            widths = table[table.quantity == D_FF].groupby(keys, sort=False).value.max().rename("of")
            found = found.merge(widths.reset_index())
        frames[title] = found
    return frames


def sentence(table: pd.DataFrame) -> str:
    """Which rows have most and fewest exact zeros, and whether units never fire."""
    zeros = 100 * table[table.quantity == ZEROS].groupby("row", sort=False).value.mean()
    most, least = zeros.max(), zeros.min()
    said = f"Of the hidden layers' values {number(most)} % are exactly 0 in {names(zeros, most)}"
    if most > least:
        said += f", the most, and {number(least)} % in {names(zeros, least)}, the fewest"
    dead = table[table.quantity.isin([DEAD, D_FF])].groupby(["row", "seed", "quantity"]).value.sum().unstack("quantity")
    runs, worst = dead[dead[DEAD] > 0], dead[DEAD].idxmax()
    if runs.empty:
        return f"{said}; every unit of every run is active somewhere."
    return (
        f"{said}; {len(runs)} of {counted(len(dead), 'run')} have units that are never active, at most "
        f'{dead[DEAD][worst]:,.0f} of {dead[D_FF][worst]:,.0f} ("{worst[0]}", seed {worst[1]}).'
    )


def names(by_row: pd.Series, value: float) -> str:
    """The rows that have a value, in quotes; where they are many, their number."""
    found = [f'"{row}"' for row, its in by_row.items() if its == value]
    return listed(found) if len(found) <= MOST_NAMED else f"{len(found)} of {counted(len(by_row), 'row')}"
