"""Claims that hold by one reading of the lecture's words and not by another, and shares over ten seeds."""

from dataclasses import replace

import pytest
from scipy import stats

from lecture04.lecture import fresh, ledger
from lecture04.lecture.claims import claims
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.finding import Verdict, by_readings
from lecture04.lecture.items import ITEMS, chosen
from lecture04.lecture.judges.compare import lecture_noise
from lecture04.lecture.judges.norm import paired_p_below
from lecture04.lecture.judges.shares import Share


@pytest.fixture
def uptrained(cases):
    """The maker of the evidence on uptraining."""
    return cases["uptrain_direct"].__globals__["uptrained"]


HOLDS, FAILS, OPEN = (True, "unused"), (False, "it does not"), (None, "more seeds are needed")


@pytest.mark.parametrize(
    ("plain", "other", "verdict", "reading"),
    [
        (HOLDS, HOLDS, Verdict.reproduced, ""),
        (HOLDS, FAILS, Verdict.reading, "plain"),
        (FAILS, HOLDS, Verdict.reading, "other"),
        (OPEN, HOLDS, Verdict.reading, "other"),
        (FAILS, FAILS, Verdict.not_reproduced, ""),
        (OPEN, FAILS, Verdict.not_yet, ""),
    ],
)
def test_a_verdict_over_readings(plain, other, verdict, reading):
    found = by_readings("ours", {"plain": [HOLDS, plain], "other": [other, HOLDS]})
    assert (found.verdict, found.reading) == (verdict, reading)
    for name, check in (("plain", plain), ("other", other)):
        assert (f"{name}: {check[1]}" in found.reason) == (check is not HOLDS)


@pytest.mark.parametrize(
    ("shared", "reading", "verdict"),
    [
        (HOLDS, HOLDS, Verdict.reproduced),
        (FAILS, HOLDS, Verdict.not_reproduced),
        (OPEN, HOLDS, Verdict.not_yet),
        (OPEN, FAILS, Verdict.not_reproduced),
        (FAILS, OPEN, Verdict.not_reproduced),
    ],
)
def test_what_has_to_hold_whatever_the_reading_is_said_once(shared, reading, verdict):
    found = by_readings("ours", {"plain": [reading], "other": [reading]}, shared)
    assert found.verdict is verdict
    if shared is not HOLDS and reading is HOLDS:
        assert found.reason == f"{shared[1]}."


def test_what_is_too_long_to_run_with_the_rest_is_read_and_not_run():
    long = {item.source for item in ITEMS if item.target}
    assert long
    asked = [claim for claim in claims() if long & set(claim.sources)]
    assert asked
    assert not long & {item.source for item in chosen(asked)}
    for claim in asked:
        assert set(claim.sources) - long, f"{claim.id} cannot be judged without what is not run"


# How many of ten seeds collapse in each row of sweep collapse.
NONE = {"pre-norm": 0, "post-norm (2017)": 0, "post-norm with warm-up": 0, "Llama": 0}


def ten_seeds(kit, **counts):
    """The sweep, with so many runs of some rows diverged."""
    shares = NONE | {"post-norm (2017)": counts.pop("post")} | counts
    ends = {row: kit.around(4.2)[:1] * 10 for row in shares}
    statuses = {(row, seed): "diverged" for row, m in shares.items() for seed in range(m)}
    return kit.made_up("collapse", {"val/ppl": ends}, statuses=statuses)


def finished(results, row, seed):
    """The same results, with one diverged run finished."""
    runs = results.runs
    return replace(
        results, runs=runs.assign(status=runs.status.mask((runs.row == row) & (runs.seed == seed), "finished"))
    )


SWEEPS = {"post_needs_warmup": ("warmup", "lr 5e-3, no warm-up: post"), "stability": ("stability", "2017")}


