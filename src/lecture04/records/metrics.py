"""What is measured, by name: how a table calls and writes it, and whether it is compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """A metric's heading and Python format.

    `judged`: it carries seed noise and gets a band; what is not judged is a fact of the configuration, or a cost that
    depends on the machine. `items` names the metric that counts an accuracy's items; `about` is for the legend; `unit`
    is that of a difference, where the scale on which it is judged has none of its own.
    """

    heading: str
    format: str
    judged: bool = False
    items: str | None = None
    about: str = ""
    unit: str = ""
    lower_is_better: bool = True


class Metrics(dict[str, Metric]):
    """The metrics by name; those by position, `test/nll@64-127`, are there for every range."""

    def __missing__(self, name: str) -> Metric:
        if not (found := re.fullmatch(r"test/(nll|excess)@(\d+-\d+)", name)):
            raise KeyError(name)
        kind, positions = found.groups()
        return Metric(f"{'NLL' if kind == 'nll' else kind} at {positions}", ".4f", judged=True, unit="nats")

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self[name])
        except KeyError:
            return False


METRICS = Metrics(
    {
        **{
            f"{split}/{name}": Metric(f"{split} {heading}", form, judged=True, unit=unit)
            for split in ("train", "val", "test")
            for name, heading, form, unit in (
                ("nll", "NLL", ".4f", "nats"),
                ("ppl", "ppl", ".3f", ""),
                ("excess", "excess", ".4f", "nats"),
            )
        },
        "pronouns/accuracy": Metric(
            "pronouns",
            ".4f",
            judged=True,
            items="pronouns/n",
            about="how often the right one of his, her, its ranks first, the subject standing far back (eval.window)",
            lower_is_better=False,
        ),
        "pronouns/n": Metric("pronouns, n", ",.0f"),
        "ffn/zeros": Metric(
            "zeros in FFN", ".1%", about="the share of exact zeros that enter the FFN's down-projections (eval.n_docs)"
        ),
        "ffn/dead": Metric("dead units", ".1f", about="FFN units that are 0 at every token, in the layer with most"),
        "params": Metric("params", ",.0f"),
        "d_ff": Metric("d_ff", ".0f"),
        "mismatch": Metric("mismatch", "+.2%"),
        "kv_per_token": Metric("KV per token", ",.0f", about="numbers that the KV cache keeps for a token"),
        "flops_per_token": Metric("FLOP per token", ",.0f"),
        "steps": Metric("steps", ",.0f"),
        "tokens": Metric("tokens", ",.0f"),
        "documents": Metric("documents", ",.0f"),
        "tokens_per_second": Metric("tokens/s", ",.0f"),
        "peak_mib": Metric("peak MiB", ",.0f"),
        "wall_seconds": Metric("wall s", ",.1f"),
        "train_seconds": Metric("train s", ",.1f"),
    }
)


def shown_for(primary: str, columns: Sequence[str]) -> str:
    """The metric that a table shows for its primary one.

    A perplexity is judged as its NLL, so where the primary is an NLL and its perplexity is a column, that one is shown.
    """
    as_ppl = primary.removesuffix("/nll") + "/ppl" if primary.endswith("/nll") else primary
    return as_ppl if as_ppl in columns else primary


def measures() -> list[Any]:
    """What files from outside measure beside the source's own."""
    return []
