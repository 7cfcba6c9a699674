"""What a plan's seeds can find and, where runs are there, how many more seeds its differences need."""

import math
from collections.abc import Iterator
from functools import partial

from lecture04.report.comparison import DECIDED, Judged, judge_primary
from lecture04.report.model import Cell, Column, Note, Table
from lecture04.report.results import gather
from lecture04.report.table import difference_cell, seeds_for_margin_cell, seeds_needed_cell, seeds_text, verdict_cell
from lecture04.stats import Verdict
from lecture04.stats.design import families
from lecture04.stats.noise import MIN_BLOCKED_DF
from lecture04.stats.power import effect_found
from lecture04.stats.simultaneous import Block, Family
from lecture04.stats.verdict import POWER
from lecture04.sweep.plan import Plan

MORE_SEEDS = (5, 10)
"""Numbers of seeds that the planned one is set beside."""


def forecast(plan: Plan) -> list[Table]:
    """What the planned seeds can find and, where runs are there, the seeds that undecided differences need."""
    if not smallest_effects(plan, len(plan.seeds)):
        return []  # nothing is compared
    judged = judge_primary(gather(plan.folder, plan.manifest(command="")))
    return [_reach(plan, judged), *_needs(judged)]


def blocks(g: int, n: int) -> bool:
    """Whether a table of g rows with the same n seeds is blocked (rule 1)."""
    return (g - 1) * (n - 1) >= MIN_BLOCKED_DF


def smallest_effects(plan: Plan, n: int) -> dict[str, float]:
    """{family: the true difference, in units of s, that n seeds a row find with 80 % power}; infinite for one seed."""
    slices = {row.name: row.slice for row in plan.rows} if plan.sweep.design.name == "grid" else None
    rows = tuple(row.name for row in plan.rows)
    alpha, df = 0.05 / plan.sweep.looks, (len(rows) - blocks(len(rows), n)) * (n - 1)
    found: dict[str, float] = {}
    for name, ties in families(rows, design=plan.sweep.design.name, slices=slices).items():
        family = Family(tuple(Block(tied.kind, (1,) * len(tied.rows)) for tied in ties if len(tied.rows) > 1))
        if family.k:
            q = family.quantile(alpha, df) if df else math.nan
            found[name] = effect_found(POWER, n, n, alpha=alpha, q=q, df=df)
    return found


def _reach(plan: Plan, judged: Judged) -> Table:
    """The smallest effect by the number of seeds: the planned one, and more."""
    planned = len(plan.seeds)
    sure = next((v for v in judged.verdicts if not math.isnan(v.s)), None)
    numbers = (planned, *(n for n in MORE_SEEDS if n > planned))
    effects = {n: smallest_effects(plan, n) for n in numbers}

    def seeds(n: int) -> Cell:
        return Cell(f"{n} (planned)" if n == planned else str(n), n)

    def effect(family: str, n: int) -> Cell:
        return _effect(judged, effects[n][family], sure)

    families = list(effects[planned])
    columns = [Column("seeds a row", seeds, "row")]
    for family in families:
        heading = f"smallest effect of a {family}" if len(families) > 1 else "smallest effect"
        columns.append(Column(heading, partial(effect, family), of=family))
    return Table.of("What the seeds can find", columns, numbers, list(_reach_notes(plan, judged, sure)))


def _effect(judged: Judged, effect: float, sure: Verdict | None) -> Cell:
    if math.isinf(effect):
        return Cell("none, whatever its size")
    if sure is None:
        return Cell(f"{effect:.1f} times the noise", effect)
    return Cell(judged.amount(effect * sure.s), effect * sure.s)


def _reach_notes(plan: Plan, judged: Judged, sure: Verdict | None) -> Iterator[Note]:
    yield Note("smallest effect", "the smallest true difference that 80 of 100 such tables call better or worse")
    if sure is None:
        blocked = blocks(len(plan.rows), len(plan.seeds))
        shared = ", without the part that all rows share, as a seed means the same in each" * blocked
        text = f"the standard deviation of a result when only the seed changes{shared}"
        yield Note("the noise", f"{text}; known once a row has two finished seeds")
        return
    what = "the noise of one run" + " without the part that seeds share" * sure.blocked
    text = f"{judged.amount(sure.s)}, {what}, by the runs that are there ({sure.df} degrees of freedom)"
    if not sure.blocked and blocks(len(plan.rows), len(plan.seeds)):
        text += "; the planned seeds will be compared seed by seed (blocked), which may lower s"
    yield Note("s", text)


def _needs(judged: Judged) -> Iterator[Table]:
    """The contrasts that are not decided, with the seeds that they need."""
    undecided = [v for v in judged.verdicts if v.plan is not None and v.verdict not in DECIDED]
    if not undecided:
        return
    margin = undecided[0].margin
    columns: list[Column[Verdict]] = [
        Column("row", lambda v: Cell(v.row), "row"),
        Column("against", lambda v: Cell(v.reference), "words"),
        Column(
            f"difference, {judged.unit}" if judged.unit else "difference",
            partial(difference_cell, judged),
            "difference",
            block="verdict",
        ),
        Column("verdict", partial(verdict_cell, judged), "verdict", block="verdict"),
        Column("seeds there", lambda v: Cell(str(_there(v)), _there(v))),
        Column("seeds for margin", partial(seeds_for_margin_cell, judged), "margin_seeds", block="seeds"),
        Column("seeds needed", partial(seeds_needed_cell, judged), "seeds_needed", block="seeds"),
        Column("more seeds", _more, block="seeds"),
    ]
    notes = [
        Note(
            "seeds needed",
            "seeds a row with which a true difference as large as the one seen is found 80 % of the time; in brackets "
            "for the far and the near end of its interval (only the first where it holds 0)",
        ),
        Note("more seeds", "how many that is beyond those that are there. Say how many there will be before you look"),
    ]
    if margin is None:
        columns = [column for column in columns if column.kind != "margin_seeds"]
    else:
        text = f"the same for a true difference of {judged.amount(margin)}: trust this first"
        notes.insert(0, Note("seeds for margin", text))
    yield Table.of("Not decided yet", columns, undecided, notes)


def _there(v: Verdict) -> int:
    return min(v.n, v.n_reference)


def _more(v: Verdict) -> Cell:
    """What is not decided takes one more seed at least, even where so many would mostly do."""
    more = max((v.seeds_needed.n if v.margin is None else v.seeds_for_margin) - _there(v), 1)
    return Cell(seeds_text(more), more, v)
