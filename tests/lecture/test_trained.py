"""The judges of measured claims and shapes, on made-up evidence that agrees, that does not, and that is too thin."""

import math
from dataclasses import replace

import pytest

from lecture04.lecture.claims import Kind, claims
from lecture04.lecture.evidence import Evidence

TRAINED = [c.id for c in claims() if c.kind is not Kind.exact or "probe:" not in c.sources[0]]


def test_reproduced_where_the_figures_agree_and_not_where_they_do_not(new_kit, cases):
    is_set = {c.id for c in claims() if c.is_set}
    for claim in TRAINED:
        for agrees, verdict in ((True, "set" if claim in is_set else "reproduced"), (False, "not reproduced")):
            kit = new_kit()
            assert kit.verdict(claim, cases[claim](kit, agrees)) == verdict, claim


def test_every_one_has_evidence_and_no_other(cases):
    assert set(cases) == set(TRAINED)


SWEPT = [c.id for c in claims() if any(source.startswith("sweep:") for source in c.sources)]


@pytest.mark.parametrize("part", range(6))
def test_not_yet_judged_where_a_run_is_missing(part, new_kit, cases):
    for claim in (c.id for c in claims() if c.part == part and c.id in SWEPT):
        one_is_missing(claim, new_kit(), cases)


def one_is_missing(claim, kit, cases):
    evidence = cases[claim](kit, True)
    sweeps = {}
    for name, results in evidence.sweeps.items():
        gone = results.runs.seed == 1
        runs = results.runs.assign(
            metric=results.runs.metric.mask(gone, ""), value=results.runs.value.mask(gone, math.nan)
        )
        runs = runs.assign(status=runs.status.mask(gone, "failed")).drop_duplicates()
        sweeps[name] = replace(results, runs=runs)
    found = kit.finding(claim, replace(evidence, sweeps=sweeps))
    assert found.verdict == "not yet judged", claim
    assert "1 of 3 runs" in found.ours, claim
    assert "failed" in found.ours, claim


def single_seed(results):
    rows = {row: replace(about, runs={0: about.runs[0]}) for row, about in results.manifest.rows.items()}
    return replace(results, manifest=replace(results.manifest, rows=rows), runs=results.runs[results.runs.seed == 0])


def test_not_yet_judged_by_a_single_seed(new_kit, cases):
    for claim in (c.id for c in claims() if c.kind is Kind.shape and c.id in SWEPT):
        kit = new_kit()
        evidence = cases[claim](kit, True)
        sweeps = {name: single_seed(results) for name, results in evidence.sweeps.items()}
        assert kit.verdict(claim, replace(evidence, sweeps=sweeps)) == "not yet judged", claim


@pytest.mark.parametrize("claim", ["recipe_path", "rms_in_noise", "ffn_in_noise", "extrapolation", "scratch_gqa"])
def test_not_reproduced_where_a_run_diverged(claim, kit, cases):
    evidence = cases[claim](kit, True)
    sweeps = {}
    for name, results in evidence.sweeps.items():
        last = results.rows[-1]
        hit = (results.runs.row == last) & (results.runs.seed == 2)
        judged = hit & results.runs.metric.str.contains("nll|ppl|excess")
        runs = results.runs.assign(status=results.runs.status.mask(hit, "diverged"))
        sweeps[name] = replace(results, runs=runs.assign(value=runs.value.mask(judged, math.nan)))
    found = kit.finding(claim, replace(evidence, sweeps=sweeps))
    assert found.verdict == "not reproduced"
    assert "diverged" in found.reason


def test_a_diverged_run_is_called_so_in_words(kit):
    table = {"MHA": kit.around(3.85), "MQA from scratch": [3.83, 3.84, math.nan]}
    results = kit.made_up("uptrain", {"test/ppl": table}, statuses={("MQA from scratch", 2): "diverged"})
    found = kit.finding("mqa_small", Evidence(sweeps={"uptrain": results}))
    assert "MQA from scratch diverged" in found.ours
    assert "nan" not in found.ours + found.reason


def test_a_run_that_diverged_before_its_first_validation_has_collapsed(kit, cases):
    evidence = cases["stability"](kit, True)
    results = evidence.sweep("stability")
    kit.write_curve(results, "2017", 0, [{"step": 50, "train/loss": 4.0}])
    found = kit.finding("stability", evidence)
    assert found.verdict == "reproduced"
    assert "inf" in found.ours
