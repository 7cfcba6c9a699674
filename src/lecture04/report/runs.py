"""`lecture04.runs(...)`: every run of a folder of results, a line each."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from lecture04.config.errors import UserError
from lecture04.config.schema import PARTS
from lecture04.files import not_a_folder
from lecture04.records.metrics import METRICS
from lecture04.records.record import Record
from lecture04.records.store import runs_in

FAMILIES = [family for family in PARTS if family != "logger"]
"""Those that a run is made of."""
FACTS = ["run", "seed", "status", *FAMILIES, "folder"]
"""The columns before the metrics."""


def runs(outputs: str | Path = "outputs") -> pd.DataFrame:
    """Every run under OUTPUTS/runs, a line each: what it is made of, how it ended, and what it reached.

    outputs  where results lie

    The columns are `run` (the folder's name), `seed`, `status`, the name of the part in each family (`ffn`, `norm`,
    ...), `folder`, then a column for each metric that some run has; of a run that was evaluated more than once the last
    evaluation. What is not known of a run is empty: a run that has not ended has no metrics.

    >>> import lecture04 as l4
    >>> tiny = ["trainer.steps=20", "data.n_train=80", "data.n_val=20", "data.n_test=40", "logger=none"]
    >>> for ffn in ("relu", "swiglu"):
    ...     run = l4.train([f"ffn={ffn}", "seed=1", *tiny])
    >>> found = l4.runs()
    >>> found.groupby("ffn")["test/nll"].count()["swiglu"] > 0
    np.True_
    >>> bool((found[found.run == run.folder.name]["test/ppl"] == run.metrics["test/ppl"]).all())
    True

    Raises UserError where there is no such folder.
    """
    place = Path(outputs)
    if not place.is_dir():
        raise UserError(f"outputs={outputs}: {not_a_folder(place) or 'there is no such folder'}.")
    lines = [_line(record) for record in runs_in(place)]
    there = {name for line in lines for name in line}
    known = [name for name in METRICS if name in there]
    others = sorted(there - {*FACTS, *known})  # by position, or of a file that is not here
    return pd.DataFrame(lines, columns=[*FACTS, *known, *others])


def _line(record: Record) -> dict[str, Any]:
    """What is known of a run."""
    made_of, status = _config(record.folder), record.status()
    facts = {
        "run": record.folder.name,
        "seed": made_of.get("seed"),
        "status": status.value,
        **{family: made_of.get(f"{family}.name") for family in FAMILIES},
        "folder": str(record.folder),
    }
    return facts | (record.latest_metrics() if status.is_result else {})


def _config(folder: Path) -> dict[str, Any]:
    """What a run was asked for, by path (`ffn.name`); empty where its identity.json cannot be read."""
    try:
        content = json.loads((folder / "identity.json").read_text(encoding="utf-8"))["config"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return content if isinstance(content, dict) else {}
