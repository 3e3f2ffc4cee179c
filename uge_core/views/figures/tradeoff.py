"""Leakage, or a gap between groups, against link quality: a line per method, lambda printed on each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uge_core.runs.names import method_class
from uge_core.views.figures.look import faded, finish, ink, named
from uge_core.views.tradeoff import DEGREE, QUALITIES, TRADEOFF_METRICS, TradeoffView
from uge_core.views.words import interval, known, records

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STATUS = {"best": "", "dominated": "-open", "tied": "-open-dot", "not usable": "-open"}
_DASHES = {"random embeddings": "dot", "majority": "dashdot", "a coin": "dashdot"}
_RANDOM_ORDER = "longdashdot"


def tradeoff_figure(view: TradeoffView, *, rings: bool = False, dark: bool = False, height: int = 540) -> go.Figure:
    """The chart; better is to the upper left.

    Args:
        view: what to draw.
        rings: each point with a lambda gets a ring that is not seen until `ring_style` shows it.
        dark: the page is dark.
        height: in pixels.
    """
    import plotly.graph_objects as go

    figure, table, color = go.Figure(), view.table, ink(dark)
    rows = records(table)
    if not rows:
        return figure
    ranked = QUALITIES[view.quality]
    (left, right), (bottom, top) = (
        _range(rows, lines.values(), axis) for axis, lines in (("value", view.floors), ("ndcg", view.heights))
    )
    for name, at in view.floors.items():
        dash = "dash" if DEGREE in name else _DASHES.get(name, "dot")
        _line(go, figure, [at, at], [bottom, top], f"{name} {at:.3f}", dash, color)
    for name, at in view.heights.items():
        dash = "dash" if DEGREE in name else _RANDOM_ORDER
        _line(go, figure, [left, right], [at, at], f"{name} {at:.3f}", dash, color)
    if view.no_debiasing is not None:
        words = f"{ranked} without debiasing {view.no_debiasing:.3f}"
        _line(go, figure, [left, right], [view.no_debiasing] * 2, words, "longdash", color)
    front = sorted((r for r in rows if r["status"] == "best"), key=lambda r: r["value"])
    if len(front) > 1:
        figure.add_trace(
            go.Scatter(
                x=[r["value"] for r in front],
                y=[r["ndcg"] for r in front],
                mode="lines",
                name="not beaten on both axes (Pareto front)",
                line={"color": faded(color, 0.35), "width": 6, "shape": "hv"},
                hoverinfo="skip",
            )
        )
    labels = _labels(rows, right - left, top - bottom)
    for series in dict.fromkeys(r["series"] for r in rows):
        both = [(r, label) for r, label in zip(rows, labels, strict=True) if r["series"] == series]
        for mode, mine in (
            ("lines+markers+text", [pair for pair in both if pair[0]["status"] != "not usable"]),
            ("markers+text", [pair for pair in both if pair[0]["status"] == "not usable"]),
        ):
            if mine:
                drawn = _series(go, series, [r for r, _ in mine], [label for _, label in mine], color, ranked)
                figure.add_trace(drawn.update(mode=mode, showlegend=len(mine) == len(both) or "lines" in mode))
    if crossed := [r for r in rows if r["status"] == "not usable"]:
        figure.add_trace(
            go.Scatter(
                x=[r["value"] for r in crossed],
                y=[r["ndcg"] for r in crossed],
                mode="markers",
                name="not usable, in no comparison",
                hoverinfo="skip",
                marker={"symbol": "x-thin", "size": 20, "line": {"width": 2.5, "color": color}},
            )
        )
    if rings:
        ringed = [r for r in rows if known(r["lambda"])]
        figure.add_trace(
            go.Scatter(
                x=[r["value"] for r in ringed],
                y=[r["ndcg"] for r in ringed],
                mode="markers",
                name="chosen",
                hoverinfo="skip",
                showlegend=False,
                marker={"symbol": "circle-open", "size": 28, "color": color, "opacity": 0, "line": {"width": 3}},
            )
        )
    label = TRADEOFF_METRICS[view.metric]
    figure.update_xaxes(
        title_text=f"{label} of {named(view.attribute)}: left is better", range=[left, right], zeroline=False
    )
    figure.update_yaxes(
        title_text=f"{ranked[0].upper()}{ranked[1:]}: up is better", range=[bottom, top], zeroline=False
    )
    figure.add_annotation(
        x=0,
        y=1,
        xref="paper",
        yref="paper",
        yanchor="bottom",
        text="↖ better",
        showarrow=False,
        xanchor="left",
        font={"size": 14, "color": color},
    )
    finish(
        figure,
        dark,
        height=height,
        margin={"t": 30, "r": 10, "l": 10, "b": 10},
        hovermode="closest",
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        uirevision=f"{view.attribute} {view.metric} {view.quality} {view.form}",
    )
    return figure


def ring_style(view: TradeoffView, selected: tuple[str, float | None] | None, within: str) -> str:
    """A style sheet that shows one ring of a chart drawn with `rings`, so that a step of a slider leaves the chart as it is.

    Args:
        view: what the chart shows.
        selected: series and lambda of the point; None shows no ring.
        within: a CSS selector of what holds the chart.
    """
    ringed = [(r["series"], r["lambda"]) for r in records(view.table) if known(r["lambda"])]
    if selected not in ringed:
        return ""
    point = f"path:nth-of-type({ringed.index(selected) + 1})"
    return f"<style>{within} .scatterlayer .trace:last-child .points {point} {{ opacity: 1 !important; }}</style>"


def _series(
    go: Any, series: str, rows: Sequence[Mapping[str, Any]], labels: Sequence[tuple[str, str]], color: str, ranked: str
) -> Any:
    style = method_class(rows[0]["method"])
    shade = style.color
    return go.Scatter(
        x=[r["value"] for r in rows],
        y=[r["ndcg"] for r in rows],
        name=named(series),
        line={"color": shade, "width": 1.5},
        text=[text for text, _ in labels],
        textposition=[spot for _, spot in labels],
        textfont={"size": 13, "color": color},
        error_x=_whiskers(rows, "value", shade),
        error_y=_whiskers(rows, "ndcg", shade),
        marker={
            "size": 13,
            "color": shade,
            "symbol": [style.symbol + _STATUS[r["status"]] for r in rows],
            "line": {"width": 2, "color": shade},
        },
        customdata=[
            [
                named(r["run"]),
                interval(r["value_low"], r["value_high"]),
                interval(r["ndcg_low"], r["ndcg_high"]),
                named(f"not usable: {r['why']}" if r["status"] == "not usable" else r["status"]),
                r["seeds"],
                r["lambda"] if known(r["lambda"]) else None,
                series,
                _floors(r["chance"], r["degree"]),
                _floors(r["ndcg_chance"], r["ndcg_degree"]),
            ]
            for r in rows
        ],
        hovertemplate="%{customdata[0]}<br>across %{x:.3f}%{customdata[1]}%{customdata[7]}<br>"
        f"{ranked} %{{y:.3f}}%{{customdata[2]}}%{{customdata[8]}}"
        "<br>%{customdata[3]}, seeds: %{customdata[4]}<extra></extra>",
    )


def _floors(chance: Any, degree: Any) -> str:
    """What chance and the training degree alone give, in brackets; nothing where neither is known."""
    parts = [f"{name} {value:.3f}" for name, value in (("chance", chance), ("degree alone", degree)) if known(value)]
    return f" ({', '.join(parts)})" if parts else ""


# Where a label may stand: plotly's word, and how far its middle is from the point in pixels.
_SPOTS = (("top left", -20, -16), ("bottom right", 20, 16), ("top right", 20, -16), ("bottom left", -20, 16))
_PLOT = (880, 380)  # pixels, roughly


def _labels(rows: Sequence[Mapping[str, Any]], width: float, height: float) -> list[tuple[str, str]]:
    """Lambda and its place for each point, top left where that is free.

    A label that fits nowhere is left out, unless its point is the first or the last of a series.
    """
    at = [(r["value"] / width * _PLOT[0], -r["ndcg"] / height * _PLOT[1]) for r in rows]
    series = [[i for i, r in enumerate(rows) if r["series"] == s] for s in dict.fromkeys(r["series"] for r in rows)]
    ends = {i for mine in series for i in (mine[0], mine[-1])}
    taken = list(at)
    out = [("", "top left")] * len(rows)
    for i in sorted(range(len(rows)), key=lambda i: i not in ends):
        if not known(rows[i]["lambda"]):
            continue
        for spot, dx, dy in _SPOTS:
            x, y = at[i][0] + dx, at[i][1] + dy
            others = (p for k, p in enumerate(taken) if k != i)
            if all(abs(x - px) > 24 or abs(y - py) > 16 for px, py in others):
                taken.append((x, y))
                out[i] = (f"{rows[i]['lambda']:g}", spot)
                break
        else:
            out[i] = (f"{rows[i]['lambda']:g}" if i in ends else "", "top left")
    return out


def _whiskers(records: Sequence[Mapping[str, Any]], name: str, color: str) -> dict[str, Any]:
    ends = [(r[name], r[f"{name}_low"], r[f"{name}_high"]) for r in records]
    return {
        "type": "data",
        "symmetric": False,
        "array": [h - v if known(h) else 0 for v, _, h in ends],
        "arrayminus": [v - low if known(low) else 0 for v, low, _ in ends],
        "color": faded(color, 0.45),
        "thickness": 1.5,
        "width": 4,
    }


def _line(go: Any, figure: Any, x: list[float], y: list[float], name: str, dash: str, color: str) -> None:
    line = {"color": color, "width": 1.5, "dash": dash}
    figure.add_trace(go.Scatter(x=x, y=y, mode="lines", name=name, line=line, hoverinfo="name"))


def _range(records: Sequence[Mapping[str, Any]], more: Any, name: str) -> tuple[float, float]:
    """All points and most of their whiskers: an interval far wider than all points together is cut at the frame."""
    values = [r[name] for r in records] + list(more)
    spread = max(max(values) - min(values), 0.02)
    ends = [v for r in records for v in (r[f"{name}_low"], r[f"{name}_high"]) if known(v)]
    low = max(min([*values, *ends]), min(values) - spread)
    high = min(max([*values, *ends]), max(values) + spread)
    pad = 0.06 * (high - low) or spread
    return low - pad, high + pad
