"""The front of `uge rivals`: link quality across, what the strongest attacker reads up, a mark per method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uge_core.runs.names import method_class
from uge_core.views.figures.look import faded, finish, ink, named, paper
from uge_core.views.points import ENOUGH_SEEDS, Reading
from uge_core.views.rivals import Rival, RivalsTable
from uge_core.views.words import interval

if TYPE_CHECKING:
    import plotly.graph_objects as go

_ABOVE, _LEGEND_LINE = 160, 30  # pixels above and below a legend, and of a line in it


def rivals_figure(table: RivalsTable, *, dark: bool = False, width: int = 1000, height: int = 640) -> go.Figure:
    """The chart; better is to the lower right.

    Filled marks are of people whose values training did not see, with both 95 % intervals; hollow ones of those whose
    values it saw, joined to them. A method that reads no attribute has one mark. What is not usable is crossed.

    Args:
        table: what to draw.
        dark: on a dark ground.
        width: in pixels.
        height: in pixels, at the least; a long legend takes more.
    """
    import plotly.graph_objects as go

    figure, color = go.Figure(), ink(dark)
    front = sorted(
        ((x.value, y.value) for r in table.front if (x := r.matched()) and (y := r.worst())), key=lambda at: at[0]
    )
    if len(front) > 1:
        figure.add_trace(
            go.Scatter(
                x=[x for x, _ in front],
                y=[y for _, y in front],
                mode="lines",
                name="beaten by no other in both",
                line={"color": faded(color, 0.25), "width": 6, "shape": "vh"},
                hoverinfo="skip",
            )
        )
    methods = [rival.method for rival in table.rivals]
    for rival in table.rivals:
        for trace in _marks(go, rival, alone=methods.count(rival.method) == 1):
            figure.add_trace(trace)
    _floors(figure, table, color)
    figure.update_xaxes(title_text="Matched NDCG@10: right is better", zeroline=False, gridcolor=faded(color, 0.12))
    figure.update_yaxes(
        title_text=f"Worst AUC of {named(table.about['sensitive'])}: low is better",
        zeroline=False,
        gridcolor=faded(color, 0.12),
    )
    seeds = [len(rival.rows) for rival in table.rivals if rival.rows] or [1]
    over = "over seeds" if min(seeds) >= ENOUGH_SEEDS else "over people" + (" and seeds" if max(seeds) > 1 else "")
    figure.update_layout(
        title={
            "text": f"{named(table.title)}<br><sup>filled: people whose values training did not see, with 95 % intervals "
            f"{over}; hollow: people whose values it saw</sup>"
        },
        width=width,
        paper_bgcolor=paper(dark),
        plot_bgcolor=paper(dark),
    )
    named_marks = sum(trace.showlegend is not False for trace in figure.data)
    height = max(height, _ABOVE + _LEGEND_LINE * named_marks)  # a picture's legend does not scroll
    finish(figure, dark, height=height, margin={"t": 80, "r": 20, "l": 20, "b": 20}, hovermode="closest")
    return figure


def _marks(go: Any, rival: Rival, *, alone: bool) -> list[Any]:
    """The filled mark of a method, and the hollow one joined to it; its lambda beside it unless it is alone."""
    ends = {e: (x, y) for e in ("unseen", "seen") if (x := rival.matched(e)) and (y := rival.worst(e))}
    if "unseen" not in ends:
        return []
    style = method_class(rival.method)
    (x, y), made = ends["unseen"], []
    if "seen" in ends and ends["seen"] != ends["unseen"]:
        made.append(
            go.Scatter(
                x=[end[0].value for end in ends.values()],
                y=[end[1].value for end in ends.values()],
                mode="lines+markers",
                legendgroup=rival.label,
                showlegend=False,
                line={"color": faded(style.color, 0.6), "width": 1, "dash": "dot"},
                marker={"symbol": ["circle", f"{style.symbol}-open"], "size": [0, 10], "color": style.color},
                hovertemplate=f"{named(rival.label)}, seen<br>matched NDCG@10 %{{x:.3f}}, worst AUC %{{y:.3f}}<extra></extra>",
            )
        )
    shape = "x-thin" if rival.unusable else style.symbol
    said = "<br>not usable" if rival.unusable else ""
    made.append(
        go.Scatter(
            x=[x.value],
            y=[y.value],
            mode="markers" if alone else "markers+text",
            name=named(rival.label),
            text=[named(rival.label.removeprefix(rival.method).strip())],
            textposition="bottom right",
            legendgroup=rival.label,
            marker={"symbol": shape, "size": 13, "color": style.color, "line": {"width": 1.5, "color": style.color}},
            error_x=_whisker(x, style.color),
            error_y=_whisker(y, style.color),
            hovertemplate=f"{named(rival.label)}, unseen{said}<br>matched NDCG@10 %{{x:.3f}}{interval(x.low, x.high)}<br>"
            f"worst AUC %{{y:.3f}}{interval(y.low, y.high)}<extra></extra>",
        )
    )
    return made


def _whisker(reading: Reading, color: str) -> dict[str, Any]:
    if reading.low is None or reading.high is None:
        return {}
    return {
        "type": "data",
        "symmetric": False,
        "array": [reading.high - reading.value],
        "arrayminus": [reading.value - reading.low],
        "color": faded(color, 0.45),
        "thickness": 1.5,
        "width": 4,
    }


def _floors(figure: Any, table: RivalsTable, color: str) -> None:
    """A coin, and what a random order and the training degree alone give."""
    figure.add_hline(0.5, line={"color": color, "width": 1.5, "dash": "dashdot"}, annotation_text="a coin")
    links = next((reading for rival in table.rivals if (reading := rival.matched())), None)
    for name, value in (("random order", links and links.random), ("degree alone", links and links.degree)):
        if value is not None:
            line = {"color": color, "width": 1.5, "dash": "dot"}
            figure.add_vline(
                value, line=line, annotation_text=name, annotation_textangle=-90, annotation_position="bottom right"
            )
