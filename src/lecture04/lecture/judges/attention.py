"""Section 3: the KV cache, MQA and GQA, MLA. Section 3.4 is in uptraining.py."""

import pandas as pd

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.figures import lines, near, text, value, values

KIB = 1024


@judges("kv_formula")
def kv_formula(claim: Claim, evidence: Evidence) -> Finding:
    """Each case worked out from the claim's own numbers, apart from the probe's file of shapes."""
    table, bounds = evidence.probe("kv_cache", "kv_formula"), claim.bounds
    wrong: list[str] = []
    cases = [
        (model, attention, about["n_layers"], about[attention])
        for model, about in bounds["models"].items()
        for attention in about
        if attention != "n_layers"
    ]
    for model, attention, n_layers, numbers in cases:
        kib = n_layers * numbers * bounds["n_bytes"] / KIB
        expected = (numbers, kib, kib * bounds["n_tokens"] / KIB / KIB)
        found = [_size(table, model, attention, quantity) for quantity in ("numbers", "kib_per_token", "cache_gib")]
        if found != list(expected):
            wrong.append(f"{model}, {attention}: {text(found)} where {text(expected)} was worked out")
    ours = f"{len(cases) - len(wrong)} of {len(cases)} cases as worked out by hand"
    return weigh(ours, (not wrong, "; ".join(wrong)))


def _size(table: pd.DataFrame, model: str, attention: str, quantity: str) -> float:
    """A figure of a published model, with its own attention or as if it had MHA."""
    return value(table, model=model, attention=attention, quantity=quantity)


@judges("llama2_70b_mha")
def llama2_70b_mha(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("kv_cache", "kv_formula"), claim.bounds
    full, own = (_size(table, "Llama 2 70B", attention, "cache_gib") for attention in ("mha", "gqa"))
    weights = _size(table, "Llama 2 70B", "gqa", "weights_gib")
    return weigh(
        f"{text(full)} ({text(own)} as GQA); weights {weights:.1f}",
        (full == bounds["as_mha"] and own == bounds["own"], f"the caches take {text(full)} and {text(own)} GiB"),
        (near(weights, bounds["weights"], bounds["within"]), f"the weights take {weights:.1f} GiB"),
    )


@judges("mistral_kv")
def mistral_kv(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("kv_cache", "kv_formula"), claim.bounds
    found: list[float] = []
    for attention in ("gqa", "mha"):
        one = _size(table, "Mistral 7B", attention, "cache_gib")
        found += [_size(table, "Mistral 7B", attention, "kib_per_token"), bounds["n_sequences"] * one]
    weights = _size(table, "Mistral 7B", "gqa", "weights_gib")
    return weigh(
        f"{text(found)}; weights {weights:.1f} GiB",
        (found == bounds["sizes"], f"counted {text(found)}"),
        (near(weights, bounds["weights"], bounds["within"]), f"the weights take {weights:.1f} GiB"),
    )


@judges("mla_576")
def mla_576(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("kv_cache", "kv_formula"), claim.bounds
    numbers, share = (_size(table, "DeepSeek-V2", "mla", quantity) for quantity in ("numbers", "share_of_mha"))
    ours = f"{numbers:.0f}, 1/{1 / share:.1f}"
    return weigh(ours, (numbers == bounds["numbers"] and round(1 / share) == bounds["share"], f"counted {ours}"))


@judges("cached_equals_full")
def cached_equals_full(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "cached_equals_full")
    gaps = values(table, quantity="cached_gap")
    measured, formula = (values(table, quantity=f"bytes_{how}") for how in ("measured", "formula"))
    size = {name: value(table, quantity="bytes_measured", attention=name, posenc="none") for name in ("mha", "gqa")}
    return weigh(
        f"at most {max(gaps):.1e} over {len(gaps)} pairs; GQA's cache {size['gqa'] / size['mha']:g} of MHA's",
        (max(gaps) < claim.bounds["within"], f"cached and whole differ by up to {max(gaps):.1e}"),
        (measured == formula, "the cache's tensors hold other bytes than the formula gives"),
        (2 * size["gqa"] == size["mha"], "half the KV heads do not halve the cache"),
    )


@judges("groups_are_heads")
def groups_are_heads(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "groups_are_heads")
    gap = max(values(table, quantity="output_gap"))
    ours, other = (values(table, quantity=f"bytes_{which}") for which in ("gqa", "other"))
    shares = values(table, quantity="cache_share")
    work = values(table, quantity="attention_flops")
    n_heads = int(lines(table, attention="mha")["n_kv_heads"].iloc[0])
    return weigh(
        f"outputs within {gap:.1e}; caches {text(shares)} of MHA's; FLOPs {text(sorted(set(work)))}",
        (gap < claim.bounds["within"], f"the outputs differ by {gap:.1e}"),
        (ours == other and shares == [1, 1 / n_heads], f"the caches are {text(shares)} of MHA's"),
        (len(set(work)) == 1, f"the attention takes {text(work)} FLOPs"),
    )


@judges("mla_absorb", "mla_decoupled")
def absorbed(claim: Claim, evidence: Evidence) -> Finding:
    """Scores and outputs of the absorbed form against the restored one, in both number formats."""
    table = evidence.probe("mla", claim.id)
    worst = {dtype: max(values(table, dtype=dtype)) for dtype in claim.bounds}
    return weigh(
        ", ".join(f"{gap:.1e} in {dtype}" for dtype, gap in worst.items()),
        *((gap < claim.bounds[dtype], f"in {dtype} they differ by {gap:.1e}") for dtype, gap in worst.items()),
    )


@judges("mla_rope_clash")
def mla_rope_clash(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("mla", "mla_rope_clash")
    wrong = min(values(table, quantity="score_gap"))
    largest = max(values(table, quantity="largest_score"))
    return weigh(
        f"off by {wrong:.2f} (largest score {largest:.2f})",
        (wrong > claim.bounds["over"], f"it is off by {wrong:.2g} only"),
    )
