"""The protocol's worked values: s, df, q, half-widths, what is blocked and excluded, verdicts and seeds needed."""

import math

import numpy as np
import pytest

from lecture04.stats import judge, seeds_needed
from lecture04.stats.simultaneous import Block, Family

BASE = (3.822, 3.815, 3.824)
LLAMA = (3.848, 3.872, 3.799)
FIVE = {
    "base": BASE,
    "rmsnorm": (3.825, 3.816, 3.829),
    "swiglu": (3.790, 3.785, 3.795),
    "nope": (3.871, 3.860, 3.874),
    "llama": LLAMA,
}


def table(rows):
    return {row: dict(enumerate(run)) for row, run in rows.items()}


def logit(p):
    return math.log(p / (1 - p))


ACCURATE, LESS = (0.997, 0.998, 0.998), (0.986, 0.988, 0.989)
PAIRS = {  # reference, row, scale: d, s, df, half-width, p of the table, p of its own
    "nll": (BASE, LLAMA, float, 0.01933, 0.02652, 4, 0.06012, 0.4224, 0.4636),
    "nll as logs": (BASE, LLAMA, math.log, 0.00502, 0.00692, 4, 0.01568, 0.4246, 0.4656),
    "two seeds": ((3.852, 3.816), (3.872, 3.819), float, 0.0115, 0.03204, 2, 0.13784, 0.7540, 0.7580),
    "two seeds as logs": ((3.852, 3.816), (3.872, 3.819), math.log, 0.00298, 0.00834, 2, 0.03588, 0.7548, 0.7588),
    "logits": (ACCURATE, LESS, logit, -1.689, 0.1876, 4, 0.4252, 0.00038, 0.0015),
}


@pytest.mark.parametrize("case", PAIRS)
def test_worked_pairs(case):
    reference, row, scale, d, s, df, half_width, p_adjusted, p_welch = PAIRS[case]
    (contrast,) = judge(table({"reference": map(scale, reference), "row": map(scale, row)}), design="star")
    assert (contrast.df, contrast.blocked, contrast.excluded) == (df, False, ())
    assert contrast.delta == pytest.approx(d, abs=6e-6 if abs(d) < 1 else 6e-4)
    assert contrast.s == pytest.approx(s, abs=6e-6 if s < 0.1 else 6e-5)
    assert contrast.half_width == pytest.approx(half_width, abs=6e-6 if half_width < 0.4 else 6e-5)
    assert contrast.p_adjusted == pytest.approx(p_adjusted, abs=6e-5 if p_adjusted > 0.01 else 6e-6)
    assert contrast.p_welch == pytest.approx(p_welch, abs=6e-5)


@pytest.mark.parametrize("case", PAIRS)
def test_worked_verdicts_of_pairs(case):
    reference, row, scale, d, s, df, half_width, p_adjusted, p_welch = PAIRS[case]
    values = table({"reference": map(scale, reference), "row": map(scale, row)})
    (v,) = judge(values, lower_is_better=case != "logits")
    assert v.verdict == ("worse" if case == "logits" else "within noise")
    (contrast,) = judge(values, design="star")
    assert (v.delta, v.s, v.df, v.half_width) == (contrast.delta, contrast.s, contrast.df, contrast.half_width)
    assert (v.p_adjusted, v.p_welch) == (contrast.p_adjusted, contrast.p_welch)


@pytest.mark.parametrize(
    ("case", "effect", "seeds"), [("nll as logs", 0.00502 / 0.00692, 31), ("two seeds as logs", 0.00298 / 0.00834, 123)]
)
def test_worked_seeds_needed(case, effect, seeds):
    reference, row, scale, *_ = PAIRS[case]
    (v,) = judge(table({"reference": map(scale, reference), "row": map(scale, row)}))
    assert v.seeds_needed.n == seeds_needed(effect) == seeds
    assert v.seeds_needed.least < seeds
    assert v.seeds_needed.most == math.inf, "the interval holds 0"


def test_worked_star_of_five_rows():
    contrasts = {c.row: c for c in judge(table(FIVE), design="star")}
    assert list(contrasts) == ["rmsnorm", "swiglu", "nope", "llama"]
    for c in contrasts.values():
        assert (c.reference, c.family, c.blocked, c.df, c.n, c.n_reference) == ("base", "star", True, 6, 3, 3)
        assert c.s == pytest.approx(0.001528, abs=6e-7)
        assert c.q == pytest.approx(3.263, abs=6e-4)
    for row in ("rmsnorm", "swiglu", "nope"):
        assert contrasts[row].half_width == pytest.approx(0.00407, abs=6e-6)
        assert contrasts[row].excluded == ()
    assert contrasts["llama"].half_width == pytest.approx(0.2176, abs=6e-5)
    assert contrasts["llama"].excluded == ("llama",)
    outside = {row: abs(c.delta) > c.half_width for row, c in contrasts.items()}
    assert outside == {"rmsnorm": False, "swiglu": True, "nope": True, "llama": False}


def test_worked_verdicts_of_the_star():
    verdicts = {v.row: v for v in judge(table(FIVE))}
    assert {row: v.verdict for row, v in verdicts.items()} == {
        "rmsnorm": "within noise",
        "swiglu": "better",
        "nope": "worse",
        "llama": "within noise",
    }
    assert {row: (v.favour, v.pairs) for row, v in verdicts.items()} == {
        "rmsnorm": (3, 3),
        "swiglu": (3, 3),
        "nope": (3, 3),
        "llama": (2, 3),
    }
    assert [row for row, v in verdicts.items() if v.excluded] == ["llama"]


def test_worked_star_without_excluding_llama():
    x = np.array(list(FIVE.values()))
    residual = x - x.mean(0) - x.mean(1, keepdims=True) + x.mean()
    s = math.sqrt((residual**2).sum() / 8)
    half_width = Family((Block("star", (3,) * 5),)).quantile(0.05, 8) * s * math.sqrt(2 / 3)
    assert half_width == pytest.approx(0.0472, abs=6e-5)
    assert half_width > abs(np.mean(FIVE["swiglu"]) - np.mean(BASE))


def test_worked_verdicts_of_the_path():
    verdicts = judge(table({row: FIVE[row] for row in ("base", "rmsnorm", "swiglu", "nope")}), design="path")
    assert [v.verdict for v in verdicts if v.family == "step"] == ["within noise", "better", "worse"]
    assert [v.verdict for v in verdicts if v.family == "total"] == ["within noise", "better", "worse"]


def test_worked_path():
    contrasts = judge(table({row: FIVE[row] for row in ("base", "rmsnorm", "swiglu", "nope")}), design="path")
    assert [(c.family, c.row, c.reference) for c in contrasts] == [
        ("step", "rmsnorm", "base"),
        ("step", "swiglu", "rmsnorm"),
        ("step", "nope", "swiglu"),
        ("total", "rmsnorm", "base"),
        ("total", "swiglu", "base"),
        ("total", "nope", "base"),
    ]
    steps = contrasts[:3]
    for c in steps:
        assert c.q == pytest.approx(3.123, abs=6e-4)
        assert c.half_width == pytest.approx(0.0039, abs=6e-5)
    assert [abs(c.delta) > c.half_width for c in steps] == [False, True, True]
    assert [math.copysign(1, c.delta) for c in steps[1:]] == [-1, 1]
    assert {c.q for c in contrasts[3:]} == {Family((Block("star", (3,) * 4),)).quantile(0.05, 6)}
