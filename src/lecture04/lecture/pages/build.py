"""From evidence and findings to pages: what sections.yaml names, in its order, with its figures."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lecture04.lecture.claims import HERE, Claim
from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.finding import Finding
from lecture04.lecture.items import ITEMS, Item, Kind
from lecture04.lecture.pages import sentences, tables
from lecture04.lecture.pages.model import Exercise, Lecture, Page, Picture, Reference, Source, Subsection, Told
from lecture04.lecture.plots import PLOTS, save
from lecture04.report.environment import environment
from lecture04.report.html import PAGE

KINDS = {Kind.sweep: "Table", Kind.probe: "Probe", Kind.test: "Test"}


@cache
def prose() -> dict[str, Any]:
    """sections.yaml."""
    return yaml.safe_load((HERE / "sections.yaml").read_text(encoding="utf-8"))


def lecture_name() -> str:
    """The lecture by its course, number, title and authors."""
    about = prose()["lecture"]
    return f"{about['course']}, lecture {about['number']}, {about['title']}, by {' and '.join(about['by'])}"


def where(claim: Claim) -> str:
    """`§1.3`, or `exercise 5`."""
    is_exercise = claim.section.startswith("ex ")
    return claim.section.replace("ex ", "exercise ") if is_exercise else f"§{claim.section}"


def command_of(item: Item) -> str:
    """An item's command, to be typed into a shell; of one that is run by itself the target of the Makefile."""
    return f"make {item.target}" if item.target else " ".join(["python", *item.arguments])


def title_of(item: Item) -> str:
    """`Probe kv cache`."""
    return f"{KINDS[item.kind]} {item.name.replace('_', ' ')}"


