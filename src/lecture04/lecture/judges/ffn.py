"""Section 1: activations, gated feed-forward layers, sparsity."""

import math

import pandas as pd

from lecture04.lecture.evidence import Evidence, mean, numbers
from lecture04.lecture.finding import Finding, judges, weigh
from lecture04.lecture.judges.compare import all_pairs, difference
from lecture04.lecture.judges.figures import near, spread, text, value, values

ROWS = ("ReLU", "GELU", "SiLU", "SwiGLU")
ZEROS, NEVER = "share of exact zeros", "units never active"
RARE = 0.001  # a share of exact zeros that is as good as none
FEW_DEAD = 3


@judges("gelu_tanh_gap")
def gelu_tanh_gap(evidence: Evidence) -> Finding:
    gap = value(evidence.probe("activations", "gelu_tanh_gap"))
    return weigh(f"{gap:.3e}", (near(gap, 4.73e-4, 0.02e-4), f"the gap is {gap:.3e}"))


def _minimum(evidence: Evidence, claim: str, x: float, y: float) -> Finding:
    line = evidence.probe("activations", claim)
    at, low = float(line["x"].iloc[0]), value(line)
    ours = f"{at:.4f}, {low:.4f}"
    return weigh(ours, (near(at, x, 1e-3) and near(low, y, 1e-3), f"the minimum lies at {ours}"))


@judges("gelu_minimum")
def gelu_minimum(evidence: Evidence) -> Finding:
    return _minimum(evidence, "gelu_minimum", -0.752, -0.170)


@judges("silu_minimum")
def silu_minimum(evidence: Evidence) -> Finding:
    return _minimum(evidence, "silu_minimum", -1.278, -0.278)


@judges("swish_limits")
def swish_limits(evidence: Evidence) -> Finding:
    table = evidence.probe("activations")
    at = value(table, quantity="value", function="swish 0.1", x=-5.0)
    to_line = values(table, quantity="largest gap to x/2 on [-5, 5]")
    to_relu = values(table, quantity="largest gap to relu on [-5, 5]")
    shrink = all(a > 2 * b for gaps in (to_line, to_relu) for a, b in zip(gaps, gaps[1:], strict=False))
    return weigh(
        f"{at:.4f}; gap to x/2 {text(to_line)}, to ReLU {text(to_relu)}",
        (near(at, -1.888, 1e-3), f"beta = 0.1 takes -5 to {at:.4f}"),
        (shrink, "the gaps to the limits do not shrink"),
    )


@judges("silu_derivative")
def silu_derivative(evidence: Evidence) -> Finding:
    gap = value(evidence.probe("activations", "silu_derivative"))
    return weigh(f"largest gap {gap:.1e}", (gap < 1e-12, f"formula and autograd differ by {gap:.1e}"))


@judges("relu_dead_side")
def relu_dead_side(evidence: Evidence) -> Finding:
    table = evidence.probe("activations", "relu_dead_side")
    left = table.loc[table["x"] < 0]
    relu = [abs(y) for y in values(left, function="relu")]
    smooth = [abs(y) for name in ("gelu", "silu") for y in values(left, function=name)]
    return weigh(
        f"ReLU {text(max(relu))}; GELU and SiLU at least {min(smooth):.1e}",
        (max(relu) == 0, f"left of 0 ReLU reaches {max(relu):.1e}"),
        (min(smooth) > 0, "GELU or SiLU is 0 somewhere left of 0"),
    )


def _counted(evidence: Evidence, claim: str, wanted: int) -> Finding:
    """A number of parameters, by formula and as built."""
    table = evidence.probe("ffn_params", claim)
    found = {by: value(table, by=by) for by in ("formula", "model")}
    ours = f"{found['formula']:.0f} by formula, {found['model']:.0f} as built"
    return weigh(ours, (set(found.values()) == {wanted}, f"counted {ours}"))


@judges("ffn_plain_256")
def ffn_plain_256(evidence: Evidence) -> Finding:
    return _counted(evidence, "ffn_plain_256", 33088)


@judges("ffn_swiglu_256")
def ffn_swiglu_256(evidence: Evidence) -> Finding:
    return _counted(evidence, "ffn_swiglu_256", 49728)


@judges("ffn_swiglu_171")
def ffn_swiglu_171(evidence: Evidence) -> Finding:
    return _counted(evidence, "ffn_swiglu_171", 33238)


