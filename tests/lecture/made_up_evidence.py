"""Made-up evidence for the judges of measured claims and shapes; conftest.py loads this file.

One function a claim, `claim(kit, agrees)`: what the evidence looks like where the lecture is right, and where not.
"""

import pandas as pd

from lecture04.lecture.evidence import Evidence

CASES = {}


def case(function):
    """Register a function as the evidence of the claim that it is named after."""
    CASES[function.__name__] = function
    return function


# Section 0


def world(kit, **figures):
    of = {"floor": "test", "doc_length": "train"}
    lines = [(claim, "corpus", of[claim], "", None, claim, value) for claim, value in figures.items()]
    return Evidence(probes={"world": kit.rows("claim part split pairing seed quantity value", *lines)})


@case
def floor(kit, agrees):
    return world(kit, floor=3.655 if agrees else 3.2)


@case
def doc_length(kit, agrees):
    return world(kit, doc_length=25.1 if agrees else 31.0)


@case
def unseen_pairs(kit, agrees):
    share = 0.7 if agrees else 0.1
    lines = [
        line
        for seed in range(3)
        for line in (
            ("unseen_pairs", "unseen", seed, "excess_share", share + 0.01 * seed),
            ("unseen_pairs", "unseen", seed, "tokens", 31.5),
            ("", "seen_1", seed, "excess_share", 0.02),
            ("", "seen_3", seed, "excess_share", 0.01),
            ("", "seen_101", seed, "excess_share", 0.87 - share),
            ("", "all", seed, "tokens", 50_000),
        )
    ]
    table = kit.rows("claim pairing seed quantity value", *lines).assign(split="test")
    # The realised excess says the opposite: the expected one decides.
    other = table.assign(part="excess", value=table.value.where(table.quantity != "excess_share", 1 - table.value))
    return Evidence(probes={"world": pd.concat([table.assign(part="expected"), other])})


def norms(kit, layer, rms):
    return Evidence(sweeps={"norm": kit.made_up("norm", {"test/ppl": {"LayerNorm": layer, "RMSNorm": rms}})})


@case
def standard_model(kit, agrees):
    return norms(kit, kit.around(3.85 if agrees else 4.2, 0.01), kit.around(3.85, 0.01))


@case
def seed_noise(kit, agrees):
    return norms(kit, kit.around(3.85, 0.015 if agrees else 0.1), kit.around(3.85, 0.01))


# Section 1


def ffns(kit, metric, swiglu, by):
    table = {
        row: kit.around(value, by) for row, value in zip(("ReLU", "GELU", "SiLU"), (3.83, 3.82, 3.825), strict=True)
    }
    return Evidence(sweeps={"ffn": kit.made_up("ffn", {metric: table | {"SwiGLU": kit.around(swiglu, by)}})})


@case
def ffn_in_noise(kit, agrees):
    return ffns(kit, "test/ppl", 3.82 if agrees else 3.4, 0.01)


@case
def glu_train_loss(kit, agrees):
    return ffns(kit, "train/nll", 3.78 if agrees else 3.84, 0.001)


def sparsity(kit, relu, gelu=0.0, dead=0):
    lines = []
    for row, zeros, n in (("ReLU", relu, dead), ("GELU", gelu, 0), ("SiLU", gelu, 0)):
        for seed in range(3):
            for layer in (1, 2):
                lines.append(("", row, seed, layer, "zero_share", zeros))
                lines.append(("", row, seed, layer, "dead_units", n if layer == 2 else 0))
    return Evidence(probes={"sparsity": kit.rows("claim row seed layer quantity value", *lines)})


@case
def relu_sparsity(kit, agrees):
    return sparsity(kit, 0.6) if agrees else sparsity(kit, 0.6, gelu=0.01)


@case
def no_dead_units(kit, agrees):
    return sparsity(kit, 0.6, dead=0 if agrees else 1)


@case
def relu_high_lr(kit, agrees):
    names = [f"lr {lr}: {ffn}" for lr in ("0.01", "0.03") for ffn in ("ReLU", "GELU")]
    results = kit.made_up("relu_high_lr", {"test/ppl": {row: kit.around(3.98) for row in names}})
    lines = [("", row, 0, 2, "dead_units", 1 if agrees else 40) for row in names]
    table = kit.rows("claim row seed layer quantity value", *lines)
    return Evidence(sweeps={"relu_high_lr": results}, probes={"sparsity_high_lr": table})


# Section 2


