"""`lecture04 lecture`: arguments, the run, the ledger, the pages, and the summary that is printed."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lecture04.cli.parser import Parser
from lecture04.config import messages
from lecture04.config.messages import UserError
from lecture04.config.places import IS_CHECKOUT
from lecture04.files import write_whole
from lecture04.lecture import fresh, ledger
from lecture04.lecture.claims import Claim, claims
from lecture04.lecture.finding import Finding, Verdict
from lecture04.lecture.items import ITEMS, Item, chosen
from lecture04.lecture.pages import Builder, prose, write
from lecture04.lecture.running import perform
from lecture04.report.html import write_index

OUTPUTS = Path("outputs/lecture")
PROGRAM = "lecture04 lecture"
USAGE = """\
Runs everything that the lecture computes, judges each of its claims, and writes outputs/lecture/: a page a section, as
HTML (index.html) and as Markdown (README.md); claims.csv, a line per claim; plots/, tables/ and logs/. Results that are
up to date are not made again. With sections, only what their claims need is run; the pages always have all sections.
"""


def sections(words: Sequence[str]) -> list[int]:
    """The sections asked for; all where none is named. Raises UserError for one that does not exist."""
    known = {part: about["title"] for part, about in prose()["sections"].items()}
    if wrong := [word for word in words if word not in known]:
        choices = ", ".join(f"{part} ({title})" for part, title in known.items())
        raise UserError(f"{wrong[0]}: there is no such section. Choices: {choices}.")
    return sorted({int(word) for word in words or known})


def make(
    asked: Sequence[int], items: Sequence[Item], outputs: Path, command: str, known: Sequence[Item] = ITEMS
) -> int:
    """Run the items, judge every claim by the results of all `known` items, write everything.

    Returns how many items failed.
    """
    wanted = [claim for claim in claims() if claim.part in asked]
    with fresh.composing():
        failed = perform(items, outputs)
        found = ledger.evidence(known, failed)
    findings = ledger.judge(claims(), found)
    write_whole(outputs / "claims.csv", ledger.as_csv(claims(), findings))
    index = write(Builder(outputs, claims(), findings, found, asked, command, failed, known))
    if (sweeps := outputs.parent / "sweeps").exists():
        write_index(sweeps)  # which has a link to the pages
    print(said(wanted, findings))
    for why in failed.values():
        print(f"FAILED: {why}")
    print(f"\nthe pages: {index} (as Markdown: {outputs}/README.md)")
    print(f"a line per claim: {outputs}/claims.csv\nlogs: {outputs}/logs/")
    return len(failed)


def said(wanted: Sequence[Claim], findings: dict[str, Finding]) -> str:
    """The number of claims with each verdict, and every claim for which there is more to say."""
    count = Counter(findings[claim.id].verdict for claim in wanted)
    lines = [", ".join(f"{count[v]} {v}" for v in Verdict) + f", of {len(wanted)} claims"]
    for verdict in (Verdict.reading, Verdict.not_reproduced, Verdict.not_yet):
        for claim in wanted:
            if findings[claim.id].verdict is verdict:
                lines.append(f"  {findings[claim.id].said}: {claim.id}: {findings[claim.id].reason}")
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    """Run, judge and write. Raises UserError for a section that does not exist; exits with 1 where an item failed."""
    asked = sections(words)
    items = chosen(claim for claim in claims() if claim.part in asked)
    if make(asked, items, OUTPUTS, " ".join([PROGRAM, *words])):
        sys.exit(1)


def entry() -> None:
    """`lecture04 lecture [SECTION ...]`, the command line."""
    if not IS_CHECKOUT:
        sys.exit("The lecture runs scripts and tests of the repository: clone it, then `make lecture`.")
    parser = Parser(PROGRAM, description=USAGE)
    parser.add_argument("section", nargs="*", help="0 to 5; all where none is named")
    words = parser.parse_args().section
    messages.run(lambda: main(words))
