"""Pages in a real browser: what a reader sees, chooses and sorts, with nothing fetched and no error.

Skipped where no Chromium is installed, unless BROWSER_TESTS=required.
"""

import math
import time

import pytest

from lecture04.report.html import write, write_index
from lecture04.report.results import collect
from lecture04.stats import Log, judge, judged_values

WIDE, PHONE = (1280, 900), (390, 800)


def drawn(page):
    page.wait_for_selector("body[data-drawn=yes]")


def words(page, column="verdict:star"):
    """{row's number: text} of a column of the comparison table, in the order in which the rows stand."""
    return page.evaluate(
        """column => {
            const table = document.querySelector("#verdicts");
            const i = [...table.tHead.rows[0].cells].findIndex(th => th.dataset.column === column);
            const own = td => [...td.childNodes].filter(x => x.className !== "against");
            const text = td => own(td).map(x => x.textContent).join("");
            return [...table.tBodies[0].rows].map(tr => [Number(tr.dataset.row), text(tr.cells[i]).trim()]);
        }""",
        column,
    )


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=[pytest.mark.slow] * ((name, size) != ("path", PHONE)))
        for name in ("star", "path", "grid")
        for size in (WIDE, PHONE)
    ],
)
def test_every_plot_is_drawn_and_the_page_is_no_wider_than_the_screen(visit, pages, name, size):
    page = visit(pages[name], size)
    for figure in page.locator("figure[data-chart]:visible").all():
        assert figure.locator(".plot svg").count() == 1, figure.get_attribute("data-chart")
        assert figure.locator("figcaption b").inner_text()
        box, plot = figure.bounding_box(), figure.locator(".plot svg").bounding_box()
        assert plot["width"] <= box["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    charts = {figure.get_attribute("data-chart") for figure in page.locator("figure[data-chart]:visible").all()}
    assert {"forest", "strip", "val/nll", "train/loss"} <= charts
    assert ("waterfall" in charts) == (name == "path")
    assert ("grid" in charts) == (name == "grid")
    assert ("positions" in charts) == (name == "star")


def test_a_grid_has_a_line_a_row_from_slice_to_slice(visit, recall, choose):
    """Every run that ended is a dot, the slices stand in their order, and a metric that is chosen is drawn."""
    page = visit(write(recall))
    plot = page.locator("figure[data-chart=grid] .plot svg")
    labels = plot.locator(".role-axis-label text").all_text_contents()
    assert [label for label in labels if "pairs" in label] == ["4 pairs", "8 pairs", "16 pairs"]
    names = {"width 128", "width 64", "width 32"}
    assert names <= set(plot.locator(".mark-text.role-mark text").all_text_contents())
    dots = plot.locator(".mark-symbol path")
    ended = sum(math.isfinite(x) for seeds in collect(recall).values("test/ppl").values() for x in seeds.values())
    assert dots.count() == ended
    said = [dot.get_attribute("aria-label") for dot in dots.all()]
    assert sum("16 pairs" in text and "width 64" in text for text in said) == 3
    choose(page, "#metric", "train/nll")
    assert "train" in page.locator("figure[data-chart=grid] figcaption").inner_text()
    page.locator("details.chooser summary").click()
    page.get_by_role("checkbox", name="16 pairs: width 32").uncheck()
    drawn(page)
    assert names - {"width 32"} == names & set(plot.locator(".mark-text.role-mark text").all_text_contents())


def test_names_are_shown_and_not_run(visit, pages, star):
    page = visit(pages["star"])
    evil = next(row for row in collect(star).rows if row.startswith("<script>"))
    assert page.title() != "run"
    assert page.locator("#verdicts tbody th .name").nth(2).inner_text() == evil
    assert page.locator("img").count() == 0
    page.select_option("#baseline", "2")
    drawn(page)
    assert f"each row against {evil};" in page.locator("#verdicts caption").inner_text()
    assert "<b>better</b>" in page.locator("h1").inner_text()
    assert page.title() != "run"


def test_choosing_a_baseline_shows_the_protocols_verdicts_against_it(visit, pages, star):
    page, results = visit(pages["star"]), collect(star)
    for number in (1, 3, 4, 0):
        page.select_option("#baseline", str(number))
        drawn(page)
        scale = Log()
        values = judged_values(results.values("test/ppl"), scale)
        expected = {v.row: v for v in judge(values, baseline=results.rows[number], delta=0.03)}
        shown, differences = dict(words(page)), dict(words(page, "difference:star"))
        assert shown.pop(number) == "baseline"
        assert shown == {results.rows.index(row): v.verdict for row, v in expected.items()}
        for row, v in expected.items():
            text = differences[results.rows.index(row)]
            if math.isnan(v.delta):
                assert text == ""
            else:
                assert text.startswith(f"{scale.difference(v.delta):+.2f}")
        assert page.locator("details.row").nth(number).locator(".brief").inner_text() == "the baseline"


def test_headings_sort_up_down_and_back_and_the_plots_follow(visit, pages):
    page = visit(pages["star"])
    heading = page.locator("#verdicts th[data-column='difference:star']")
    original = [row for row, _ in words(page)]

    def order():
        drawn(page)
        return [(row, float(text.split()[0])) for row, text in words(page, "difference:star") if text]

    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    up = order()
    assert up == sorted(up, key=lambda pair: pair[1])
    labels = page.locator("figure[data-chart=forest] .role-axis-label text").all_text_contents()
    names = page.locator("#verdicts tbody th .name").all_text_contents()
    first = [label for label in labels if not label[-1].isdigit()][:2]
    assert [label[:8] for label in first] == [name[:8] for name in names[:2]]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert order() == up[::-1]
    assert [text for _, text in words(page, "difference:star")][-2:] == ["", ""], "what is not there comes last"
    assert "descending" in page.locator("#said").inner_text()
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") is None
    assert [row for row, _ in words(page)] == original


@pytest.mark.slow
def test_every_heading_sorts_with_the_keyboard(visit, pages):
    page = visit(pages["path"])
    page.locator("#details").check()
    for button in page.locator("th button.sort").all():
        button.focus()
        page.keyboard.press("Enter")
        heading = button.locator("xpath=..")
        assert heading.get_attribute("aria-sort") == "ascending"
        table = heading.locator("xpath=ancestor::table")
        assert table.locator("[aria-sort]").count() == 1
    drawn(page)


@pytest.mark.slow
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(visit, pages):
    page = visit(pages["star"])
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            """() => {
                const e = document.activeElement;
                return [e.id || e.className || e.tagName, getComputedStyle(e).outlineStyle];
            }"""
        )
        reached.add(focus[0])
        assert focus[1] != "none", focus
    assert {"metric", "baseline", "details", "SUMMARY", "scroll", "sort", "A"} <= reached


