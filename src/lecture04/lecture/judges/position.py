"""Section 4: absolute, relative and rotated positions, and lengths beyond those of training."""

import math

from lecture04.lecture.evidence import Evidence, mean
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.compare import Difference, difference
from lecture04.lecture.judges.figures import lines, near, spread, text, value, values

RANGES = ("0-63", "64-127", "128-255", "256-511")
COLLAPSE, STEADY = 0.5, 0.05  # nats a token
SAME, MOVED = 1e-9, 1e-3  # in float64


@judges("t5_buckets")
def t5_buckets(evidence: Evidence) -> Finding:
    table = evidence.probe("t5_buckets", "t5_buckets")
    bucket = dict(zip(map(int, table["distance"]), map(int, table["bucket"]), strict=True))
    farther = {b for d, b in bucket.items() if d >= 128}
    some = {d: bucket.get(d) for d in (20, 32, 64, 100)}
    return weigh(
        ", ".join(f"{d} in {b}" for d, b in some.items()) + f", 128 and beyond in {text(sorted(farther))}",
        (all(bucket.get(d) == d for d in range(16)), "near distances share a bucket"),
        (some == {20: 17, 32: 21, 64: 26, 100: 30}, f"the buckets are {some}"),
        (farther == {31}, f"from 128 on the buckets are {sorted(farther)}"),
    )


@judges("rope_relative")
def rope_relative(evidence: Evidence) -> Finding:
    found = values(evidence.probe("rope", "rope_relative"))
    ours = spread(found, ".4f") + f", {len(found)} times"
    return weigh(
        ours, (len(found) == 4 and all(near(x, -1.8956, 1e-4) for x in found), f"the scores are {text(found)}")
    )


@judges("rope_rotations")
def rope_rotations(evidence: Evidence) -> Finding:
    table = evidence.probe("rope", "rope_rotations")
    identity = value(table, quantity="max |R_a^T R_b - R_(b-a)|")
    moves = "change of the output when all positions move by 50"
    kept, broken = (value(table, quantity=moves, case=case) for case in ("q and k turned", "q, k and v turned"))
    waves = value(table, quantity="max |cos, sin of the angles - the sinusoidal encoding|")
    n_params = value(table, quantity="parameters")
    return weigh(
        f"identity to {identity:.1e}; moved by 50, outputs change by {kept:.1e} (q, k turned) and {broken:.2f} (v too)",
        (identity < SAME, f"the identity is off by {identity:.1e}"),
        (kept < SAME and broken > MOVED, f"outputs change by {kept:.1e} and, with v turned, {broken:.1e}"),
        (n_params == 0, f"{n_params:.0f} parameters"),
        (waves < SAME, f"the frequencies are off the sinusoids' by {waves:.1e}"),
    )


@judges("alibi_slopes")
def alibi_slopes(evidence: Evidence) -> Finding:
    found = values(evidence.probe("alibi", "alibi_slopes"), quantity="slope")
    ours = ", ".join(f"1/{1 / slope:g}" for slope in found)
    return weigh(ours, (found == [1 / 4, 1 / 16, 1 / 64, 1 / 256], f"the slopes are {ours}"))


@judges("order_blind")
def order_blind(evidence: Evidence) -> Finding:
    table = evidence.probe("order_blind", "order_blind")
    blind = value(table, posenc="none", causal=False)
    seeing = table[~((table["posenc"] == "none") & ~table["causal"].astype(bool))]["value"]
    return weigh(
        f"{blind:.1e} without both; at least {seeing.min():.2f} in the {len(seeing)} other cases",
        (blind < SAME, f"without both the outputs differ by {blind:.1e}"),
        (bool(seeing.min() > MOVED), f"one of the others moves by {seeing.min():.1e} only"),
    )


@judges("rope_length")
def rope_length(evidence: Evidence) -> Finding:
    found = values(evidence.probe("rope", "rope_length"))
    fits = all(near(x, 3.6594, 1e-4) for x in found)
    return weigh(f"{spread(found, '.4f')} at {len(found)} positions", (fits, f"the lengths are {text(found)}"))


def _series(evidence: Evidence, claim: str, expected: tuple[float, ...], within: float, form: str) -> Finding:
    found = values(evidence.probe("rope", claim))
    ours = ", ".join(format(x, form) for x in found)
    fits = len(found) == len(expected) and all(near(*pair, within) for pair in zip(found, expected, strict=True))
    return weigh(ours, (fits, f"the scores are {ours}"))


@judges("additive_absolute")
def additive_absolute(evidence: Evidence) -> Finding:
    return _series(evidence, "additive_absolute", (9.26, 10.76, 13.38, 8.26), 0.01, ".2f")


