"""Section 3: the KV cache, MQA and GQA, MLA. Section 3.4 is in uptraining.py."""

from lecture04.lecture.evidence import Evidence
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.figures import lines, near, text, value, values

TOKENS_32K = 32768
KIB_IN_GIB = 2**20
# Layers, heads, KV heads and head width of the lecture's models, written down apart from the probe's own file.
SHAPES = {
    "Llama 2 7B": (32, 32, 32, 128),
    "Llama 2 70B": (80, 64, 8, 128),
    "Llama 3 8B": (32, 32, 8, 128),
    "Llama 3 70B": (80, 64, 8, 128),
    "Mistral 7B": (32, 32, 8, 128),
}
DEEPSEEK = (60, 128, 512 + 64, 128)  # layers, heads, numbers of the latent and of the rotated part, head width
BF16 = 2


def by_hand() -> dict[str, tuple[float, float, float]]:
    """{case: numbers a token and layer, KiB a token, GiB at 32K} in bf16."""
    found: dict[str, tuple[int, int]] = {}
    for name, (n_layers, n_heads, n_kv, d_head) in SHAPES.items():
        found[f"{name}, {'MHA' if n_kv == n_heads else 'GQA'}"] = n_layers, 2 * n_kv * d_head
        if n_kv < n_heads:
            found[f"{name}, as if MHA"] = n_layers, 2 * n_heads * d_head
    n_layers, n_heads, numbers, d_head = DEEPSEEK
    found["DeepSeek-V2, MLA"] = n_layers, numbers
    found["DeepSeek-V2, as if MHA"] = n_layers, 2 * n_heads * d_head
    sizes: dict[str, tuple[float, float, float]] = {}
    for case, (layers, numbers) in found.items():
        kib = layers * numbers * BF16 / 2**10
        sizes[case] = numbers, kib, kib * TOKENS_32K / KIB_IN_GIB
    return sizes


QUANTITIES = ("numbers per token and layer", "KiB per token", "GiB of cache")


@judges("kv_formula")
def kv_formula(evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "kv_formula")
    wrong: list[str] = []
    for case, expected in by_hand().items():
        found = [value(table, case=case, quantity=quantity) for quantity in QUANTITIES]
        if any(not near(x, y, 1e-9 * y) for x, y in zip(found, expected, strict=True)):
            wrong.append(f"{case}: {text(found)} where {text(expected)} was worked out")
    cases = len(by_hand())
    return weigh(f"{cases - len(wrong)} of {cases} cases as worked out by hand", (not wrong, "; ".join(wrong)))


def _gib(evidence: Evidence, case: str, n_sequences: int) -> float:
    """GiB of so many 32K contexts, from what a token costs."""
    kib = value(evidence.probe("kv_cache", "kv_formula"), case=case, quantity="KiB per token")
    return kib * TOKENS_32K * n_sequences / KIB_IN_GIB


def _weights(evidence: Evidence, case: str) -> float:
    return value(evidence.probe("kv_cache", "kv_formula"), case=case, quantity="GiB of weights")


@judges("llama2_70b_mha")
def llama2_70b_mha(evidence: Evidence) -> Finding:
    full, own = (_gib(evidence, f"Llama 2 70B, {kind}", 1) for kind in ("as if MHA", "GQA"))
    weights = _weights(evidence, "Llama 2 70B, GQA")
    return weigh(
        f"{text(full)} ({text(own)} as GQA); weights {weights:.1f}",
        (full == 80 and own == 10, f"the caches take {text(full)} and {text(own)} GiB"),
        (near(weights, 128.5, 0.05), f"the weights take {weights:.1f} GiB"),
    )


