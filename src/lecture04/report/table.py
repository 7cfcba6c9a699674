"""One model of a comparison table; terminal, Markdown and CSV are its faces.

The difference of each row to its reference stands beside the seed-noise band (statistics: rules 0 to 3).
"""

import math
from dataclasses import dataclass

from lecture04 import settle
from lecture04.metrics import METRICS
from lecture04.report.collect import Results
from lecture04.runs.record import Status
from lecture04.stats.band import Contrast, band
from lecture04.stats.noise import diverged_rows
from lecture04.stats.scales import Scale, Values, judged_values, scale_of

FAMILY = {
    "star": "vs {reference}",
    "step": "vs row before",
    "total": "vs {reference}",
    "grid": "vs slice's first",
}
OUTSIDE = " *"


@dataclass(frozen=True)
class Table:
    """Cells as text, and the legend that says how to read them."""

    title: str
    headings: list[str]
    rows: list[list[str]]
    legend: list[str]


def build(results: Results) -> list[Table]:
    """The table of the primary metric and, where other judged columns are asked for, that of their differences."""
    shown, others = shown_metrics(results.manifest)
    judged, scale = _judged(results, shown)
    contrasts = _contrasts(results, judged, scale)
    families = list(dict.fromkeys(c.family for c in contrasts))
    seeds = results.seeds
    headings = ["row", METRICS[shown].heading]
    headings += [_against(family, results, scale) for family in families]
    headings += [METRICS[name].heading for name in others]
    headings += [f"seed {seed}" for seed in seeds]
    rows = []
    for row in results.rows:
        cells = [row, _mean(results, row, shown)]
        cells += [_difference(_of(contrasts, row, family), scale) for family in families]
        cells += [_mean(results, row, name) for name in others]
        cells += [_one(results, row, seed, shown) for seed in seeds]
        rows.append(cells)
    main = Table(results.manifest["title"], headings, rows, _legend(results, shown, judged, contrasts))
    second = _other_differences(results, [name for name in others if METRICS[name].judged])
    return [main, second] if second else [main]


def shown_metrics(manifest: dict) -> tuple[str, list[str]]:
    """The metric that carries the band, and the other columns.

    A perplexity is judged as its NLL, so where the primary is an NLL and its perplexity is a column, that one is shown.
    """
    primary, columns = manifest["primary"], list(manifest["columns"])
    as_ppl = primary.removesuffix("/nll") + "/ppl" if primary.endswith("/nll") else primary
    shown = as_ppl if as_ppl in columns else primary
    return shown, [name for name in columns if name != shown]


def _contrasts(results: Results, judged: Values, scale: Scale) -> list[Contrast]:
    return band(judged, design=results.manifest["design"], slices=results.slices, floor=scale.floor(judged))


def _against(family: str, results: Results, scale: Scale) -> str:
    """The heading of a column of differences, with their unit."""
    unit = f", {scale.unit}" if scale.unit else ""
    return FAMILY[family].format(reference=results.rows[0]) + unit


def _judged(results: Results, metric: str) -> tuple[dict[str, dict[int, float]], Scale]:
    """A metric's values on the scale on which it is compared."""
    items = METRICS[metric].items
    n_items = next((int(n) for seeds in results.values(items).values() for n in seeds.values()), 1) if items else None
    scale = scale_of(metric, n_items)
    return judged_values(results.values(metric), scale), scale


def _of(contrasts: list[Contrast], row: str, family: str) -> Contrast | None:
    return next((c for c in contrasts if c.row == row and c.family == family), None)


def _mean(results: Results, row: str, metric: str) -> str:
    values = list(results.values(metric)[row].values())
    if not values:
        return "-"
    if diverged := sum(map(math.isnan, values)):
        return f"diverged {diverged}/{len(values)}"
    mean = sum(values) / len(values)
    text = format(mean, METRICS[metric].format)
    if metric == "d_ff":
        off = results.manifest["rows"][row]["mismatch"]
        return f"{text} ({off:+.1%}!)" if abs(off) > settle.MISMATCH_WARNING else text
    return text


