"""DP and EO between groups: maps of pairs of groups, and bars of user groups on a bipartite graph.

Both runs share one scale that starts at 0; the difference is centred at 0, blue for lower and
orange for higher, and ends where that scale does. Cells that do not count are hatched, the highest and the lowest outlined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uge_core.graph.suppression import SUPPRESSED
from uge_core.runs.names import method_class
from uge_core.views.fairness import GAP_LABELS, GapView
from uge_core.views.figures.look import faded, finish, ink, middle, mixed, named, paper, readable_on
from uge_core.views.words import interval, known, records

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STEPS = 10
_SEQUENTIAL = {False: ("#EAF3FA", "#004B78"), True: ("#12283A", "#8FD0F5")}
_LOWER, _HIGHER = "#0072B2", "#D55E00"
OUTLINE = "#E69F00"


def gap_map(view: GapView, which: str, *, dark: bool = False) -> go.Figure:
    """The lower triangle of group pairs, value and n in each cell; the whole square where cells are directed.

    Args:
        view: what to draw; its layout is "map".
        which: "before", "after" or "difference".
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    groups, color = list(view.groups), ink(dark)
    place = {g: i for i, g in enumerate(groups)}
    figure = go.Figure()
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    hover: dict[str, list[Any]] = {"x": [], "y": [], "text": []}
    marked = {} if which == "difference" else dict(extreme_cells(view, which))
    outlines = []
    for cell in records(view.table):
        if cell["a"] not in place or cell["b"] not in place:
            continue
        y, x = place[cell["a"]], place[cell["b"]]
        if not view.directed:
            y, x = max(y, x), min(y, x)
        box = {"x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48}
        text, fill = cell_face(cell, which, view.scale, dark)
        words = text.replace("<br>", ", ")
        if fill is None:
            shapes += _hatch(box, color)
            notes.append(_note(x, y, text, color, len(groups)) | {"bgcolor": paper(dark)})
            words += "" if text == SUPPRESSED else ", too few to count"
        else:
            shapes.append({"type": "rect", **box, "fillcolor": fill, "line": {"width": 0}, "layer": "below"})
            notes.append(_note(x, y, text, readable_on(fill), len(groups)))
        if (cell["a"], cell["b"]) in marked:
            outlines.append({"type": "rect", **box, "line": {"width": 4, "color": OUTLINE}})
            words += f", {marked[cell['a'], cell['b']]}"
        hover["x"].append(x)
        hover["y"].append(y)
        joined = " to " if view.directed else " with "
        hover["text"].append(f"{named(cell['a'])}{joined}{named(cell['b'])}: {words}{cell_ends(cell, which)}")
    # A transparent marker per cell carries the hover text and the numbers a test or a screen reader can read.
    figure.add_trace(
        go.Scatter(
            **hover,
            mode="markers",
            name=which,
            showlegend=False,
            hovertemplate="%{text}<extra></extra>",
            marker={"size": 30, "opacity": 0, "symbol": "square"},
        )
    )
    ticks = {
        "tickvals": list(range(len(groups))),
        "ticktext": [named(short_name(g)) for g in groups],
        "showgrid": False,
        "zeroline": False,
    }
    figure.update_xaxes(range=[-0.6, len(groups) - 0.4], **ticks)
    figure.update_yaxes(range=[len(groups) - 0.4, -0.6], ticksuffix="  ", **ticks)
    if view.directed:
        figure.update_xaxes(title_text="who is recommended")
        figure.update_yaxes(title_text="to whom")
    finish(
        figure,
        dark,
        height=map_size(view)[1],
        margin={"t": 10, "r": 10, "l": 10, "b": 10},
        annotations=notes,
        shapes=[*shapes, *outlines],
        plot_bgcolor="rgba(0, 0, 0, 0)",
        uirevision=f"{view.metric} {which}",
    )
    return figure


def map_size(view: GapView) -> tuple[int, int]:
    """Width and height in pixels at which the words of every cell fit it."""
    names = max((len(short_name(g)) for g in view.groups), default=0)
    side = max(68 * len(view.groups), 200)
    return 46 + 8 * names + side, 76 + round(0.78 * side)


def gap_bars(view: GapView, *, dark: bool = False) -> go.Figure:
    """User groups of a bipartite graph: a bar per group and run, from zero, with intervals.

    Args:
        view: what to draw; its layout is "bars".
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    figure, color = go.Figure(), ink(dark)
    drawn = view.table[view.table["a"].isin(view.groups)]
    for name, side in zip(("before", "after"), view.sides, strict=False):
        style, rows = method_class(side.method), records(drawn)
        values = [r[f"{name}_value"] for r in rows]
        bars: dict[str, Any] = {
            "color": [faded(style.color, 1.0 if r[f"{name}_counts"] else 0.0) for r in rows],
            "line": {"color": style.color, "width": 1.5},
            "pattern": {"shape": ["" if r[f"{name}_counts"] else "/" for r in rows], "fgcolor": style.color, "size": 7},
        }
        ends = [(r[f"{name}_value"], r[f"{name}_low"], r[f"{name}_high"]) for r in rows]
        figure.add_trace(
            go.Bar(
                x=[v if known(v) else 0.0 for v in values],
                y=list(range(len(rows))),
                customdata=[named(r["a"]) for r in rows],
                orientation="h",
                name=named(side.label),
                marker=bars,
                error_x={
                    "type": "data",
                    "array": [h - v if known(h) else 0 for v, _, h in ends],
                    "arrayminus": [v - low if known(low) else 0 for v, low, _ in ends],
                    "color": color,
                    "thickness": 1.5,
                },
                text=[f" {cell_face(r, name, view.scale, dark)[0].replace('<br>', ', n = ')}" for r in rows],
                textposition=["inside" if known(v) else "outside" for v in values],
                insidetextanchor="start",
                textfont={"color": [readable_on(style.color) if known(v) else color for v in values]},
                hovertemplate="%{customdata}: %{text}<extra></extra>",
            )
        )
    figure.update_xaxes(title_text=f"{GAP_LABELS[view.metric]}: {view.what}", rangemode="tozero")
    # Places, not names: "18" and "25" would be read as numbers, and two long names cut to one as one group.
    names = [named(short_name(a)) for a in drawn["a"]]
    figure.update_yaxes(
        autorange="reversed", showgrid=False, ticksuffix="  ", tickvals=list(range(len(names))), ticktext=names
    )
    finish(
        figure,
        dark,
        height=120 + 38 * len(drawn) * len(view.sides),
        barmode="group",
        bargap=0.25,
        margin={"t": 40, "r": 10, "l": 10, "b": 10},
        uirevision=view.metric,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    return figure


def cell_face(cell: Mapping[str, Any], which: str, scale: float, dark: bool) -> tuple[str, str | None]:
    """A cell's text and colour; no colour where it does not count.

    A difference is coloured on the scale of the values themselves, so that a small one is pale.
    """
    if which == "difference":
        value = float(cell.get("difference", math.nan))
        if math.isnan(value):
            hidden = any(cell.get(f"{side}_suppressed") for side in ("before", "after"))
            return SUPPRESSED if hidden else "too few", None
        shade = mixed(middle(dark), _HIGHER if value > 0 else _LOWER, _step(abs(value) / scale))
        return f"{value:+.3f}", shade
    value, n = cell[f"{which}_value"], cell[f"{which}_n"]
    text = SUPPRESSED if cell[f"{which}_suppressed"] else f"{value:.3f}<br>{rough_count(n)}" if known(value) else "none"
    if not cell[f"{which}_counts"]:
        return text, None
    return text, mixed(*_SEQUENTIAL[dark], _step(value / scale))


def _step(share: float) -> float:
    """`share` in ten steps."""
    return min(int(max(share, 0.0) * _STEPS), _STEPS - 1) / (_STEPS - 1)


def rough_count(n: float) -> str:
    """A count short enough for a cell: in full, in thousands, millions or billions."""
    if n < 10_000:
        return f"{int(n):,}"
    n = float(f"{n:.3g}")
    size, unit = next(((size, unit) for size, unit in ((1e9, "bn"), (1e6, "M")) if n >= size), (1e3, "k"))
    return f"{n / size:.3g}{unit}"


def cell_ends(cell: Mapping[str, Any], which: str) -> str:
    """A cell's interval in words; nothing where there is none."""
    if which == "difference":
        return ""
    words = interval(cell[f"{which}_low"], cell[f"{which}_high"])
    return f", 95 %{words}" if words else ""


def extreme_cells(view: GapView, which: str) -> Iterator[tuple[tuple[str, str | None], str]]:
    """The highest and the lowest cell of a run, or the one farthest from its share of people, each in words."""
    side = view.sides[0 if which == "before" else 1]
    whole = view.form == "top-10" and view.metric == "dp"
    words = ("the farthest from its share of people",) if whole else ("the highest", "the lowest")
    yield from zip(side.extremes, words, strict=False)


def _hatch(box: Mapping[str, float], color: str) -> list[dict[str, Any]]:
    """Three strokes: a cell that does not count."""
    x0, y0, side = box["x0"], box["y0"], box["x1"] - box["x0"]
    half = side / 2
    strokes = (
        f"M {x0},{y0 + half} L {x0 + half},{y0} M {x0},{y0 + side} L {x0 + side},{y0} "
        f"M {x0 + half},{y0 + side} L {x0 + side},{y0 + half}"
    )
    line = {"width": 1.5, "color": faded(color, 0.45)}
    return [
        {"type": "path", "path": strokes, "line": line, "layer": "below"},
        {"type": "rect", **box, "line": line, "layer": "below"},
    ]


def _note(x: int, y: int, text: str, color: str, count: int) -> dict[str, Any]:
    return {
        "x": x,
        "y": y,
        "text": text,
        "showarrow": False,
        "font": {"size": 13 if count <= 5 else 12, "color": color},
    }


def short_name(label: str) -> str:
    """A group's name that fits beside a cell."""
    return label if len(label) <= 18 else label[:17] + "…"
