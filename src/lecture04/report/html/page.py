"""The page of one table: what it shows, and the file that shows it."""

import base64
import hashlib
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lecture04.records.metrics import METRICS
from lecture04.report.answer import answer
from lecture04.report.environment import environment
from lecture04.report.figures import data
from lecture04.report.figures.style import COLOURS, LOOKS, MOST_TOLD_APART, line
from lecture04.report.html.rows import RowDetails, differing, row_details, shared, told
from lecture04.report.html.script import drawing
from lecture04.report.html.views import View, choices, metric_data, rounded, shown, views
from lecture04.report.model import Table
from lecture04.report.results import Results
from lecture04.report.table import asked_columns, other_differences

TEMPLATES = Path(__file__).parent / "templates"
MOST_BYTES = 2_000_000
"""Of one file: it is sent by mail and opened on phones."""
MOST_BEFORE_TABLE = 15
"""Rows of a forest plot that stands above its table; a longer one stands below."""


def page(results: Results) -> str:
    """The whole file."""
    about = row_details(results)
    found = views(results)
    own = next(iter(found.values()))
    others = other_differences(results, [found[f"{metric}|0"].judged for metric in choices(results)[0][1:]])
    content = _content(results, found, _trained_length(about))
    names = differing(about)
    return render(
        "sweep.html.jinja",
        scripts=[drawing().library, source("sort.js"), source("page.js")],
        data=content
        | {
            "settings": [[row.settings.get(name, "") for name in names] for row in about],
            "setting_names": names,
            "told": told(about),
        },
        manifest=results.manifest,
        answer=answer(results, own.judged),
        best=_best(results, own.judged.metric),
        finished=newest(results),
        default=content["views"][next(iter(found))],
        default_notes=[content["notes"][i] for i in content["views"][next(iter(found))]["notes"]],
        metrics=[(name, METRICS[name].label) for name in content["metrics"]],
        baselines=choices(results)[1],
        figures=_asked(results),
        others=others,
        others_rows=[[str(cell) for cell in row[1:]] for row in others.rows] if others else [],
        names=results.rows,
        plots_first=len(results.rows) <= MOST_BEFORE_TABLE,
        rows=about,
        shared=shared(about),
        made_with=results.manifest.environment or environment(),
        n_seeds=len(results.seeds),
    )


def _content(results: Results, found: dict[str, View], trained: float | None) -> dict[str, Any]:
    """What the page's script switches between."""
    metrics = choices(results)[0]
    all_shown = {key: shown(view) for key, view in found.items()}
    # Most notes are the same whatever is chosen.
    notes = list(dict.fromkeys(note for of_view in all_shown.values() for note in of_view["notes"]))
    place = {note: i for i, note in enumerate(notes)}
    floors = {"val/nll": data.floor(results, "val"), "train/loss": data.floor(results, "train")}
    return {
        "rows": results.rows,
        "metrics": metrics,
        "metric": {metric: metric_data(found[f"{metric}|0"]) for metric in metrics},
        "baselines": {metric: [i for i in range(len(results.rows)) if f"{metric}|{i}" in found] for metric in metrics},
        "views": {key: view | {"notes": [place[note] for note in view["notes"]]} for key, view in all_shown.items()},
        "notes": notes,
        "curves": {
            **{name: _curves(results, data.learning(results, name), floors[name]) for name in data.CURVES},
            "positions": _curves(results, data.positions(results), 0.0),
        },
        "trained": trained,
        "charts": drawing().charts,
        "lines": _lines(results.rows),
        "grid": _grid(results),
        "looks": {name: [look.shape, look.filled] for name, look in LOOKS.items()},
    }


def _best(results: Results, metric: str) -> str:
    """What the true distribution reaches of a metric, as it is written; empty where that is not known."""
    best = data.best_possible(results, metric)
    return "" if best is None else f"{METRICS[metric].label} {best:{METRICS[metric].format}}"


