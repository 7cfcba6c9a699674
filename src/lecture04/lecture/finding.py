"""The outcome of a claim, and the register of judges."""

from collections.abc import Callable, Iterable, Mapping
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


Check = tuple[bool | None, str]
"""Whether something holds (None: undecided), and the text for where it does not."""

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


def weigh(ours: str, *checks: Check, because: str = "") -> Finding:
    """One verdict from several checks (holds, text for where it does not); None is undecided.

    If a check fails the verdict is "not reproduced"; else, if one is undecided, "not yet judged". `because` is a
    sentence on the likely reason of a failure.
    """
    if failed := [text for holds, text in checks if holds is False]:
        return Finding(ours, Verdict.not_reproduced, f"{'; '.join(failed)}. {because}".strip())
    if undecided := [text for holds, text in checks if holds is None]:
        return Finding(ours, Verdict.not_yet, "; ".join(undecided) + ".")
    return Finding(ours, Verdict.reproduced)


def by_readings(ours: str, readings: Mapping[str, Iterable[Check]], *always: Check, because: str = "") -> Finding:
    """One verdict from the readings that the lecture's words allow, {name: checks}, the plainest first.

    Reproduced under all of them it is "reproduced"; under some, "reproduced by a reading", named after the first of
    these, with what the others give as the reason. Under none it is "not yet judged" where one is undecided, else "not
    reproduced", with the reason of each. `always` has to hold whatever the reading.
    """
    shared = weigh(ours, *always)
    found = {name: weigh(ours, *checks) for name, checks in readings.items()}
    holding = [name for name, finding in found.items() if finding.verdict is Verdict.reproduced]
    others = [f"{name}: {finding.reason.removesuffix('.')}" for name, finding in found.items() if finding.reason]
    said = [shared.reason, f"By reading. {'. '.join(others)}." if others else "", because]
    reason = " ".join(part for part in said if part)
    undecided = any(finding.verdict is Verdict.not_yet for finding in found.values())
    if shared.verdict is Verdict.not_reproduced or not (holding or undecided):
        return Finding(ours, Verdict.not_reproduced, reason)
    if shared.verdict is Verdict.not_yet or not holding:
        return Finding(ours, Verdict.not_yet, reason)
    if len(holding) == len(found):
        return Finding(ours, Verdict.reproduced)
    return Finding(ours, Verdict.reading, reason, reading=holding[0])
