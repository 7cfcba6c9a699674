"""The outcome of a claim, and the register of judges."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence


class Verdict(StrEnum):
    """Whether our figures agree with a claim; each is counted apart.

    reading: they do by one reading that the lecture's words allow, and not by another one. set: they do, and were made
    to: the claim was used to shape the world (docs/garden.md).
    """

    reproduced = "reproduced"
    reading = "reproduced by a reading"
    set = "set"
    not_reproduced = "not reproduced"
    not_yet = "not yet judged"


@dataclass(frozen=True)
class Finding:
    """Our figures, the verdict, the reason where it is not "reproduced", and the reading by which it is.

    `reading` is one or a few words; `reason` then says what the other readings give.
    """

    ours: str
    verdict: Verdict
    reason: str = ""
    reading: str = ""

    @property
    def said(self) -> str:
        """The verdict as it is written: `reproduced (reading: losses summed)`."""
        return f"{Verdict.reproduced} (reading: {self.reading})" if self.verdict is Verdict.reading else self.verdict


Judge = Callable[[Claim, Evidence], Finding]
JUDGES: dict[str, Judge] = {}


def judges(*claims: str) -> Callable[[Judge], Judge]:
    """Register a function as the judge of a claim, or of several that differ in their bounds."""

    def register(judge: Judge) -> Judge:
        for claim in claims:
            assert claim not in JUDGES, f"{claim} has two judges"
            JUDGES[claim] = judge
        return judge

    return register


def weigh(ours: str, *checks: tuple[bool | None, str], because: str = "") -> Finding:
    """One verdict from several checks (holds, text for where it does not); None is undecided.

    If a check fails the verdict is "not reproduced"; else, if one is undecided, "not yet judged". `because` is a
    sentence on the likely reason of a failure.
    """
    if failed := [text for holds, text in checks if holds is False]:
        return Finding(ours, Verdict.not_reproduced, f"{'; '.join(failed)}. {because}".strip())
    if undecided := [text for holds, text in checks if holds is None]:
        return Finding(ours, Verdict.not_yet, "; ".join(undecided) + ".")
    return Finding(ours, Verdict.reproduced)
