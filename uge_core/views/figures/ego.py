"""A node with its neighbours: edge width is the weight R~/R, colour and symbol the value of one attribute.

Nodes and edges can be clicked: `customdata` of a point is ["node", id] or ["edge", id, id], and lines have such points
along their middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uge_core.views.figures.look import escape, faded, finish, ink, paper
from uge_core.views.whatif import EgoView

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star", "hexagon", "cross")
_WIDTHS = (1.0, 2.0, 3.5, 5.5, 8.0)
_LIMITS = (0.33, 0.67, 1.5, 3.0)  # weights between which the widths lie: about a third, less, alike, more, three times
_LONGEST = 14
_CLICKED = (0.3, 0.4, 0.5, 0.6, 0.7)  # where along an edge a click or a pointer finds it
_DROPPED = "#D55E00"


def ego_figure(view: EgoView, *, dark: bool = False) -> go.Figure:
    """The picture.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    color = ink(dark)
    figure = go.Figure()
    for part in ("training", "held out"):
        for width, mine in _by_width(view, part):
            figure.add_trace(_lines(view, mine, width, part == "held out", color))
    gone = [edge for edge in view.edges if edge["part"] == "dropped"]
    if gone:
        line = {"width": 2, "color": _DROPPED, "dash": "dash"}
        xs, ys = _ends(view, gone)
        figure.add_trace(go.Scatter(x=xs, y=ys, mode="lines", hoverinfo="skip", name="dropped", line=line))
    figure.add_trace(_clicked(view))
    named = len(view.nodes) <= 40
    top = [*view.groups[: len(_COLORS)]]
    for i, group in enumerate([*top, None] if len(view.groups) > len(top) else top):
        rows = [n for n in view.nodes if (n["group"] == group if group is not None else n["group"] not in top)]
        figure.add_trace(
            go.Scatter(
                x=[n["x"] for n in rows],
                y=[n["y"] for n in rows],
                name=escape(group if group is not None else "other values"),
                mode="markers+text" if named else "markers",
                text=[escape(_short(n["id"])) for n in rows],
                customdata=[["node", n["id"]] for n in rows],
                selected={"marker": {"opacity": 1}},
                unselected={"marker": {"opacity": 1}, "textfont": {"color": color}},
                textposition="top center",
                textfont={"size": 12, "color": color},
                hovertext=[
                    escape(f"{n['id']}: {n['values']}, {n['degree']:,} edges")
                    + ("" if n["centre"] else "<br>Click: look at this one too")
                    for n in rows
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                marker={
                    "size": [24 if n["centre"] else 13 for n in rows],
                    "color": _COLORS[i] if i < len(_COLORS) else faded(color, 0.4),
                    "symbol": _SYMBOLS[i] if i < len(_SYMBOLS) else "x",
                    "line": {"width": [3 if n["centre"] else 1 for n in rows], "color": color},
                },
            )
        )
    hidden = {"visible": False, "range": [-1.2, 1.2], "fixedrange": False}
    figure.update_xaxes(**hidden)
    figure.update_yaxes(**hidden, scaleanchor="x")
    finish(
        figure,
        dark,
        height=560,
        margin={"t": 10, "r": 10, "l": 10, "b": 10},
        plot_bgcolor=paper(dark),
        hovermode="closest",
        dragmode="pan",
        legend={
            "orientation": "h",
            "y": -0.02,
            "yanchor": "top",
            "x": 0,
            "title": {"text": escape(view.attribute or "")},
        },
    )
    return figure


def _clicked(view: EgoView) -> go.Scatter:
    """Points that are not seen along the middle of each edge, for pointers and clicks."""
    import plotly.graph_objects as go

    points: dict[str, list[Any]] = {"x": [], "y": [], "text": [], "customdata": []}
    for edge in view.edges:
        a, b = view.nodes[edge["a"]], view.nodes[edge["b"]]
        dropped = edge["part"] == "dropped"
        name = f"{a['id']} - {b['id']}" + ("" if dropped else f": weight {edge['weight']:.3f}")
        words = f"{escape(name)}<br>{_broken(edge['why'])}<br>Click: {'have it again' if dropped else 'drop it'}"
        for share in _CLICKED:
            points["x"].append(a["x"] + share * (b["x"] - a["x"]))
            points["y"].append(a["y"] + share * (b["y"] - a["y"]))
            points["text"].append(words)
            points["customdata"].append(["edge", a["id"], b["id"]])
    return go.Scatter(
        **points,
        mode="markers",
        name="why",
        showlegend=False,
        hovertemplate="%{text}<extra></extra>",
        marker={"size": 12, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )


def _by_width(view: EgoView, part: str) -> Sequence[tuple[float, list[dict[str, Any]]]]:
    """Edges of one line width each, as a trace has one."""
    by_width: dict[float, list[dict[str, Any]]] = {}
    for edge in view.edges:
        if edge["part"] == part:
            by_width.setdefault(_WIDTHS[sum(edge["weight"] >= limit for limit in _LIMITS)], []).append(edge)
    return sorted(by_width.items())


def _lines(view: EgoView, edges: Sequence[dict[str, Any]], width: float, held: bool, color: str) -> go.Scatter:
    import plotly.graph_objects as go

    xs, ys = _ends(view, edges)
    place = _WIDTHS.index(width)
    low, high = (*(0.0, *_LIMITS)[place : place + 1], *(*_LIMITS, float("inf"))[place : place + 1])
    words = f"from {low:g}" if high == float("inf") else f"{low:g} to {high:g}"
    return go.Scatter(
        x=xs,
        y=ys,
        mode="lines",
        hoverinfo="skip",
        name=f"weight {words}{', held out of training' if held else ''}",
        line={"width": width, "color": faded(color, 0.45), "dash": "dot" if held else "solid"},
        connectgaps=False,
    )


def _ends(view: EgoView, edges: Sequence[dict[str, Any]]) -> tuple[list[float | None], list[float | None]]:
    """Lines from end to end, with gaps between them."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for edge in edges:
        a, b = view.nodes[edge["a"]], view.nodes[edge["b"]]
        xs += [a["x"], b["x"], None]
        ys += [a["y"], b["y"], None]
    return xs, ys


def _broken(text: str) -> str:
    """The text in lines that fit a hover label."""
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 70:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "<br>".join(escape(part) for part in (*lines, line))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
