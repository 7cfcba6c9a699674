"""The index of all tables: what each asks, what was found, and how much is there."""

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from lecture04.config.messages import UserError
from lecture04.records.store import tables_in
from lecture04.report.answer import answer
from lecture04.report.comparison import judge_primary
from lecture04.report.html.page import newest, render, source
from lecture04.report.results import collect

log = logging.getLogger(__name__)
LECTURE = "lecture/index.html"
"""From the folder of all results: where `lecture04 lecture` writes its pages, for which there is a link."""


@dataclass(frozen=True)
class Entry:
    """One table. `href` is empty where it has no page yet."""

    name: str
    title: str
    answer: str
    href: str
    newest: datetime | None
    n_runs: int
    n_ended: int


def entries(sweeps: Path) -> list[Entry]:
    """Every table, the newest first; one that cannot be read is said and left out."""
    found = []
    for folder in tables_in(sweeps):
        try:
            results = collect(folder)
        except UserError as e:
            log.warning("%s", e)
            continue
        ended = sum(results.status(row, seed).is_result for row in results.rows for seed in results.seeds)
        found.append(
            Entry(
                name=folder.name,
                title=results.manifest.title,
                answer=answer(results, judge_primary(results)),
                href=f"{quote(folder.name)}/report.html" if (folder / "report.html").exists() else "",
                newest=newest(results),
                n_runs=sum(len(about.runs) for about in results.manifest.rows.values()),
                n_ended=ended,
            )
        )
    return sorted(found, key=lambda entry: entry.newest or datetime.min, reverse=True)


def index(sweeps: Path) -> str:
    """The whole file."""
    lecture = f"../{LECTURE}" if (sweeps.parent / LECTURE).exists() else ""
    return render("index.html.jinja", scripts=[source("sort.js")], entries=entries(sweeps), lecture=lecture)
