"""The page of one table: what it shows, and the file that shows it."""

import base64
import hashlib
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lecture04.records.metrics import METRICS
from lecture04.report.comparison import judge_all
from lecture04.report.environment import environment
from lecture04.report.figures import data
from lecture04.report.figures.style import LOOKS, MOST_TOLD_APART, line
from lecture04.report.html.charts import charts
from lecture04.report.html.rows import RowDetails, differing, row_details, shared
from lecture04.report.html.views import choices, combinations, metric_data, rounded, views
from lecture04.report.model import Table
from lecture04.report.results import Results
from lecture04.report.table import asked_columns, other_differences

TEMPLATES = Path(__file__).parent / "templates"
MOST_BYTES = 5_000_000
"""Of one file: it is sent by mail and opened on phones."""


def page(results: Results) -> str:
    """The whole file."""
    about = row_details(results)
    content = _content(results, _trained_length(about))
    default = f"{content['metrics'][0]}|0"
    others = other_differences(results, judge_all(results)[1:])
    return render(
        "sweep.html.jinja",
        scripts=[library(), source("sort.js"), source("page.js")],
        data=content
        | {
            "settings": [[row.settings.get(key, "") for key in differing(about)] for row in about],
            "setting_names": differing(about),
        },
        manifest=results.manifest,
        finished=newest(results),
        default=content["views"][default],
        metrics=[(name, METRICS[name].label) for name in content["metrics"]],
        baselines=choices(results)[1],
        figures=_asked(results),
        others=others,
        others_rows=[[str(cell) for cell in row[1:]] for row in others.rows] if others else [],
        names=results.rows,
        most_told_apart=MOST_TOLD_APART,
        rows=about,
        shared=shared(about),
        made_with=results.manifest.environment or environment(),
        n_seeds=len(results.seeds),
    )


def _content(results: Results, trained: float | None) -> dict[str, Any]:
    """What the page's script switches between."""
    metrics = choices(results)[0]
    by_position = data.positions(results)
    return {
        "rows": results.rows,
        "metrics": metrics,
        "metric": {metric: metric_data(results, metric) for metric in metrics},
        "baselines": {
            metric: [results.rows.index(b) for m, b in combinations(results) if m == metric] for metric in metrics
        },
        "views": views(results),
        "curves": {
            **{name: _curves(results, data.learning(results, name)) for name in data.CURVES},
            "positions": _curves(results, by_position, floor=0.0),
        },
        "trained": trained,
        "charts": charts(trained=trained),
        "lines": _lines(results),
        "looks": {name: [look.shape, look.filled] for name, look in LOOKS.items()},
    }


def _lines(results: Results) -> list[list[Any]]:
    """[colour's name, dashes, width] of each row's curve."""
    if len(results.rows) > MOST_TOLD_APART:
        return [["var(--ink)", [], 2.5], *(["var(--thread)", [], 1] for _ in results.rows[1:])]
    colours = list(dict.fromkeys(line(i)[0] for i in range(len(results.rows))))
    return [
        [f"var(--line-{colours.index(colour)})", list(dash), 2] for colour, dash in map(line, range(len(results.rows)))
    ]


def _curves(results: Results, by_row: dict[str, data.Curve], floor: float | None = None) -> dict[str, Any]:
    """{"rows": {number of the row: its curve}, "range": what the y axis shows}; empty where there are none."""
    if not by_row:
        return {}
    number = {row: i for i, row in enumerate(results.rows)}
    found = {
        number[row]: {"x": c.x, "mean": rounded(c.mean), "low": rounded(c.low), "high": rounded(c.high)}
        for row, c in by_row.items()
    }
    return {"rows": found, "range": rounded(list(data.y_range(by_row.values(), floor)))}


def _trained_length(about: list[RowDetails]) -> float | None:
    """The length that every row was trained on, where its settings are known and alike."""
    found = {row.settings.get("data.max_len") for row in about if row.settings}
    length = found.pop() if len(found) == 1 else None
    return float(length) if length else None


def _asked(results: Results) -> dict[str, Any]:
    """The columns that no choice of metric and baseline changes."""
    table = Table.of("", list(asked_columns(results)), results.rows)
    return {"headings": table.headings, "rows": [[str(cell) for cell in row] for row in table.rows]}


def newest(results: Results) -> datetime | None:
    """When the last of the table's runs ended."""
    summaries = [record.folder / "summary.json" for runs in results.records.values() for record in runs.values()]
    times = [path.stat().st_mtime for path in summaries if path.exists()]
    return datetime.fromtimestamp(max(times)) if times else None


def render(template: str, *, scripts: list[str], **values: Any) -> str:
    """A template filled in, everything escaped, and only these scripts allowed to run."""
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    # A name that got past the escaping would still not run: the browser is told which scripts are ours.
    allowed = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = f"default-src 'none'; script-src {allowed or 'none'}; style-src 'unsafe-inline'; img-src data:"
    return jinja.get_template(template).render(
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (ours, and from a package)
        style=Markup(source("style.css")),  # noqa: S704
        policy=policy,
        **values,
    )


def source(name: str) -> str:
    """A file of templates/."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, of the version that the charts are written for."""
    wanted = altair.SCHEMA_VERSION.lstrip("v").rpartition(".")[0]
    script = vl_convert.javascript_bundle(vl_version=wanted)  # pyright: ignore[reportCallIssue] (its stub lacks a default)
    # In a script element nothing may look like the element's end.
    return script.replace("</script", "<\\/script")