@pytest.mark.parametrize("claim", SWEEPS)
@pytest.mark.parametrize(
    ("few", "many", "verdict"),
    [
        (3, None, "reproduced"),
        (2, None, "not yet judged"),
        (0, None, "not reproduced"),
        (3, {"post": 10}, "reproduced"),
        (3, {"post": 9}, "reproduced (reading: a tendency)"),
        (2, {"post": 7}, "reproduced (reading: a tendency)"),
        (2, {"post": 5}, "not reproduced"),  # told apart from 0 of 10, and not most
        (2, {"post": 8, "pre-norm": 7, "Llama": 7}, "not reproduced"),  # most, and no more than elsewhere
    ],
)
def test_a_collapse_is_a_tendency_where_most_runs_and_few_others_do(claim, few, many, verdict, kit, cases):
    name, row = SWEEPS[claim]
    evidence = cases[claim](kit, True)
    results = evidence.sweep(name)
    for seed in range(few, 3):
        results = finished(results, row, seed)
        if claim == "post_needs_warmup":
            kit.write_curve(results, row, seed, [{"step": 500, "val/ppl": 4.2}])
    sweeps = {**evidence.sweeps, name: results} | ({"collapse": ten_seeds(kit, **many)} if many else {})
    found = kit.finding(claim, replace(evidence, sweeps=sweeps))
    assert found.said == verdict
    if many:
        post, other = many["post"], many.get("Llama", 0)
        p = stats.fisher_exact([[post, 10 - post], [other, 10 - other]], alternative="greater")[1]
        assert f"{post} of 10" in found.ours
        assert f"p = {p:.2g}" in found.ours
    if verdict == "not yet judged":
        assert "2 of 3 runs collapse" in found.reason


def test_a_share_has_its_exact_interval():
    low, high = stats.binomtest(7, 10).proportion_ci(0.95, method="exact")
    assert Share("post", 7, 10).written() == f"7 of 10 (95 %: {100 * low:.0f} to {100 * high:.0f} %)"


def test_a_missing_run_of_the_ten_seeds_leaves_the_claim_open(kit, cases):
    evidence = cases["stability"](kit, True)
    results = ten_seeds(kit, post=9)
    gone = (results.runs.row == "Llama") & (results.runs.seed == 4)
    ten = replace(results, runs=results.runs.assign(status=results.runs.status.mask(gone, "failed")))
    found = kit.finding("stability", replace(evidence, sweeps={**evidence.sweeps, "collapse": ten}))
    assert found.verdict == "not yet judged"
    assert "1 of 10 runs of 'Llama'" in found.ours


def test_the_ledger_names_the_target_that_makes_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    long = [item for item in ITEMS if item.target]
    with fresh.composing():
        found = ledger.evidence(long)
    for item in long:
        assert f"(make {item.target})" in found.why[item.source]


# What sweep uptrain has where a claim about it fails in every reading of the rate that stands there, and the lecture's.
AGREE = {"GQA-2, mean, 75": 3.852, "MQA, mean, 75": 4.2, "MQA, mean, 250": 3.86, "MQA, first, 250": 3.9}
FAIL = {"GQA-2, mean, 75": 4.3, "MQA, mean, 75": 4.2, "MQA, mean, 250": 3.95, "MQA, first, 250": 3.9}


@pytest.mark.parametrize("claim", ["uptrain_5pct", "uptrain_mqa_first", "uptrain_250"])
@pytest.mark.parametrize(
    ("holds_at", "said"),
    [
        (("", ", held", ", tenth"), "reproduced"),
        ((", held",), "reproduced (reading: rate held"),
        ((", tenth",), "reproduced (reading: a tenth of the rate"),
        ((), "not reproduced"),
    ],
)
def test_a_learning_rate_that_the_lecture_does_not_state_is_a_reading(claim, holds_at, said, kit, uptrained):
    at = {ending: AGREE if ending in holds_at else FAIL for ending in ("", ", held", ", tenth")}
    rates = {row + ending: x for ending in (", held", ", tenth") for row, x in at[ending].items()}
    found = kit.finding(claim, uptrained(kit, later=at[""], rates=rates))
    assert found.said.startswith(said)
    assert found.said == said or len(holds_at) == 1


def test_an_ordering_in_every_model_is_a_reading_where_the_models_differ_widely(kit, uptrained):
    evidence = uptrained(kit)

    def merged(*first):
        results = evidence.sweep("uptrain_direct")
        values = results.values("test/ppl")
        table = {row: list(seeds.values()) for row, seeds in values.items()} | {"GQA-2, first": list(first)}
        return replace(evidence, sweeps={**evidence.sweeps, "uptrain_direct": kit.made_up("x", {"test/ppl": table})})

    mean = max(evidence.sweep("uptrain_direct").values("test/ppl")["GQA-2, mean"].values())
    alike = kit.finding("uptrain_direct", merged(mean * 1.01, mean * 1.1, mean * 1.6))
    assert alike.said == "reproduced (reading: in every model)"
    assert "told apart: " in alike.reason
    other = kit.finding("uptrain_direct", merged(mean * 0.9, mean * 1.1, mean * 1.6))
    assert other.verdict == "not reproduced"
    assert "2 of 3 models" in other.reason


