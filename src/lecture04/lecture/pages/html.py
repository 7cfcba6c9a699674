"""The same pages as HTML in the style of the tables' pages: each is one file, with its pictures inside."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from lecture04.files import write_whole
from lecture04.lecture.finding import Verdict
from lecture04.lecture.pages.model import Lecture, Page, Picture, anchor, counted
from lecture04.report.figures.style import LOOKS, kind
from lecture04.report.html import INDEX
from lecture04.report.html.page import look_name, render

TEMPLATES = Path(__file__).parent / "templates"
# A claim's verdict looks like that of a difference: there is one palette (report/figures/style.py).
LOOK_OF = {
    Verdict.reproduced: "equivalent",
    Verdict.reading: "unconfirmed",
    Verdict.set: "within noise",
    Verdict.not_reproduced: "worse",
    Verdict.not_yet: "single run",
}


def write(lecture: Lecture, folder: Path) -> None:
    """Every page; `index.html` is the index."""
    tables = folder.parent / "sweeps" / INDEX
    common: dict[str, Any] = {
        "lecture": lecture,
        "verdicts": list(Verdict),
        "counted": counted,
        "look": look,
        "anchor": anchor,
        "tables": f"../sweeps/{INDEX}" if tables.exists() else "",
    }
    write_whole(folder / INDEX, _page("lecture_index.html.jinja", **common))
    write_whole(folder / "exercises.html", _page("lecture_exercises.html.jinja", **common))
    for i, page in enumerate(lecture.pages):
        beside = {"before": lecture.pages[i - 1] if i else None, "after": (*lecture.pages, None)[i + 1]}
        own = {
            "page": page,
            "image": {p.name: image(folder, p) for p in _pictures(page)},
            "table": table,
            "inline": inline,
        }
        write_whole(folder / f"{page.file}.html", _page("lecture_page.html.jinja", **common, **own, **beside))


def _page(template: str, **values: Any) -> str:
    style = (TEMPLATES / "lecture.css").read_text(encoding="utf-8")
    return render(template, scripts=[], templates=TEMPLATES, style=style, **values)


def _pictures(page: Page) -> Iterator[Picture]:
    for subsection in page.subsections:
        yield from (picture for picture in subsection.pictures if not picture.why_not)


def image(folder: Path, picture: Picture) -> str:
    """A picture as a `data:` address, so that a page is one file."""
    return f"data:image/png;base64,{base64.b64encode((folder / picture.file).read_bytes()).decode()}"


def look(verdict: Verdict) -> str:
    """The class of a claim's verdict."""
    return look_name(LOOK_OF[verdict])


def table(markdown: str) -> Markup:
    """A table of Markdown as HTML: each cell with its column's heading, for narrow screens; verdicts as badges."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    headings: list[str] = []
    column = 0
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            headings.append(_plain(tokens[i + 1]))
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            if column:
                token.attrSet("data-heading", headings[column])
            else:
                # The rows' names.
                token.tag = tokens[i + 2].tag = "th"
                token.attrSet("scope", "row")
            column += 1
            if kind(_plain(tokens[i + 1])) in LOOKS:
                tokens[i + 1].children = [_badge(_plain(tokens[i + 1]))]
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 (Markdown without HTML)


def inline(markdown: str) -> Markup:
    """One line of Markdown as HTML."""
    return Markup(MarkdownIt("commonmark", {"html": False}).renderInline(markdown))  # noqa: S704 (Markdown without HTML)


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _badge(verdict: str) -> Token:
    name = look_name(kind(verdict))
    return Token("html_inline", "", 0, content=f'<span class="verdict {name}">{escape(verdict)}</span>')