@pytest.mark.slow
def test_hidden_rows_leave_tables_and_plots(visit, pages):
    page = visit(pages["star"])
    page.locator(".chooser summary").click()
    page.locator("input[name=row][value='3']").uncheck()
    drawn(page)
    assert not page.locator("#verdicts tr[data-row='3']").is_visible()
    assert not page.locator("details.row[data-row='3']").is_visible()
    assert page.locator("#shown").inner_text() == "5 of 6"
    for chart in ("forest", "strip"):
        assert "the same" not in page.locator(f"figure[data-chart={chart}] .plot").inner_text()
    page.locator("#none").click()
    drawn(page)
    assert page.locator("#verdicts tbody tr:visible").count() == 0
    page.locator("#all").click()
    drawn(page)
    assert page.locator("#verdicts tbody tr:visible").count() == 6
    assert "the same" in page.locator("figure[data-chart=strip] .plot").inner_text()


@pytest.mark.slow
def test_values_are_read_on_hover(visit, pages):
    page = visit(pages["star"])
    tip = page.locator("#vg-tooltip-element.visible")
    page.locator("figure[data-chart=forest] .mark-symbol path").first.hover(force=True)
    assert "better" in tip.inner_text()
    assert "a & b <" in tip.inner_text()
    page.locator("figure[data-chart='val/nll'] .mark-symbol path").first.hover(force=True)
    page.wait_for_function("document.querySelector('#vg-tooltip-element').innerText.includes('mean')")
    assert tip.locator("img").count() == 0


