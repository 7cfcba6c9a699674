"""A table as a piece of HTML, for a notebook's cell: the page's table with its style, without the page's script."""

from markupsafe import Markup

from lecture04.report.answer import answer
from lecture04.report.comparison import Judged
from lecture04.report.html.page import environment_of, palette, source
from lecture04.report.html.views import View, shown
from lecture04.report.results import Results

OWN = """
& { background: var(--paper); color: var(--ink); padding: 0.2rem 0.4rem; }
p { margin: 0.2rem 0; }
.title { font-weight: 600; }
button.sort { font: inherit; color: inherit; pointer-events: none; }
summary { cursor: pointer; }
dl > div { margin: 0.2rem 0; max-width: 60rem; }
dt { display: inline; font-weight: 600; }
dt::after { content: ": "; }
dd { display: inline; margin: 0; }
"""
"""Of the cell alone: nothing there can be sorted, and the page's style.css would reach all of the notebook."""


def fragment(results: Results, judged: Judged) -> str:
    """The answer, the table and its legend, in an element of their own; `judged` is the table's primary metric."""
    view = View(results, judged, results.rows[0])
    return (
        environment_of()
        .get_template("fragment.html.jinja")
        .render(style=Markup(_style()), title=results.manifest.title, answer=answer(results, judged), shown=shown(view))  # noqa: S704
    )


def _style() -> str:
    """The table's style, for what lies within our element: the page's root is that element here."""
    rules = "\n".join([*palette(), source("table.css"), OWN])
    return f".lecture04 {{\n{rules.replace(':root', '&')}}}"