def grads(kit, *, last, total, evenness):
    """{placement: {depth: figure}} of each; of evenness {placement: figure} or {placement: {depth: figure}}."""
    lines = []
    for placement, by_depth in last.items():
        for depth, norm in by_depth.items():
            even = evenness[placement]
            even = even[depth] if isinstance(even, dict) else even
            for seed in range(3):
                given = [("layer", depth, norm), ("layer", 1, 1.4), ("total", None, total[placement][depth])]
                # What a seed does to both placements drops out of their ratio; a little of its own is left.
                both, own = 1 + 0.1 * seed, 1 + 0.001 * (seed % 2 if placement == "pre" else -(seed % 2))
                given += [(name, None, even * both * own) for name in ("evenness", "whole_evenness")]
                lines += [("even_layers", placement, depth, seed, *figure) for figure in given]
    table = kit.rows("claim placement n_layers seed quantity layer value", *lines)
    return Evidence(probes={"grad_norms": table, "grad_norms_gelu": table})


def usual_grads(kit, *, pre_last=0.44, pre_total=3.6, post_last=1.0, post_total=8.1, pre_even=1.3):
    return grads(
        kit,
        last={"pre": {2: 0.88, 3: 0.88, 6: 0.87, 24: pre_last}, "post": {2: 1.3, 3: 1.2, 6: 1.1, 24: post_last}},
        total={"pre": {2: 3.4, 3: 3.4, 6: 3.5, 24: pre_total}, "post": {2: 3.5, 3: 4.0, 6: 5.0, 24: post_total}},
        evenness={"pre": pre_even, "post": 1.6},
    )


@case
def post_grads(kit, agrees):
    return usual_grads(kit) if agrees else usual_grads(kit, post_last=0.2)


@case
def pre_grads(kit, agrees):
    return usual_grads(kit) if agrees else usual_grads(kit, pre_total=4.6)


@case
def even_layers(kit, agrees):
    return usual_grads(kit) if agrees else usual_grads(kit, pre_even=1.9)


@case
def unigram(kit, agrees):
    line = ("unigram", "val", "unigram", "perplexity", 44.0 if agrees else 30.0)
    return Evidence(probes={"unigram": kit.rows("claim split model quantity value", line)})


@case
def post_needs_warmup(kit, agrees):
    slices = {
        f"{slice_}: {row}": slice_
        for slice_ in ("lr 1e-3, no warm-up", "lr 1e-3, 200 steps", "lr 5e-3, no warm-up", "lr 5e-3, 200 steps")
        for row in ("pre", "post")
    }
    collapsing = "lr 5e-3, no warm-up: post"
    ends = {row: kit.around(42.0 if row == collapsing and agrees else 4.2, 0.01) for row in slices}
    statuses = {(collapsing, seed): "diverged" for seed in range(3)} if agrees else {}
    results = kit.made_up(
        "warmup", {"val/ppl": ends}, design="grid", slices=slices, statuses=statuses, folder=kit.folder
    )
    for row, values in ends.items():
        for seed, value in enumerate(values):
            kit.write_curve(results, row, seed, [{"step": 250, "val/ppl": 50.0}, {"step": 500, "val/ppl": value}])
    return Evidence(sweeps={"warmup": results}, probes=dict(unigram(kit, True).probes))


@case
def rms_in_noise(kit, agrees):
    return norms(kit, kit.around(3.83, 0.015), kit.around(3.84 if agrees else 4.1, 0.02))


# Section 3


RATED = ("GQA-2, mean, 75", "MQA, mean, 75", "MQA, mean, 250", "MQA, first, 250")


def uptrained(kit, direct=None, later=None, rates=None):
    """The lecture's figures, but for those given; trained on at other rates the rows end alike, unless `rates` says."""
    merged = {
        "MHA": 3.851,
        "GQA-2, mean": 4.658,
        "GQA-2, first": 5.259,
        "GQA-2, random": 12.0,
        "MQA, mean": 9.0,
        "MQA, first": 8.0,
        "MQA, random": 20.0,
    }
    trained = {
        f"{kind}, {how}, {steps}": 3.9
        for kind in ("GQA-2", "MQA")
        for how in ("mean", "first", "random")
        for steps in (75, 250)
    }
    trained |= {
        "MQA, mean, 75": 4.2,
        "GQA-2, mean, 75": 3.852,
        "MQA, mean, 250": 3.86,
        "GQA-2 from scratch": 3.850,
        "MQA from scratch": 3.827,
    }
    trained |= later or {}
    held = {f"{row}, {rate}": trained[row] for row in RATED for rate in ("held", "tenth")}
    sweeps = {}
    for name, table in (
        ("uptrain_direct", merged | (direct or {})),
        ("uptrain", {"MHA": 3.851} | trained),
        ("uptrain_rates", {"MHA": 3.851} | held | (rates or {})),
    ):
        sweeps[name] = kit.made_up(name, {"test/ppl": {row: kit.around(value, 0.004) for row, value in table.items()}})
    return Evidence(sweeps=sweeps)


