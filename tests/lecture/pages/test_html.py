"""The HTML pages, in a real browser: nothing scrolls sideways, nothing is fetched, and a phone can read them.

Skipped where no Chromium is installed, unless BROWSER_TESTS=required.
"""

import re

import pytest

from lecture04.lecture.claims import claims
from lecture04.lecture.finding import Verdict
from lecture04.lecture.pages.html import LOOK_OF, look, table
from lecture04.report.figures.style import LOOKS
from lecture04.report.html import write_index

DESK, PHONE = (1000, 800), (420, 900)
TOO_WIDE = """() => {
    document.querySelectorAll("details").forEach(details => details.open = true);
    const right = document.querySelector("main").getBoundingClientRect().right + 1;
    const wide = [...document.querySelectorAll("table")].filter(
        table => table.getBoundingClientRect().right > right || table.scrollWidth > table.clientWidth + 1);
    const page = document.documentElement;
    return [...wide.map(table => table.textContent.trim().slice(0, 60)),
            ...(page.scrollWidth > innerWidth ? [`page: ${page.scrollWidth}`] : [])];
}"""


@pytest.fixture
def visit(browser):
    """`visit(file, size)`: the page; at the end no error was said and nothing but pages was fetched."""
    contexts, complaints, fetched = [], [], []

    def visit(file, size=DESK, **options):
        contexts.append(browser.new_context(viewport={"width": size[0], "height": size[1]}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(file.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not complaints
    assert all(url.startswith("data:") or url.endswith(".html") for url in fetched)


def test_no_page_and_no_table_is_wider_than_the_screen(visit, written):
    files = sorted(written.glob("*.html"))
    assert len(files) == 8
    for size in (DESK, PHONE):
        for file in files:
            page = visit(file, size)
            assert page.evaluate(TOO_WIDE) == [], (file.name, size)
            page.close()


def test_on_a_phone_a_cell_names_its_column(visit, written):
    page = visit(written / "1-feed-forward.html", PHONE)
    cell = page.locator("table.claims td").nth(1)
    before = cell.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert before == '"ours: "'
    assert not page.locator("table.claims thead").first.is_visible()
    image = page.locator("figure img").first
    assert image.bounding_box()["width"] > 0.9 * (PHONE[0] - 40)


def test_links_lead_to_pages_and_places_that_exist(written):
    pages = {file.name: re.sub(r'"data:[^"]*"', '""', file.read_text("utf-8")) for file in written.glob("*.html")}
    places = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in pages.items()}
    for here, text in pages.items():
        links = re.findall(r'<a href="([^"]+)"', text)
        assert links
        for link in links:
            name, _, place = link.partition("#")
            assert not name or (written / name).exists(), link
            assert not place or place in places[name or here], link


def test_every_picture_is_inside_and_has_words(visit, written, lecture):
    page = visit(written / "5-together.html")
    for picture in page.locator("figure img").all():
        assert picture.evaluate("img => img.naturalWidth") > 600
        assert picture.get_attribute("alt")
    drawn = [p for part in lecture.pages[5].subsections for p in part.pictures if not p.why_not]
    assert page.locator("figure img").count() == len(drawn) >= 4


def test_every_claim_is_on_a_page_with_its_verdict(written, findings):
    pages = {file: file.read_text(encoding="utf-8") for file in written.glob("[0-9]-*.html")}
    for claim in claims():
        assert sum(f"<code>{claim.id}</code>," in text for text in pages.values()) == 1
    for verdict in {found.verdict for found in findings.values()}:
        assert any(f'class="verdict {look(verdict)}"' in text for text in pages.values())


def test_verdicts_of_claims_look_different_and_are_of_the_one_palette():
    assert set(LOOK_OF) == set(Verdict)
    assert set(LOOK_OF.values()) <= set(LOOKS)
    assert len({look(verdict) for verdict in Verdict}) == len(Verdict)


def test_a_table_has_badges_and_runs_nothing():
    html = table(
        "| row | b | verdict |\n|---|---|---|\n| x<script>y</script> | 1 | **better** |\n| y | 2 | within noise |"
    )
    assert '<span class="verdict better">better</span>' in html
    assert '<span class="verdict within">within noise</span>' in html
    assert "<script>" not in html
    assert '<th scope="row">y</th>' in html
    assert 'data-heading="b"' in html


def test_the_index_of_tables_has_a_link_to_the_lecture_where_it_is(tmp_path):
    sweeps, lecture = tmp_path / "sweeps", tmp_path / "lecture"
    sweeps.mkdir()
    assert "lecture/index.html" not in write_index(sweeps).read_text(encoding="utf-8")
    lecture.mkdir()
    (lecture / "index.html").write_text("")
    assert 'href="../lecture/index.html"' in write_index(sweeps).read_text(encoding="utf-8")
