"""Section 4: absolute, relative and rotated positions, and lengths beyond those of training."""

import math

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, mean
from lecture04.lecture.finding import Finding, by_readings, judges, weigh
from lecture04.lecture.judges.compare import Difference, difference, lecture_noise
from lecture04.lecture.judges.figures import near, spread, text, value, values

RANGES = ("0-63", "64-127", "128-255", "256-511")


@judges("t5_buckets")
def t5_buckets(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("t5_buckets", "t5_buckets"), claim.bounds
    bucket = dict(zip(map(int, table["distance"]), map(int, table["bucket"]), strict=True))
    farther = {b for d, b in bucket.items() if d >= bounds["far"]}
    some = {d: bucket.get(d) for d in bounds["distances"]}
    return weigh(
        ", ".join(f"{d} in {b}" for d, b in some.items()) + f", {bounds['far']} and beyond in {text(sorted(farther))}",
        (all(bucket.get(d) == d for d in range(bounds["near"])), "near distances share a bucket"),
        (list(some.values()) == bounds["buckets"], f"the buckets are {some}"),
        (farther == {bounds["last"]}, f"from {bounds['far']} on the buckets are {sorted(farther)}"),
    )


@judges("rope_relative")
def rope_relative(claim: Claim, evidence: Evidence) -> Finding:
    found = values(evidence.probe("rope", "rope_relative"))
    ours = spread(found, ".4f") + f", {len(found)} times"
    bounds = claim.bounds
    fits = len(found) == bounds["times"] and all(near(x, bounds["score"], bounds["within"]) for x in found)
    return weigh(ours, (fits, f"the scores are {text(found)}"))


@judges("rope_rotations")
def rope_rotations(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("rope", "rope_rotations")
    same, moved = claim.bounds["within"], claim.bounds["over"]
    identity, waves, n_params = (value(table, quantity=name) for name in ("identity_gap", "wave_gap", "n_params"))
    kept, broken = (value(table, quantity="output_change", variant=variant) for variant in ("qk", "qkv"))
    return weigh(
        f"identity to {identity:.1e}; moved by 50, outputs change by {kept:.1e} (q, k turned) and {broken:.2f} (v too)",
        (identity < same, f"the identity is off by {identity:.1e}"),
        (kept < same and broken > moved, f"outputs change by {kept:.1e} and, with v turned, {broken:.1e}"),
        (n_params == 0, f"{n_params:.0f} parameters"),
        (waves < same, f"the frequencies are off the sinusoids' by {waves:.1e}"),
    )


@judges("alibi_slopes")
def alibi_slopes(claim: Claim, evidence: Evidence) -> Finding:
    found = values(evidence.probe("alibi", "alibi_slopes"), quantity="slope")
    ours = ", ".join(f"1/{1 / slope:g}" for slope in found)
    return weigh(ours, (found == [1 / n for n in claim.bounds["one_over"]], f"the slopes are {ours}"))


@judges("order_blind")
def order_blind(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("order_blind", "order_blind")
    blind = value(table, posenc="none", causal=False)
    seeing = table[~((table["posenc"] == "none") & ~table["causal"].astype(bool))]["value"]
    return weigh(
        f"{blind:.1e} without both; at least {seeing.min():.2f} in the {len(seeing)} other cases",
        (blind < claim.bounds["within"], f"without both the outputs differ by {blind:.1e}"),
        (bool(seeing.min() > claim.bounds["over"]), f"one of the others moves by {seeing.min():.1e} only"),
    )


@judges("rope_length")
def rope_length(claim: Claim, evidence: Evidence) -> Finding:
    found = values(evidence.probe("rope", "rope_length"))
    fits = all(near(x, claim.bounds["length"], claim.bounds["within"]) for x in found)
    return weigh(f"{spread(found, '.4f')} at {len(found)} positions", (fits, f"the lengths are {text(found)}"))


def _series(claim: Claim, evidence: Evidence, form: str) -> Finding:
    """Scores, one after the other."""
    found, expected, tolerance = (
        values(evidence.probe("rope", claim.id)),
        claim.bounds["scores"],
        claim.bounds["within"],
    )
    ours = ", ".join(format(x, form) for x in found)
    fits = len(found) == len(expected) and all(near(*pair, tolerance) for pair in zip(found, expected, strict=True))
    return weigh(ours, (fits, f"the scores are {ours}"))


@judges("additive_absolute")
def additive_absolute(claim: Claim, evidence: Evidence) -> Finding:
    return _series(claim, evidence, ".2f")


@judges("rope_decay")
def rope_decay(claim: Claim, evidence: Evidence) -> Finding:
    return _series(claim, evidence, ".1f")


@judges("rope_layouts")
def rope_layouts(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("rope", "rope_layouts")
    permuted, plain = (value(table, variant=variant) for variant in ("permuted", "plain"))
    return weigh(
        f"{permuted:.1e} ({plain:.2f} without the permutation)",
        (permuted < claim.bounds["within"], f"the two differ by {permuted:.1e}"),
    )


@judges("shift_invariance")
def shift_invariance(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("position_shift", "shift_invariance")

    def moved(*names: str) -> dict[str, float]:
        return {name: value(table, posenc=name, quantity="scores_change") for name in names}

    stay, move = moved("t5", "alibi", "shaw", "rope"), moved("sinusoidal", "learned")
    return weigh(
        f"at most {max(stay.values()):.1e} for the four; " + ", ".join(f"{name} {x:.2f}" for name, x in move.items()),
        *((x < claim.bounds["within"], f"{name}'s scores move by {x:.1e}") for name, x in stay.items()),
        *((x > claim.bounds["over"], f"{name}'s scores move by {x:.1e} only") for name, x in move.items()),
    )


def excess(evidence: Evidence, row: str) -> list[float]:
    """Mean excess in each range of positions, over the seeds, in nats a token."""
    results = evidence.sweep("extrapolation")
    return [mean(results, f"test/excess@{where}", row) for where in RANGES]


def _past(ranges: list[float]) -> float:
    """What the positions past the first range have more than those inside it: each range counts by its length."""
    lengths = [int(last) - int(first) + 1 for first, last in (where.split("-") for where in RANGES[1:])]
    beyond = sum(x * n for x, n in zip(ranges[1:], lengths, strict=True)) / sum(lengths)
    return beyond - ranges[0]


def _inside(evidence: Evidence) -> list[Difference]:
    """NoPE against each other encoding inside 64."""
    results = evidence.sweep("extrapolation")
    others = ("sinusoidal", "learned", "T5", "RoPE", "ALiBi")
    return [difference(results, "test/nll@0-63", row, "NoPE") for row in others]


@judges("extrapolation")
def extrapolation(claim: Claim, evidence: Evidence) -> Finding:
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
        *(
            (past[row] > claim.bounds["collapse"], f"{row} loses {past[row]:.2f} nats past 64")
            for row in ("sinusoidal", "learned")
        ),
        *((past[row] < absolute, f"{row} loses {past[row]:.2f} nats past 64") for row in ("T5", "RoPE")),
        (wander <= claim.bounds["steady"], f"ALiBi's excess moves by {wander:.3f} nats between the ranges"),
        *((d.holds(above=False), f"inside 64 {d.described()} nats: {d.verdict}") for d in _inside(evidence)),
    )


@judges("nope_by_document")
def nope_by_document(claim: Claim, evidence: Evidence) -> Finding:
    """By document it may be behind by no more than the noise: by our protocol, or by the lecture's own seeds."""
    results, noise = evidence.sweep("nope_by_document"), lecture_noise()
    others = [row for row in results.rows if row != "NoPE"]
    by_document = [difference(results, "test/nll", row, "NoPE") for row in others]
    packed = _inside(evidence)
    return by_readings(
        f"by document NoPE {mean(results, 'test/ppl', 'NoPE'):.3f}, others "
        + spread([mean(results, "test/ppl", row) for row in others], ".3f")
        + f"; packed NoPE is behind by {spread([-d.delta for d in packed], '.3f')} nats inside 64",
        {
            "not told apart": [
                (d.is_not(above=False), f"by document {d.described()} ({d.verdict})") for d in by_document
            ],
            "the lecture's seeds": [
                (_is_near(d, noise), f"by document {d.described()}, {d.beside_the_lecture()}") for d in by_document
            ],
        },
        *((d.holds(above=False), f"on packed text {d.described()} nats: {d.verdict}") for d in packed),
    )


def _is_near(d: Difference, noise: float) -> bool | None:
    """Whether a row leads its reference by no more than so large a share of the perplexity, in the mean over seeds."""
    if d.verdict == "single run":
        return None
    return -d.delta <= noise  # NaN, of a row that diverged, does not hold
