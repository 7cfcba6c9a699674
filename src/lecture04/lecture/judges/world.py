"""Section 0: the Garden World and the standard model."""

import math

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, numbers
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.figures import spread, value, values, within

STANDARD = "LayerNorm"  # the row of sweep norm that is the standard model


def _in_range(claim: Claim, x: float, form: str) -> Finding:
    shown = format(x, form)
    return weigh(shown, (within(x, claim.bounds), f"{shown} lies outside {claim.expected}"))


@judges("floor")
def floor(claim: Claim, evidence: Evidence) -> Finding:
    return _in_range(claim, value(evidence.probe("world", "floor")), ".3f")


@judges("doc_length")
def doc_length(claim: Claim, evidence: Evidence) -> Finding:
    return _in_range(claim, value(evidence.probe("world", "doc_length"), split="train"), ".1f")


def _seeds(evidence: Evidence) -> list[float]:
    """The standard model's test perplexities."""
    return list(numbers(evidence.sweep("norm"), "test/ppl", STANDARD)[STANDARD].values())


@judges("standard_model")
def standard_model(claim: Claim, evidence: Evidence) -> Finding:
    found = _seeds(evidence)
    mean = sum(found) / len(found)
    return weigh(
        f"{mean:.3f} ({', '.join(f'{x:.3f}' for x in found)})",
        (not math.isnan(mean), "a run diverged"),
        (within(mean, claim.bounds), f"the mean is {mean:.3f}"),
    )


@judges("seed_noise")
def seed_noise(claim: Claim, evidence: Evidence) -> Finding:
    found = _seeds(evidence)
    if len(found) < 2:
        return weigh(f"{len(found)} seed", (None, "a spread takes two seeds at least"))
    wide = max(found) - min(found)
    return weigh(
        f"{wide:.3f} over {len(found)} seeds",
        (not math.isnan(wide), "a run diverged"),
        (within(wide, claim.bounds), f"{len(found)} seeds spread by {wide:.3f}"),
    )


@judges("unseen_pairs")
def unseen_pairs(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("world")

    def shares(part: str, *pairings: str) -> list[float]:
        """The shares of these buckets together, seed by seed."""
        by_pairing = (values(table, part=part, pairing=p, quantity="excess_share") for p in pairings)
        return [sum(of_seed) for of_seed in zip(*by_pairing, strict=True)]

    def mean(xs: list[float]) -> float:
        return sum(xs) / len(xs)

    unseen = shares("expected", "unseen")
    share, rare, there = mean(unseen), mean(shares("expected", "seen_1", "seen_3")), mean(shares("excess", "unseen"))
    weight = mean(values(table, part="expected", pairing="unseen", quantity="tokens"))
    everywhere = values(table, part="expected", pairing="all", quantity="tokens")[0]
    return weigh(
        f"{share:.1%} of the expected excess ({spread(unseen, '.1%')} over {len(unseen)} seeds), {rare:.1%} on "
        f"pairings seen 1 to 10 times; of the words that stand there {there:.1%}",
        (
            share > claim.bounds["share"],
            f"pairings that training never showed have {weight / everywhere:.2%} of the probability on test, and "
            f"{share:.1%} of the excess falls on them",
        ),
    )


@judges("textbook_equal")
def textbook_equal(claim: Claim, evidence: Evidence) -> Finding:
    found = evidence.test("textbook")
    gap, ours, theirs = (found[name] for name in ("largest_difference", "perplexity_ours", "perplexity_theirs"))
    whose = "a trained run's" if found["trained"] else "drawn"
    return weigh(
        f"{gap:.1f}; test perplexity {ours:.4f} and {theirs:.4f} ({whose} parameters)",
        (gap == 0, f"the outputs differ by {gap:.1e}"),
        (ours == theirs, f"the perplexities are {ours!r} and {theirs!r}"),
    )