@judges("rope_decay")
def rope_decay(evidence: Evidence) -> Finding:
    expected = (64, 61.8, 56.6, 47.0, 42.1, 37.8, 31.3, 35.7, 22.9, 12.8, 17.9)
    return _series(evidence, "rope_decay", expected, 0.0501, ".1f")


@judges("rope_layouts")
def rope_layouts(evidence: Evidence) -> Finding:
    table = evidence.probe("rope", "rope_layouts")
    permuted, plain = (value(table, case=case) for case in ("dimensions permuted", "not permuted"))
    return weigh(
        f"{permuted:.1e} ({plain:.2f} without the permutation)",
        (permuted < 1e-5, f"the two differ by {permuted:.1e}"),
    )


@judges("shift_invariance")
def shift_invariance(evidence: Evidence) -> Finding:
    table = evidence.probe("position_shift", "shift_invariance")

    def moved(name: str) -> float:
        return value(lines(table, posenc=name), quantity="change of scores")

    stay = {name: moved(name) for name in ("t5", "alibi", "shaw", "rope")}
    move = {name: moved(name) for name in ("sinusoidal", "learned")}
    return weigh(
        f"at most {max(stay.values()):.1e} for the four; " + ", ".join(f"{name} {x:.2f}" for name, x in move.items()),
        *((x < SAME, f"{name}'s scores move by {x:.1e}") for name, x in stay.items()),
        *((x > MOVED, f"{name}'s scores move by {x:.1e} only") for name, x in move.items()),
    )


def excess(evidence: Evidence, row: str) -> list[float]:
    """Mean excess in each range of positions, over the seeds, in nats a token."""
    results = evidence.sweep("extrapolation")
    return [mean(results, f"test/excess@{where}", row) for where in RANGES]


def _past(ranges: list[float]) -> float:
    """What the positions past 64 have more than those inside: each range counts by its length."""
    lengths = [64, 128, 256]
    beyond = sum(x * n for x, n in zip(ranges[1:], lengths, strict=True)) / sum(lengths)
    return beyond - ranges[0]


def _inside(evidence: Evidence) -> list[Difference]:
    """NoPE against each other encoding inside 64."""
    results = evidence.sweep("extrapolation")
    others = ("sinusoidal", "learned", "T5", "RoPE", "ALiBi")
    return [difference(results, "test/nll@0-63", row, "NoPE") for row in others]


@judges("extrapolation")
def extrapolation(evidence: Evidence) -> Finding:
    found = {row: excess(evidence, row) for row in ("sinusoidal", "learned", "T5", "RoPE", "NoPE", "ALiBi")}
    if diverged := [row for row, xs in found.items() if math.isnan(sum(xs))]:
        return weigh(f"diverged: {', '.join(diverged)}", (False, f"diverged: {', '.join(diverged)}"))
    past = {row: _past(xs) for row, xs in found.items()}
    absolute = min(past["sinusoidal"], past["learned"])
    wander = max(found["ALiBi"]) - min(found["ALiBi"])
    return weigh(
        "excess at "
        + ", ".join(RANGES)
        + ": "
        + "; ".join(f"{row} " + " ".join(f"{x:.3f}" for x in xs) for row, xs in found.items()),
        *((past[row] > COLLAPSE, f"{row} loses {past[row]:.2f} nats past 64") for row in ("sinusoidal", "learned")),
        *((past[row] < absolute, f"{row} loses {past[row]:.2f} nats past 64") for row in ("T5", "RoPE")),
        (
            wander <= STEADY,
            f"ALiBi's excess moves by {wander:.3f} nats between the ranges",
        ),
        *((d.holds(above=False), f"inside 64 {d.described()} nats: {d.verdict}") for d in _inside(evidence)),
    )


@judges("nope_by_document")
def nope_by_document(evidence: Evidence) -> Finding:
    results = evidence.sweep("nope_by_document")
    others = [row for row in results.rows if row != "NoPE"]
    by_document = [difference(results, "test/nll", row, "NoPE") for row in others]
    packed = _inside(evidence)
    return weigh(
        f"by document NoPE {mean(results, 'test/ppl', 'NoPE'):.3f}, others "
        + spread([mean(results, "test/ppl", row) for row in others], ".3f")
        + f"; packed NoPE is behind by {spread([-d.delta for d in packed], '.3f')} nats inside 64",
        *(
            (d.is_not(above=False), f"by document {d.described()} ({d.verdict}), {d.beside_the_lecture()}")
            for d in by_document
        ),
        *((d.holds(above=False), f"on packed text {d.described()} nats: {d.verdict}") for d in packed),
    )
