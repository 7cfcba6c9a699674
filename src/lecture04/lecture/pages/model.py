"""What a page shows, as plain text: markdown.py and html.py write it, and know nothing of the lecture.

Tables alone are Markdown already, since a probe's table lies on the disk as such.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lecture04.lecture.finding import Verdict


@dataclass(frozen=True)
class Told:
    """A claim with its verdict, `said` in words; `where` is the place in the lecture."""

    id: str
    where: str
    kind: str
    what: str
    lecture: str
    expected: str
    ours: str
    verdict: Verdict
    said: str
    reason: str


@dataclass(frozen=True)
class Picture:
    """A plot of plots/. `shows`: how it is read; `alt`: what it is of, for who does not see it.

    `why_not` says why there is none yet.
    """

    name: str
    shows: str
    alt: str = ""
    why_not: str = ""

    @property
    def file(self) -> str:
        """From the pages' folder."""
        return f"plots/{self.name}.png"


@dataclass(frozen=True)
class Folded:
    """One table in GitHub's Markdown. The first column names the rows."""

    title: str
    markdown: str


@dataclass(frozen=True)
class Source:
    """One command and what it made.

    name      of the item, and of its file in tables/
    title     `Table recipe`
    reads     what the tables hold
    notes     what is to be known of single rows
    report    the page of a sweep, from the pages' folder; empty where there is none
    missing   why there is nothing to show
    has_csv   whether every figure lies in tables/
    """

    name: str
    title: str
    reads: str
    command: str
    tables: Sequence[Folded] = ()
    notes: Sequence[str] = ()
    report: str = ""
    missing: str = ""
    has_csv: bool = False


@dataclass(frozen=True)
class Reference:
    """An item whose tables stand in another subsection of the same page."""

    title: str
    to: str


@dataclass(frozen=True)
class Subsection:
    """The question, the pictures that answer it, a few sentences, the claims, and what made it all."""

    number: str
    title: str
    asks: str
    pictures: Sequence[Picture]
    sentences: Sequence[str]
    claims: Sequence[Told]
    sources: Sequence[Source]
    references: Sequence[Reference] = ()

    @property
    def heading(self) -> str:
        """`1.3 A comparison on the Garden World`."""
        return f"{self.number} {self.title}".strip()

    @property
    def reasons(self) -> list[Told]:
        """The claims for which there is something to say beside the verdict."""
        return [claim for claim in self.claims if claim.reason]


@dataclass(frozen=True)
class Page:
    """One section of the lecture; `file` is the page's name without its ending."""

    file: str
    number: str
    title: str
    asks: str
    subsections: Sequence[Subsection]

    @property
    def heading(self) -> str:
        """`1 Feed-forward layers`."""
        return f"{self.number} {self.title}"

    @property
    def claims(self) -> list[Told]:
        """All of them, in order."""
        return [claim for subsection in self.subsections for claim in subsection.claims]

    def place(self, claim: str) -> str:
        """The heading below which a claim stands."""
        return next(s.heading for s in self.subsections if claim in [told.id for told in s.claims])


@dataclass(frozen=True)
class Exercise:
    """An exercise with the claims that answer it, each with the page that it stands on."""

    number: int
    asks: str
    claims: Sequence[tuple[Page, Told]]


@dataclass(frozen=True)
class Lecture:
    """Everything.

    name      the lecture's own
    reading   (term, what it means): how the tables are read
    made      (what, with what): how the pages were made
    failed    what failed in this run, a sentence each
    """

    name: str
    pages: Sequence[Page]
    exercises: Sequence[Exercise]
    reading: Sequence[tuple[str, str]]
    made: Mapping[str, str]
    failed: Sequence[str]

    @property
    def claims(self) -> list[Told]:
        """All of them, in the order of the pages."""
        return [claim for page in self.pages for claim in page.claims]

    def of(self, verdict: Verdict) -> list[tuple[Page, Told]]:
        """The claims with a verdict, each with its page."""
        return [(page, claim) for page in self.pages for claim in page.claims if claim.verdict is verdict]


def counted(claims: Iterable[Told]) -> dict[Verdict, int]:
    """How many have each verdict."""
    count = Counter(claim.verdict for claim in claims)
    return {verdict: count[verdict] for verdict in Verdict}


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading; ours have the same."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in " -_").replace(" ", "-")