@pytest.mark.parametrize(
    ("by", "said"), [(1.1, "reproduced (reading: rate decaying, the seeds' spread)"), (1.3, "not")]
)
def test_a_gap_is_near_in_terms_of_the_spread_of_the_originals_seeds(by, said, kit, uptrained):
    evidence = uptrained(kit)
    sweeps = dict(evidence.sweeps)
    for name in ("uptrain", "uptrain_rates"):
        means = {row: sum(seeds.values()) / 3 for row, seeds in evidence.sweep(name).values("test/ppl").items()}
        alike = [-0.004, 0.0, 0.004]  # what a seed does to every row, so that a pair of rows differs by little else
        near = {row: means["MHA"] + by * 0.008 for row in means if row.startswith("GQA-2, mean, 75")}
        table = {
            row: [x + seed + noise for seed, noise in zip(alike, kit.around(0, 1e-5), strict=True)]
            for row, x in (means | near).items()
        }
        sweeps[name] = kit.made_up(name, {"test/ppl": table})
    found = kit.finding("uptrain_5pct", replace(evidence, sweeps=sweeps))
    assert found.said.startswith(said)


@pytest.mark.parametrize(
    ("dead", "said"),
    [
        ((0, 0, 0), "reproduced"),
        ((0, 1, 40), "reproduced (reading: the middle seed)"),
        ((1, 40, 40), "not reproduced"),
    ],
)
def test_one_seed_whose_units_die_is_no_tendency(dead, said, kit, cases):
    evidence = cases["relu_high_lr"](kit, True)
    table = evidence.probe("sparsity_high_lr")
    row = table["row"].iloc[0]
    # A layer each: what dies in one layer of one seed and another layer of another seed is not added up.
    of_row = [("", row, seed, layer, "dead_units", n * (layer - 1)) for seed, n in enumerate(dead) for layer in (1, 2)]
    others = [tuple(line) for line in table[table["row"] != row].itertuples(index=False)]
    made = kit.rows("claim row seed layer quantity value", *of_row, *others)
    assert kit.finding("relu_high_lr", replace(evidence, probes={"sparsity_high_lr": made})).said == said


@pytest.mark.parametrize(
    ("lead", "said"), [(0.5, "reproduced (reading: the lecture's seeds)"), (1.5, "not reproduced"), (0, "reproduced")]
)
def test_a_lead_under_what_two_of_the_lectures_seeds_differ_by_is_a_reading(lead, said, kit, cases):
    evidence = cases["nope_by_document"](kit, True)
    rows = evidence.sweep("nope_by_document").rows
    table = {row: kit.around(3.84, 0.0005) for row in rows} | {
        "RoPE": kit.around(3.84 * (1 - lead * lecture_noise()), 0.0005)
    }
    by_document = kit.made_up("nope_by_document", {"test/ppl": table})
    found = kit.finding(
        "nope_by_document", replace(evidence, sweeps={**evidence.sweeps, "nope_by_document": by_document})
    )
    assert found.said == said


@pytest.mark.parametrize(
    ("pre", "said"),
    [
        ({24: 1.3, 3: 1.1}, "reproduced"),
        ({24: 1.9, 3: 1.1}, "reproduced (reading: 3 layers, FFN matrices)"),
        ({24: 1.9, 3: 1.6}, "not reproduced"),  # as even as in post-norm
    ],
)
def test_how_even_layers_are_is_read_at_two_depths(pre, said, kit, cases):
    grads = cases["even_layers"].__globals__["grads"]
    any_norm = {p: {3: 1.0, 24: 1.0} for p in ("pre", "post")}
    evidence = grads(kit, last=any_norm, total=any_norm, evenness={"pre": pre, "post": {3: 1.6, 24: 1.6}})
    assert kit.finding("even_layers", evidence).said == said


def test_the_paired_p_is_students():
    xs, ys = [1.1, 1.3, 1.2, 1.6], [1.2, 1.35, 1.5, 1.65]
    assert paired_p_below(xs, ys) == pytest.approx(stats.ttest_rel(xs, ys, alternative="less").pvalue)


def test_the_activation_is_a_reading_of_pre_grads(kit, cases):
    usual_grads = cases["pre_grads"].__globals__["usual_grads"]
    plain, other = (usual_grads(kit, pre_total=total).probe("grad_norms") for total in (6.0, 3.6))
    found = kit.finding("pre_grads", Evidence(probes={"grad_norms": plain, "grad_norms_gelu": other}))
    assert found.said == "reproduced (reading: GELU from 6 layers)"
    assert "ReLU from 2 layers: the total grows" in found.reason
