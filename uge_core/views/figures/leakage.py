"""Figures of stored audits. A method has one colour and one symbol everywhere.

Colours are Okabe-Ito's, distinguishable with every common colour blindness; no verdict is a colour.
Templates and fonts are left to Streamlit's theme, so that charts follow light and dark.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from uge_core.runs.names import method_class
from uge_core.views.figures.look import named
from uge_core.views.leakage import LeakageView
from uge_core.views.rows import METRIC_LABELS

if TYPE_CHECKING:
    import plotly.graph_objects as go

# plotly 7 would otherwise offer to send a chart's data to its makers.
CHART_CONFIG: dict[str, Any] = {
    "showSendToCloud": False,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}


_MAX_BARS = 6


def leakage_figure(view: LeakageView, *, dark: bool = False) -> go.Figure:
    """Leakage by attribute and run, with intervals and floors.

    Bars from zero, hatched where the interval reaches the floor or the embedding is not usable; dots instead when an attribute
    has more than six runs.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    table, ink = view.table, "#F2F2F2" if dark else "#1A1A1A"
    attributes = list(dict.fromkeys(table["attribute"]))
    counts = [int((table["attribute"] == a).sum()) for a in attributes]
    if not attributes:
        return go.Figure()
    height = 150 + 40 * sum(counts) + 60 * len(attributes)
    figure = make_subplots(
        rows=len(attributes),
        cols=1,
        shared_xaxes=True,
        row_heights=[c + 0.8 for c in counts],
        vertical_spacing=min(60 / height, 0.9 / len(attributes)),
        subplot_titles=[named(a) for a in attributes],
    )
    top = max([1.0 if view.metric == "auc" else 0.0, *_ends(table)])
    for row, attribute in enumerate(attributes, start=1):
        part = table[table["attribute"] == attribute]
        dots = len(part) > _MAX_BARS
        marks = [_mark(go, record, ink, dots=dots) for record in part.to_dict("records")]
        # Floors lie over bars but under dots.
        for mark in [] if dots else marks:
            figure.add_trace(mark, row=row, col=1)
        for floor, symbol, size in (("majority", "line-ns", 20), ("random", "x-thin", 10)):
            known = part[part[floor].notna()]
            marker = {"symbol": symbol, "size": size, "color": ink, "line": {"width": 2.5, "color": ink}}
            figure.add_trace(
                go.Scatter(
                    x=known[floor].tolist(),
                    y=known["run"].tolist(),
                    mode="markers",
                    name=floor,
                    legendgroup=floor,
                    showlegend=row == 1,
                    marker=marker,
                    hovertemplate=f"{floor} %{{x:.3f}}<extra></extra>",
                ),
                row=row,
                col=1,
            )
        for mark in marks if dots else []:
            figure.add_trace(mark, row=row, col=1)
        # The numbers stand in a column of their own, clear of whiskers and ticks.
        figure.add_trace(
            go.Scatter(
                x=[top * 1.04] * len(part),
                y=part["run"].tolist(),
                mode="text",
                textposition="middle right",
                text=[_numbers(r) for r in part.to_dict("records")],
                showlegend=False,
                hoverinfo="skip",
                name="numbers",
                textfont={"size": 13, "color": ink},
                cliponaxis=False,
            ),
            row=row,
            col=1,
        )
    widest = max(len(_numbers(r)) for r in table.to_dict("records"))
    step = 0.1 if top <= 0.6 else 0.2
    low = min([0.0, *table[["value", "ci_low"]].min().dropna()])
    figure.update_xaxes(
        range=[1.05 * low, top * 1.04],
        zeroline=True,
        tickformat=".1f",
        tickvals=[round(step * i, 1) for i in range(int(top / step + 1e-9) + 1)],
    )
    figure.update_xaxes(title_text=f"{METRIC_LABELS[view.metric]}: left is better", row=len(attributes), col=1)
    figure.update_yaxes(autorange="reversed", automargin=True, ticksuffix="  ", showgrid=False)
    # Streamlit's theme greys axis text below the contrast that small text needs.
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont={"size": 13, "color": ink}, title_font={"size": 13, "color": ink})
    figure.update_annotations(x=0, xanchor="left", font={"size": 15, "color": ink})
    figure.update_layout(
        height=height,
        barmode="overlay",
        bargap=0.35,
        margin={"t": 60, "r": 16 + round(7.3 * widest), "l": 10, "b": 50},  # room in pixels, however wide the chart is
        font={"size": 13, "color": ink},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        uirevision="leakage",
    )
    return figure


def _ends(table: Any) -> list[float]:
    values: list[float] = table[["value", "ci_high", "majority", "random"]].max().dropna().tolist()
    return values


def _mark(go: Any, record: dict[str, Any], ink: str, *, dots: bool) -> Any:
    """One run's bar or dot with its whisker."""
    style = method_class(record["method"])
    value, low, high = (_float(record[key]) for key in ("value", "ci_low", "ci_high"))
    known = record["evidence"] == "ok" and not math.isnan(value)
    full = record["telling"] and record.get("usable") != "not usable"
    whisker = None
    if known and not math.isnan(low):
        whisker = {"array": [high - value], "arrayminus": [value - low], "color": ink, "thickness": 1.5}
    shared: dict[str, Any] = {
        "x": [value if known else 0],
        "y": [named(record["run"])],
        "name": named(record["run"]),
        "showlegend": False,
        "error_x": whisker,
        "customdata": [[record["run_id"], record["n"]]],
        "hovertemplate": f"{named(record['run'])}<br>{_numbers(record)}<br>n = %{{customdata[1]:,}}<extra></extra>",
    }
    if dots:
        marker = {
            "color": style.color,
            "symbol": style.symbol + ("" if full else "-open"),
            "size": 14,
            "line": {"width": 2},
        }
        return go.Scatter(mode="markers", marker=marker, **shared)
    bar: dict[str, Any] = {"color": style.color, "line": {"color": style.color, "width": 1.5}}
    if not full:
        bar["pattern"] = {"shape": "/", "fgcolor": style.color, "bgcolor": "rgba(0, 0, 0, 0)", "size": 7}
    return go.Bar(orientation="h", marker=bar, **shared)


def _numbers(record: dict[str, Any]) -> str:
    """Value and interval."""
    value, low, high = (_float(record[key]) for key in ("value", "ci_low", "ci_high"))
    if record["evidence"] != "ok" or math.isnan(value):
        return "not enough evidence"
    unfit = ", not usable" if record.get("usable") == "not usable" else ""
    return f"{value:.3f}" + ("" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]") + unfit


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
