"""The legend of a table: what its figures mean, for a reader who knows no statistics and for one who does."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from lecture04.config.resolve import MISMATCH_WARNING
from lecture04.records.record import Status
from lecture04.report.answer import smallest_effects
from lecture04.report.columns import label_and_about
from lecture04.report.comparison import Judged
from lecture04.report.model import Note
from lecture04.report.results import Results
from lecture04.stats import Log, Logit, Verdict, diverged_rows
from lecture04.stats.noise import MIN_BLOCKED_DF


def legend(results: Results, judged: Judged) -> list[Note]:
    """The notes of the table that carries the verdicts: first the verdicts' words, then the figures, then the rows."""
    return [
        *_verdicts(judged),
        *_band(results, judged),
        *_rows(results, judged),
        *_columns(results, judged),
        Note("", "How all this is worked out: docs/statistics.md."),
    ]


def others_legend(others: Sequence[Judged]) -> list[Note]:
    """The notes of the table of the other metrics' differences."""
    notes = [
        Note(
            "uncorrected across metrics",
            "each metric has a band of its own, made like that of the first table. The more metrics, the likelier that "
            "one leaves its band by chance; so these differences carry no verdict (their s and p are in contrasts.csv)",
        )
    ]
    if any(isinstance(judged.scale, Logit) for judged in others):
        notes.append(
            Note(
                "log odds",
                "ln((c + .5) / (N - c + .5)) for c of N items right; accuracies are compared on this scale, since .98 "
                "and .99 are further apart than .50 and .51",
            )
        )
    return [*notes, *(note for judged in others for note in _excluded(judged, f"{judged.about.label}, "))]


def _verdicts(judged: Judged) -> Iterator[Note]:
    """Each verdict that occurs, in words."""
    said = Counter(v.verdict.split()[0] for v in judged.verdicts)
    alpha = _percent(judged.verdicts[0].alpha) if judged.verdicts else ""
    if said["better"] or said["worse"]:
        yield Note(
            " / ".join(word for word in ("better", "worse") if said[word]),
            "the difference lies outside its band, and the two rows' own seeds agree (Welch p below "
            f"{alpha}): equal rows would seldom look like this",
        )
    if said["within"]:
        two = ", or at most two test items apart" if isinstance(judged.scale, Logit) else ""
        yield Note(
            "within noise",
            f"the difference lies inside its band{two}: the seeds alone could do it. This does not mean that the rows "
            "are equal; a true difference may be there that takes more seeds to see",
        )
    if said["unconfirmed"]:
        yield Note(
            "unconfirmed",
            "outside the band, but the two rows' own seeds do not confirm it (the Welch p is not below "
            f"{alpha}): add seeds",
        )
    if said["equivalent"]:
        yield Note(
            "equivalent",
            "the whole interval lies inside the margin: the difference is too small to matter, even if it is there",
        )
    if said["single"]:
        yield Note("single run", "one of the two rows has one seed. A band then only tells what to repeat")
    if any(v.verdict == "no noise" for v in judged.verdicts):
        yield Note(
            "no noise", "the seeds change nothing here: all runs of a row agree, so there is no noise to judge by"
        )
    if any(v.verdict == "no verdict" for v in judged.verdicts):
        yield Note("no verdict", "there is nothing to compare with: a row has no result yet, or the reference diverged")
    if said["diverged"]:
        yield Note("diverged m/n", "m of the row's n runs broke down. Such a row is not compared, and is never better")


