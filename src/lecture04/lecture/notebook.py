"""README.md: the notebook, section by section. All links are relative, so that the folder can be copied whole."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lecture04.lecture import plots
from lecture04.lecture.claims import HERE, Claim
from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.finding import Finding, Verdict
from lecture04.lecture.items import ITEMS, Item, Kind
from lecture04.report.environment import environment
from lecture04.report.markdown import markdown
from lecture04.report.table import build

LONG = 16  # a table of more rows is folded
WRITTEN = {Verdict.not_reproduced: "**not reproduced**", Verdict.not_yet: "*not yet judged*"}


@cache
def prose() -> dict[str, Any]:
    """sections.yaml."""
    return yaml.safe_load((HERE / "sections.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Notebook:
    """Everything that the notebook shows. `sections` are those that were asked for in this run."""

    folder: Path
    claims: Sequence[Claim]
    findings: Mapping[str, Finding]
    evidence: Evidence
    sections: Sequence[int]
    command: str
    failed: Mapping[str, str]

    def write(self) -> None:
        """Write README.md, plots/ and tables/; files of an earlier notebook in the two folders are deleted."""
        for name in ("plots", "tables"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir(parents=True)
        blocks = [
            *self._head(),
            *(line for part in sorted({c.part for c in self.claims}) for line in self._section(part)),
        ]
        blocks += [*self._exercises(), *self._files()]
        (self.folder / "README.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

    def _head(self) -> Iterator[str]:
        yield "# The lecture, reproduced"
        yield (
            "Every figure that the lecture computes, run again on this project's own code and held against the "
            "lecture's. A claim is *exact* (a closed form or a fixed computation), *measured* (a training result on "
            "our own Garden World, which must fall in a range) or a *shape* (an ordering or a yes or no over several "
            "seeds, judged by the same statistics as every table). Nothing is made to agree: what does not come out is "
            "shown with our figure and the likely reason. The same, a line per claim, is in [claims.csv](claims.csv)."
        )
        whole, facts = len(self.sections) == len(prose()["sections"]), environment()
        yield "\n".join(
            [
                f"- made by `{self.command}`" + ("" if whole else "; what other sections alone need was not run now"),
                f"- on {date.today().isoformat()}, {facts.pop('machine')}",
                f"- with {', '.join(f'{name} {told}' for name, told in facts.items())}",
            ]
        )
        yield self._summary()
        if missed := [c for c in self.claims if self.findings[c.id].verdict is Verdict.not_reproduced]:
            yield f"**Not reproduced** ({len(missed)}); the likely reasons stand in their sections:"
            yield "\n".join(f"- `{c.id}`, [section {c.part}](#{_anchor(c.part)}): {_escaped(c.what)}" for c in missed)
        if self.failed:
            yield "**Failed** in this run, so that claims wait for it:"
            yield "\n".join(f"- {_escaped(why)}" for why in self.failed.values())

    def _summary(self) -> str:
        lines = ["| section | claims | reproduced | not reproduced | not yet judged |", "|:---|---:|---:|---:|---:|"]
        for part, about in prose()["sections"].items():
            lines.append(self._counts(f"[{part} {about['title']}](#{_anchor(part)})", int(part)))
        return "\n".join([*lines, self._counts("all", None)])

    def _counts(self, name: str, part: int | None) -> str:
        inside = [c for c in self.claims if part in (None, c.part)]
        count = Counter(self.findings[c.id].verdict for c in inside)
        return "| " + " | ".join([name, str(len(inside)), *(str(count[v]) for v in Verdict)]) + " |"

    def _reason(self, claim: Claim) -> str:
        return f"- `{claim.id}` ({_where(claim)}): {_escaped(self.findings[claim.id].reason)}"

    def _section(self, part: int) -> Iterator[str]:
        about = prose()["sections"][str(part)]
        yield f"## {part} {about['title']}"
        yield about["asks"]
        for entry in about["items"]:
            yield from self._item(next(i for i in ITEMS if i.source == entry["item"]), entry)
        yield f"### Claims of section {part}"
        inside = [claim for claim in self.claims if claim.part == part]
        yield self._table(inside)
        if missed := [c for c in inside if self.findings[c.id].verdict is Verdict.not_reproduced]:
            yield "Not reproduced:"
            yield "\n".join(self._reason(claim) for claim in missed)

    def _table(self, inside: Iterable[Claim]) -> str:
        lines = [
            "| claim | | what | lecture | expected of us | ours | verdict |",
            "|:---|:---|:---|:---|:---|:---|:---|",
        ]
        for claim in inside:
            found = self.findings[claim.id]
            cells = [f"`{claim.id}`<br>{_where(claim)}", claim.kind, claim.what, claim.lecture, claim.expected]
            cells = [
                *cells[:2],
                *map(_escaped, cells[2:]),
                _escaped(found.ours),
                WRITTEN.get(found.verdict, found.verdict),
            ]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _item(self, item: Item, entry: Mapping[str, str]) -> Iterator[str]:
        yield f"### {_title(item)}"
        yield f"{entry['reads']} `{command_of(item)}`"
        try:
            text = self._shown(item)
        except NotYetError as e:
            yield f"*Missing: {_escaped(str(e))}.*"
            return
        if plot := self._plot(item, entry.get("plot")):
            yield plot
        yield text
        yield f"All figures: [tables/{item.name}.csv](tables/{item.name}.csv)"

    def _shown(self, item: Item) -> str:
        """An item's table as Markdown, with a probe's sentence, and its figures as a CSV beside the notebook."""
        target, sentence = self.folder / "tables" / f"{item.name}.csv", []
        if item.kind is Kind.sweep:
            results = self.evidence.sweep(item.name)
            text = markdown(build(results))
            results.runs.to_csv(target, index=False)
        else:
            self.evidence.probe(item.name)
            # Without its title and the line that says what made it.
            text = (item.folder / "table.md").read_text(encoding="utf-8").split("\n", 1)[1].rpartition("Made by")[0]
            text, _, said = text.rstrip().rpartition("\n\n- ")
            sentence = [said]
            shutil.copyfile(item.folder / "table.csv", target)
        return "\n\n".join([*map(_folded, _parts(text)), *sentence])

    def _plot(self, item: Item, plot: str | None) -> str | None:
        if plot is None:
            return None
        name = f"plots/{item.name}.png"
        if plot == "probe":
            shutil.copyfile(item.folder / "plot.png", self.folder / name)
        else:
            try:
                plots.save(plots.PLOTS[plot](self.evidence), self.folder / name)
            except NotYetError as e:
                return f"*No plot yet: {_escaped(str(e))}.*"
        return f"![{_title(item)}]({name})"

    def _exercises(self) -> Iterator[str]:
        yield "## Exercises"
        lines = ["| exercise | asks | claims | verdict |", "|---:|:---|:---|:---|"]
        for number, asks in prose()["exercises"].items():
            inside = [claim for claim in self.claims if claim.exercise == number]
            verdicts = [WRITTEN.get(self.findings[c.id].verdict, self.findings[c.id].verdict) for c in inside]
            said = "<br>".join(f"`{c.id}`: {v}" for c, v in zip(inside, verdicts, strict=True))
            parts = ", ".join(str(p) for p in sorted({c.part for c in inside}))
            lines.append(f"| {number} | {_escaped(asks)} | section {parts} | {said} |")
        yield "\n".join(lines)

    def _files(self) -> Iterator[str]:
        yield "## Files"
        yield "\n".join(
            [
                "- [claims.csv](claims.csv): id, section, kind, the lecture's figure, ours, the verdict",
                "- [plots](plots) and [tables](tables): what is shown above, and every figure behind it",
                "- where each claim is judged: `src/lecture04/lecture/judges/`, a file a section",
            ]
        )


def command_of(item: Item) -> str:
    """An item's command, to be typed into a shell."""
    return " ".join(["python", *item.arguments])


def _title(item: Item) -> str:
    kinds = {Kind.sweep: "Table", Kind.probe: "Probe", Kind.test: "Test"}
    return f"{kinds[item.kind]}: {item.name.replace('_', ' ')}"


def _where(claim: Claim) -> str:
    return claim.section if claim.section.startswith("ex") else f"§{claim.section}"


def _anchor(part: int | str) -> str:
    """GitHub's anchor of a section's heading."""
    title = prose()["sections"][str(part)]["title"]
    words = "".join(c for c in f"{part} {title}".lower() if c.isalnum() or c in " -")
    return words.replace(" ", "-")


def _parts(text: str) -> list[tuple[str, str]]:
    """(title, content) of each `## title` of a Markdown text."""
    chunks = [chunk.partition("\n") for chunk in f"\n{text}".split("\n## ")[1:]]
    return [(title.strip(), content.strip()) for title, _, content in chunks]


def _folded(part: tuple[str, str]) -> str:
    """A titled table; a long one unfolds at a click."""
    title, content = part
    rows = sum(line.startswith("|") for line in content.splitlines()) - 2
    if rows <= LONG:
        return f"**{title}**\n\n{content}"
    return f"<details><summary>{title}: {rows} rows</summary>\n\n{content}\n\n</details>"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")
