"""What is measured: each metric is declared once, and tables, plots, legends, statistics and W&B read it here.

A metric of a file outside the package joins by `measure`, or by `declare` where its records have it already.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

T = TypeVar("T")
ScaleName = Literal["identity", "log", "logit"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    name             SPLIT/METRIC, or METRIC for what has no split
    label            what tables, plots and legends call it
    format           Python's format of a value
    unit             of a difference on the judged scale, but for a logit, whose differences are log odds
    scale            on which it is judged: "identity" as it is, "log" as its natural logarithm (a difference is then
                     shown in percent), "logit" as log odds, for the share of items that are right
    items            of a logit alone: the metric that counts the items
    noisy            seeds move it, so it is judged and has a band; what is not noisy is a fact of the configuration, or
                     a cost that depends on the machine
    lower_is_better  which direction a verdict calls better
    per_token        it compares models of the same tokens alone
    about            one sentence for the legend

    >>> import lecture04 as l4
    >>> l4.Metric("test/top5", "top-5 accuracy", ".1%", noisy=True, lower_is_better=False).label
    'top-5 accuracy'

    Raises ValueError for a scale without what it needs, and a format that formats no number.
    """

    name: str
    label: str
    format: str
    unit: str = ""
    scale: ScaleName = "identity"
    items: str | None = None
    noisy: bool = False
    lower_is_better: bool = True
    per_token: bool = False
    about: str = ""

    def __post_init__(self) -> None:
        if self.scale not in ("identity", "log", "logit"):
            raise ValueError(f"metric {self.name!r}: scale={self.scale!r} is none of identity, log, logit")
        if (self.scale == "logit") != (self.items is not None):
            raise ValueError(f"metric {self.name!r}: items names the metric that counts a logit's items, and only that")
        try:
            format(1.0, self.format)
        except ValueError as e:
            raise ValueError(f"metric {self.name!r}: format={self.format!r}: {e}") from e


ANSWERS = ("answers/accuracy", "answers/n", "answers/exact", "answers/problems")
"""What is measured of a task's answers, of all of them and by the length of their problems."""


