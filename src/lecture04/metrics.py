"""What is measured, by name: how a table calls and writes it, and whether it is compared."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A metric's heading and Python format.

    `judged`: it carries seed noise and gets a band; what is not judged is a fact of the configuration, or a cost that
    depends on the machine. `items` names the metric that counts an accuracy's items; `about` is for the legend.
    """

    heading: str
    format: str
    judged: bool = False
    items: str | None = None
    about: str = ""


METRICS: dict[str, Metric] = {
    **{
        f"{split}/{name}": Metric(f"{split} {heading}", form, judged=True)
        for split in ("train", "val", "test")
        for name, heading, form in (("nll", "NLL", ".4f"), ("ppl", "ppl", ".3f"), ("excess", "excess", ".4f"))
    },
    "possessive/accuracy": Metric(
        "pronouns",
        ".4f",
        judged=True,
        items="possessive/n",
        about="how often the right one of his, her, its ranks first, where the subject stands far back (eval.window)",
    ),
    "possessive/n": Metric("pronouns, n", ",.0f"),
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
