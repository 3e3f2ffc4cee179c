"""Measures before and after: two points with their intervals on one line each, and a tick where chance lies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from uge_core.views.figures.look import escape, faded, finish, ink, paper
from uge_core.views.whatif import Measure
from uge_core.views.words import interval

if TYPE_CHECKING:
    import plotly.graph_objects as go

_BEFORE, _AFTER = {False: "#0072B2", True: "#56B4E9"}, {False: "#D55E00", True: "#E69F00"}
_ROW = 58  # pixels a measure
_HEAD = 62  # pixels for the name and the axis of a metric
_BAR = 0.17  # how far the two intervals lie from the middle of their row
_LINE = 34  # letters in a line of a label


def changes_figure(measures: Sequence[Measure], *, dark: bool = False) -> go.Figure:
    """One panel a metric, as each has a scale of its own; one row in it for each attacker and attribute.

    Args:
        measures: rows of a metric stand together.
        dark: the page is dark.
    """
    from plotly.subplots import make_subplots

    panels = [(metric, list(rows)) for metric, rows in groupby(measures, key=lambda m: m.metric)]
    color = ink(dark)
    heights = [_ROW * len(rows) + _HEAD for _, rows in panels]
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        row_heights=[_ROW * len(rows) for _, rows in panels],
        vertical_spacing=_HEAD / max(1, sum(heights)),
        subplot_titles=[f"<b>{escape(metric)}</b>" for metric, _ in panels],
    )
    for row, (_, rows) in enumerate(panels, start=1):
        for trace in _traces(rows, dark, legend=row == 1):
            figure.add_trace(trace, row=row, col=1)
        figure.update_yaxes(
            row=row,
            col=1,
            tickvals=[*range(len(rows))],
            ticktext=[_broken(m.of) for m in rows],
            range=[len(rows) - 0.5, -0.5],
            showgrid=False,
            zeroline=False,
            fixedrange=True,
        )
        figure.update_xaxes(row=row, col=1, zeroline=False, gridcolor=faded(color, 0.15), fixedrange=True)
    for note in figure.layout.annotations:
        note.update(x=0, xref="paper", xanchor="left", font={"size": 14, "color": color})
    finish(
        figure,
        dark,
        height=sum(heights) + 60,
        margin={"t": 40, "r": 16, "l": 10, "b": 70},
        plot_bgcolor=paper(dark),
        hovermode="closest",
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
    )
    return figure


def _traces(rows: Sequence[Measure], dark: bool, *, legend: bool) -> list[Any]:
    import plotly.graph_objects as go

    color = ink(dark)
    joined: dict[str, list[float | None]] = {"x": [], "y": []}
    for y, m in enumerate(rows):
        if m.before[0] is not None and m.after[0] is not None:
            joined["x"] += [m.before[0], m.after[0], None]
            joined["y"] += [y - _BAR, y + _BAR, None]
    out: list[Any] = [
        go.Scatter(
            **joined, mode="lines", line={"width": 2, "color": faded(color, 0.4)}, hoverinfo="skip", showlegend=False
        )
    ]
    for name, side, shift, shade, symbol in (
        ("before", "before", -_BAR, _BEFORE[dark], "circle-open"),
        ("after", "after", _BAR, _AFTER[dark], "diamond"),
    ):
        shown = [(y, m, getattr(m, side)) for y, m in enumerate(rows) if getattr(m, side)[0] is not None]
        out.append(
            go.Scatter(
                x=[value for _, _, (value, _, _) in shown],
                y=[y + shift for y, _, _ in shown],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=legend,
                marker={"size": 11, "color": shade, "symbol": symbol, "line": {"width": 2, "color": shade}},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [0 if high is None else high - value for _, _, (value, _, high) in shown],
                    "arrayminus": [0 if low is None else value - low for _, _, (value, low, _) in shown],
                    "color": shade,
                    "thickness": 2,
                    "width": 4,
                },
                hovertext=[f"{name}: {v:.3f}{interval(low, high)}<br>{_about(m)}" for _, m, (v, low, high) in shown],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    floors = [(y, m.floor) for y, m in enumerate(rows) if m.floor is not None]
    out.append(
        go.Scatter(
            x=[floor for _, floor in floors],
            y=[y for y, _ in floors],
            mode="markers",
            name="chance",
            legendgroup="chance",
            showlegend=legend,
            marker={"size": 26, "symbol": "line-ns", "line": {"width": 2, "color": color}},
            hovertemplate="chance: %{x:.3f}<extra></extra>",
        )
    )
    return out


def _about(m: Measure) -> str:
    return escape(f"{m.shows}; n = {m.n:,}")


def _broken(text: str) -> str:
    """A label in lines."""
    lines = [""]
    for part in text.split(" · "):
        lines[-1] = f"{lines[-1]} · {part}".removeprefix(" · ") if len(lines[-1]) + len(part) <= _LINE else lines[-1]
        if not lines[-1].endswith(part):
            lines.append(part)
    return "<br>".join(escape(line) for line in lines)


def changes_alt(measures: Sequence[Measure]) -> str:
    """The chart in words."""
    said = []
    for m in measures:
        first, second = ("nothing" if value is None else f"{value:.3f}" for value in (m.before[0], m.after[0]))
        said.append(f"{m.metric} of {m.of}: {first} before, {second} after, {m.shows}")
    return "; ".join(said)