def _lines(names: Collection[str]) -> list[list[Any]]:
    """[colour's name, dashes, width] of the line of each of these rows."""
    if len(names) > MOST_TOLD_APART:
        return [["var(--ink)", [], 2.5], *(["var(--thread)", [], 1] for _ in range(len(names) - 1))]
    lines = map(line, range(len(names)))
    return [[f"var(--line-{COLOURS.index(colour)})", list(dashes), 2] for colour, dashes in lines]


def _grid(results: Results) -> dict[str, Any]:
    """The slices of a grid in their order, the names and looks of its lines, and [line, slice] of each row.

    Empty where the slices are no quantity, so that a line from one to the next would mean nothing.
    """
    of_row = results.slices or {}
    slices = list(dict.fromkeys(of_row.values()))
    if len(slices) < 2 or not data.is_one_quantity(slices):
        return {}
    name = {row: data.within_slice(row, of_row[row]) for row in results.rows}
    names = list(dict.fromkeys(name.values()))
    places = [[names.index(name[row]), slices.index(of_row[row])] for row in results.rows]
    return {"slices": slices, "names": names, "lines": _lines(names), "places": places}


def _curves(results: Results, by_row: dict[str, data.Curve], best: float | None) -> dict[str, Any]:
    """{"rows": {number of the row: its curve}, "range": what the y axis shows, "best"}; empty where there are none.

    A curve's `place` is that of the label at its end; of rows that are not told apart the first has one alone.
    """
    if not by_row:
        return {}
    low, high = data.y_range(by_row.values(), best)
    told_apart = len(results.rows) <= MOST_TOLD_APART
    labelled = [row for row in by_row if told_apart or row == results.rows[0]]
    places = dict(zip(labelled, data.label_places([by_row[row].mean[-1] for row in labelled], low, high), strict=True))
    found = {
        results.rows.index(row): {
            "x": c.x,
            "mean": rounded(c.mean),
            "low": rounded(c.low),
            "high": rounded(c.high),
            "place": places.get(row),
        }
        for row, c in by_row.items()
    }
    return {"rows": found, "range": rounded([low, high]), "best": best}


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
    times = [record.ended() for runs in results.records.values() for record in runs.values()]
    return max((time for time in times if time), default=None)


def render(template: str, *, scripts: list[str], templates: Path = TEMPLATES, style: str = "", **values: Any) -> str:
    """A template filled in, everything escaped, and only these scripts allowed to run.

    `templates`: a folder of templates beside ours, which may use our macros; `style`: CSS that is added to ours.
    """
    jinja = environment_of(templates)
    jinja.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    # A name that got past the escaping would still not run: the browser is told which scripts are ours.
    ours = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    allowed = ours or "'none'"
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"
    return jinja.get_template(template).render(
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (ours, and from a package)
        style=Markup("\n".join([*palette(), source("table.css"), source("style.css"), style])),  # noqa: S704
        policy=policy,
        **values,
    )


def environment_of(*templates: Path) -> Environment:
    """Jinja with our templates, after those of other folders; what is filled in is escaped."""
    return Environment(
        loader=FileSystemLoader([*templates, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(name: str) -> str:
    """A file of templates/."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def palette() -> Iterable[str]:
    """The colours of verdicts and of lines as names, `--better` and `--line-0`: light, and dark on a dark screen."""
    looks = {look_name(verdict): look.colour for verdict, look in LOOKS.items()}
    colours = looks | {f"line-{i}": colour for i, colour in enumerate(COLOURS)}

    def names(ground: str) -> str:
        return " ".join(f"--{name}: {getattr(colour, ground)};" for name, colour in colours.items())

    yield f":root {{ {names('light')} }}"
    yield f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {names('dark')} }} }}"


def look_name(verdict: str) -> str:
    """The name of a verdict's colour and of its badge: its first word."""
    return verdict.split()[0]
