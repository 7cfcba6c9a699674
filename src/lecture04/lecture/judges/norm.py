"""Section 2: LayerNorm and RMSNorm, pre-norm and post-norm."""

import math

import pandas as pd
from scipy.special import stdtr

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, is_diverged, n_diverged, numbers, seeds_of, validation
from lecture04.lecture.finding import Check, Finding, by_readings, judges, weigh
from lecture04.lecture.judges.compare import ALPHA, difference
from lecture04.lecture.judges.figures import lines, spread, text, value, values, within
from lecture04.lecture.judges.shares import EVERY, MOST, collapses, share


@judges("norm_scale")
def norm_scale(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "norm_scale")
    off = {name: value(table, norm=name) for name in ("layernorm", "rmsnorm")}
    return weigh(
        f"LayerNorm {off['layernorm']:.1e}, RMSNorm {off['rmsnorm']:.1e}",
        (max(off.values()) < claim.bounds["within"], f"the output moves by {max(off.values()):.1e}"),
    )


@judges("norm_shift")
def norm_shift(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "norm_shift")
    layer, rms = value(table, norm="layernorm"), value(table, norm="rmsnorm")
    return weigh(
        f"LayerNorm {layer:.1e}, RMSNorm {rms:.2f}",
        (layer < claim.bounds["within"], f"LayerNorm moves by {layer:.1e}"),
        (rms > claim.bounds["over"], f"RMSNorm moves by {rms:.2f} only"),
    )


@judges("rms_reference")
def rms_reference(claim: Claim, evidence: Evidence) -> Finding:
    found = values(evidence.probe("norm_invariance", "rms_reference"))
    return weigh(text(max(found)), (max(found) == 0, f"the two differ by {max(found):.1e}"))


@judges("rms_centred")
def rms_centred(claim: Claim, evidence: Evidence) -> Finding:
    gap = value(evidence.probe("norm_invariance", "rms_centred"))
    return weigh(f"{gap:.1e}", (gap < claim.bounds["within"], f"the two differ by {gap:.1e}"))