def _one(results: Results, row: str, seed: int, metric: str) -> str:
    status = results.status(row, seed)
    if status is not Status.finished:
        return {Status.missing: "-"}.get(status, status.value)
    return format(results.values(metric)[row][seed], METRICS[metric].format)


def _difference(contrast: Contrast | None, scale: Scale) -> str:
    """A difference and the half-width of its band, as the scale shows them; the reference itself has none."""
    if contrast is None or math.isnan(contrast.delta):
        return ""
    digits = 2 if scale.unit else 4
    text = f"{scale.difference(contrast.delta):+.{digits}f}"
    if math.isnan(contrast.half_width):
        return text
    half = (scale.difference(contrast.upper) - scale.difference(contrast.lower)) / 2
    text += f" ± {half:.{digits}f}"
    noisy = " ~" if contrast.set_aside else ""
    return text + noisy + (OUTSIDE if abs(contrast.delta) > contrast.half_width else "")


def _legend(results: Results, metric: str, judged: Values, contrasts: list[Contrast]) -> list[str]:
    legend = [f"{METRICS[metric].heading}: mean over the seeds; the single seeds stand on the right."]
    if METRICS[metric].heading.endswith("ppl"):
        legend[0] += " Judged as NLL, the difference in percent."
    legend += [f"{METRICS[m].heading}: {METRICS[m].about}." for m in results.manifest["columns"] if METRICS[m].about]
    sure = next((c for c in contrasts if not math.isnan(c.s)), None)
    if sure:
        pool = "each seed's mean taken off first" if sure.blocked else "seeds not paired"
        families = "the steps and the totals each hold together" if sure.family == "step" else "all rows hold together"
        legend.append(
            f"±: the seed-noise band at 95 %, in which {families}; one run's noise is s = {sure.s:.5f} "
            f"on {sure.df} degrees of freedom ({pool})."
        )
        legend.append("*: outside the band. Inside it, the seeds alone could do it; that does not mean equal.")
    elif contrasts:
        legend.append("No band: it takes two seeds at least, better three.")
    legend += _aside(contrasts)
    for row, share in diverged_rows(judged).items():
        legend.append(
            f"{row}: {share.m} of {share.n} seeds diverged (95 % interval {share.low:.0%} to {share.high:.0%})."
        )
    manifest = results.manifest["rows"]
    if off := [row for row in results.rows if abs(manifest[row]["mismatch"]) > settle.MISMATCH_WARNING]:
        legend.append(
            f"!: over {settle.MISMATCH_WARNING:.0%} more or fewer parameters than the matched number: {', '.join(off)}."
        )
    if other := [row for row in results.rows if manifest[row]["other_code"]]:
        legend.append(f"Runs of other code stand in (runs.reuse=config): {', '.join(other)}.")
    return legend


def _aside(contrasts: list[Contrast]) -> list[str]:
    """The legend's line on rows set aside as noisy; none where there are none."""
    aside = dict.fromkeys(name for c in contrasts for name in c.set_aside)
    return [f"~: {name} is noisier than the rest, left out of s and compared by its own seeds." for name in aside]


def _other_differences(results: Results, metrics: list[str]) -> Table | None:
    """Differences and bands of the other judged columns."""
    headings, cells = ["row"], {row: [row] for row in results.rows}
    legend = ["Each metric has a band of its own, uncorrected across metrics."]
    for metric in metrics:
        judged, scale = _judged(results, metric)
        contrasts = _contrasts(results, judged, scale)
        for family in dict.fromkeys(c.family for c in contrasts if not math.isnan(c.delta)):
            headings.append(f"{METRICS[metric].heading} {_against(family, results, scale)}")
            for row in results.rows:
                cells[row].append(_difference(_of(contrasts, row, family), scale))
        legend += [f"{METRICS[metric].heading}, {line}" for line in _aside(contrasts)]
    if len(headings) == 1:
        return None
    return Table("The other metrics' differences", headings, list(cells.values()), legend)