@judges("eight_thirds")
def eight_thirds(evidence: Evidence) -> Finding:
    table = evidence.probe("ffn_params", "eight_thirds")
    (formula,) = [str(quantity) for quantity in table["quantity"] if str(quantity).startswith("8 d_model^2")]
    d_model = int(formula.rpartition(" ")[2])
    found = values(table)
    equal = set(found) == {8 * d_model**2} and len(found) == 5  # the formula, and two layers counted in two ways
    return weigh(f"{spread(found, '.0f')}, counted in five ways", (equal, f"the counts are {text(found)}"))


@judges("bilinear_quadratic")
def bilinear_quadratic(evidence: Evidence) -> Finding:
    gap = value(evidence.probe("ffn_params", "bilinear_quadratic"))
    return weigh(text(gap), (gap == 0, f"f(2x) and 4 f(x) differ by {gap:.1e}"))


@judges("llama_d_ff")
def llama_d_ff(evidence: Evidence) -> Finding:
    table = evidence.probe("ffn_params", "llama_d_ff")
    d_ff, over = values(table)
    fits = d_ff == 11008 and near(over, 0.0078, 0.0005)
    return weigh(f"{d_ff:.0f}, {over:.1%} over 8/3", (fits, f"it comes to {d_ff:.0f}, {over:.2%} over"))


@judges("llama2_7b")
def llama2_7b(evidence: Evidence) -> Finding:
    return _counted(evidence, "llama2_7b", 6738415616)


@judges("ffn_in_noise")
def ffn_in_noise(evidence: Evidence) -> Finding:
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
def glu_train_loss(evidence: Evidence) -> Finding:
    results = evidence.sweep("ffn")
    means = {row: mean(results, "train/nll", row) for row in ROWS}
    others = [difference(results, "train/nll", row, "SwiGLU") for row in ROWS if row != "SwiGLU"]
    lead = min(value for row, value in means.items() if row != "SwiGLU") / means["SwiGLU"] - 1
    if math.isnan(lead):
        return weigh("a run diverged", (False, "a run diverged"))
    ours = f"SwiGLU {means['SwiGLU']:.4f}, the best other {lead:+.2%}"
    return weigh(
        ours,
        (lead > 0, f"{min(means, key=lambda row: means[row])} is lowest, with {min(means.values()):.4f} nats"),
        *((d.holds(above=True), f"{d.described()} in training NLL: {d.verdict}") for d in others),
        because=f"The lecture's 0.2 % of the loss is {0.002 * means['SwiGLU']:.4f} nats, and the band "
        f"± {max(d.half_width for d in others):.4f}.",
    )


def _zeros(table: pd.DataFrame, row: str) -> list[float]:
    return values(table, row=row, quantity=ZEROS)


@judges("relu_sparsity")
def relu_sparsity(evidence: Evidence) -> Finding:
    table = evidence.probe("sparsity")
    found = {row: _zeros(table, row) for row in ("ReLU", "GELU", "SiLU")}
    share = {row: sum(zeros) / len(zeros) for row, zeros in found.items()}
    rounding = "in float32 GELU is exactly 0 below about -5.5, where its true value is a ten-millionth"
    return weigh(
        f"ReLU {share['ReLU']:.2f} ({spread(found['ReLU'], '.2f')} by layer and seed); GELU {share['GELU']:.1e} (up to "
        f"{max(found['GELU']):.1e}: {rounding}); SiLU {share['SiLU']:.1e}",
        (0.45 <= share["ReLU"] <= 0.75, f"ReLU's share of zeros is {share['ReLU']:.2f}"),
        *((share[row] < RARE, f"{row}'s share of zeros is {share[row]:.1e}") for row in ("GELU", "SiLU")),
    )


@judges("no_dead_units")
def no_dead_units(evidence: Evidence) -> Finding:
    dead = values(evidence.probe("sparsity"), row="ReLU", quantity=NEVER)
    return weigh(
        f"{max(dead):.0f} in the worst of {len(dead)} layers and seeds",
        (max(dead) == 0, f"up to {max(dead):.0f} units of a layer are never active"),
    )


@judges("relu_high_lr")
def relu_high_lr(evidence: Evidence) -> Finding:
    results = evidence.sweep("relu_high_lr")
    table = evidence.probe("sparsity_high_lr")
    said, worst = [], {}
    for row in results.rows:
        dead = values(table, row=row, quantity=NEVER)
        worst[row] = max(dead)
        said.append(f"{row} {spread(dead, '.0f')} dead (perplexity {mean(results, 'test/ppl', row):.3f})")
    return weigh(
        "; ".join(said),
        *((n <= FEW_DEAD, f"{row}: up to {n:.0f} units of a layer are dead in a seed") for row, n in worst.items()),
    )