@pytest.mark.slow
def test_a_diverged_run_is_a_cross_at_the_edge(visit, pages):
    page = visit(pages["star"])
    figure = page.locator("figure[data-chart=strip]")
    crosses = figure.locator("[aria-roledescription='point']")
    assert crosses.count() == 2
    assert "diverged" in crosses.first.get_attribute("aria-label")
    edge = figure.locator(".plot svg").bounding_box()
    for cross in crosses.all():
        box = cross.bounding_box()
        assert box["x"] > edge["x"] + 0.9 * edge["width"] - 60


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_words_are_legible_in_light_and_dark(visit, pages, scheme):
    """WCAG's contrast of 4.5, of every verdict's word and of a plot's labels on their ground."""
    page = visit(pages["star"], color_scheme=scheme)
    colours = page.evaluate(
        """() => [...document.querySelectorAll("span.verdict, #notes dd, caption, .facts, .plot text")].map(e => {
            const style = getComputedStyle(e), own = style.backgroundColor;
            const ground = own === "rgba(0, 0, 0, 0)" ? getComputedStyle(document.body).backgroundColor : own;
            return [e.namespaceURI.endsWith("svg") ? style.fill : style.color, ground, e.textContent];
        })"""
    )
    assert len(colours) > 20

    def luminance(rgb):
        parts = [int(x) / 255 for x in rgb[rgb.index("(") + 1 : -1].split(",")[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ink, ground, text in colours:
        low, high = sorted([luminance(ink), luminance(ground)])
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ink, ground)
    dark = luminance(colours[0][1]) < 0.5
    assert dark == (scheme == "dark")


@pytest.mark.slow
def test_on_paper_it_is_light_and_whole(visit, pages):
    page = visit(pages["path"], color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".controls").is_visible()
    assert page.locator("#verdicts").is_visible()
    clipped = "[...document.querySelectorAll('.scroll')].some(e => getComputedStyle(e).overflowX !== 'visible')"
    assert not page.evaluate(clipped)
    assert page.pdf(prefer_css_page_size=True)[:5] == b"%PDF-"


def test_without_its_script_the_table_still_stands(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["star"].as_uri())
    assert page.locator("#verdicts span.verdict.better").is_visible()
    assert "is better than base" in page.locator("#answer").inner_text()
    assert page.locator("html").get_attribute("lang") == "en"
    assert not page.locator(".controls").is_visible()
    assert "drawn by the page's script" in page.locator("noscript").inner_text()
    context.close()


@pytest.mark.slow
def test_a_hundred_rows_stay_usable(visit, hundred):
    started = time.monotonic()
    page = visit(write(hundred))
    assert time.monotonic() - started < 30
    started = time.monotonic()
    page.locator("#verdicts th[data-column='difference:star'] button").click()
    assert page.locator("#verdicts th[aria-sort=ascending]").count() == 1
    assert time.monotonic() - started < 5, "the table comes before the plots"
    drawn(page)
    page.select_option("#metric", "train/nll")
    drawn(page)
    assert page.locator("#baseline option[value='57']").is_disabled(), "the table's own baseline alone is there"


@pytest.mark.slow
def test_the_index_sorts_and_leads_to_the_pages(visit, pages, star):
    page = visit(write_index(star.parent))
    assert "is better than base" in page.locator("td.found").first.inner_text()
    page.locator("th button", has_text="question").click()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.locator("tbody a").first.click()
    drawn(page)
    assert page.locator("#verdicts").is_visible()
    page.locator(".path a").click()
    page.wait_for_url("**/index.html")
