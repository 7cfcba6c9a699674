"""Section 3.4: the heads of a trained MHA merged into GQA or MQA, as they are and trained on.

The lecture merged one model and does not say at which learning rate it trained it on, so that its words allow several
readings. Of an ordering: rows that the protocol tells apart, or an ordering that every model of ours shows. Of the
rate: the source's, decaying again; the same, held; a tenth of it, decaying.
"""

import math
from collections.abc import Iterator

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, mean, numbers
from lecture04.lecture.finding import Check, Finding, by_readings, judges, weigh
from lecture04.lecture.judges.compare import Difference, difference
from lecture04.lecture.judges.figures import spread

NLL = "test/nll"
TOLD_APART, EACH_MODEL = "told apart", "in every model"
# {reading of the learning rate: (sweep, what its rows' names end in)}
RATES = {
    "rate decaying": ("uptrain", ""),
    "rate held": ("uptrain_rates", ", held"),
    "a tenth of the rate": ("uptrain_rates", ", tenth"),
}


def _difference(evidence: Evidence, sweep: str, row: str, reference: str) -> Difference:
    return difference(evidence.sweep(sweep), NLL, row, reference)


def _ppl(evidence: Evidence, sweep: str, *rows: str) -> str:
    """`GQA-2, mean 4.658; ...`."""
    results = evidence.sweep(sweep)
    return "; ".join(f"{row} {mean(results, 'test/ppl', row):.3f}" for row in rows)


def _in_every_model(evidence: Evidence, sweep: str, worse: str, better: str) -> Check:
    """Whether one merge is the worse one in the model of every seed; one seed decides nothing."""
    above, below = numbers(evidence.sweep(sweep), NLL, worse, better).values()
    n = sum(above[seed] > below[seed] for seed in above)
    said = f"{worse} is worse than {better} in {n} of {len(above)} models"
    return (None if len(above) < 2 else n == len(above)), said


def _orderings(evidence: Evidence, sweep: str, *pairs: tuple[str, str]) -> dict[str, list[Check]]:
    """Rows (worse, better), by both readings of an ordering."""
    found = [_difference(evidence, sweep, *pair) for pair in pairs]
    return {
        TOLD_APART: [(d.holds(above=True), f"{d.described()}: {d.verdict}") for d in found],
        EACH_MODEL: [_in_every_model(evidence, sweep, *pair) for pair in pairs],
    }


def _by_rate(evidence: Evidence, worse: str, better: str) -> dict[str, list[Check]]:
    """The same of two rows that were trained on, by each reading of the rate as well: `rate held, told apart`."""
    return {
        f"{rate}, {how}": checks
        for rate, (sweep, ending) in RATES.items()
        for how, checks in _orderings(evidence, sweep, (worse + ending, better + ending)).items()
    }


@judges("uptrain_direct")
def uptrain_direct(claim: Claim, evidence: Evidence) -> Finding:
    worse = [
        *((f"{kind}, random", f"{kind}, {how}") for kind in ("GQA-2", "MQA") for how in ("mean", "first")),
        *((f"MQA, {how}", f"GQA-2, {how}") for how in ("mean", "first")),
        ("GQA-2, first", "GQA-2, mean"),
    ]
    rows = [f"{kind}, {how}" for kind in ("GQA-2", "MQA") for how in ("mean", "first", "random")]
    by_seed = numbers(evidence.sweep("uptrain_direct"), "test/ppl", *rows[:2])
    wide = max(rows[:2], key=lambda row: max(by_seed[row].values()) / min(by_seed[row].values()))
    return by_readings(
        _ppl(evidence, "uptrain_direct", "MHA", *rows),
        _orderings(evidence, "uptrain_direct", *worse),
        because=f"Models of several seeds bear the same merge differently ({wide}: "
        f"{spread(by_seed[wide].values(), '.2f')}), since it hangs on what neighbouring heads happened to learn; the "
        "lecture merged one model.",
    )


def _back(claim: Claim, evidence: Evidence, row: str) -> Iterator[tuple[str, list[Check]]]:
    """Whether a row is back at the original: by each rate not told apart, or near in terms of the original's seeds."""
    for rate, (sweep, ending) in RATES.items():
        d = _difference(evidence, sweep, row + ending, "MHA")
        bands = abs(d.delta) / d.half_width if d.half_width else math.inf
        yield (
            f"{rate}, not told apart",
            [(d.is_within_noise, f"{d.written()}, {bands:.1f} times the band of two means ({d.verdict})")],
        )
        seeds = numbers(evidence.sweep(sweep), "test/ppl", "MHA")["MHA"].values()
        gap = mean(evidence.sweep(sweep), "test/ppl", row + ending) - sum(seeds) / len(seeds)
        wide = max(seeds) - min(seeds)
        near = None if len(seeds) < 2 else gap <= claim.bounds["times"] * wide
        yield f"{rate}, the seeds' spread", [(near, f"{gap:+.3f} where the original's seeds spread by {wide:.3f}")]


@judges("uptrain_5pct")
def uptrain_5pct(claim: Claim, evidence: Evidence) -> Finding:
    row = "GQA-2, mean, 75"
    rows = {sweep: [row + ending for s, ending in RATES.values() if s == sweep] for sweep, _ in RATES.values()}
    return by_readings(
        "; ".join(_ppl(evidence, sweep, "MHA", *rows[sweep]) for sweep in rows),
        dict(_back(claim, evidence, row)),
    )


@judges("uptrain_mqa_first")
def uptrain_mqa_first(claim: Claim, evidence: Evidence) -> Finding:
    as_it_is = _orderings(evidence, "uptrain_direct", ("MQA, mean", "MQA, first"))
    after = _by_rate(evidence, "MQA, mean, 75", "GQA-2, mean, 75")
    d = _difference(evidence, "uptrain", "MQA, mean, 75", "GQA-2, mean, 75")
    return by_readings(
        f"{_ppl(evidence, 'uptrain_direct', 'MQA, first', 'MQA, mean')}; after 75 steps {d.described()}",
        {name: [*as_it_is[name.rpartition(", ")[2]], *checks] for name, checks in after.items()},
    )


@judges("uptrain_250")
def uptrain_250(claim: Claim, evidence: Evidence) -> Finding:
    rows = ("MQA, mean, 250", "MQA, first, 250")
    d = _difference(evidence, "uptrain", *rows)
    little = "250 steps of training leave little of how the heads were merged." if d.is_within_noise else ""
    return by_readings(
        f"{_ppl(evidence, 'uptrain', *rows)}: {d.written()}", _by_rate(evidence, *reversed(rows)), because=little
    )


def _no_worse(evidence: Evidence, *rows: str) -> Finding:
    """Rows of sweep uptrain that are not told apart from MHA as worse."""
    found = [_difference(evidence, "uptrain", row, "MHA") for row in rows]
    return weigh(
        f"{_ppl(evidence, 'uptrain', 'MHA', *rows)} ({', '.join(d.written() for d in found)})",
        *(
            (
                d.is_not(above=True),
                f"{d.described()}: {d.verdict}",
            )
            for d in found
        ),
    )


@judges("scratch_gqa")
def scratch_gqa(claim: Claim, evidence: Evidence) -> Finding:
    return _no_worse(evidence, "GQA-2 from scratch", "MQA from scratch")


@judges("mqa_small")
def mqa_small(claim: Claim, evidence: Evidence) -> Finding:
    return _no_worse(evidence, "MQA from scratch")
