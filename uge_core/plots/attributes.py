"""Every attribute's leakage of two runs in one panel: light enough to be drawn anew at each step of a slider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uge_core.plots.look import faded, finish, ink, readable_on
from uge_core.screens.tables import interval, known, records
from uge_core.views import METRIC_LABELS, LeakageView, method_class

if TYPE_CHECKING:
    import plotly.graph_objects as go


def attributes_figure(view: LeakageView, *, dark: bool = False) -> go.Figure:
    """Bars from zero, one per attribute and run, hatched where the interval reaches a floor.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    color, rows = ink(dark), records(view.table)
    attributes = list(dict.fromkeys(r["attribute"] for r in rows))
    traces = []
    for run in dict.fromkeys(r["run"] for r in rows):
        mine = [r for r in rows if r["run"] == run]
        shade = method_class(mine[0]["method"]).color
        ends = [(r["value"], r["ci_low"], r["ci_high"]) for r in mine]
        traces.append(
            go.Bar(
                x=[r["value"] for r in mine], y=[r["attribute"] for r in mine], orientation="h", name=run,
                text=[f"{v:.3f}{interval(low, high)}" for v, low, high in ends], insidetextanchor="start", textposition="inside",
                textfont={"color": [readable_on(shade) if r["telling"] else color for r in mine], "size": 13},
                marker={
                    "color": [faded(shade, 1.0 if r["telling"] else 0.0) for r in mine], "line": {"color": shade, "width": 1.5},
                    "pattern": {"shape": ["" if r["telling"] else "/" for r in mine], "fgcolor": faded(shade, 0.5), "size": 7},
                },
                error_x={
                    "array": [h - v if known(h) else 0 for v, _, h in ends], "color": color, "thickness": 1.5,
                    "arrayminus": [v - low if known(low) else 0 for v, low, _ in ends],
                },
                hovertemplate="%{y}: %{text}<extra></extra>",
            )
        )  # fmt: skip
    for floor, symbol, size in (("majority", "line-ns", 34), ("random", "x-thin", 12)):
        first = [next(r for r in rows if r["attribute"] == a) for a in attributes]
        marker = {"symbol": symbol, "size": size, "color": color, "line": {"width": 2.5, "color": color}}
        traces.append(
            go.Scatter(x=[r[floor] for r in first], y=attributes, mode="markers", name=floor, marker=marker)
        )  # fmt: skip
    figure = go.Figure(traces)
    figure.update_xaxes(title_text=f"{METRIC_LABELS[view.metric]}: left is better", range=[0, 1.02])
    figure.update_yaxes(autorange="reversed", showgrid=False, ticksuffix="  ")
    finish(
        figure, dark, height=120 + 64 * len(attributes), barmode="group", bargap=0.3, uirevision="attributes",
        margin={"t": 40, "r": 10, "l": 10, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )  # fmt: skip
    return figure
