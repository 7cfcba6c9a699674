"""What stands on a page: every claim once, its figures, its pictures, and the commands."""

from dataclasses import replace

import pytest

from lecture04.lecture.claims import claims
from lecture04.lecture.finding import Finding, Verdict
from lecture04.lecture.items import ITEMS
from lecture04.lecture.pages import prose
from lecture04.lecture.pages.build import placed, where
from lecture04.lecture.pages.model import anchor, counted
from lecture04.lecture.pages.sentences import SENTENCES
from lecture04.lecture.plots import PLOTS


def subsections():
    return [part for section in prose()["sections"].values() for part in section["subsections"]]


def test_every_claim_has_one_place():
    for number, section in prose()["sections"].items():
        own = [claim for claim in claims() if claim.part == int(number)]
        found = placed(own, section["subsections"])
        assert sorted(claim.id for part in found for claim in part) == sorted(claim.id for claim in own)
        lacking = [part for part, inside in zip(section["subsections"], found, strict=True) if not inside]
        assert not any(part["number"] for part in lacking), "one of the lecture's without a claim"


def test_a_claim_without_a_place_is_named():
    lost = replace(claims()[0], section="9.9")
    with pytest.raises(ValueError, match=f"{lost.id}: no subsection of section 0 takes §9.9"):
        placed([lost], prose()["sections"]["0"]["subsections"])


def test_the_subsections_stand_in_the_lectures_order():
    for number, section in prose()["sections"].items():
        numbers = [part["number"] for part in section["subsections"] if part["number"]]
        assert numbers == sorted(numbers)
        assert all(n.startswith(f"{number}.") for n in numbers)


def test_every_plot_and_sentence_is_shown_and_every_one_that_is_named_exists():
    assert {entry["plot"] for part in subsections() for entry in part.get("pictures", ())} == set(PLOTS)
    assert {name for part in subsections() for name in part.get("says", ())} == set(SENTENCES)
    known = {item.source for item in ITEMS}
    assert {source for part in subsections() for source in part.get("also", ())} <= known


def test_an_item_that_stands_elsewhere_stands_before():
    for section in prose()["sections"].values():
        stood: set[str] = set()
        for part in section["subsections"]:
            assert set(part.get("also", ())) <= stood
            stood |= {entry["item"] for entry in part.get("items", ())}


def test_every_page_has_its_claims_and_says_what_made_it(lecture, builder, findings):
    assert [claim.id for claim in lecture.claims] == [told.id for page in lecture.pages for told in page.claims]
    assert {claim.id for claim in lecture.claims} == {claim.id for claim in claims()}
    for told in lecture.claims:
        assert told.ours == findings[told.id].ours
        assert told.said == findings[told.id].said
    sources = [source for page in lecture.pages for part in page.subsections for source in part.sources]
    assert all(source.command.startswith(("python ", "make ")) for source in sources)
    assert all(source.tables or source.missing or source.notes for source in sources)
    there = {source.name for source in sources if source.has_csv}
    assert {path.stem for path in (builder.folder / "tables").iterdir()} == there
    assert "CMU 11-667" in lecture.name
    assert "Jaromir Savelka and Yubin Kim" in lecture.name


def test_what_is_missing_is_said(lecture, builder):
    pictures = {p.name: p for page in lecture.pages for part in page.subsections for p in part.pictures}
    assert "probe kv cache" in pictures["kv_cache"].why_not.replace("_", " ")
    assert not (builder.folder / pictures["kv_cache"].file).exists()
    drawn = [p for p in pictures.values() if not p.why_not]
    assert {"recipe", "seeds", "ffn", "warmup", "stability", "rope_decay", "excess", "zeros"} <= {p.name for p in drawn}
    assert {path.stem for path in (builder.folder / "plots").iterdir()} == {p.name for p in drawn}


def test_no_plot_failed(lecture):
    for page in lecture.pages:
        for part in page.subsections:
            assert not [p.why_not for p in part.pictures if "cannot read" in p.why_not]


def test_a_plot_that_fails_stops_no_other(builder, monkeypatch):
    monkeypatch.setitem(PLOTS, "norm", lambda evidence: 1 / 0)
    about = next(entry for part in subsections() for entry in part.get("pictures", ()) if entry["plot"] == "norm")
    assert "ZeroDivisionError" in builder.picture(about).why_not


def test_sentences_are_computed(lecture):
    page = lecture.pages[5]
    (recipe,) = [part for part in page.subsections if part.number == "5.2"]
    assert recipe.sentences[0].startswith(("None of the six steps", "RoPE", "pre-norm"))
    assert any(sentence.startswith("By pronouns") for sentence in recipe.sentences)
    world = lecture.pages[0].subsections
    assert "What world says." in world[0].sentences
    assert "Over 3 seeds" in world[1].sentences[0]


def test_the_five_verdicts_are_counted_apart(builder):
    ids = [claim.id for claim in claims()][: len(Verdict)]
    given = {id: Finding("ours", verdict, "why", "a reading") for id, verdict in zip(ids, Verdict, strict=True)}
    other = replace(builder, findings={**builder.findings, **given})
    told = [other.told(claim) for claim in claims() if claim.id in given]
    assert counted(told) == dict.fromkeys(Verdict, 1)
    assert "reproduced (reading: a reading)" in [claim.said for claim in told]


def test_where_a_claim_stands_in_the_lecture():
    assert {where(claim) for claim in claims() if claim.id in ("floor", "mqa_small")} == {"§4.5", "exercise 8"}


def test_anchors_are_githubs():
    assert anchor("4.4 RoPE: positions as rotations") == "44-rope-positions-as-rotations"
