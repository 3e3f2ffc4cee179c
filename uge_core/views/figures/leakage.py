"""Figures of stored audits. A method has one colour and one symbol everywhere.

Colours are distinguishable with every common colour blindness, by symbols where not; no verdict is a colour.
Templates and fonts are left to Streamlit's theme, so that charts follow light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uge_core.runs.names import method_class
from uge_core.views.figures.look import faded, finish, ink, named
from uge_core.views.leakage import LeakageView
from uge_core.views.rows import METRIC_LABELS
from uge_core.views.words import known, records

if TYPE_CHECKING:
    import plotly.graph_objects as go

# plotly 7 would otherwise offer to send a chart's data to its makers.
CHART_CONFIG: dict[str, Any] = {
    "showSendToCloud": False,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}
_ROW = 46  # pixels: a line of words and the line that it is about
_COIN = 0.5
_GRID_TICKS = {"auc": {"tickvals": [0.5, 0.75, 1.0]}}


def leakage_figure(view: LeakageView, *, dark: bool = False) -> go.Figure:
    """Leakage by attribute and method: a dot with its interval and its seeds, under the words that say it.

    The axis begins at a coin for the AUC, else where the lowest floor or figure is: dots, unlike bars, need no zero. What
    is not distinguishable from guessing, or not usable, is hollow. Words stand above their line, so that they fit on a
    phone too.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    table, color = view.table, ink(dark)
    attributes = list(dict.fromkeys(table["attribute"]))
    if not attributes:
        return go.Figure()
    rows = records(table)
    counts = [sum(r["attribute"] == a for r in rows) for a in attributes]
    height = 96 + _ROW * sum(counts) + 44 * len(attributes)
    figure = make_subplots(
        rows=len(attributes),
        cols=1,
        shared_xaxes=True,
        row_heights=counts,
        vertical_spacing=min(44 / height, 0.9 / len(attributes)),
        subplot_titles=[named(a) for a in attributes],
    )
    low, high = axis_ends(view)
    for at, attribute in enumerate(attributes, start=1):
        mine = [r for r in rows if r["attribute"] == attribute]
        for trace in _floors(go, mine, at == 1, color):
            figure.add_trace(trace, row=at, col=1)
        for trace in _dots(go, mine, color):
            figure.add_trace(trace, row=at, col=1)
        words = [f"{named(r['run'])}: {_numbers(r)}" for r in mine]
        figure.add_trace(
            go.Scatter(
                x=[low] * len(mine),
                y=[i - 0.42 for i in range(len(mine))],
                mode="text",
                textposition="middle right",
                text=words,
                showlegend=False,
                hoverinfo="skip",
                name="numbers",
                textfont={"size": 13, "color": color},
                cliponaxis=False,
            ),
            row=at,
            col=1,
        )
        figure.update_yaxes(range=[len(mine) - 0.5, -0.8], row=at, col=1)
    figure.update_xaxes(range=[low, high], zeroline=False, tickformat=".2~f" if high - low > 0.05 else ".4~f")
    figure.update_xaxes(title_text=_axis_title(view), row=len(attributes), col=1)
    figure.update_yaxes(showgrid=False, showticklabels=False, zeroline=False)
    figure.update_annotations(x=0, xanchor="left", font={"size": 15, "color": color})
    finish(
        figure,
        dark,
        height=height,
        margin={"t": 64, "r": 14, "l": 14, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "top", "x": 0, "xanchor": "left", "yref": "container"},
        uirevision="leakage",
    )
    return figure


