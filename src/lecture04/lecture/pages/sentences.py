"""What the pages say beside their pictures: computed from the evidence, by the sentences of probes and of tables."""

from collections.abc import Callable, Iterator, Sequence

from lecture04.lecture.claims import claim
from lecture04.lecture.evidence import Evidence, numbers
from lecture04.report.answer import answer
from lecture04.report.comparison import judge_metric, judge_primary
from lecture04.report.results import Results

Sentence = Callable[[Evidence], str]


def of_sweep(results: Results, others: Sequence[str] = ()) -> Iterator[str]:
    """The answer of a table, and those by other metrics of it, where it has them."""
    yield answer(results, judge_primary(results))
    for metric in others:
        if any(results.values(metric).values()):
            judged = judge_metric(results, metric)
            yield f"By {judged.about.label}: {answer(results, judged)}"


def standard_model(evidence: Evidence) -> str:
    """How far the standard model's perplexity moves with the seed, beside the lecture's. Raises NotYetError."""
    results = evidence.sweep("norm")
    row = results.rows[0]
    found = list(numbers(results, "test/ppl", row)[row].values())
    mean, spread = sum(found) / len(found), max(found) - min(found)
    return (
        f"Over {len(found)} seeds the standard model's test perplexity is {mean:.3f}, from {min(found):.3f} to "
        f"{max(found):.3f}: when nothing but the seed changes it moves by {spread:.3f}. The lecture has "
        f"{claim('standard_model').lecture}, and {claim('seed_noise').lecture} between two seeds."
    )


SENTENCES: dict[str, Sentence] = {"standard_model": standard_model}