class Metrics(Mapping[str, Metric]):
    """The metrics by name. Some exist for every range: of positions, `test/nll@64-127` and `test/excess@64-127`; of the
    lengths of problems, `answers/accuracy@21-25` and what else is declared of answers."""

    def __init__(self) -> None:
        self._declared: dict[str, Metric] = {}

    def __getitem__(self, name: str) -> Metric:
        if name in self._declared:
            return self._declared[name]
        whole, _, lengths = name.partition("@")
        if whole in ANSWERS and whole in self._declared and re.fullmatch(r"\d+-\d+", lengths):
            metric = self._declared[whole]
            items = metric.items and f"{metric.items}@{lengths}"
            return replace(metric, name=name, label=f"{metric.label} at {lengths}", items=items)
        if name in NUMBERS:
            return NUMBERS[name]
        if not (found := re.fullmatch(r"test/(nll|excess)@(\d+-\d+)", name)):
            raise KeyError(name)
        kind, positions = found.groups()
        label = f"{'NLL' if kind == 'nll' else kind} at {positions}"
        return Metric(name, label, ".4f", unit="nats", noisy=True, per_token=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def add(self, metric: Metric) -> None:
        """One more metric; saying the same again changes nothing. Raises ValueError for a name that is taken."""
        if canonical(metric.name) in self and self[canonical(metric.name)] != metric:
            raise ValueError(f"metric {metric.name!r} is declared already, as {self[canonical(metric.name)]}")
        self._declared[metric.name] = metric


ALIASES = {"possessive/accuracy": "pronouns/accuracy", "possessive/n": "pronouns/n"}
"""Earlier names, still accepted in sweep files and in records."""


def canonical(name: str) -> str:
    """A metric's one name. Applied where a table's names enter and where records are read, nowhere else."""
    return ALIASES.get(name, name)


def number_name(scale: ScaleName, *, lower_is_better: bool) -> str:
    """The metric of plain numbers that are judged so (see `NUMBERS`)."""
    return f"number/{scale}/{'lower' if lower_is_better else 'higher'}"


NUMBERS = {
    (name := number_name(scale, lower_is_better=lower)): Metric(
        name,
        "number",
        ".5g",
        scale=scale,
        items="number/items" if scale == "logit" else None,
        noisy=True,
        lower_is_better=lower,
    )
    for scale in get_args(ScaleName)
    for lower in (True, False)
}
"""Numbers that come without a metric (`lecture04.judge`). They stand in no list: no run has them."""
METRICS = Metrics()


def declare(metric: Metric) -> Metric:
    """Make a metric known, so that a sweep may name it. Raises ValueError for a name that another metric has."""
    METRICS.add(metric)
    return metric


for _split in ("train", "val", "test"):
    declare(Metric(f"{_split}/nll", f"{_split} NLL", ".4f", unit="nats", noisy=True, per_token=True))
    declare(Metric(f"{_split}/ppl", f"{_split} ppl", ".3f", unit="nats", scale="log", noisy=True, per_token=True))
    declare(
        Metric(
            f"{_split}/excess",
            f"{_split} excess",
            ".4f",
            unit="nats",
            noisy=True,
            about="NLL above that of the true distribution on the same tokens, in nats; 0 is the best possible",
        )
    )
    declare(
        Metric(
            f"{_split}/bpb",
            f"{_split} bits/byte",
            ".4f",
            unit="nats",
            scale="log",
            noisy=True,
            about="NLL as bits for each byte of the text, which tokenizers have in common",
        )
    )
    declare(
        Metric(
            f"{_split}/unigram",
            f"{_split} unigram NLL",
            ".4f",
            per_token=True,
            about="NLL of a model that knows how frequent tokens are",
        )
    )


def _declare_share(name: str, label: str, items: str, items_label: str, about: str) -> None:
    """The share of items that are right, judged as log odds, and the count of the items."""
    declare(Metric(name, label, ".4f", scale="logit", items=items, noisy=True, lower_is_better=False, about=about))
    declare(Metric(items, items_label, ",.0f"))


_declare_share(
    "pronouns/accuracy",
    "pronouns",
    "pronouns/n",
    "pronouns, n",
    "how often the right one of his, her, its ranks first where the subject stands more than eval.window tokens back",
)
_declare_share(
    "sample/grammatical",
    "grammatical",
    "sample/n",
    "samples, n",
    "the share of documents drawn from the model (eval.n_samples) that the source's grammar can produce",
)
_declare_share(
    "answers/accuracy",
    "accuracy",
    "answers/n",
    "answer tokens, n",
    "how often the right token of an answer ranks first, given the right ones before it",
)
_declare_share(
    "answers/exact",
    "exact match",
    "answers/problems",
    "problems, n",
    "how many answers are right from their first token to their last",
)
declare(
    Metric(
        "ffn/zeros",
        "zeros in FFN",
        ".1%",
        about="the share of exact zeros among the inputs of the FFN's down-projections (eval.n_docs)",
    )
)
declare(Metric("ffn/dead", "dead units", ".1f", about="FFN units that are 0 at every token, in the layer with most"))
declare(Metric("params", "params", ",.0f"))
declare(Metric("d_ff", "d_ff", ".0f"))
declare(Metric("mismatch", "mismatch", "+.2%"))
declare(Metric("kv_per_token", "KV per token", ",.0f", about="numbers that the KV cache keeps for a token"))
declare(Metric("flops_per_token", "FLOP per token", ",.0f"))
declare(Metric("steps", "steps", ",.0f"))
declare(Metric("tokens", "tokens", ",.0f"))
declare(Metric("documents", "documents", ",.0f"))
declare(Metric("tokens_per_second", "tokens/s", ",.0f"))
declare(Metric("peak_mib", "peak MiB", ",.0f"))
declare(Metric("wall_seconds", "wall s", ",.1f"))
declare(Metric("train_seconds", "train s", ",.1f"))


def shown_for(primary: str, columns: Sequence[str]) -> str:
    """The metric that a table shows for its primary one.

    A perplexity is judged as its NLL, so where the primary is an NLL and its perplexity is a column, that one is shown.
    """
    as_ppl = primary.removesuffix("/nll") + "/ppl" if primary.endswith("/nll") else primary
    return as_ppl if as_ppl in columns else primary


MEASURES: dict[str, Any] = {}
"""What files from outside measure on the test split beside the source's own (see data.types.Measure), by metric."""


def measure(metric: Metric, *more: Metric) -> Callable[[T], T]:
    """Declare a metric, and what measures it: a class as `data.types.Measure` has it, called with (split, evaluation).

    `more` are other figures that the same class gives, such as the count behind a share. The class lies in a file that
    `parts=[FILE]` names: its code is part of what an evaluation is.

    >>> import lecture04 as l4
    >>> @l4.measure(l4.Metric("test/confidence", "confidence", ".3f", noisy=True))
    ... class Confidence:
    ...     def __init__(self, split, evaluation):
    ...         self.found = []
    ...     def add(self, logits_NV, place_N):
    ...         self.found += logits_NV.softmax(-1).amax(-1).tolist()
    ...     def metrics(self):
    ...         return {"test/confidence": sum(self.found) / len(self.found)}
    >>> Confidence.__name__
    'Confidence'
    """
    for one in (metric, *more):
        declare(one)

    def add(made: T) -> T:
        MEASURES[metric.name] = made
        return made

    return add
