"""The page's charts as Vega-Lite specifications, made with Altair. The page gives each its rows, and draws it.

Colours are names of the page's own (`var(--worse)`), so that light, dark and paper each have theirs.
"""

from typing import Any

import altair as alt

from lecture04.report.figures.data import CURVES, PLOT_HEIGHT, POSITIONS

Layers = alt.LayerChart | alt.FacetChart
ROW_HEIGHT = 23
LEADER = 24
"""Pixels from the end of a curve to its label: long enough to show the dashes."""
ROWS, DOTS, ENDS, LINES = (alt.NamedData(name) for name in ("rows", "dots", "ends", "lines"))
"""The data, which the page gives: a forest's rows and their single seeds; the points of curves, the labels at their
ends, and the lines that are no curve."""
X_TITLE = "@x"
"""Where the page writes what is measured."""


def charts() -> dict[str, dict[str, Any]]:
    """{name: specification} of every chart."""
    made = {
        "forest": forest(),
        "strip": strip(),
        "waterfall": waterfall(),
        "grid": grid(),
        **{name: curves("step", title) for name, title in CURVES.items()},
        "positions": curves("position in the block, tokens", POSITIONS),
    }
    return {name: _plain(chart) for name, chart in made.items()}


def _plain(chart: Layers) -> dict[str, Any]:
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec = chart.to_dict(validate=True)
    # The page gives the looks.
    for given in ("config", "$schema"):
        spec.pop(given, None)
    return spec


