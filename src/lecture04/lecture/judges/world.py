"""Section 0: the Garden World and the standard model."""

import math

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, numbers
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.figures import lines, spread, value, values, within

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
    unseen = lines(table, pairing="unseen")
    shares, tokens = values(unseen, quantity="excess_share"), values(unseen, quantity="tokens")
    everywhere = values(table, part="excess", pairing="all", quantity="tokens")
    share = sum(shares) / len(shares)
    of_all = lines(table, part="excess", quantity="excess_share")
    seen = sum(values(of_all.loc[~of_all["pairing"].isin(["unseen", "no_pairing"])])) / len(shares)
    return weigh(
        f"{share:.1%} of the excess ({spread(shares, '.1%')} over {len(shares)} seeds)",
        (
            share > claim.bounds["share"],
            f"only {tokens[0]:.0f} of {everywhere[0]:,.0f} test tokens have a pairing that training never showed, and "
            f"{share:.1%} of the excess falls on them, against {seen:.0%} on pairings that were seen: our world shows "
            "nearly all that it has in training",
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
