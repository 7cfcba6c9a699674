"""The pages as Markdown for GitHub: README.md, the index, and a file a section. All links are relative."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lecture04.files import write_whole
from lecture04.lecture.finding import Verdict
from lecture04.lecture.pages.model import Lecture, Page, Picture, Source, Subsection, Told, anchor, counted
from lecture04.report.markdown import escaped

INDEX = "README.md"
STRONG = {Verdict.not_reproduced: "**{}**", Verdict.not_yet: "*{}*"}


def write(lecture: Lecture, folder: Path) -> None:
    """Every page."""
    write_whole(folder / INDEX, _text(_index(lecture)))
    for i, page in enumerate(lecture.pages):
        beside = {"before": lecture.pages[i - 1] if i else None, "after": (*lecture.pages, None)[i + 1]}
        write_whole(folder / f"{page.file}.md", _text(_page(lecture, page, **beside)))
    write_whole(folder / "exercises.md", _text(_exercises(lecture)))


def _text(blocks: Iterator[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _index(lecture: Lecture) -> Iterator[str]:
    yield "# The lecture, claim by claim"
    yield f"{escaped(lecture.name)}: {PURPOSE}"
    yield _counts(lecture)
    yield "\n".join(
        [
            f"- {KINDS}",
            f"- {VERDICTS}",
            "- [Exercises](exercises.md): each with the claims that answer it.",
        ]
    )
    if missed := lecture.of(Verdict.not_reproduced):
        yield f"## Not reproduced ({len(missed)})"
        yield "\n".join(f"- {_linked(page, claim)}" for page, claim in missed)
    if by_reading := lecture.of(Verdict.reading):
        yield f"## Reproduced by a reading ({len(by_reading)})"
        yield "\n".join(f"- {_linked(page, claim)}" for page, claim in by_reading)
    if lecture.failed:
        yield "## Failed in this run"
        yield "\n".join(f"- {escaped(why)}" for why in lecture.failed)
    yield "## How the tables are read"
    yield "\n".join(f"- **{escaped(term)}**: {escaped(text)}" for term, text in lecture.reading)
    yield "## How it was made"
    made = lecture.made
    yield "\n".join(
        [
            f"- by `{made['command']}`, on {escaped(made['on'])}",
            f"- with {escaped(made['with'])}",
            "- [claims.csv](claims.csv): a line a claim; [plots](plots) and [tables](tables): every picture, and every "
            "figure behind it",
            "- where each claim is judged: `src/lecture04/lecture/judges/`, a file a section",
        ]
    )


PURPOSE = (
    "each figure of it that was computed is run again here on this project's own code, and each claim stands beside "
    "ours with a verdict. Nothing is made to agree: what does not come out is shown with our figure and the likely "
    "reason."
)
KINDS = (
    "A claim is *exact* (a closed form or a fixed computation), *measured* (a training result, which must fall in a "
    "range) or a *shape* (an ordering or a yes or no over several seeds, by the statistics of the tables)."
)
VERDICTS = (
    "*Reproduced by a reading*: the lecture's words allow several readings, and by the one that is named the claim "
    "holds. *Set*: it holds, and shows nothing, since the claim was used to shape the world."
)


def _counts(lecture: Lecture) -> str:
    lines = [
        "| section | claims | " + " | ".join(Verdict) + " |",
        "|:---|---:|" + "---:|" * len(Verdict),
    ]
    for page in lecture.pages:
        lines.append(_row(f"[{escaped(page.heading)}]({page.file}.md)", page.claims))
    return "\n".join([*lines, _row("**all**", lecture.claims)])


def _row(name: str, claims: Sequence[Told]) -> str:
    return "| " + " | ".join([name, str(len(claims)), *map(str, counted(claims).values())]) + " |"


def _linked(page: Page, claim: Told) -> str:
    """A claim in one line, with the place where it stands."""
    heading = page.place(claim.id)
    reading = f" *({escaped(claim.said)})*" if claim.verdict is Verdict.reading else ""
    return f"[{escaped(heading)}]({page.file}.md#{anchor(heading)}): {escaped(claim.what)}{reading}"


def _page(lecture: Lecture, page: Page, before: Page | None, after: Page | None) -> Iterator[str]:
    beside = [
        f"[The lecture]({INDEX})",
        *([f"before: [{escaped(before.heading)}]({before.file}.md)"] if before else []),
        *([f"next: [{escaped(after.heading)}]({after.file}.md)"] if after else []),
    ]
    yield " · ".join(beside)
    yield f"# {escaped(page.heading)}"
    yield escaped(page.asks)
    counts = [f"{n} {verdict}" for verdict, n in counted(page.claims).items() if n]
    yield f"*{len(page.claims)} claims: {', '.join(counts)}.*"
    for subsection in page.subsections:
        yield from _subsection(subsection)


def _subsection(subsection: Subsection) -> Iterator[str]:
    yield f"## {escaped(subsection.heading)}"
    yield f"*{escaped(subsection.asks)}*"
    for picture in subsection.pictures:
        yield from _picture(picture)
    if subsection.sentences:
        yield escaped(" ".join(subsection.sentences))
    if subsection.claims:
        yield _claims(subsection.claims)
    if reasons := subsection.reasons:
        yield "\n".join(f"- `{claim.id}`, {_verdict(claim)}: {escaped(claim.reason)}" for claim in reasons)
    for source in subsection.sources:
        yield from _source(source)
    for reference in subsection.references:
        yield f"{escaped(reference.title)}: its tables stand in [{escaped(reference.to)}](#{anchor(reference.to)})."


def _picture(picture: Picture) -> Iterator[str]:
    if picture.why_not:
        yield f"*No picture yet: {escaped(picture.why_not)}.*"
        return
    yield f"![{escaped(picture.alt)}]({picture.file})"
    yield f"<sub>{escaped(picture.shows)}</sub>"


def _verdict(claim: Told) -> str:
    return STRONG.get(claim.verdict, "{}").format(escaped(claim.said))


def _claims(claims: Sequence[Told]) -> str:
    lines = ["| claim | lecture | ours | verdict |", "|:---|:---|:---|:---|"]
    for claim in claims:
        about = f"`{claim.id}`, {escaped(claim.where)}, {claim.kind}; expected: {escaped(claim.expected)}"
        cells = [f"{escaped(claim.what)}<br><sub>{about}</sub>", escaped(claim.lecture), escaped(claim.ours)]
        lines.append("| " + " | ".join([*cells, _verdict(claim)]).replace("\n", " ") + " |")
    return "\n".join(lines)


def _source(source: Source) -> Iterator[str]:
    if source.missing:
        yield f"{escaped(source.title)} is missing: {escaped(source.missing)}. It is made by `{source.command}`."
        return
    inside = [f"<details><summary>{escaped(source.title)}: {escaped(source.reads)}</summary>"]
    for table in source.tables:
        inside += [f"**{table.title}**", table.markdown]
    if source.notes:
        inside.append("\n".join(f"- {escaped(note)}" for note in source.notes))
    if source.has_csv:
        inside.append(f"All figures: [tables/{source.name}.csv](tables/{source.name}.csv)")
    yield "\n\n".join([*inside, "</details>"])
    yield f"Made by `{source.command}`"


def _exercises(lecture: Lecture) -> Iterator[str]:
    yield f"[The lecture]({INDEX})"
    yield "# Exercises"
    for exercise in lecture.exercises:
        yield f"## Exercise {exercise.number}"
        yield f"*{escaped(exercise.asks)}*"
        lines = []
        for page, claim in exercise.claims:
            heading = page.place(claim.id)
            link = f"[{escaped(heading)}]({page.file}.md#{anchor(heading)})"
            lines.append(f"- {_verdict(claim)}: {escaped(claim.what)} (`{claim.id}`, {link})")
        yield "\n".join(lines)
