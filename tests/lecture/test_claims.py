"""The claims as data: all there, each with a judge, none with words that are not ours to use."""

import ast
import re
import string
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lecture04.config.registry import names
from lecture04.lecture import judges  # noqa: F401  registers them
from lecture04.lecture.claims import claims
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.finding import JUDGES
from lecture04.lecture.items import ITEMS, Kind, chosen
from lecture04.lecture.ledger import judge
from lecture04.lecture.pages import prose

# Every claim that the project answers for; kept apart from claims.yaml, so that none can drop out of it unseen.
IDS = [
    "gelu_tanh_gap",
    "gelu_minimum",
    "silu_minimum",
    "swish_limits",
    "silu_derivative",
    "relu_dead_side",
    "ffn_plain_256",
    "ffn_swiglu_256",
    "ffn_swiglu_171",
    "eight_thirds",
    "bilinear_quadratic",
    "llama_d_ff",
    "llama2_7b",
    "ffn_in_noise",
    "glu_train_loss",
    "relu_sparsity",
    "no_dead_units",
    "relu_high_lr",
    "norm_scale",
    "norm_shift",
    "rms_reference",
    "rms_centred",
    "rms_params",
    "residual_paths",
    "post_grads",
    "pre_grads",
    "even_layers",
    "unigram",
    "post_needs_warmup",
    "rms_in_noise",
    "kv_formula",
    "llama2_70b_mha",
    "mistral_kv",
    "mla_576",
    "cached_equals_full",
    "groups_are_heads",
    "mla_absorb",
    "mla_rope_clash",
    "mla_decoupled",
    "uptrain_direct",
    "uptrain_5pct",
    "uptrain_mqa_first",
    "uptrain_250",
    "scratch_gqa",
    "t5_buckets",
    "rope_relative",
    "rope_rotations",
    "alibi_slopes",
    "order_blind",
    "rope_length",
    "additive_absolute",
    "rope_decay",
    "rope_layouts",
    "shift_invariance",
    "extrapolation",
    "nope_by_document",
    "mqa_small",
    "models_table",
    "recipe_path",
    "recipe_ends",
    "possessives",
    "possessives_level",
    "stability",
    "kv_per_token",
    "floor",
    "doc_length",
    "standard_model",
    "seed_noise",
    "unseen_pairs",
    "textbook_equal",
]


def test_every_claim_is_there_once():
    assert sorted(claim.id for claim in claims()) == sorted(IDS)


def test_what_shaped_the_world_reads_set_where_it_holds_and_is_not_forced():
    """floor holds or not by the same judge; where it does, that shows nothing of the project."""
    floor = next(claim for claim in claims() if claim.id == "floor")
    found = {}
    for value in (floor.bounds["low"] + 0.01, floor.bounds["high"] + 0.01):
        columns = ["claim", "part", "split", "quantity", "value"]
        table = pd.DataFrame([("floor", "corpus", "test", "true_ppl", value)], columns=columns)
        evidence = Evidence(probes={"world": table.assign(pairing="", seed=0)})
        found[value] = judge([floor], evidence)["floor"].verdict, judge([replace(floor, is_set=False)], evidence)
    (set_, plain), (failed, _) = found.values()
    assert (set_, plain["floor"].verdict, failed) == ("set", "reproduced", "not reproduced")
    shaped = {claim.id for claim in claims() if claim.is_set}
    assert {"floor", "doc_length", "unseen_pairs", "possessives_level"} <= shaped
    assert "possessives" not in shaped, "which part makes the difference was not set"


def test_every_claim_has_a_judge_and_every_judge_a_claim():
    assert set(JUDGES) == set(IDS)


def test_every_claim_is_complete():
    for claim in claims():
        assert 10 < len(claim.what) < 200, claim.id
        assert claim.expected, claim.id
        assert re.fullmatch(r"\d\.\d(, \d\.\d)*|ex \d", claim.section), claim.id
        if claim.section.startswith("ex"):
            assert claim.section == f"ex {claim.exercise}"
        assert all(source in {item.source for item in ITEMS} for source in claim.sources), claim.id


def test_nothing_is_judged_without_evidence():
    for claim, found in judge(claims(), Evidence()).items():
        assert found.verdict == "not yet judged", claim
        assert "has not been run" in found.ours, claim


