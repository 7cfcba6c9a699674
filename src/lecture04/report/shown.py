"""A comparison that shows itself: `lecture04.table(...)` of records, `lecture04.judge(...)` of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pandas as pd

from lecture04.config.errors import UserError, nearest
from lecture04.records.metrics import METRICS, ScaleName, number_name
from lecture04.records.record import Status
from lecture04.report.comparison import Judged, judge_all
from lecture04.report.contrasts import contrasts
from lecture04.report.manifest import Manifest, ManifestRow
from lecture04.report.results import COLUMNS, Results, collect
from lecture04.report.screen import screen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Mapping[str, Mapping[int, float]] | Mapping[str, Sequence[float]]
"""{row: {seed: value}}, or {row: [values]}."""
DesignName = Literal["star", "path"]


class Comparison:
    """A table: it shows itself in a notebook as its page does, and prints as in a terminal.

    results   what it is made of
    verdicts  a DataFrame with a line for each difference, its interval and what may be said of it
    """

    def __init__(self, results: Results, judged: Sequence[Judged]) -> None:
        self.results = results
        self._judged = judged

    @property
    def verdicts(self) -> pd.DataFrame:
        """Every difference, of every judged metric: row, reference, verdict, delta, its interval, p values, ...

        As contrasts.csv has it. Those that `corrected` marks carry the verdicts.
        """
        return contrasts(self._judged)

    def plot(self, name: str = "") -> Figure:
        """A figure of matplotlib's: the differences with their intervals, or another one by its name.

        The names are forest (of a path forest-step and forest-total), strip, curves, waterfall, positions; which of
        them there are depends on the table. Raises UserError for another name, and where no run has ended yet.
        """
        import matplotlib as mpl

        from lecture04.report.figures import SETTINGS
        from lecture04.report.figures.paper import figures

        with mpl.rc_context(SETTINGS):
            made = figures(self.results)
        if not made:
            raise UserError("No run has ended yet, so there is nothing to draw.")
        if name and name not in made:
            raise UserError(f"plot({name!r}): this table has no such figure." + nearest(name, made))
        return made[name or next(iter(made))]

    def __str__(self) -> str:
        return screen(self.results, self._judged[0])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from lecture04.report.html.fragment import fragment

        return fragment(self.results, self._judged[0])


def table(name: str | Path, outputs: str | Path = "outputs") -> Comparison:
    """A comparison table that was trained, from its records.

    name     of the table, as `lecture04 train -m sweeps=NAME` has it, or the path of its folder
    outputs  where results lie

    In a notebook it shows itself; `print` gives the terminal's table, `.plot()` a figure and `.verdicts` a DataFrame.

    >>> import lecture04 as l4
    >>> found = l4.table("mine")  # after lecture04 train -m sweeps=mine, with the rows ReLU and SwiGLU
    >>> print(found)
    My table
    SwiGLU ...
    >>> found.verdicts[found.verdicts.corrected][["row", "reference", "n"]]
          row reference  n
    0  SwiGLU      ReLU  2
    >>> float(found.plot().get_figwidth())
    7.0

    Raises UserError where no table lies there, with the names of those that do.
    """
    named = Path(name)
    results = collect(named if (named / "sweep.json").is_file() else Path(outputs) / "sweeps" / name)
    return Comparison(results, judge_all(results))


def judge(
    values: Values,
    *,
    design: DesignName = "star",
    scale: ScaleName = "identity",
    n_items: int | None = None,
    lower_is_better: bool = True,
    delta: float | None = None,
) -> Comparison:
    """Which differences of these numbers are larger than what the seeds alone can do.

    values           {row: {seed: value}} where a seed means the same thing in every row, else {row: [values]}: numbers
                     in a list are runs of no seed in particular, and no two of them belong together. NaN: it diverged
    design           "star": each row against the first; "path": each against the one before, and against the first
    scale            on which they are judged: "identity" as they are, "log" as logarithms (a perplexity; differences
                     are then in percent), "logit" as log odds (an accuracy, of `n_items` items)
    lower_is_better  which direction is called better
    delta            a difference that is too small to matter, on the judged scale; a row can then be equivalent

    >>> import lecture04 as l4
    >>> found = l4.judge({"before": [3.822, 3.815, 3.824], "after": [3.790, 3.785, 3.795]})
    >>> found.verdicts[["row", "delta", "lower", "upper", "verdict"]].round(4)
         row   delta   lower   upper verdict
    0  after -0.0303 -0.0414 -0.0193  better
    >>> print(found)
    2 rows of numbers
    after (-0.0303) is better than before; ...

    It shows itself as `table` does. Raises ValueError for numbers, rows and settings that cannot be.
    """
    if design not in get_args(DesignName):
        raise ValueError(f"design={design!r}: there is no such design here." + nearest(design, get_args(DesignName)))
    if scale not in get_args(ScaleName):
        raise ValueError(f"scale={scale!r}: there is no such scale." + nearest(scale, get_args(ScaleName)))
    if (scale == "logit") != (n_items is not None):
        raise ValueError(f"n_items={n_items}: the number of items of an accuracy, for scale='logit' and no other.")
    metric = number_name(scale, lower_is_better=lower_is_better)
    results = _results(_by_seed(values), metric, design, n_items, delta)
    return Comparison(results, judge_all(results))


def _by_seed(values: Values) -> dict[str, dict[int, float]]:
    """{row: {seed: value}}; a list's numbers get seeds that no other row has, so that nothing is paired."""
    if not isinstance(values, Mapping) or not values:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"values={values!r}: must be {{row: {{seed: value}}}} or {{row: [values]}}.")
    kinds = {row: isinstance(seeds, Mapping) for row, seeds in values.items()}
    if len(set(kinds.values())) > 1:
        odd = next(row for row, named in kinds.items() if not named)
        raise ValueError(f"values: row {odd!r} is a list and others name their seeds; write all rows in one way.")
    found: dict[str, dict[int, float]] = {}
    n = 0
    for row, seeds in values.items():
        try:
            pairs = seeds.items() if isinstance(seeds, Mapping) else enumerate(seeds, n)
            found[str(row)] = {int(seed): float(value) for seed, value in pairs}
        except (TypeError, ValueError) as e:
            raise ValueError(f"values: row {row!r} is {seeds!r}; must be {{seed: value}} or a list of numbers.") from e
        n += len(found[str(row)])
    return found


def _results(
    values: dict[str, dict[int, float]], metric: str, design: DesignName, n_items: int | None, delta: float | None
) -> Results:
    """As though these numbers were the results of a table's runs."""
    rows = {
        row: ManifestRow(evaluation="", mismatch=0.0, runs=dict.fromkeys(seeds, ""), other_code=())
        for row, seeds in values.items()
    }
    manifest = Manifest(
        name="numbers",
        title=f"{len(rows)} {'row' if len(rows) == 1 else 'rows'} of numbers",
        design=design,
        primary=metric,
        columns=(metric,),
        delta=delta,
        looks=1,
        command="",
        rows=rows,
    )
    lines: list[dict[str, Any]] = []
    for row, seeds in values.items():
        for seed, value in seeds.items():
            status = (Status.finished if math.isfinite(value) else Status.diverged).value
            measured = {metric: value} | ({METRICS[metric].items: n_items} if n_items else {})
            lines += [
                {"row": row, "seed": seed, "metric": name, "value": x, "status": status, "run": ""}
                for name, x in measured.items()
            ]
    return Results(Path("numbers"), manifest, pd.DataFrame(lines, columns=list(COLUMNS)))