def _band(results: Results, judged: Judged) -> Iterator[Note]:
    """The band, its noise, what the table can find, and what was declared."""
    sure = next((v for v in judged.verdicts if not math.isnan(v.s) and not math.isnan(v.q)), None)
    if sure is None:
        if judged.verdicts and not any(v.verdict in ("no verdict", "no noise") for v in judged.verdicts):
            yield Note("", "No band: it takes two seeds a row at least, better three to five.")
        return
    level = _percent(1 - sure.alpha)
    yield Note(
        "[low, high]",
        "the interval of a difference: the true one lies inside, in the sense that "
        f"{_together(results, judged, level)}. On the judged scale it is the difference ± the seed-noise band, "
        f"q s sqrt(1/n + 1/n0) for n and n0 seeds, with {_quantiles(judged)}; its two ends are carried to the scale "
        "that is shown",
    )
    if sure.blocked:
        shares = "" if sure.run_sd > sure.s else "; the rows share no part of it that can be measured here"
        text = (
            f"{judged.amount(sure.s)}, what is left of one run's noise when each seed's mean over the rows is taken "
            "off, as a seed means the same start and the same data order in every row (blocked). It comes from all "
            f"rows together ({sure.df} degrees of freedom). One run by itself varies by {judged.amount(sure.run_sd)} "
            f"(standard deviation) when only the seed changes{shares}"
        )
    else:
        text = (
            f"{judged.amount(sure.s)}, the noise of one run: the standard deviation of a result when only the seed "
            f"changes, from all rows together ({sure.df} degrees of freedom). Seeds are not paired (not blocked): that "
            f"takes the same seeds in every row and (rows - 1)(seeds - 1) >= {MIN_BLOCKED_DF}"
        )
    yield Note("s", text)
    yield from _excluded(judged)
    yield Note("smallest effect", _smallest(judged))
    yield from _declared(results, judged, sure)
    yield Note(
        "family-adjusted p",
        "the probability, were all rows equal, that the seeds alone put some difference, anywhere in the family, as "
        f"far out as this one; below {_percent(sure.alpha)} exactly where a difference leaves its band",
    )
    centred = ", each seed's mean over the rows taken off first" if sure.blocked else ""
    yield Note(
        "Welch p",
        f"of Welch's t test on the two rows' own seeds alone{centred}; not corrected for the number of rows",
    )
    if any(v.pairs for v in judged.verdicts):
        yield Note(
            "seeds agree", "how many of the seeds that both rows ran point the way the means do; no verdict uses it"
        )
    if sure.margin is not None:
        yield Note("seeds for margin", "seeds a row to find a true difference as large as the margin 80 % of the time")
    yield Note(
        "seeds needed",
        "seeds a row with which a table like this finds a true difference as large as the one seen 80 % of the time; "
        "in brackets for the far and the near end of its interval (only the first where it holds 0). The difference "
        "seen is itself uncertain, and that of a row picked for its size is too large",
    )


def _together(results: Results, judged: Judged, level: str) -> str:
    """What holds together, and what that means for false calls."""
    k = Counter(v.family for v in judged.verdicts if not math.isnan(v.delta))
    alpha, both = (_percent(times * judged.verdicts[0].alpha) for times in (1, 2))
    if "step" in k:
        return (
            f"it does so for all {k['step']} steps (each row against the row before) in {level} of such tables, and "
            f"for all {k['total']} totals (each row against {results.rows[0]}) in {level}. These are two families: "
            f"were all rows equal, each would have a false call somewhere in up to {alpha} of tables, and the two "
            f"together in up to {both}"
        )
    if "grid" in k:
        return (
            f"it does so for all {k['grid']} comparisons of all slices at once in {level} of such tables (one family). "
            "Whoever compares the rows at the best slice of each should run the winners again on fresh seeds"
        )
    if k["star"] == 1:
        return f"it does so in {level} of such tables (one comparison)"
    return f"it does so for all {k['star']} comparisons at once in {level} of such tables (one family)"


def _quantiles(judged: Judged) -> str:
    q = {v.family: v.q for v in judged.verdicts if not math.isnan(v.q)}
    if len(q) == 1:
        law = "Student's t" if len(judged.verdicts) == 1 else "the multivariate t"
        return f"q = {next(iter(q.values())):.2f} from {law}"
    return (
        "q = " + " and ".join(f"{value:.2f} for the {family}s" for family, value in q.items()) + ", by multivariate t"
    )


