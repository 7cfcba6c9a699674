"""The first screen of a page, in a real browser: the answer, the forest and the table, and what a choice changes.

Skipped where no Chromium is installed, unless BROWSER_TESTS=required.
"""

import itertools

import pytest

from lecture04.report.html import write_index
from lecture04.report.results import collect

FOLD, SMALL = (1400, 900), (420, 900)
NO_VERDICTS = "Uncorrected across metrics: no verdicts."


@pytest.mark.slow
def test_another_baseline_is_said_to_be_one_more_look(visit, pages, choose):
    page = visit(pages["star"])
    assert "one more look" in page.locator("#looks").inner_text()
    assert not page.locator("#remark").is_visible()
    said = page.locator("#answer").inner_text()
    choose(page, "#baseline", "3")
    remark = page.locator("#remark").inner_text()
    assert "declares base as its baseline" in remark
    assert "one more look at the same seeds" in remark
    assert page.locator("#answer").inner_text() == said, "the table's answer is against its own baseline"
    choose(page, "#baseline", "0")
    assert not page.locator("#remark").is_visible()


def test_another_metric_has_intervals_and_no_verdicts(visit, pages, choose):
    """On the primary metric alone is a difference called; its colours go with its words."""
    page = visit(pages["star"])
    before = page.locator("figure[data-chart=strip] svg").inner_html()
    assert page.locator("#verdicts span.verdict.better").is_visible()
    choose(page, "#metric", "train/nll")
    assert "train NLL" in page.locator("#verdicts thead").inner_text()
    assert NO_VERDICTS in page.locator("#remark").inner_text()
    assert page.locator("#verdicts span.verdict").filter(visible=True).count() == 0
    assert "verdict" not in page.locator("#verdicts thead").inner_text()
    beside = page.locator("figure[data-chart=forest] .mark-text.role-mark text").all_text_contents()
    shown = page.locator("#verdicts tbody").inner_text() + "".join(beside)
    assert not [word for word in ("better", "worse", "within", "unconfirmed", "equivalent") if word in shown]
    drawn_in = page.locator("figure[data-chart=forest] .plot").inner_html()
    assert "var(--better)" not in drawn_in
    assert "var(--worse)" not in drawn_in
    differences = page.locator("#verdicts td.difference").all_inner_texts()
    assert all("[" in text and "±" not in text for text in differences[1:4])
    assert "Every seed: train NLL" in page.locator("figure[data-chart=strip] figcaption").inner_text()
    assert page.locator("figure[data-chart=strip] svg").inner_html() != before
    assert "Metric: train NLL" in page.locator("#said").inner_text()
    choose(page, "#metric", "test/ppl")
    assert page.locator("#verdicts span.verdict.better").is_visible()


def test_sentence_forest_and_table_stand_above_the_fold(visit, pages):
    """Of a table of seven rows, on a screen of 1400 x 900."""
    page = visit(pages["recipe"], FOLD)
    assert "this table finds" in page.locator("#answer").inner_text()
    places = [page.locator(what).first.bounding_box() for what in ("#answer", "figure[data-chart=forest]", "#verdicts")]
    assert all(box["y"] + box["height"] < FOLD[1] for box in places)
    assert [box["y"] for box in places] == sorted(box["y"] for box in places)
    table = page.locator("#verdicts")
    assert table.locator("tbody tr").count() == 7
    assert table.bounding_box()["width"] <= page.locator("[aria-label='Comparison table']").bounding_box()["width"]
    assert page.locator("#verdicts th:visible").all_inner_texts()[:7] == [
        "row", "test ppl (n)", "excess, nats", "step: vs row before, %", "step: verdict", "total: vs 2017, %",
        "total: verdict",
    ]  # fmt: skip
    assert not page.locator("#notes").is_visible(), "the legend is folded"
    page.locator("#details").check()
    assert {"step: Welch p", "seed 0"} <= {*page.locator("#verdicts thead th:visible").all_inner_texts()}
    page.locator("nav a", has_text="What it means").click()
    assert page.locator("#notes").is_visible()


