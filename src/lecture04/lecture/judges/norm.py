"""Section 2: LayerNorm and RMSNorm, pre-norm and post-norm."""

from lecture04.lecture.evidence import Evidence, n_diverged, numbers, seeds_of, validation
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.compare import difference
from lecture04.lecture.judges.figures import lines, spread, text, value, values

TRAINS, COLLAPSED = 6.0, 0.8  # a validation perplexity, and a share of the unigram model's
COLLAPSING = "lr 5e-3, no warm-up: post"


@judges("norm_scale")
def norm_scale(evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "norm_scale")
    off = {name: value(table, norm=name) for name in ("layernorm", "rmsnorm")}
    return weigh(
        f"LayerNorm {off['layernorm']:.1e}, RMSNorm {off['rmsnorm']:.1e}",
        (max(off.values()) < 1e-4, f"the output moves by {max(off.values()):.1e}"),
    )


@judges("norm_shift")
def norm_shift(evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "norm_shift")
    layer, rms = value(table, norm="layernorm"), value(table, norm="rmsnorm")
    return weigh(
        f"LayerNorm {layer:.1e}, RMSNorm {rms:.2f}",
        (layer < 1e-4, f"LayerNorm moves by {layer:.1e}"),
        (rms > 1, f"RMSNorm moves by {rms:.2f} only"),
    )


@judges("rms_reference")
def rms_reference(evidence: Evidence) -> Finding:
    found = values(evidence.probe("norm_invariance", "rms_reference"))
    return weigh(text(max(found)), (max(found) == 0, f"the two differ by {max(found):.1e}"))


@judges("rms_centred")
def rms_centred(evidence: Evidence) -> Finding:
    gap = value(evidence.probe("norm_invariance", "rms_centred"))
    return weigh(f"{gap:.1e}", (gap < 1e-4, f"the two differ by {gap:.1e}"))


@judges("rms_params")
def rms_params(evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "rms_params")
    at_one = table.loc[table["quantity"].str.startswith("parameters at one place, d_model ")]
    d_model = int(str(at_one["quantity"].iloc[0]).rpartition(" ")[2])
    layer, rms = value(at_one, norm="layernorm"), value(at_one, norm="rmsnorm")
    gain, bias = (value(table, norm="layernorm", quantity=f"initial {role}") for role in ("weight", "bias"))
    return weigh(
        f"{layer:.0f} and {rms:.0f} at d_model {d_model}; gain {text(gain)}, bias {text(bias)}",
        (layer - rms == d_model, f"the difference is {layer - rms:.0f}"),
        (gain == 1 and bias == 0, f"LayerNorm starts at gain {text(gain)}, bias {text(bias)}"),
    )


def _grads(evidence: Evidence, placement: str, n_layers: int, quantity: str) -> float:
    """A gradient norm, or a ratio of two, as its mean over the seeds."""
    table = evidence.probe("grad_norms")
    found = values(table, placement=placement, n_layers=n_layers, quantity=quantity)
    return sum(found) / len(found)


@judges("post_grads")
def post_grads(evidence: Evidence) -> Finding:
    depths = sorted({int(n) for n in lines(evidence.probe("grad_norms"), placement="post")["n_layers"]})
    last = [_grads(evidence, "post", n, str(n)) for n in depths]
    first, deepest = (_grads(evidence, "post", n, "total") for n in (2, 24))
    return weigh(
        f"last layer {spread(last, '.2f')}; total {first:.2f} to {deepest:.2f} (x{deepest / first:.2f})",
        (all(0.5 < x < 2 for x in last), f"the last layer's norm is {text(last)} at depths {text(depths)}"),
        (deepest / first >= 1.5, f"the total grows by x{deepest / first:.2f} only"),
    )


@judges("pre_grads")
def pre_grads(evidence: Evidence) -> Finding:
    last6, last24 = (_grads(evidence, "pre", n, str(n)) for n in (6, 24))
    total6, total24 = (_grads(evidence, "pre", n, "total") for n in (6, 24))
    post = _grads(evidence, "post", 24, "total") / _grads(evidence, "post", 6, "total")
    ratio, growth = last24 / last6, total24 / total6
    first6, first24 = (_grads(evidence, "pre", n, "1") for n in (6, 24))
    return weigh(
        f"last layer {last6:.2f} to {last24:.2f} (x{ratio:.2f}); total {total6:.2f} to {total24:.2f} (x{growth:.2f})",
        (0.3 <= ratio <= 0.6, f"the last layer's norm at depth 24 is {ratio:.2f} of that at depth 6"),
        (
            1 / 1.15 <= growth <= 1.15,
            f"the total moves by x{growth:.2f} from depth 6 to 24 (x{post:.2f} in post-norm). The last layer's norm "
            f"falls by x{ratio:.2f}, the first one's by x{first24 / first6:.2f}, so that the sum of squares over four "
            "times the layers does not stay. That every layer's falls as 1/sqrt(L) supposes branches as large as the "
            "stream; with torch's first values ours are smaller. The bound of x1.15 is our reading of the lecture's "
            '"hardly"',
        ),
    )