def leakage_grid(view: LeakageView, *, dark: bool = False) -> go.Figure:
    """Small multiples for many runs and attributes: a column for each attribute, the methods named once at the left.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    color, rows = ink(dark), records(view.table)
    attributes = list(dict.fromkeys(r["attribute"] for r in rows))
    names = list(dict.fromkeys(r["run"] for r in rows))
    if not attributes:
        return go.Figure()
    figure = make_subplots(
        rows=1,
        cols=len(attributes),
        shared_yaxes=True,
        horizontal_spacing=0.02,
        subplot_titles=[named(a) for a in attributes],
    )
    place = {name: i for i, name in enumerate(names)}
    for at, attribute in enumerate(attributes, start=1):
        mine = [r for r in rows if r["attribute"] == attribute]
        where = [place[r["run"]] for r in mine]
        for trace in (*_floors(go, mine, at == 1, color, where), *_dots(go, mine, color, where)):
            figure.add_trace(trace, row=1, col=at)
    low, high = axis_ends(view)
    figure.update_xaxes(
        range=[low, high], zeroline=False, tickformat=".2~f", **_GRID_TICKS.get(view.metric, {"nticks": 4})
    )
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], zeroline=False)
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[named(n) for n in names], ticksuffix="  ", col=1)
    figure.update_annotations(font={"size": 15, "color": color})
    finish(
        figure,
        dark,
        height=130 + 28 * len(names),
        margin={"t": 64, "r": 14, "l": 14, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "top", "x": 0, "xanchor": "left", "yref": "container"},
        uirevision="leakage grid",
    )
    return figure


def axis_ends(view: LeakageView) -> tuple[float, float]:
    """From a coin to certain for the AUC; what lies below a coin is shown too, where its interval does not reach it."""
    values = view.table[["value", "ci_low", "ci_high", "majority", "random"]].astype(float)
    least = float(values[["value", "majority", "random"]].min().min())
    most = float(values.max().max())
    if view.metric == "auc":
        return min(_COIN, _COIN if math.isnan(least) else least) - 0.01, 1.01
    if math.isnan(least):
        return 0.0, 1.0
    pad = 0.04 * max(most - least, 0.05)
    return least - pad, most + pad


def _axis_title(view: LeakageView) -> str:
    label = f"{METRIC_LABELS[view.metric]}: left is better"
    return f"{label}; 0.5 is a coin" if view.metric == "auc" else label


def _floors(
    go: Any, rows: Sequence[Mapping[str, Any]], legend: bool, color: str, where: Sequence[int] | None = None
) -> Iterable[Any]:
    places = where or range(len(rows))
    for floor, symbol, size in (("majority", "line-ns", 12), ("random", "x-thin", 9)):
        told = [(r[floor], y) for r, y in zip(rows, places, strict=True) if known(r[floor])]
        marker = {"symbol": symbol, "size": size, "color": color, "line": {"width": 2, "color": color}}
        yield go.Scatter(
            x=[x for x, _ in told],
            y=[y for _, y in told],
            mode="markers",
            name=floor,
            legendgroup=floor,
            showlegend=legend,
            marker=marker,
            hovertemplate=f"{floor} %{{x:.3f}}<extra></extra>",
        )


def _dots(go: Any, rows: Sequence[Mapping[str, Any]], color: str, where: Sequence[int] | None = None) -> Iterable[Any]:
    """Each row's interval, its seeds, then its dot over them."""
    for row, y in zip(rows, where or range(len(rows)), strict=True):
        style = method_class(row["method"])
        there = row["evidence"] == "ok" and known(row["value"])
        if not there:
            continue
        seeds = [float(v) for v in str(row["of_seeds"]).split()]
        full = row["telling"] and row["usable"] != "not usable"
        if known(row["ci_low"]):
            yield go.Scatter(
                x=[row["ci_low"], row["ci_high"]],
                y=[y, y],
                mode="lines",
                line={"color": faded(style.color, 0.55), "width": 7},
                hoverinfo="skip",
                showlegend=False,
                name="interval",
            )
        if seeds:
            yield go.Scatter(
                x=seeds,
                y=[y] * len(seeds),
                mode="markers",
                marker={"size": 6, "color": color, "opacity": 0.75},
                hovertemplate="one seed %{x:.3f}<extra></extra>",
                showlegend=False,
                name="seeds",
            )
        n = "" if row["n"] is None else f"<br>n = {row['n']:,}"
        yield go.Scatter(
            x=[row["value"]],
            y=[y],
            mode="markers",
            name=named(row["run"]),
            showlegend=False,
            marker={
                "color": style.color,
                "symbol": style.symbol + ("" if full else "-open"),
                "size": 13,
                "line": {"width": 2, "color": style.color},
            },
            customdata=[[row["run_id"], row["n"]]],
            hovertemplate=f"{named(row['run'])}<br>{_numbers(row)}{n}<extra></extra>",
        )


def _numbers(record: Mapping[str, Any]) -> str:
    """Value and interval."""
    value, low, high = (record[key] for key in ("value", "ci_low", "ci_high"))
    if record["evidence"] != "ok" or not known(value):
        return "not enough evidence"
    unfit = ", not usable" if record.get("usable") == "not usable" else ""
    return f"{value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if known(low) else "") + unfit
