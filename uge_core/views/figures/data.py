"""A graph before training: sizes of groups, edges between groups against chance, weights of edges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from uge_core.graph.suppression import FEWEST, SUPPRESSED
from uge_core.views.data import GroupsView, MixingView, WeightsView
from uge_core.views.figures.look import faded, finish, ink, middle, mixed, named, paper, readable_on
from uge_core.views.words import known, records

if TYPE_CHECKING:
    import plotly.graph_objects as go

_BAR = "#0072B2"
_FEWER, _MORE = "#0072B2", "#D55E00"
_KINDS = {"within a group": "#E69F00", "between groups": "#0072B2", "edges": "#0072B2", "a value is missing": "#999999"}
_REACH = 3.0  # doublings from 1 at which colours end
_STEPS = 10


def groups_figure(view: GroupsView, *, dark: bool = False) -> go.Figure:
    """A bar per group from zero; the missing hatched, a suppressed one as an outline of twelve people.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    color, rows = ink(dark), records(view.drawn)
    bar = "#56B4E9" if dark else _BAR
    figure = go.Figure()
    # A trace each: plotly hatches a bar reliably only where the whole trace is hatched.
    for name, hatch in (("groups", ""), ("missing or others", "/")):
        mine = [i for i, r in enumerate(rows) if (r["kind"] != "group") == bool(hatch)]
        if not mine:
            continue
        texts = [
            f" {int(rows[i]['n']):,}  {rows[i]['share']:.1%}" if known(rows[i]["n"]) else f" {rows[i]['suppressed']}"
            for i in mine
        ]
        figure.add_trace(
            go.Bar(
                x=[rows[i]["n"] if known(rows[i]["n"]) else FEWEST for i in mine],
                y=mine,
                orientation="h",
                text=texts,
                name=name,
                textposition="outside",
                cliponaxis=False,
                textfont={"color": color, "size": 13},
                customdata=[named(rows[i]["group"]) for i in mine],
                hovertemplate="%{customdata}:%{text}<extra></extra>",
                marker={
                    "color": bar if hatch else [bar if known(rows[i]["n"]) else paper(dark) for i in mine],
                    "line": {"color": bar, "width": 1.5},
                    "pattern": {"shape": hatch, "fgcolor": bar, "bgcolor": paper(dark), "size": 7},
                },
            )
        )
    widest = max([r["n"] for r in rows if known(r["n"])], default=FEWEST)
    figure.update_xaxes(range=[0, widest * 1.35], showticklabels=False, showgrid=False, zeroline=False)
    figure.update_yaxes(
        autorange="reversed",
        showgrid=False,
        tickvals=list(range(len(rows))),
        ticktext=[_short(r["group"]) for r in rows],
        ticksuffix="  ",
    )
    finish(
        figure,
        dark,
        height=60 + 34 * len(rows),
        bargap=0.35,
        barmode="overlay",
        showlegend=False,
        margin={"t": 6, "r": 10, "l": 10, "b": 6},
    )
    return figure


