"""The A/A test: rows that differ in their seeds alone must not be told apart. `python tools/aa.py`.

The runs of `sweeps/aa.yaml`, all of one configuration, are split into rows of equal size with disjoint seeds and judged
as any table is (unpaired, since no two rows share a seed). In how many splits is any row called better or worse? The
protocol allows 7 %.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lecture04.config import messages as errors
from lecture04.config.messages import UserError
from lecture04.files import write_whole
from lecture04.report.results import collect
from lecture04.stats import Identity, judge, judged_values

METRIC, N_ROWS, N_SPLITS, ALLOWED = "test/nll", 4, 2000, 0.07
CALLED = ("better", "worse")


@dataclass(frozen=True)
class Outcome:
    """What came of many splits: in how many any row was called better or worse, and the first split's rows."""

    n_splits: int
    n_called: int
    rows: Mapping[str, Mapping[int, float]]
    verdicts: Mapping[str, str]

    @property
    def rate(self) -> float:
        """The share of splits with a false verdict."""
        return self.n_called / self.n_splits


def split(values: Mapping[int, float], order: np.ndarray) -> dict[str, dict[int, float]]:
    """Rows a, b, c ... of these seeds in this order, as many in each; what is left over is left out."""
    size = len(order) // N_ROWS
    groups = order[: N_ROWS * size].reshape(N_ROWS, size)
    return {chr(ord("a") + i): {int(s): values[int(s)] for s in group} for i, group in enumerate(groups)}


def called(rows: Mapping[str, Mapping[int, float]]) -> dict[str, str]:
    """Each row's verdict against the first."""
    return {v.row: v.verdict for v in judge(rows, matched=False)}


def ask(values: Mapping[int, float], n_splits: int = N_SPLITS) -> Outcome:
    """The seeds in their order, then in random ones (always the same)."""
    rng, seeds = np.random.default_rng(0), np.array(sorted(values))
    splits = [split(values, seeds), *(split(values, rng.permutation(seeds)) for _ in range(n_splits - 1))]
    n_called = sum(any(verdict in CALLED for verdict in called(rows).values()) for rows in splits)
    return Outcome(n_splits, n_called, splits[0], called(splits[0]))


def page(outcome: Outcome, n_runs: int) -> str:
    """What is kept of it, as Markdown."""
    lines = [
        "# The A/A test",
        "",
        f"{n_runs} runs of the standard configuration, seeds 0 to {n_runs - 1}, split into {N_ROWS} rows with disjoint "
        "seeds: nothing but the seed differs between them, so every `better` or `worse` would be false.",
        "",
        "| row | seeds | mean test NLL | against row a |",
        "| :--- | :--- | ---: | :--- |",
    ]
    for name, values in outcome.rows.items():
        mean, seeds = sum(values.values()) / len(values), ", ".join(map(str, values))
        lines.append(f"| {name} | {seeds} | {mean:.5f} | {outcome.verdicts.get(name, '')} |")
    lines += [
        "",
        f"Of {outcome.n_splits:,} splits, this one and random ones, {outcome.n_called} had a row called better or "
        f"worse: {outcome.rate:.1%}, the protocol allows {ALLOWED:.0%}. (The splits share their runs, so it is one "
        "experiment looked at in many ways and not as many experiments; docs/statistics.md has simulated rates.)",
        "",
        "Made by `python train.py -m sweeps=aa`, then `python tools/aa.py`.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Split, judge, print and write aa.md beside the table."""
    parser = argparse.ArgumentParser(prog="python tools/aa.py", description=__doc__)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    folder = parser.parse_args().outputs / "sweeps" / "aa"
    try:
        results = collect(folder)
    except UserError as e:
        raise UserError(f"{folder}: no such table; python train.py -m sweeps=aa makes it.") from e
    values = judged_values(results.values(METRIC), Identity())[results.rows[0]]
    if len(values) < 3 * N_ROWS:
        raise UserError(f"{folder}: {len(values)} runs are there, and {N_ROWS} rows of 3 seeds need {3 * N_ROWS}.")
    text = page(ask(values), len(values))
    write_whole(folder / "aa.md", text)
    print(f"{text}\n{folder}/aa.md")


if __name__ == "__main__":
    errors.run(main)
