"""The Markdown pages: links that lead somewhere, and nothing that breaks a table."""

import re

import pytest

from lecture04.lecture.claims import claims
from lecture04.lecture.finding import Verdict
from lecture04.lecture.pages import prose
from lecture04.lecture.pages.markdown import _claims
from lecture04.lecture.pages.model import Told, anchor


def anchors(text):
    return {anchor(re.sub(r"\\(.)", r"\1", heading)) for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def test_every_link_leads_somewhere(written):
    for file in written.glob("*.md"):
        text = file.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert links
        for link in links:
            name, _, place = link.partition("#")
            target = written / name if name else file
            assert target.exists(), link
            if place:
                assert place in anchors(target.read_text(encoding="utf-8")), link


def test_a_page_a_section_in_the_lectures_order(written):
    index = (written / "README.md").read_text(encoding="utf-8")
    assert "CMU 11-667, Fall 2025, lecture 4" in index
    names = [f"{number}-{about['name']}.md" for number, about in prose()["sections"].items()]
    assert re.findall(r"^\| \[[^]]*\]\(([^)]+)\)", index, re.M) == names
    for name, (_, about) in zip(names, prose()["sections"].items(), strict=True):
        text = (written / name).read_text(encoding="utf-8")
        headings = [f"{part['number']} {part['title']}".strip() for part in about["subsections"]]
        assert re.findall(r"^## (.*)$", text, re.M) == headings


def test_every_claim_has_a_row_of_four_cells_and_stands_before_the_folded_tables(written):
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(written.glob("[0-9]-*.md")))
    for claim in claims():
        (line,) = [line for line in text.splitlines() if line.startswith("|") and f"`{claim.id}`, " in line]
        assert len(re.findall(r"(?<!\\)\|", line)) == 5
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        assert part.find("| claim |") < part.find("<details>") or "<details>" not in part


def test_tables_are_folded(written):
    for file in written.glob("[0-9]-*.md"):
        outside = re.sub(r"<details>.*?</details>", "", file.read_text(encoding="utf-8"), flags=re.S)
        heads = re.findall(r"^(\| .*)\n\|\s*:?-", outside, re.M)
        assert set(heads) == {"| claim | lecture | ours | verdict |"}


def test_the_index_counts_every_verdict(written, findings):
    (line,) = [x for x in (written / "README.md").read_text().splitlines() if x.startswith("| **all** |")]
    counts = [sum(found.verdict is verdict for found in findings.values()) for verdict in Verdict]
    assert [int(cell) for cell in line.strip("| ").split(" | ")[1:]] == [len(claims()), *counts]


@pytest.mark.parametrize("evil", ["|f| < 2 * x", "a\nb", "<script>", "[x](y)"])
def test_nothing_in_a_cell_breaks_its_table(evil):
    told = Told("id", "§1", "exact", evil, evil, evil, evil, Verdict.reproduced, "reproduced", "")
    *_, line = _claims([told]).splitlines()
    assert line.startswith("| ")
    assert len(re.findall(r"(?<!\\)\|", line)) == 5
    assert "<script>" not in line


def test_the_pages_name_no_place_of_this_machine(written):
    for file in written.rglob("*"):
        if file.suffix in (".md", ".html", ".csv"):
            assert str(written.parent) not in file.read_text(encoding="utf-8"), file