@dataclass(frozen=True)
class Builder:
    """Makes pages, and writes into `folder` the plots and tables that they show.

    `sections` are those that were asked for in this run, `known` the items that there are.
    """

    folder: Path
    claims: Sequence[Claim]
    findings: Mapping[str, Finding]
    evidence: Evidence
    sections: Sequence[int]
    command: str
    failed: Mapping[str, str]
    known: Sequence[Item] = ITEMS

    def lecture(self) -> Lecture:
        """All pages; files of earlier ones in plots/ and tables/ are deleted."""
        for name in ("plots", "tables"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir(parents=True)
        pages = [self._page(number, about) for number, about in prose()["sections"].items()]
        return Lecture(
            name=lecture_name(),
            pages=pages,
            exercises=[self._exercise(pages, number, asks) for number, asks in prose()["exercises"].items()],
            reading=[(str(term), text) for term, text in prose()["reading"]],
            made=self._made(),
            failed=list(self.failed.values()),
        )

    def _made(self) -> dict[str, str]:
        whole, facts = len(self.sections) == len(prose()["sections"]), environment()
        partly = "" if whole else "; what other sections alone need was not run now"
        return {
            "command": f"{self.command}{partly}",
            "on": f"{date.today().isoformat()}, {facts.pop('machine')}",
            "with": ", ".join(f"{name} {told}" for name, told in facts.items()),
        }

    def _exercise(self, pages: Sequence[Page], number: int, asks: str) -> Exercise:
        own = {claim.id for claim in self.claims if claim.exercise == number}
        return Exercise(number, asks, [(page, told) for page in pages for told in page.claims if told.id in own])

    def _page(self, number: str, about: Mapping[str, Any]) -> Page:
        own = [claim for claim in self.claims if claim.part == int(number)]
        stand = placed(own, about["subsections"])
        headings: dict[str, str] = {}  # of the items whose tables stood already
        made = []
        for subsection, inside in zip(about["subsections"], stand, strict=True):
            made.append(self._subsection(subsection, inside, headings))
            headings |= {entry["item"]: made[-1].heading for entry in subsection.get("items", ())}
        return Page(f"{number}-{about['name']}", number, about["title"], about["asks"], made)

    def _subsection(self, about: Mapping[str, Any], inside: Sequence[Claim], stood: Mapping[str, str]) -> Subsection:
        entries = about.get("items", ())
        items = [(self._item(entry["item"]), entry) for entry in entries]
        said = [*self._own_sentences(about), *(s for item, entry in items for s in self._sentences(item, entry))]
        also = [self._item(source) for source in about.get("also", ())]
        return Subsection(
            number=about["number"],
            title=about["title"],
            asks=about["asks"],
            pictures=[self.picture(entry) for entry in about.get("pictures", ())],
            sentences=said,
            claims=[self.told(claim) for claim in inside],
            sources=[self._source(item, entry["reads"]) for item, entry in items],
            references=[Reference(title_of(item), stood[item.source]) for item in also],
        )

    def _item(self, source: str) -> Item:
        """An item that a page names; of the project's, where this run knows it not."""
        return next(item for item in (*self.known, *ITEMS) if item.source == source)

    def told(self, claim: Claim) -> Told:
        """A claim with its verdict."""
        found = self.findings[claim.id]
        return Told(
            id=claim.id,
            where=where(claim),
            kind=claim.kind,
            what=claim.what,
            lecture=claim.lecture,
            expected=claim.expected,
            ours=found.ours,
            verdict=found.verdict,
            said=found.said,
            reason="" if found.reason == found.ours else found.reason,
        )

    def picture(self, about: Mapping[str, str]) -> Picture:
        """A plot, drawn; an error in one does not stop the others."""
        name, shows = about["plot"], about["shows"]
        picture = Picture(name, shows, alt=str(PLOTS[name].__doc__).partition("\n")[0])
        try:
            save(PLOTS[name](self.evidence), self.folder / picture.file)
        except NotYetError as e:
            return replace(picture, why_not=str(e).rstrip("."))
        except Exception as e:
            return replace(picture, why_not=f"the plot cannot read its evidence: {type(e).__name__}: {e}")
        return picture

    def _own_sentences(self, about: Mapping[str, Any]) -> Iterator[str]:
        for name in about.get("says", ()):
            try:
                yield sentences.SENTENCES[name](self.evidence)
            except NotYetError:
                continue  # the subsection's claims say why

    def _sentences(self, item: Item, about: Mapping[str, Any]) -> Iterator[str]:
        """What an item's own sentence says, unless it is `silent` here."""
        if about.get("silent") or item.kind is Kind.test:
            return
        try:
            if item.kind is Kind.sweep:
                yield from sentences.of_sweep(self.evidence.sweep(item.name), about.get("judged", ()))
            else:
                self.evidence.probe(item.name)
                yield tables.of_probe(item)[1]
        except NotYetError:
            return  # said beside the item's command

    def _source(self, item: Item, reads: str) -> Source:
        """What an item made, with its figures as a CSV beside the pages."""
        bare = Source(item.name, title_of(item), reads, command_of(item))
        target = self.folder / "tables" / f"{item.name}.csv"
        try:
            if item.kind is Kind.test:
                recorded = self.evidence.test(item.name)
                return replace(bare, notes=[f"{what}: {value:g}" for what, value in recorded.items()])
            if item.kind is Kind.probe:
                self.evidence.probe(item.name)
                found, _ = tables.of_probe(item)
                shutil.copyfile(item.folder / "table.csv", target)
                return replace(bare, tables=found, has_csv=True)
            results = self.evidence.sweep(item.name)
        except NotYetError as e:
            return replace(bare, missing=str(e).rstrip("."))
        results.runs.to_csv(target, index=False)
        page = Path("..") / "sweeps" / item.name / PAGE
        report = page.as_posix() if (self.folder / page).exists() else ""
        return replace(bare, tables=tables.of_sweep(results), notes=tables.notes(results), has_csv=True, report=report)


def placed(claims: Sequence[Claim], subsections: Sequence[Mapping[str, Any]]) -> list[list[Claim]]:
    """The claims of one section, a list for each of its subsections. Raises ValueError for one that has no place."""
    takes = [{about["number"], *about.get("takes", ())} for about in subsections]
    found: list[list[Claim]] = [[] for _ in subsections]
    for claim in claims:
        place = next((i for i, sections in enumerate(takes) if claim.section in sections), None)
        if place is None:
            raise ValueError(f"{claim.id}: no subsection of section {claim.part} takes §{claim.section}")
        found[place].append(claim)
    return found
