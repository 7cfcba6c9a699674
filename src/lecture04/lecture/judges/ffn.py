"""Section 1: activations, gated feed-forward layers, sparsity."""

import math
from statistics import median

import pandas as pd

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, mean, numbers
from lecture04.lecture.finding import Finding, by_readings, judges, weigh
from lecture04.lecture.judges.compare import all_pairs, difference
from lecture04.lecture.judges.figures import lines, near, spread, text, value, values, within

ROWS = ("ReLU", "GELU", "SiLU", "SwiGLU")


@judges("gelu_tanh_gap")
def gelu_tanh_gap(claim: Claim, evidence: Evidence) -> Finding:
    gap = value(evidence.probe("activations", "gelu_tanh_gap"))
    return weigh(f"{gap:.3e}", (near(gap, claim.bounds["gap"], claim.bounds["within"]), f"the gap is {gap:.3e}"))


@judges("gelu_minimum", "silu_minimum")
def minimum(claim: Claim, evidence: Evidence) -> Finding:
    line, bounds = evidence.probe("activations", claim.id), claim.bounds
    at, low = float(line["x"].iloc[0]), value(line)
    ours = f"{at:.4f}, {low:.4f}"
    fits = near(at, bounds["x"], bounds["within"]) and near(low, bounds["y"], bounds["within"])
    return weigh(ours, (fits, f"the minimum lies at {ours}"))


@judges("swish_limits")
def swish_limits(claim: Claim, evidence: Evidence) -> Finding:
    table, bounds = evidence.probe("activations"), claim.bounds
    at = value(table, quantity="value", function=f"swish {bounds['beta']:g}", x=bounds["x"])
    to_line, to_relu = values(table, quantity="gap_to_half_x"), values(table, quantity="gap_to_relu")
    shrink = all(a > bounds["factor"] * b for gaps in (to_line, to_relu) for a, b in zip(gaps, gaps[1:], strict=False))
    return weigh(
        f"{at:.4f}; gap to x/2 {text(to_line)}, to ReLU {text(to_relu)}",
        (near(at, bounds["y"], bounds["within"]), f"beta = {bounds['beta']:g} takes {bounds['x']:g} to {at:.4f}"),
        (shrink, "the gaps to the limits do not shrink"),
    )


@judges("silu_derivative")
def silu_derivative(claim: Claim, evidence: Evidence) -> Finding:
    gap = value(evidence.probe("activations", "silu_derivative"))
    return weigh(f"largest gap {gap:.1e}", (gap < claim.bounds["within"], f"formula and autograd differ by {gap:.1e}"))


