"""Evidence for judges: tables made up in memory, and the tables of real probes that take a second."""

import importlib.util
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count, cycle, permutations
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from lecture04.config.places import CONF
from lecture04.lecture.claims import claims
from lecture04.lecture.evidence import Evidence
from lecture04.lecture.finding import Finding
from lecture04.lecture.items import ITEMS
from lecture04.lecture.ledger import judge
from lecture04.lecture.probes.command import resolved
from lecture04.lecture.probes.options import PROBES
from lecture04.records.metrics import METRICS
from lecture04.report.manifest import Manifest
from lecture04.report.results import Results

Values = Mapping[str, Mapping[str, list[float]]]


class Seeds:
    """Three seeds of a row, that far apart; which of them is high differs from row to row, as noise does."""

    def __init__(self) -> None:
        self.orders = cycle(permutations((-1, 0, 1)))

    def __call__(self, value: float, by: float = 0.002) -> list[float]:
        return [value + sign * by for sign in next(self.orders)]


def made_up(
    name: str,
    values: Values,
    *,
    design: str = "star",
    slices: Mapping[str, str] | None = None,
    statuses: Mapping[tuple[str, int], str] | None = None,
    folder: Path = Path("nowhere"),
) -> Results:
    """A sweep's results from {metric: {row: a value a seed}}; a perplexity gives its NLL as well.

    A run that `statuses` calls diverged is NaN where it is judged; one it calls missing or failed has no line.
    """
    given = dict(values)
    for metric, rows in values.items():
        if metric.endswith("/ppl"):
            logs = {row: [math.log(x) for x in xs] for row, xs in rows.items()}
            given.setdefault(metric.removesuffix("ppl") + "nll", logs)
    names = list(dict.fromkeys(row for rows in given.values() for row in rows))
    n_seeds = {row: max(len(rows[row]) for rows in given.values() if row in rows) for row in names}
    how = {(row, seed): "finished" for row in names for seed in range(n_seeds[row])} | dict(statuses or {})
    lines: list[dict[str, object]] = []
    for (row, seed), status in how.items():
        common = {"row": row, "seed": seed, "status": status, "run": f"{row}-{seed}"}
        if status in ("missing", "failed"):
            lines.append(common | {"metric": "", "value": math.nan})
            continue
        for metric, rows in given.items():
            if row in rows and seed < len(rows[row]):
                hidden = status == "diverged" and METRICS[metric].noisy
                lines.append(common | {"metric": metric, "value": math.nan if hidden else rows[row][seed]})
    content = {
        "name": name,
        "title": name,
        "design": design,
        "primary": "test/nll",
        "delta": None,
        "looks": 1,
        "columns": ["test/ppl"],
        "command": f"python train.py -m sweeps={name}",
        "rows": {
            row: {
                "evaluation": "key",
                "overrides": [],
                "mismatch": 0.0,
                "other_code": [],
                "runs": {str(seed): f"{row}-{seed}" for seed in range(n_seeds[row])},
                **({"slice": slices[row]} if slices else {}),
            }
            for row in names
        },
    }
    columns = ["row", "seed", "metric", "value", "status", "run"]
    manifest = Manifest.from_json(content, file="sweep.json", name=name)
    return Results(folder / "sweeps" / name, manifest, pd.DataFrame(lines, columns=columns))


def write_curve(results: Results, row: str, seed: int, lines: list[dict[str, float]]) -> None:
    """A run's metrics.jsonl."""
    folder = results.folder.parent.parent / "runs" / results.manifest.rows[row].runs[seed]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def verdict(claim: str, evidence: Evidence) -> str:
    """What the claim's judge says."""
    return str(finding(claim, evidence).verdict)


def finding(claim: str, evidence: Evidence) -> Finding:
    """What the ledger keeps of it: never without our figures, nor, unless it is reproduced or set, without a reason."""
    (about,) = [c for c in claims() if c.id == claim]
    found = judge([about], evidence)[claim]
    assert found.ours
    assert bool(found.reason) == (found.verdict not in ("reproduced", "set"))
    assert "cannot read" not in found.reason
    return found


def rows(columns: str, *lines: tuple) -> pd.DataFrame:
    """A probe's table."""
    return pd.DataFrame(list(lines), columns=columns.split())


@pytest.fixture(scope="session")
def kit_in() -> Callable[[Path], SimpleNamespace]:
    """`kit_in(folder)`: the helpers of this file, by name; `kit.folder` is for runs' files."""
    helpers = (made_up, write_curve, verdict, finding, rows)
    return lambda folder: SimpleNamespace(folder=folder, around=Seeds(), **{h.__name__: h for h in helpers})


@pytest.fixture
def new_kit(tmp_path, kit_in) -> Callable[[], SimpleNamespace]:
    """Makes kits, the folder of each empty."""
    number = count()

    def new() -> SimpleNamespace:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        return kit_in(folder)

    return new


@pytest.fixture
def kit(new_kit) -> SimpleNamespace:
    """One such kit."""
    return new_kit()


@pytest.fixture(scope="session")
def cases() -> dict[str, Callable[[SimpleNamespace, bool], Evidence]]:
    """{claim: its evidence, for `kit` and whether it agrees}."""
    spec = importlib.util.spec_from_file_location("made_up_evidence", Path(__file__).with_name("made_up_evidence.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


@cache
def _real(name: str) -> pd.DataFrame:
    item = next(item for item in ITEMS if item.source == f"probe:{name}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        request, options = resolved(compose("probe", overrides=list(item.arguments[1:])))
    return PROBES.lookup(options.name)(request, options)


@pytest.fixture(scope="session")
def real() -> Callable[[str], pd.DataFrame]:
    """`real("rope")`: the table of a probe, with the settings that the lecture's pages ask it with."""
    return lambda name: _real(name).copy()