def _y() -> alt.Y:
    # No sorting: the rows come in the order of the table.
    return alt.Y("row:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))


def _own(name: str, kind: str = "nominal") -> dict[str, Any]:
    """A field that holds a colour, a shape or a width itself: no scale, no legend."""
    return {"field": name, "type": kind, "scale": None, "legend": None}


def _base() -> alt.Chart:
    return alt.Chart(ROWS, width="container", height=alt.Step(ROW_HEIGHT))


def _verdict_beside(base: alt.Chart) -> alt.Chart:
    """The verdict in words, right of the plot."""
    return base.mark_text(align="left", dx=8, aria=False).encode(
        x=alt.XValue("width"), y=_y(), text="verdict:N", color=alt.Color(**_own("ink"))
    )


def _crosses(base: alt.Chart) -> alt.Chart:
    """A cross at the edge for each diverged run."""
    marks = base.transform_filter("datum.cross >= 0").mark_point(
        shape="cross",
        angle=45,
        size=90,
        opacity=1,
        filled=True,
        color="var(--diverged)",
        xOffset=alt.expr("9 + 15 * datum.cross"),
    )
    return marks.encode(x=alt.XValue("width"), y=_y(), tooltip=["row:N", "seed:N", "said:N"])


def forest() -> Layers:
    """Differences with their intervals and single seeds, on the grey band of what noise alone could do.

    Dotted: a declared margin.
    """
    base = _base()
    x: dict[str, Any] = {"type": "quantitative", "title": X_TITLE, "scale": alt.Scale(padding=8)}
    tip = [alt.Tooltip(f"{name}:N", title=title) for name, title in _FOREST_TIP.items()]
    band = base.mark_bar(height=alt.RelativeBandSize(band=1), color="var(--band)", aria=False)
    zero = alt.Chart(alt.InlineData(values=[{}])).mark_rule(color="var(--ink)", aria=False).encode(x=alt.datum(0))
    margin = base.mark_rule(color="var(--ink)", strokeDash=[2, 3], strokeWidth=1.5, aria=False)
    interval = base.mark_rule(strokeWidth=2, aria=False, yOffset=-3)
    point = base.mark_point(size=70, strokeWidth=2, opacity=1, yOffset=-3)
    dots = alt.Chart(DOTS).mark_circle(size=16, color="var(--ink)", opacity=0.75, yOffset=6)
    return alt.layer(
        band.encode(x=alt.X("noise_low", **x), x2="noise_high", y=_y()).properties(name="interval_of_noise"),
        zero,
        margin.encode(x=alt.X("min(margin_low)", **x)).properties(name="margin_low"),
        margin.encode(x=alt.X("max(margin_high)", **x)).properties(name="margin_high"),
        interval.encode(x=alt.X("low", **x), x2="high", y=_y(), color=alt.Color(**_own("ink")), tooltip=tip).properties(
            name="interval"
        ),
        point.encode(
            x=alt.X("value", **x),
            y=_y(),
            shape=alt.Shape(**_own("shape")),
            stroke=alt.Stroke(**_own("ink")),
            fill=alt.Fill(**_own("fill")),
            tooltip=tip,
        ),
        dots.encode(
            x=alt.X("value", **x), y=_y(), tooltip=["row:N", "seed:N", alt.Tooltip("said:N", title="difference")]
        ),
        _verdict_beside(base),
    )


_FOREST_TIP = {"row": "row", "reference": "against", "said": "difference", "interval": "interval", "verdict": "verdict"}


def strip() -> Layers:
    """Every seed of every row, the same seed joined by a thin line; diverged runs are crosses at the edge."""
    base = _base()
    x = alt.X("value:Q", title=X_TITLE, scale=alt.Scale(zero=False, padding=8))
    lines = base.mark_line(color="var(--thread)", strokeWidth=1, aria=False)
    means = base.mark_tick(color="var(--ink)", thickness=2.5, bandSize=16, aria=False)
    points = base.mark_circle(size=55, color="var(--dot)", opacity=0.75)
    return alt.layer(
        lines.encode(x=x, y=_y(), detail="seed:N", order="place:Q"),
        means.encode(x=alt.X("mean:Q", title=X_TITLE, scale=alt.Scale(zero=False, padding=8)), y=_y()),
        points.encode(x=x, y=_y(), tooltip=["row:N", "seed:N", alt.Tooltip("said:N", title="value")]),
        _crosses(base),
    )


def waterfall() -> Layers:
    """A path's steps as bars from mean to mean, each with its interval."""
    base = _base()
    x: dict[str, Any] = {"type": "quantitative", "title": X_TITLE, "scale": alt.Scale(zero=False, padding=8)}
    tip = [alt.Tooltip(f"{name}:N", title=title) for name, title in _WATERFALL_TIP.items()]
    bars = base.mark_bar(height=alt.RelativeBandSize(band=0.6), strokeWidth=1.5)
    whiskers = base.mark_rule(color="var(--ink)", strokeWidth=1.5, aria=False)
    first = base.transform_filter("datum.start === null").mark_tick(color="var(--ink)", thickness=3, bandSize=18)
    return alt.layer(
        bars.encode(
            x=alt.X("start", **x),
            x2="end",
            y=_y(),
            fill=alt.Fill(**_own("fill")),
            stroke=alt.Stroke(**_own("ink")),
            tooltip=tip,
        ),
        whiskers.encode(x=alt.X("low", **x), x2="high", y=_y(), tooltip=tip),
        first.encode(x=alt.X("end", **x), y=_y(), tooltip=["row:N", alt.Tooltip("said:N", title="value")]),
        _verdict_beside(base),
    )


_WATERFALL_TIP = {"row": "row", "said": "from, to", "interval": "interval", "verdict": "verdict"}


def _ends(y: dict[str, Any]) -> tuple[alt.Chart, alt.Chart]:
    """The name of each line right of the plot, and the leader from the line's end to it."""
    ends = alt.Chart(ENDS)
    leader = ends.mark_rule(x2Offset=LEADER, strokeWidth=1.5, aria=False).encode(
        x=alt.XValue("width"),
        x2=alt.X2Value("width"),
        y=alt.Y("mean", **y),
        y2="place",
        color=alt.Color(**_own("colour")),
        strokeDash=alt.StrokeDash(**_own("dash")),
    )
    name = ends.mark_text(align="left", dx=LEADER + 3, color="var(--ink)", aria=False).encode(
        x=alt.XValue("width"), y=alt.Y("place", **y), text="said:N"
    )
    return leader, name


def grid() -> Layers:
    """A line a row from slice to slice through its means, a dot a run; its name stands at its end."""
    base = alt.Chart(ROWS, width="container", height=PLOT_HEIGHT)
    x = alt.X("slice:N", sort=None, title=None, scale=alt.Scale(type="point", padding=0), axis=alt.Axis(labelAngle=0))
    y: dict[str, Any] = {"type": "quantitative", "title": X_TITLE, "scale": alt.Scale(zero=False)}
    colour = alt.Color(**_own("colour"))
    tip = [alt.Tooltip("line:N", title="row"), "slice:N", "seed:N", alt.Tooltip("said:N", title="value")]
    return alt.layer(
        base.mark_line(aria=False).encode(
            x=x,
            y=alt.Y("mean", **y),
            detail="line:N",
            order="place:Q",
            color=colour,
            strokeDash=alt.StrokeDash(**_own("dash")),
        ),
        base.mark_circle(size=40, opacity=0.75).encode(x=x, y=alt.Y("value", **y), color=colour, tooltip=tip),
        *_ends(y),
    )


def curves(x_title: str, y_title: str) -> Layers:
    """A line a row, with the band from its lowest seed to its highest and its name at its end.

    Its points are read on hover. Other lines: the best that is possible, where the trained length ends.
    """
    base = alt.Chart(ROWS, width="container", height=PLOT_HEIGHT)
    # The page names the range: the first steps tower over all that is of interest.
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(nice=False))
    y: dict[str, Any] = {"type": "quantitative", "title": y_title, "scale": alt.Scale(zero=False)}
    # In a crowd the row at the pointer stands out. Not the nearest one: its tooltip would not know the row's name.
    near = alt.selection_point(name="near", on="pointerover", fields=["row"], empty=False, clear="pointerout")
    width = alt.condition(near, alt.value(3.5), alt.StrokeWidth(**_own("width", "quantitative")))
    tip = [alt.Tooltip("row:N"), alt.Tooltip("x:Q", title=x_title.partition(",")[0], format=",.0f")]
    tip += [alt.Tooltip(f"{name}:Q", title=name, format=".4f") for name in ("mean", "low", "high")]
    colour = alt.Color(**_own("colour"))
    lines = alt.Chart(LINES)
    dotted = lines.mark_rule(color="var(--ink)", strokeDash=[2, 3], aria=False)
    return alt.layer(
        dotted.encode(y=alt.Y("y", **y)).properties(name="line_y"),
        lines.mark_text(align="left", baseline="top", dx=4, dy=3, color="var(--ink)", aria=False)
        .encode(x=alt.XValue(0), y=alt.Y("y", **y), text="said:N")
        .properties(name="line_y_said"),
        dotted.encode(x=x).properties(name="line_x"),
        base.mark_area(clip=True, opacity=0.16, aria=False).encode(
            x=x, y=alt.Y("low", **y), y2="high", detail="row:N", color=colour
        ),
        base.mark_line(clip=True, aria=False).encode(
            x=x,
            y=alt.Y("mean", **y),
            detail="row:N",
            color=colour,
            strokeDash=alt.StrokeDash(**_own("dash")),
            strokeWidth=width,
        ),
        *_ends(y),
        base.mark_point(clip=True, filled=True, size=100, aria=False)
        .encode(
            x=x,
            y=alt.Y("mean", **y),
            color=colour,
            opacity=alt.Opacity(**_own("dot", "quantitative")),
            tooltip=tip,
        )
        .add_params(near),
    )