@judges("relu_dead_side")
def relu_dead_side(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("activations", "relu_dead_side")
    left = table.loc[table["x"] < 0]
    relu = [abs(y) for y in values(left, function="relu")]
    smooth = [abs(y) for name in ("gelu", "silu") for y in values(left, function=name)]
    return weigh(
        f"ReLU {text(max(relu))}; GELU and SiLU at least {min(smooth):.1e}",
        (max(relu) == 0, f"left of 0 ReLU reaches {max(relu):.1e}"),
        (min(smooth) > 0, "GELU or SiLU is 0 somewhere left of 0"),
    )


@judges("ffn_plain_256", "ffn_swiglu_256", "ffn_swiglu_171", "llama2_7b")
def counted(claim: Claim, evidence: Evidence) -> Finding:
    """A number of parameters, by formula and as built."""
    table = evidence.probe("ffn_params", claim.id)
    found = {by: value(table, by=by) for by in ("formula", "model")}
    ours = f"{found['formula']:.0f} by formula, {found['model']:.0f} as built"
    return weigh(ours, (set(found.values()) == {claim.bounds["params"]}, f"counted {ours}"))


@judges("eight_thirds")
def eight_thirds(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("ffn_params", "eight_thirds")
    (d_model,) = lines(table, quantity="eight_d_squared")["d_model"]
    found = values(table)
    equal = set(found) == {claim.bounds["factor"] * int(d_model) ** 2} and len(found) == claim.bounds["ways"]
    return weigh(f"{spread(found, '.0f')}, counted in five ways", (equal, f"the counts are {text(found)}"))


@judges("bilinear_quadratic")
def bilinear_quadratic(claim: Claim, evidence: Evidence) -> Finding:
    gap = value(evidence.probe("ffn_params", "bilinear_quadratic"))
    return weigh(text(gap), (gap == 0, f"f(2x) and 4 f(x) differ by {gap:.1e}"))


@judges("llama_d_ff")
def llama_d_ff(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("ffn_params", "llama_d_ff")
    d_ff, over = value(table, quantity="rounded_d_ff"), value(table, quantity="rounding_share")
    fits = d_ff == claim.bounds["d_ff"] and near(over, claim.bounds["share"], claim.bounds["within"])
    return weigh(f"{d_ff:.0f}, {over:.1%} over 8/3", (fits, f"it comes to {d_ff:.0f}, {over:.2%} over"))


@judges("ffn_in_noise")
def ffn_in_noise(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("ffn")
    perplexity = numbers(results, "test/ppl", *ROWS)
    means = [mean(results, "test/ppl", row) for row in ROWS]
    within = max(max(seeds.values()) - min(seeds.values()) for seeds in perplexity.values())
    pairs = all_pairs(results, "test/nll", *ROWS)
    return weigh(
        f"{max(means) - min(means):.3f} between, {within:.3f} within",
        *((pair.is_within_noise, f"{pair.described()}: {pair.verdict}") for pair in pairs),
    )


@judges("glu_train_loss")
def glu_train_loss(claim: Claim, evidence: Evidence) -> Finding:
    results = evidence.sweep("ffn")
    means = {row: mean(results, "train/nll", row) for row in ROWS}
    others = [difference(results, "train/nll", row, "SwiGLU") for row in ROWS if row != "SwiGLU"]
    lead = min(value for row, value in means.items() if row != "SwiGLU") / means["SwiGLU"] - 1
    if math.isnan(lead):
        return weigh("a run diverged", (False, "a run diverged"))
    lecture = claim.bounds["lead"]
    ours = f"SwiGLU {means['SwiGLU']:.4f}, the best other {lead:+.2%}"
    return weigh(
        ours,
        (lead > 0, f"{min(means, key=lambda row: means[row])} is lowest, with {min(means.values()):.4f} nats"),
        *((d.holds(above=True), f"{d.described()} in training NLL: {d.verdict}") for d in others),
        because=f"The lecture's {100 * lecture:g} % of the loss is {lecture * means['SwiGLU']:.4f} nats, and the band "
        f"± {max(d.half_width for d in others):.4f}.",
    )


def _zeros(table: pd.DataFrame, row: str) -> list[float]:
    return values(table, row=row, quantity="zero_share")


@judges("relu_sparsity")
def relu_sparsity(claim: Claim, evidence: Evidence) -> Finding:
    table = evidence.probe("sparsity")
    found = {row: _zeros(table, row) for row in ("ReLU", "GELU", "SiLU")}
    share = {row: sum(zeros) / len(zeros) for row, zeros in found.items()}
    rounding = "in float32 GELU is exactly 0 below about -5.5, where its true value is a ten-millionth"
    return weigh(
        f"ReLU {share['ReLU']:.2f} ({spread(found['ReLU'], '.2f')} by layer and seed); GELU {share['GELU']:.1e} (up to "
        f"{max(found['GELU']):.1e}: {rounding}); SiLU {share['SiLU']:.1e}",
        (within(share["ReLU"], claim.bounds), f"ReLU's share of zeros is {share['ReLU']:.2f}"),
        *(
            (share[row] < claim.bounds["rare"], f"{row}'s share of zeros is {share[row]:.1e}")
            for row in ("GELU", "SiLU")
        ),
    )


@judges("no_dead_units")
def no_dead_units(claim: Claim, evidence: Evidence) -> Finding:
    dead = values(evidence.probe("sparsity"), row="ReLU", quantity="dead_units")
    return weigh(
        f"{max(dead):.0f} in the worst of {len(dead)} layers and seeds",
        (max(dead) == 0, f"up to {max(dead):.0f} units of a layer are never active"),
    )


@judges("relu_high_lr")
def relu_high_lr(claim: Claim, evidence: Evidence) -> Finding:
    """The lecture has one run of each; "hardly a unit" may be said of every run, or of the middle one of several."""
    results = evidence.sweep("relu_high_lr")
    table = lines(evidence.probe("sparsity_high_lr"), quantity="dead_units")
    said: list[str] = []
    worst: dict[str, float] = {}
    middle: dict[str, float] = {}
    for row in results.rows:
        own = lines(table, row=row)
        dead = [values(own, layer=layer) for layer in dict.fromkeys(own["layer"])]
        worst[row], middle[row] = max(map(max, dead)), max(map(median, dead))
        said.append(f"{row} {spread(values(own), '.0f')} dead (perplexity {mean(results, 'test/ppl', row):.3f})")
    most = claim.bounds["n_units"]
    return by_readings(
        "; ".join(said),
        {
            "every seed": [
                (n <= most, f"{row}: {n:.0f} units of a layer are dead in a seed") for row, n in worst.items()
            ],
            "the middle seed": [
                (n <= most, f"{row}: {n:.0f} units of a layer are dead in the middle seed") for row, n in middle.items()
            ],
        },
    )