@case
def uptrain_direct(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, {"GQA-2, mean": 5.5})


@case
def uptrain_5pct(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, later={"GQA-2, mean, 75": 4.0})


@case
def uptrain_mqa_first(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, {"MQA, first": 9.9})


@case
def uptrain_250(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, later={"MQA, mean, 250": 3.901})


@case
def scratch_gqa(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, later={"GQA-2 from scratch": 3.95})


@case
def mqa_small(kit, agrees):
    return uptrained(kit) if agrees else uptrained(kit, later={"MQA from scratch": 3.95})


# Section 4

RANGES = ("0-63", "64-127", "128-255", "256-511")


def read_far(kit, nope=0.1, **other):
    excess = {
        "sinusoidal": [0.05, 1.0, 2.0, 3.0],
        "learned": [0.05, 2.0, 3.0, 4.0],
        "T5": [0.05, 0.06, 0.1, 0.2],
        "RoPE": [0.05, 0.06, 0.08, 0.1],
        "NoPE": [nope, 0.3, 0.6, 0.9],
        "ALiBi": [0.05, 0.05, 0.04, 0.04],
    } | other
    values = {
        f"test/{kind}@{where}": {row: kit.around(xs[i] + (1.3 if kind == "nll" else 0)) for row, xs in excess.items()}
        for i, where in enumerate(RANGES)
        for kind in ("nll", "excess")
    }
    return kit.made_up("extrapolation", values)


@case
def extrapolation(kit, agrees):
    results = read_far(kit) if agrees else read_far(kit, ALiBi=[0.05, 0.2, 0.3, 0.4])
    return Evidence(sweeps={"extrapolation": results})


@case
def nope_by_document(kit, agrees):
    table = {row: kit.around(3.84, 0.01) for row in ("NoPE", "sinusoidal", "learned", "T5", "ALiBi")}
    table["RoPE"] = kit.around(3.84 if agrees else 3.6, 0.01)
    by_document = kit.made_up("nope_by_document", {"test/ppl": table})
    return Evidence(sweeps={"nope_by_document": by_document, "extrapolation": read_far(kit)})


# Section 5

PATH = ("2017", "+ pre-norm", "+ RMSNorm", "+ SwiGLU", "+ RoPE", "+ GQA", "+ no biases")


def path(kit, ppl=(3.82,) * 7, pronouns=(0.986, 0.986, 0.985, 0.984, 0.998, 0.998, 0.998), kv=(256,) * 6 + (128,)):
    values = {
        "test/ppl": {row: kit.around(x, 0.01) for row, x in zip(PATH, ppl, strict=True)},
        "pronouns/accuracy": {row: kit.around(x, 0.0007) for row, x in zip(PATH, pronouns, strict=True)},
        "pronouns/n": {row: [1500.0] * 3 for row in PATH},
        "kv_per_token": {row: [float(x)] * 3 for row, x in zip(PATH, kv, strict=True)},
    }
    return Evidence(sweeps={"recipe": kit.made_up("recipe", values, design="path")})


@case
def recipe_path(kit, agrees):
    return path(kit) if agrees else path(kit, ppl=(3.82, 3.82, 3.82, 3.82, 3.6, 3.6, 3.6))


@case
def recipe_ends(kit, agrees):
    return path(kit) if agrees else path(kit, ppl=(3.82, 3.8, 3.78, 3.75, 3.7, 3.65, 3.6))


@case
def possessives(kit, agrees):
    return path(kit) if agrees else path(kit, pronouns=(0.99,) * 7)


@case
def possessives_level(kit, agrees):
    return path(kit) if agrees else path(kit, pronouns=(0.9,) * 7)


@case
def kv_per_token(kit, agrees):
    return path(kit, kv=(256,) * 6 + (128 if agrees else 64,))


@case
def stability(kit, agrees):
    ends = {"2017": kit.around(45.3, 0.1), "Llama": kit.around(3.9 if agrees else 7.0, 0.01)}
    statuses = {("2017", seed): "diverged" for seed in range(3)}
    results = kit.made_up("stability", {"val/ppl": ends}, statuses=statuses, folder=kit.folder)
    for row, values in ends.items():
        for seed, value in enumerate(values):
            steps = [{"step": step, "train/loss": 2 - step / 1000} for step in range(50, 501, 50)]
            kit.write_curve(
                results, row, seed, [*steps, {"step": 250, "val/ppl": 60.0}, {"step": 500, "val/ppl": value}]
            )
    return Evidence(sweeps={"stability": results})


@case
def textbook_equal(kit, agrees):
    same = {"perplexity_ours": 3.8, "perplexity_theirs": 3.8, "trained": 1.0}
    return Evidence(tests={"textbook": same | {"largest_difference": 0.0 if agrees else 1e-6}})