@judges("even_layers")
def even_layers(evidence: Evidence) -> Finding:
    pre, post = (_grads(evidence, p, 24, "largest / smallest layer") for p in ("pre", "post"))
    ends = {p: [_grads(evidence, p, 24, str(layer)) for layer in (1, 24)] for p in ("pre", "post")}
    said = {p: f"from {first:.2f} in the first to {last:.2f} in the last layer" for p, (first, last) in ends.items()}
    return weigh(
        f"largest over smallest {pre:.2f} in pre-norm, {post:.2f} in post-norm",
        (
            pre < post,
            f"pre-norm's layers spread by x{pre:.2f} ({said['pre']}), post-norm's by x{post:.2f} ({said['post']}). In "
            "pre-norm what comes back along the stream adds up, I plus a branch a layer, so that the first layers get "
            "more than the last; in post-norm every norm on the way scales it down again, and at the first values "
            "the two about balance",
        ),
    )


@judges("residual_paths")
def residual_paths(evidence: Evidence) -> Finding:
    table = evidence.probe("residual_paths")
    zero = {p: value(table, placement=p, sublayers="zero", quantity="max |J - I|") for p in ("pre", "post")}
    branches = value(table, placement="pre", sublayers="initial", quantity="max |J - (I + branches)|")
    product = value(table, placement="post", sublayers="initial", quantity="max |J - product of the layers'|")
    lost = value(table, placement="post", sublayers="zero", quantity="rank that is lost")
    return weigh(
        f"|J - I| with empty sublayers: {text(zero['pre'])} in pre-norm, {zero['post']:.2f} in post-norm, "
        f"which loses {lost:.0f} of the rank",
        (zero["pre"] == 0, f"pre-norm's Jacobian is off I by {zero['pre']:.1e}"),
        (branches < 1e-9, f"pre-norm's Jacobian is off I plus branches by {branches:.1e}"),
        (zero["post"] > 0.1, f"post-norm's Jacobian is within {zero['post']:.1e} of I"),
        (product < 1e-9, f"post-norm's Jacobian is off the product of its layers' by {product:.1e}"),
    )


@judges("unigram")
def unigram(evidence: Evidence) -> Finding:
    found = unigram_perplexity(evidence)
    return weigh(f"{found:.1f}", (42 <= found <= 47, f"ours is {found:.1f}"))


def unigram_perplexity(evidence: Evidence) -> float:
    """The unigram model's on the validation documents."""
    return value(evidence.probe("unigram", "unigram"), quantity="perplexity", split="val")


def last_perplexity(evidence: Evidence, row: str) -> list[float]:
    """The last validation perplexity of each seed, of a diverged run as well."""
    results = evidence.sweep("warmup")
    return [validation(results, row, seed)[-1] for seed in seeds_of(results, row)]


@judges("post_needs_warmup")
def post_needs_warmup(evidence: Evidence) -> Finding:
    results = evidence.sweep("warmup")
    level, there = unigram_perplexity(evidence), n_diverged(results, COLLAPSING)
    n = len(seeds_of(results, COLLAPSING))
    collapsed = last_perplexity(evidence, COLLAPSING)
    others = {row: last_perplexity(evidence, row) for row in results.rows if row != COLLAPSING}
    also = {row: n_diverged(results, row) for row in others}
    warmed = [slice_ for slice_ in dict.fromkeys((results.slices or {}).values()) if "200 steps" in slice_]
    pairs = [difference(results, "val/nll", f"{slice_}: post", f"{slice_}: pre") for slice_ in warmed]
    return weigh(
        f"{spread(collapsed, '.1f')} in that cell ({there} of {n} diverged; unigram {level:.1f}), "
        f"{spread([x for xs in others.values() for x in xs], '.3f')} in the others; "
        + ", ".join(pair.described() for pair in pairs),
        (there == n, f"{there} of {n} runs of post-norm at 5e-3 without warm-up diverged"),
        (min(collapsed) > COLLAPSED * level, f"that cell reaches {min(collapsed):.1f}, the unigram model {level:.1f}"),
        *((max(xs) < TRAINS, f"{row} ends at {max(xs):.2f}") for row, xs in others.items()),
        *((m == 0, f"{row}: {m} diverged") for row, m in also.items()),
        *((pair.is_within_noise, f"with warm-up {pair.described()}: {pair.verdict}") for pair in pairs),
    )


@judges("rms_in_noise")
def rms_in_noise(evidence: Evidence) -> Finding:
    results = evidence.sweep("norm")
    shown = {row: list(seeds.values()) for row, seeds in numbers(results, "test/ppl", "LayerNorm", "RMSNorm").items()}
    found = difference(results, "test/nll", "RMSNorm", "LayerNorm")
    ours = " against ".join(" ".join(f"{x:.3f}" for x in xs) for xs in shown.values())
    holds = found.is_within_noise
    return weigh(f"{ours}: {found.written()}", (holds, f"RMSNorm is {found.written()} away: {found.verdict}"))
