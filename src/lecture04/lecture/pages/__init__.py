"""The pages of the lecture: one model (model.py), built from evidence and findings (build.py), and two writers of it.

sections.yaml names what stands on each page; tables.py and sentences.py say it; markdown.py and html.py write it.
"""

from pathlib import Path

from lecture04.lecture.pages import html, markdown
from lecture04.lecture.pages.build import Builder, prose

__all__ = ["Builder", "prose", "write"]


def write(builder: Builder) -> Path:
    """Write plots/, tables/, and every page as Markdown and as HTML. Returns the index that a browser opens."""
    lecture = builder.lecture()
    markdown.write(lecture, builder.folder)
    html.write(lecture, builder.folder)
    return builder.folder / html.INDEX