def _smallest(judged: Judged) -> str:
    """The smallest difference that the table finds."""
    sizes: list[str] = []
    for family in judged.families:
        if found := smallest_effects(judged, family):
            low, high = judged.amount(found[0]), judged.amount(found[-1])
            size = low if low == high else f"{low} to {high} (by the rows' seeds)"
            sizes.append(f"{size} for a {family}" if len(judged.families) > 1 else size)
    if not sizes:
        return "nothing can be found yet: a call takes two seeds at least in both rows, better three to five"
    return (
        f"this table finds a true difference of {' and of '.join(sizes)} 80 % of the time; smaller ones less often, "
        "and far smaller ones hardly ever"
    )


def _declared(results: Results, judged: Judged, sure: Verdict) -> Iterator[Note]:
    if sure.margin is not None:
        low, high = (judged.amount(sign * sure.margin) for sign in (-1, 1))
        yield Note("margin", f"from {low} to {high}, declared in sweep.delta: what lies between does not matter")
    looks = results.manifest.looks
    if results.manifest.earlier:
        yield Note("looks", results.manifest.looks_said())
    elif looks > 1:
        yield Note(
            "looks",
            f"the seeds are judged {looks} times in all (sweep.looks), each time at {_percent(sure.alpha)}, so that "
            f"all looks together stay at {_percent(sure.alpha * looks)}",
        )


def _excluded(judged: Judged, where: str = "") -> Iterator[Note]:
    k = Counter(v.family for v in judged.verdicts if not math.isnan(v.delta))
    for name in dict.fromkeys(name for v in judged.verdicts for name in v.excluded):
        family = next(v for v in judged.verdicts if name in v.excluded)
        yield Note(
            f"{where}{name} ~",
            "much noisier than the other rows (high variance), so it is excluded from s, and its differences are "
            f"judged by Welch's t alone, at {_percent(family.alpha / k[family.family])} each",
        )


def _rows(results: Results, judged: Judged) -> Iterator[Note]:
    """What is to be known of single rows."""
    for row, share in diverged_rows(judged.values).items():
        yield Note(
            row,
            f"{share.m} of {share.n} seeds diverged: the share that does lies between {share.low:.0%} and "
            f"{share.high:.0%} (exact 95 % interval). The noise of the others is taken without it",
        )
    about = results.manifest.rows
    for row in results.rows:
        if early := len(results.seeds_of(row, Status.undertrained)):
            yield Note(row, f"{Status.undertrained.in_words}: {early} of {len(about[row].runs)} seeds")
        there, asked = len(judged.values[row]), len(about[row].runs)
        if there < asked:
            failed = results.seeds_of(row, Status.failed)
            why = f"; seed {', '.join(map(str, failed))} failed, and the run's train.log says why" if failed else ""
            yield Note(row, f"{there} of {asked} seeds are there{why}")
    if off := results.mismatched:
        yield Note(
            "!",
            f"over {MISMATCH_WARNING:.0%} more or fewer parameters than the matched number: {', '.join(off)}",
        )
    if other := [row for row in results.rows if about[row].other_code]:
        yield Note("", f"Runs of other code stand in (runs.reuse=config): {', '.join(other)}.")


def _columns(results: Results, judged: Judged) -> Iterator[Note]:
    """What the columns of figures are."""
    if others := results.other_tokens:
        yield Note(
            "bits a byte alone",
            f"{', '.join(others)}: their tokens are others than those of {results.rows[0]}, so that nats a token and "
            "perplexities say nothing of the difference and are left out",
        )
    how = ""
    if isinstance(judged.scale, Log):
        how = (
            ". Judged as its natural logarithm (of a perplexity the NLL, in nats); a difference d of the mean "
            "logarithms is shown as 100 (exp(d) - 1) percent, and so is each end of its interval"
        )
    elif isinstance(judged.scale, Logit):
        how = (
            f". Judged as log odds, ln((c + .5) / (N - c + .5)) for c of N = {judged.scale.n_items:,} items right; s "
            "is never below one item / sqrt(12)"
        )
    better = "lower" if judged.about.lower_is_better else "higher"
    yield Note(
        f"{judged.about.label} (n)",
        f"the mean of n seeds, {better} is better; the single seeds stand in the last columns{how}",
    )
    shown = dict.fromkeys([judged.metric, *results.manifest.columns])
    yield from (Note(label, about) for label, about in map(label_and_about, shown) if about)


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