@judges("rms_params")
def rms_params(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("norm_invariance", "rms_params")
    at_one = lines(table, quantity="params")
    d_model = int(at_one["width"].iloc[0])
    layer, rms = value(at_one, norm="layernorm"), value(at_one, norm="rmsnorm")
    gain, bias = (value(table, norm="layernorm", quantity=f"initial_{role}") for role in ("weight", "bias"))
    return weigh(
        f"{layer:.0f} and {rms:.0f} at d_model {d_model}; gain {text(gain)}, bias {text(bias)}",
        (layer - rms == d_model, f"the difference is {layer - rms:.0f}"),
        (gain == 1 and bias == 0, f"LayerNorm starts at gain {text(gain)}, bias {text(bias)}"),
    )


def _grads(table: pd.DataFrame, placement: str, n_layers: int, quantity: str) -> float:
    """A gradient norm as its mean over the seeds."""
    return _mean(values(table, placement=placement, n_layers=n_layers, quantity=quantity))


def _layer_grads(table: pd.DataFrame, placement: str, n_layers: int, layer: int) -> float:
    """The gradient norm of one layer, counted from 1, as its mean over the seeds."""
    return _mean(values(table, placement=placement, n_layers=n_layers, quantity="layer", layer=layer))


def _mean(xs: list[float]) -> float:
    return sum(xs) / len(xs)


@judges("post_grads")
def post_grads(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("grad_norms"), claim.bounds
    depths = sorted({int(n) for n in lines(table, placement="post")["n_layers"]})
    last = [_layer_grads(table, "post", n, n) for n in depths]
    first, deepest = (_grads(table, "post", n, "total") for n in (bounds["shallow"], bounds["deep"]))
    return weigh(
        f"last layer {spread(last, '.2f')}; total {first:.2f} to {deepest:.2f} (x{deepest / first:.2f})",
        (
            all(bounds["low"] < x < bounds["high"] for x in last),
            f"the last layer's norm is {text(last)} at depths {text(depths)}",
        ),
        (deepest / first >= bounds["growth"], f"the total grows by x{deepest / first:.2f} only"),
    )


ACTIVATIONS = {"ReLU": "grad_norms", "GELU": "grad_norms_gelu"}  # the probe's table with each


@judges("pre_grads")
def pre_grads(claim: Claim, evidence: Evidence) -> Finding:
    bound, deep = claim.bounds["growth"], claim.bounds["deep"]
    said: list[str] = []
    readings: dict[str, list[Check]] = {}
    for activation, probe in ACTIVATIONS.items():
        table = evidence.probe(probe)
        depths = [*sorted(claim.bounds["shallow"]), deep]
        last = [_layer_grads(table, "pre", n, n) for n in depths]
        total, post = ([_grads(table, placement, n, "total") for n in depths] for placement in ("pre", "post"))
        at = dict(zip(depths, zip(last, total, post, strict=True), strict=True))
        said.append(
            f"{activation} at {', '.join(map(str, depths))} layers: last layer {', '.join(f'{x:.2f}' for x in last)}; "
            f"total {', '.join(f'{x:.2f}' for x in total)}"
        )
        for shallow in claim.bounds["shallow"]:
            fall, growth, others = (after / before for before, after in zip(at[shallow], at[deep], strict=True))
            readings[f"{activation} from {shallow} layers"] = [
                (within(fall, claim.bounds), f"the last layer's norm moves by x{fall:.2f}"),
                (1 / bound <= growth <= bound, f"the total grows by x{growth:.2f} (x{others:.2f} in post-norm)"),
            ]
    return by_readings(
        "; ".join(said),
        readings,
        because="Tried as well, and further from all four figures: an untied head, Xavier's values, embeddings of "
        "N(0, 0.02^2) and N(0, 1); a loss summed over tokens multiplies every norm alike. "
        "The first layers' norms hardly fall with depth where the last one's does, so that a sum of squares "
        "over more layers does not stay. That each falls as 1/sqrt(L) supposes branches as large as the stream; with "
        f"torch's first values ours are smaller. The bound of x{bound:g} is our reading of the lecture's 'hardly'.",
    )


EVENNESS = {"FFN matrices": "evenness", "whole layers": "whole_evenness"}


@judges("even_layers")
def even_layers(claim: Claim, evidence: Evidence) -> Finding:
    """Both placements have the same batch and matrices of a seed, so that their ratio is taken seed by seed."""
    table = evidence.probe("grad_norms", "even_layers")
    said: list[str] = []
    readings: dict[str, list[Check]] = {}
    for depth in claim.bounds["depths"]:
        for of, quantity in EVENNESS.items():
            at = lines(table, n_layers=depth, quantity=quantity).sort_values("seed")
            pre, post = (values(at, placement=placement) for placement in ("pre", "post"))
            p = paired_p_below([math.log(x) for x in pre], [math.log(x) for x in post])
            figures = f"{_mean(pre):.2f} in pre-norm, {_mean(post):.2f} in post-norm"
            said.append(f"{depth} layers, {of}: {figures}")
            readings[f"{depth} layers, {of}"] = [(p < ALPHA, f"{figures} (one-sided p = {p:.2g})")]
    return by_readings(
        f"largest over smallest: {'; '.join(said)}",
        readings,
        because="In pre-norm what comes back along the stream adds up, I plus a branch a layer, so that with depth "
        "the first layers get more than the last; in post-norm every norm on the way scales it down again, and at the "
        "first values the two about balance.",
    )


def paired_p_below(xs: list[float], ys: list[float]) -> float:
    """Student's one-sided p of the paired differences x - y: of a mean so far below 0, were it 0."""
    differences = [x - y for x, y in zip(xs, ys, strict=True)]
    n, centre = len(differences), _mean(differences)
    sd = math.sqrt(sum((d - centre) ** 2 for d in differences) / (n - 1))
    return float(stdtr(n - 1, centre / (sd / math.sqrt(n))))


@judges("residual_paths")
def residual_paths(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("residual_paths")
    zero = {p: value(table, placement=p, sublayers="zero", quantity="identity_gap") for p in ("pre", "post")}
    branches = value(table, placement="pre", sublayers="initial", quantity="branches_gap")
    product = value(table, placement="post", sublayers="initial", quantity="product_gap")
    lost = value(table, placement="post", sublayers="zero", quantity="lost_rank")
    return weigh(
        f"|J - I| with empty sublayers: {text(zero['pre'])} in pre-norm, {zero['post']:.2f} in post-norm, "
        f"which loses {lost:.0f} of the rank",
        (zero["pre"] == 0, f"pre-norm's Jacobian is off I by {zero['pre']:.1e}"),
        (branches < claim.bounds["within"], f"pre-norm's Jacobian is off I plus branches by {branches:.1e}"),
        (zero["post"] > claim.bounds["over"], f"post-norm's Jacobian is within {zero['post']:.1e} of I"),
        (product < claim.bounds["within"], f"post-norm's Jacobian is off the product of its layers' by {product:.1e}"),
    )


@judges("unigram")
def unigram(claim: Claim, evidence: Evidence) -> Finding:
    found = unigram_perplexity(evidence)
    return weigh(f"{found:.1f}", (within(found, claim.bounds), f"ours is {found:.1f}"))


def unigram_perplexity(evidence: Evidence) -> float:
    """The unigram model's on the validation documents."""
    return value(evidence.probe("unigram", "unigram"), quantity="perplexity", split="val")


def last_perplexity(evidence: Evidence, row: str) -> list[float]:
    """The last validation perplexity of each seed, of a diverged run as well."""
    results = evidence.sweep("warmup")
    return [validation(results, row, seed)[-1] for seed in seeds_of(results, row)]


@judges("post_needs_warmup")
def post_needs_warmup(claim: Claim, evidence: Evidence) -> Finding:
    results, cell = evidence.sweep("warmup"), claim.bounds["collapsing"]
    level, few = unigram_perplexity(evidence), share(results, cell)
    ends = last_perplexity(evidence, cell)
    broken = [end for end, seed in zip(ends, seeds_of(results, cell), strict=True) if is_diverged(results, cell, seed)]
    others = {row: last_perplexity(evidence, row) for row in results.rows if row != cell}
    also = {row: n_diverged(results, row) for row in others}
    warmed_up = claim.bounds["warmed_up"]
    pairs = [difference(results, "val/nll", f"{slice_}: post", f"{slice_}: pre") for slice_ in warmed_up]
    found = collapses(evidence, few, *claim.bounds["against"])
    rest = [
        *(
            (
                end > claim.bounds["share"] * level,
                f"a run of that cell ends at {end:.1f}, the unigram model's {level:.1f}",
            )
            for end in broken
        ),
        *((max(xs) < claim.bounds["trained"], f"{row} ends at {max(xs):.2f}") for row, xs in others.items()),
        *((m == 0, f"{row}: {m} diverged") for row, m in also.items()),
    ]
    as_good = {
        "": [(pair.is_within_noise, f"with warm-up {pair.described()}: {pair.verdict}") for pair in pairs],
        ", as good or better": [
            (pair.is_not(above=True), f"with warm-up {pair.described()}: {pair.verdict}") for pair in pairs
        ],
    }
    return by_readings(
        f"{spread(ends, '.1f')} in that cell ({few.m} of {few.n} diverged; unigram {level:.1f}), "
        f"{spread([x for xs in others.values() for x in xs], '.3f')} in the others; "
        + ", ".join(pair.described() for pair in pairs)
        + found.said,
        {
            f"{how_many}{good}": [check, *checks]
            for good, checks in as_good.items()
            for how_many, check in ((EVERY, found.every), (MOST, found.most))
        },
        *rest,
    )


@judges("rms_in_noise")
def rms_in_noise(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("norm")
    shown = {row: list(seeds.values()) for row, seeds in numbers(results, "test/ppl", "LayerNorm", "RMSNorm").items()}
    found = difference(results, "test/nll", "RMSNorm", "LayerNorm")
    ours = " against ".join(" ".join(f"{x:.3f}" for x in xs) for xs in shown.values())
    holds = found.is_within_noise
    return weigh(f"{ours}: {found.written()}", (holds, f"RMSNorm is {found.written()} away: {found.verdict}"))