def mixing_map(view: MixingView, *, dark: bool = False) -> go.Figure:
    """A cell per pair of groups, the lower triangle of them: the ratio to chance, and n.

    Orange above chance, blue below, both as far as eightfold; hatched where too few are expected.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    color, square = ink(dark), view.rows is view.columns
    across, down = {g: i for i, g in enumerate(view.columns)}, {g: i for i, g in enumerate(view.rows)}
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    hover: dict[str, list[Any]] = {"x": [], "y": [], "text": []}
    size = 14 if len(view.rows) <= 6 else 12
    for r in records(view.table):
        if r["a"] not in down or r["b"] not in across:
            continue
        y, x = down[r["a"]], across[r["b"]]
        if square:
            y, x = max(y, x), min(y, x)
        box = {"x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48}
        hidden = r["counts"] == SUPPRESSED
        words = SUPPRESSED if hidden else f"{r['ratio']:.2f}<br>{_count(r['edges'])}"
        fill = None
        if r["counts"] == "yes":
            reach = math.log2(r["ratio"]) / _REACH if r["ratio"] else -math.inf  # no edge at all is told
            step = round(min(abs(reach), 1.0) * _STEPS) / _STEPS
            fill = mixed(middle(dark), _MORE if reach > 0 else _FEWER, step)
            shapes.append({"type": "rect", **box, "fillcolor": fill, "line": {"width": 0}, "layer": "below"})
        else:
            line = {"width": 1.5, "color": faded(color, 0.45), "dash": "dot"}
            shapes.append({"type": "rect", **box, "line": line, "layer": "below"})
            if not hidden:
                shapes.append(_stroke(box, line))
        note: dict[str, Any] = {
            "x": x,
            "y": y,
            "text": words,
            "showarrow": False,
            "font": {"size": size - 2 * hidden, "color": color if fill is None else readable_on(fill)},
        }
        notes.append(note if fill else note | {"bgcolor": paper(dark)})
        hover["x"].append(x)
        hover["y"].append(y)
        chance = "" if hidden else f", {r['expected']:,.1f} by chance"
        hover["text"].append(f"{named(r['a'])} with {named(r['b'])}: {words.replace('<br>', ' times, ')}{chance}")
    figure = go.Figure(
        go.Scatter(
            **hover,
            mode="markers",
            showlegend=False,
            hovertemplate="%{text}<extra></extra>",
            marker={"size": 30, "opacity": 0, "symbol": "square"},
        )
    )
    plain_axis = {"showgrid": False, "zeroline": False}
    figure.update_xaxes(
        range=[-0.6, len(view.columns) - 0.4],
        tickvals=list(across.values()),
        ticktext=[_short(g) for g in view.columns],
        **plain_axis,
    )
    figure.update_yaxes(
        range=[len(view.rows) - 0.4, -0.6],
        tickvals=list(down.values()),
        ticktext=[_short(g) for g in view.rows],
        ticksuffix="  ",
        **plain_axis,
    )
    finish(
        figure,
        dark,
        height=110 + max(48 * len(view.rows), 160),
        margin={"t": 10, "r": 10, "l": 10, "b": 10},
        annotations=notes,
        shapes=shapes,
        plot_bgcolor="rgba(0, 0, 0, 0)",
    )
    return figure


def weights_figure(view: WeightsView, *, dark: bool = False) -> go.Figure:
    """Edges by weight, on a logarithmic scale, one colour and hatch per kind of edge.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    table, color = view.table, ink(dark)
    middles = [math.log2(low * high) / 2 for low, high in zip(table["low"], table["high"], strict=True)]
    figure = go.Figure()
    for kind, pattern in zip(view.kinds, ("", "/", "."), strict=False):
        shade = "#56B4E9" if dark and _KINDS[kind] == "#0072B2" else _KINDS[kind]
        figure.add_trace(
            go.Bar(
                x=middles,
                y=table[kind].tolist(),
                name=kind,
                customdata=table[["low", "high"]].to_numpy().tolist(),
                marker={
                    "color": shade,
                    "line": {"width": 0},
                    "pattern": {"shape": pattern, "size": 6, "fgcolor": paper(dark), "bgcolor": shade},
                },
                hovertemplate=f"{kind}: %{{y:,}} edges that weigh %{{customdata[0]:.2f}} to "
                f"%{{customdata[1]:.2f}}<extra></extra>",
            )
        )
    figure.add_vline(x=0, line={"color": color, "width": 1.5, "dash": "dot"})
    end = round(middles[-1])
    ticks = list(range(-end, end + 1))
    words = [f"1/{2**-t}" if t < 0 else f"{2**t}" for t in ticks]
    words[0], words[-1] = f"{words[0]} and less", f"{words[-1]} and more"
    figure.update_xaxes(
        tickvals=ticks, ticktext=words, title_text="weight of an edge, R~/R over its mean", zeroline=False
    )
    figure.update_yaxes(title_text="edges", rangemode="tozero", tickformat=",")
    finish(
        figure,
        dark,
        height=340,
        barmode="stack",
        bargap=0.08,
        margin={"t": 40, "r": 10, "l": 10, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    return figure


def _stroke(box: dict[str, float], line: dict[str, Any]) -> dict[str, Any]:
    """A cell's diagonal: too few are expected."""
    return {
        "type": "line",
        "x0": box["x0"],
        "x1": box["x1"],
        "y0": box["y1"],
        "y1": box["y0"],
        "line": line,
        "layer": "below",
    }


def _count(n: float) -> str:
    n = int(n)
    return f"{n / 1e6:.3g}M" if n >= 1_000_000 else f"{n / 1e3:.3g}k" if n >= 10_000 else f"{n:,}"


def _short(label: str) -> str:
    return named(label if len(label) <= 18 else label[:17] + "…")
