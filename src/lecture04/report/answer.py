"""The answer of a table in one or two sentences: which rows are better or worse, and what the table could find at all.

The terminal, the page, the index of tables and W&B's run of a table all begin with it.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from lecture04.report.comparison import Judged
from lecture04.report.results import Results
from lecture04.stats import Verdict

MOST_NAMED = 4
"""Rows that are named with the same verdict; of more, the first ones and how many others."""
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def answer(results: Results, judged: Judged) -> str:
    """The sentences, with the shown differences in brackets."""
    if not any(judged.values.values()):
        return "No run has ended yet."
    if not judged.verdicts:
        return _alone(results, judged)
    first, *more = judged.families
    clauses = [*_clauses(results, judged, judged.of_family(first)), *_reach(judged, first)]
    sentences = ["; ".join([_capital(clauses[0]), *clauses[1:]]) + ".", *(_whole_path(results, judged) if more else ())]
    ended = sum(len(seeds) for seeds in judged.values.values())
    asked = sum(len(about.runs) for about in results.manifest.rows.values())
    if ended < asked:
        sentences.insert(0, f"Not complete: {ended} of {asked} runs are there.")
    return " ".join(sentences)


def _alone(results: Results, judged: Judged) -> str:
    """Of a table without a comparison: what its one row reached."""
    (row, values) = next((row, list(seeds.values())) for row, seeds in judged.values.items() if seeds)
    raw = list(results.of_row(row, judged.metric).values())
    if diverged := sum(map(math.isnan, values)):
        return f"{row} diverged in {diverged} of {len(values)} seeds."
    shown = format(math.fsum(raw) / len(raw), judged.about.format)
    ends = f" (from {min(raw):{judged.about.format}} to {max(raw):{judged.about.format}})" if len(raw) > 1 else ""
    seeds = f"the mean of {len(raw)} seeds{ends}" if len(raw) > 1 else "of one seed"
    return f"{row}: {judged.about.label} {shown}, {seeds}; there is no other row to compare it with."


def _clauses(results: Results, judged: Judged, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What is said of a family, the calls first."""

    def of(*words: str) -> list[Verdict]:
        return [v for v in verdicts if v.verdict in words]

    def names(found: Sequence[Verdict], text: Callable[[Verdict], str]) -> str:
        return _listed([text(v) for v in found])

    def with_change(v: Verdict) -> str:
        return f"{short(results, v.row)} ({judged.change(v)})"

    against = _against(results, verdicts)
    is_named = False
    for word, (link, rest) in _CALLS.items():
        if found := of(word):
            verb = "is" if len(found) == 1 else "are"
            to = f" {link} {against}" if link and not is_named else ""
            yield f"{names(found, with_change)} {verb} {word}{to}{rest}"
            is_named = is_named or bool(link)
    for v in verdicts:
        if v.diverged and v.verdict.startswith("diverged"):
            yield f"{short(results, v.row)} diverged in {v.diverged.m} of {v.diverged.n} seeds"
    yield from _within(results, of("within noise"), len(verdicts), against)
    if single := of("single run"):
        whole = len(single) == len(verdicts)
        which = "one seed a row" if whole else f"{names(single, lambda v: short(results, v.row))}: one seed"
        yield f"{which}, which tells no difference from the noise: add seeds, as in seed=0,1,2"
    if of("no noise"):
        yield "the seeds change nothing here, so there is no noise to judge by"
    if waiting := of("no verdict"):
        yield from _not_judged(results, judged, waiting)


_CALLS = {
    "better": ("than", ""),
    "worse": ("than", ""),
    "equivalent": ("to", ""),
    "unconfirmed": ("", ", so add seeds"),
}
"""{verdict: (the word before what is compared with, the rest of the clause)}."""


def _within(results: Results, within: Sequence[Verdict], n: int, against: str) -> Iterator[str]:
    """How many rows cannot be told from their reference."""
    if not within:
        return
    if len(within) == n:
        if n == 1:
            yield f"{short(results, within[0].row)} differs from {against} by no more than the noise"
        elif n == 2:
            yield f"neither {_rows(results)} differs from {against} by more than the noise"
        else:
            yield f"none of the {_number(n)} {_rows(results)}s differs from {against} by more than the noise"
    elif len(within) == 1:
        yield f"{short(results, within[0].row)} is within the noise"
    else:
        yield f"the other {_number(len(within))} are within the noise"


def _not_judged(results: Results, judged: Judged, waiting: Sequence[Verdict]) -> Iterator[str]:
    """Why rows have no verdict: their reference diverged, or one of the two is not there yet."""
    dead = [name for name in dict.fromkeys(v.reference for v in waiting) if any(map(math.isnan, _raw(judged, name)))]
    for name in dead:
        yield f"{short(results, name)} diverged, so nothing can be compared with it"
    absent = dict.fromkeys(name for v in waiting for name in (v.row, v.reference) if not judged.values[name])
    if absent:
        yield f"{_listed([short(results, name) for name in absent])} has no result yet"


def _raw(judged: Judged, row: str) -> list[float]:
    return list(judged.values[row].values())


def _reach(judged: Judged, family: str) -> Iterator[str]:
    """The smallest difference that the table finds."""
    if found := smallest_effects(judged, family):
        low, high = judged.size(found[0]), judged.size(found[-1])
        yield f"this table finds a true difference of {low if low == high else f'{low} to {high}'} four times in five"


def smallest_effects(judged: Judged, family: str) -> list[float]:
    """The smallest true differences that a family's contrasts find 80 % of the time, in ascending order.

    Those of an excluded row count only where there are no others; on the judged scale.
    """
    found = [v for v in judged.of_family(family) if v.plan is not None]
    found = [v for v in found if not v.excluded] or found
    return sorted(effect for v in found if math.isfinite(effect := v.smallest_effect))


def _whole_path(results: Results, judged: Judged) -> Iterator[str]:
    """What a path comes to from its first row to its last."""
    last = judged.by_row("total").get(results.rows[-1])
    if last is None or math.isnan(last.delta):
        return
    said = {"within noise": "within the noise"}.get(last.verdict, last.verdict)
    yield f"From {results.rows[0]} to the last row in all: {judged.change(last)}, {said}."


def _against(results: Results, verdicts: Sequence[Verdict]) -> str:
    """What each row of a family is compared with."""
    design = results.manifest.design
    if design == "path" and len(verdicts) > 1:
        return "the row before"
    if design == "grid" and len({v.reference for v in verdicts}) > 1:
        return "the first row of the slice"
    return verdicts[0].reference


def _rows(results: Results) -> str:
    return "step" if results.manifest.design == "path" else "row"


def short(results: Results, row: str) -> str:
    """A row's name in a sentence: a path's `+ RoPE` is RoPE."""
    return row.removeprefix("+ ") if results.manifest.design == "path" else row


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; of very many the first ones and how many more."""
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


_OWN = (
    "neither row",
    "neither step",
    "none of the ",
    "the seeds change nothing",
    "one seed a row, ",
    "this table finds",
)
"""How clauses begin that begin with no row's name."""


def _capital(clause: str) -> str:
    """A first clause of our own words with a capital; one that begins with a row's name as it is."""
    return clause[0].upper() + clause[1:] if clause.startswith(_OWN) else clause