def test_items_are_named_once_and_run_after_what_they_read():
    order = [item.source for item in ITEMS]
    assert len(set(order)) == len(order)
    assert len({(item.kind, item.name) for item in ITEMS}) == len(ITEMS)
    for item in ITEMS:
        assert all(order.index(needed.source) < order.index(item.source) for needed in item.needs)
    sweeps = set(names("probe"))
    assert {item.arguments[1].partition("=")[2] for item in ITEMS if item.kind is Kind.probe} <= sweeps


def test_every_item_serves_a_claim_and_is_shown():
    sources = {source for claim in claims() for source in claim.sources}
    assert sources == {item.source for item in ITEMS} - {"sweep:worlds"}, (
        "which is shown beside the lecture's one world"
    )
    parts = [part for section in prose()["sections"].values() for part in section["subsections"]]
    shown = {entry["item"] for part in parts for entry in part.get("items", ())}
    assert shown == {item.source for item in ITEMS}


def test_a_section_brings_what_its_items_read():
    of_section_1 = [item.source for item in chosen(c for c in claims() if c.part == 1)]
    assert of_section_1.index("sweep:ffn") < of_section_1.index("probe:sparsity")
    assert "sweep:recipe" not in of_section_1
    of_world = [item.source for item in chosen(c for c in claims() if c.id == "floor")]
    assert of_world == ["sweep:norm", "probe:world"]


def test_every_exercise_has_a_row_with_a_claim():
    assert list(prose()["exercises"]) == list(range(1, 10))
    assert {claim.exercise for claim in claims()} - {None} == set(range(1, 10))


def test_prose_and_claims_have_the_same_sections():
    assert list(prose()["sections"]) == sorted({str(claim.part) for claim in claims()}) == list("012345")


def leaves(content):
    """Every value of nested bounds."""
    if isinstance(content, dict | list):
        inside = content.values() if isinstance(content, dict) else content
        return [leaf for value in inside for leaf in leaves(value)]
    return [content]


def test_a_number_of_a_claim_stands_once():
    """In its bounds, and not spelled again in the sentence around them. 0 and 1 are in too many words."""
    for claim in claims():
        prose = "".join(text for text, *_ in string.Formatter().parse(claim.template))
        spelled = {float(number) for number in re.findall(r"(?<![\w./-])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w-])", prose)}
        inside = leaves(dict(claim.bounds))
        numbers = {abs(leaf) for leaf in inside if not isinstance(leaf, str)}
        assert not spelled & numbers - {0.0, 1.0}, claim.id
        assert not [leaf for leaf in inside if isinstance(leaf, str) and re.match(r"[-+]?\d", leaf)], claim.id


def test_what_is_expected_has_its_numbers():
    for claim in claims():
        assert "{" not in claim.expected, claim.id
        fields = {name for _, name, *_ in string.Formatter().parse(claim.template) if name}
        assert fields <= set(claim.bounds), claim.id


def test_numbers_are_written_as_in_the_lecture():
    about = replace(
        claims()[0], template="{a:.0e} {b} {c:.1%} {d}", bounds={"a": 1e-5, "b": 33088, "c": 0.5, "d": [1, 0.5]}
    )
    assert about.expected == "1e-5 33088 50.0 % 1, 0.5"


JUDGES_FILES = sorted(Path(judges.__file__).parent.glob("*.py"))
# Numbers that judges may hold: counts of a few, numbers of digits, a unit of memory, a percent, every table's level.
NO_THRESHOLDS = {0, 1, 2, 4, 1024, 100, 0.05}


def test_judges_take_their_thresholds_from_the_claims():
    for file in JUDGES_FILES:
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        numbers = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) in (int, float)}
        assert not numbers - NO_THRESHOLDS, file.stem


def test_every_bound_is_read_by_a_judge():
    sources = "".join(file.read_text(encoding="utf-8") for file in JUDGES_FILES)
    of_formats = ("mla_absorb", "mla_decoupled")  # their bounds are named after the number formats of a table
    unread = [
        (claim.id, name)
        for claim in claims()
        if claim.id not in of_formats
        for name in claim.bounds
        if f'["{name}"]' not in sources and f"['{name}']" not in sources
    ]
    assert not unread