@judges("mistral_kv")
def mistral_kv(evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "kv_formula")
    found: list[float] = []
    for kind in ("GQA", "as if MHA"):
        case = f"Mistral 7B, {kind}"
        found += [value(table, case=case, quantity="KiB per token"), _gib(evidence, case, 8)]
    weights = _weights(evidence, "Mistral 7B, GQA")
    return weigh(
        f"{text(found)}; weights {weights:.1f} GiB",
        (found == [128, 32, 512, 128], f"counted {text(found)}"),
        (near(weights, 13.5, 0.05), f"the weights take {weights:.1f} GiB"),
    )


@judges("mla_576")
def mla_576(evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "kv_formula")
    numbers = value(table, case="DeepSeek-V2, MLA", quantity="numbers per token and layer")
    share = value(table, case="DeepSeek-V2, MLA", quantity="share of MHA")
    ours = f"{numbers:.0f}, 1/{1 / share:.1f}"
    return weigh(ours, (numbers == 576 and round(1 / share) == 57, f"counted {ours}"))


@judges("cached_equals_full")
def cached_equals_full(evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "cached_equals_full")
    gaps = values(table, quantity="max |cached - whole|")
    measured, formula = (values(table, quantity=f"bytes {how}") for how in ("measured", "by formula"))
    size = {name: values(table, quantity="bytes measured", case=f"{name}, none")[0] for name in ("mha", "gqa")}
    return weigh(
        f"at most {max(gaps):.1e} over {len(gaps)} pairs; GQA's cache {size['gqa'] / size['mha']:g} of MHA's",
        (max(gaps) < 1e-5, f"cached and whole differ by up to {max(gaps):.1e}"),
        (measured == formula, "the cache's tensors hold other bytes than the formula gives"),
        (2 * size["gqa"] == size["mha"], "half the KV heads do not halve the cache"),
    )


@judges("groups_are_heads")
def groups_are_heads(evidence: Evidence) -> Finding:
    table = evidence.probe("kv_cache", "groups_are_heads")
    gap = max(values(table, quantity="max |gqa - other|"))
    ours, other = (values(table, quantity=f"bytes of {which}") for which in ("gqa", "the other"))
    shares = values(table, quantity="share of MHA's cache")
    work = values(table, quantity="attention FLOPs per token")
    n_heads = int(str(lines(table)["case"].iloc[0]).split(" of ")[1].split()[0])
    return weigh(
        f"outputs within {gap:.1e}; caches {text(shares)} of MHA's; FLOPs {text(sorted(set(work)))}",
        (gap < 1e-5, f"the outputs differ by {gap:.1e}"),
        (ours == other and shares == [1, 1 / n_heads], f"the caches are {text(shares)} of MHA's"),
        (len(set(work)) == 1, f"the attention takes {text(work)} FLOPs"),
    )


EXACT = {"float32": 1e-5, "float64": 1e-12}


def _absorbed(evidence: Evidence, claim: str) -> Finding:
    """Scores and outputs of the absorbed form against the restored one, in both number formats."""
    table = evidence.probe("mla", claim)
    worst = {dtype: max(values(table, dtype=dtype)) for dtype in EXACT}
    return weigh(
        ", ".join(f"{gap:.1e} in {dtype}" for dtype, gap in worst.items()),
        *((gap < EXACT[dtype], f"in {dtype} they differ by {gap:.1e}") for dtype, gap in worst.items()),
    )


@judges("mla_absorb")
def mla_absorb(evidence: Evidence) -> Finding:
    return _absorbed(evidence, "mla_absorb")


@judges("mla_rope_clash")
def mla_rope_clash(evidence: Evidence) -> Finding:
    table = evidence.probe("mla", "mla_rope_clash")
    wrong = min(values(table, quantity="max |scores absorbed - restored|"))
    largest = max(values(table, quantity="largest score"))
    return weigh(f"off by {wrong:.2f} (largest score {largest:.2f})", (wrong > 1, f"it is off by {wrong:.2g} only"))


@judges("mla_decoupled")
def mla_decoupled(evidence: Evidence) -> Finding:
    return _absorbed(evidence, "mla_decoupled")