def test_a_phone_shows_the_verdicts_without_scrolling_sideways(visit, pages):
    page = visit(pages["recipe"], SMALL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for cell in page.locator("#verdicts td.verdict:visible").all():
        box = cell.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= SMALL[0]
    assert page.locator("#verdicts span.verdict.better:visible").count() == 1
    scroll = page.locator("[aria-label='Comparison table']")
    assert scroll.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.locator("#details").check()
    assert page.locator("#verdicts td.mean").first.is_visible()


@pytest.mark.slow
def test_each_row_says_what_changed_and_after_sorting_from_which_row(visit, pages):
    page = visit(pages["recipe"], FOLD)
    rope = page.locator("#verdicts tbody tr[data-row='4']")
    assert rope.locator(".changed").inner_text() == "posenc: sinusoidal → rope"
    assert page.locator("#verdicts tbody tr[data-row='6'] .changed").inner_text() == "model.bias: true → false"
    step = rope.locator("td.difference:not(.total)")
    assert not step.locator(".against").is_visible(), "it stands below the row"
    page.locator("#verdicts th[data-column='difference:step'] button").click()
    assert step.locator(".against").inner_text() == "vs + SwiGLU"
    assert rope.locator("td.difference.total .against").count() == 0, "the heading names it"
    page.locator("#verdicts th[data-column='difference:step'] button").click()
    page.locator("#verdicts th[data-column='difference:step'] button").click()
    assert not step.locator(".against").is_visible()
    page.locator(".chooser summary").click()
    page.locator("input[name=row][value='3']").uncheck()
    assert step.locator(".against").inner_text() == "vs + SwiGLU", "the row before is hidden"


@pytest.mark.slow
def test_the_forest_has_every_seed_as_a_dot_and_says_which_side_is_better(visit, pages, recipe):
    page = visit(pages["recipe"], FOLD)
    figure = page.locator("figure[data-chart=forest][data-family=step]")
    assert "(left is better)" in figure.locator(".plot").inner_text()
    assert "each less the same seed of the row before" in figure.locator("figcaption").inner_text()
    dots = figure.locator("[aria-roledescription='circle']")
    assert dots.count() == 6 * 3
    raw = collect(recipe).values("test/ppl")
    expected = 100 * (raw["+ RoPE"][1] / raw["+ SwiGLU"][1] - 1)
    labels = [dot.get_attribute("aria-label") for dot in dots.all()]
    (said,) = [text for text in labels if "+ RoPE" in text and "seed: 1" in text]
    assert float(said.split("difference: ")[1].split()[0]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_curves_are_labelled_at_their_ends_and_show_the_best_possible(visit, pages):
    page = visit(pages["recipe"], FOLD)
    figure = page.locator("figure[data-chart='val/nll']")
    labels = {}
    for text in figure.locator(".mark-text.role-mark text").all():
        labels[text.text_content()] = text.bounding_box()
    assert labels.pop("best possible: 1.2")
    assert {*labels} == {"2017", "+ pre-norm", "+ RMSNorm", "+ SwiGLU", "+ RoPE", "+ GQA", "+ no biases"}
    tops = sorted(box["y"] for box in labels.values())
    assert all(b - a > 10 for a, b in itertools.pairwise(tops)), "no two labels overlap"
    dashes = {line.get_attribute("stroke-dasharray") for line in figure.locator(".mark-line path").all()}
    assert len(dashes) == 6
    assert "(lower is better)" in figure.locator(".plot").inner_text()
    assert "best possible: test ppl 3.004" in page.locator("header").inner_text()


@pytest.mark.slow
def test_the_index_fits_a_phone(visit, pages, star):
    page = visit(write_index(star.parent), SMALL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for part in ("a", ".question", ".found", ".when", ".many"):
        box = page.locator(f"tbody {part}").first.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= SMALL[0], part
