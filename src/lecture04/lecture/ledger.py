"""From results to evidence, from claims and evidence to findings, and claims.csv."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lecture04.lecture import (
    fresh,
    judges,  # noqa: F401  registers every judge
)
from lecture04.lecture.claims import Claim
from lecture04.lecture.evidence import Evidence, NotYetError
from lecture04.lecture.finding import JUDGES, Finding, Verdict
from lecture04.lecture.items import ITEMS, Item, Kind
from lecture04.report.results import collect

COLUMNS = ("id", "section", "kind", "lecture", "ours", "verdict")


def evidence(items: Iterable[Item] = ITEMS, failed: Mapping[str, str] | None = None) -> Evidence:
    """The results of all items that are of today's code. Call it inside `fresh.composing()`.

    failed: {source: why} of items that were run and failed.
    """
    why = dict(failed or {})
    probes, sweeps, tests = {}, {}, {}
    for item in items:
        result = item.folder / fresh.RESULT[item.kind]
        try:
            if not fresh.has_result(item):
                how = "is there, but not of today's code and settings" if result.exists() else "has not been run"
                by_hand = f" (make {item.target})" if item.target else ""
                why.setdefault(item.source, f"{item.kind} {item.name} {how}{by_hand}")
                continue
        except Exception as e:  # its config does not compose
            why.setdefault(item.source, f"{item.kind} {item.name}: {' '.join(str(e).split())}")
            continue
        if item.kind is Kind.probe:
            probes[item.name] = pd.read_csv(result)
        elif item.kind is Kind.sweep:
            sweeps[item.name] = collect(item.folder)
        else:
            tests[item.name] = properties(result)
    return Evidence(probes, sweeps, tests, why)


def properties(path: Path) -> dict[str, float]:
    """What a test recorded in its report with `record_testsuite_property`."""
    root = ET.parse(path).getroot()
    return {p.attrib["name"]: float(p.attrib["value"]) for p in root.iter("property")}


def judge(claims: Sequence[Claim], found: Evidence) -> dict[str, Finding]:
    """{claim: finding}. An error in one judge leaves its claim not yet judged and does not stop the others."""
    return {claim.id: _judged(claim, found) for claim in claims}


def _judged(claim: Claim, found: Evidence) -> Finding:
    try:
        finding = JUDGES[claim.id](claim, found)
        if claim.is_set and finding.verdict is Verdict.reproduced:
            finding = replace(finding, verdict=Verdict.set)
        # A diverged run's figures are NaN.
        return replace(finding, ours=re.sub(r"[-+]?\bnan\b", "diverged", finding.ours))
    except NotYetError as e:
        return _not_yet(str(e))
    except Exception as e:
        return _not_yet(f"the judge cannot read its evidence: {type(e).__name__}: {e}")


def _not_yet(why: str) -> Finding:
    return Finding(why, Verdict.not_yet, why)


def as_csv(claims: Sequence[Claim], findings: Mapping[str, Finding]) -> str:
    """claims.csv: a line per claim."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for claim in claims:
        finding = findings[claim.id]
        writer.writerow([claim.id, claim.section, claim.kind, claim.lecture, finding.ours, finding.said])
    return file.getvalue()
