"""People in a plane: WebGL points in one trace per group, so that groups can be switched off in the legend.

Coordinates are sent as 16-bit whole numbers, as no number is read off the axes; with each point goes its node's number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uge_core.arrays import BoolArray
from uge_core.graph.suppression import FEWEST
from uge_core.views.figures.look import ink, named, paper
from uge_core.views.projection import EDGE, TOP, Colouring, Group, Panel, ProjectionData

if TYPE_CHECKING:
    import plotly.graph_objects as go

# plotly 7 would otherwise offer to send a chart's data to its makers.
PROJECTION_CONFIG: dict[str, Any] = {
    "showSendToCloud": False,
    "displaylogo": False,
    "scrollZoom": True,
    "displayModeBar": True,
    "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "hoverClosestCartesian", "hoverCompareCartesian"],
}
# Okabe-Ito; ink in place of yellow, which small points on white do not carry.
_COLORS = {
    False: ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    True: ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D55E00"),
}
# Viridis without the end that is lost on the page.
_VIRIDIS = {
    False: ("#440154", "#46327E", "#365C8D", "#277F8E", "#1FA187", "#4AC16D", "#A0DA39"),
    True: ("#35608D", "#29798E", "#1F948C", "#2EB37C", "#67CC5C", "#B0DD2F", "#FDE725"),
}
_SYMBOLS = ("circle", "square", "diamond", "x", "triangle-up")
_FRAME = 2 * EDGE - 1.0  # half of what is drawn, in half the frame: as much beyond its edge as the edge is beyond it
_GREY = {False: "#8A8A8A", True: "#8F8F8F"}


def projection_figure(
    data: ProjectionData,
    side: Panel,
    colours: Colouring,
    reach: tuple[int, int],
    *,
    selected: Collection[int] = (),
    person: int | None = None,
    near: Sequence[int] = (),
    density: bool = False,
    dark: bool = False,
) -> go.Figure:
    """One picture; both of a page share `reach`, so that they can be compared.

    Args:
        data: who is drawn.
        side: where.
        colours: who gets which colour.
        reach: half width and half height of the frame.
        selected: node numbers that are lifted out; none leaves all alike.
        person: node number of somebody who is marked.
        near: node numbers of the people nearest to them, who get a ring.
        density: contours of where people are dense lie over the points.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    nodes = data.sample.nodes
    n = len(nodes)
    chosen = np.isin(nodes, list(selected)) if len(selected) else None
    shades, symbols = _shades(colours, dark), _symbols(colours)
    said = [named(words).replace("\n", "<br>") for words in data.said]
    traces = []
    # The largest first, so that small groups are not buried.
    for i in sorted(range(len(colours.groups)), key=lambda i: -len(colours.groups[i].members)):
        group = colours.groups[i]
        at = side.coordinates[group.members]
        label = named(group.label)
        traces.append(
            go.Scattergl(
                x=np.ascontiguousarray(at[:, 0]),
                y=np.ascontiguousarray(at[:, 1]),
                mode="markers",
                name=label,
                legendrank=i,
                customdata=nodes[group.members].astype(np.int32),
                hovertext=[said[i] for i in group.members],
                hovertemplate="%{hovertext}<extra></extra>",
                marker={
                    "size": 3 if n > 5_000 else 5,
                    "opacity": 0.6 if n > 5_000 else 0.85,
                    "color": shades[i],
                    "symbol": _hollow(symbols[i], side.outside[group.members]),
                },
                selectedpoints=None if chosen is None else np.nonzero(chosen[group.members])[0].tolist(),
                selected={"marker": {"opacity": 1.0}},
                unselected={"marker": {"opacity": 0.08}},
            )
        )
    color = ink(dark)
    if density:
        traces.append(_contours(go, side, reach, color))
    traces += _marks(go, data, side, said, person, near, color)
    axis = {
        "showticklabels": False,
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "mirror": True,
        "linecolor": _GREY[dark],
    }
    text = {"size": 13, "color": color}
    # In one go: each update of a layout takes plotly tens of milliseconds, and a lasso waits for both pictures.
    layout = {
        "xaxis": axis | {"range": [-_FRAME * reach[0], _FRAME * reach[0]], "constrain": "domain"},
        "yaxis": axis
        | {
            "range": [-_FRAME * reach[1], _FRAME * reach[1]],
            "scaleanchor": "x",
            "scaleratio": 1,
            "constrain": "domain",
        },
        "font": text,
        "height": 520,
        "margin": {"t": 10, "r": 10, "l": 10, "b": 10},
        # With the lasso chosen Streamlit takes no click for a selection; it is a button above the picture.
        "dragmode": "pan",
        "hovermode": "closest",
        "uirevision": "projection",
        "annotations": _names(data, side, said, person, color, dark),
        "newselection": {"line": {"color": color, "width": 2}},
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "x": 0,
            "itemsizing": "constant",
            "font": text,
            "title": {"text": named(colours.title) + "  ", "font": text},
        },
    }
    return go.Figure(traces, layout)


_GRID = 64  # cells along each side of the frame
_SPREAD = 1.5  # cells, the Gaussian that people are smoothed with


def _contours(go: Any, side: Panel, reach: tuple[int, int], color: str) -> Any:
    """Lines of equal density, from a tenth of the highest on: a histogram of the frame, smoothed by a Gaussian."""
    edges = [np.linspace(-_FRAME * r, _FRAME * r, _GRID + 1) for r in reach]
    count, _, _ = np.histogram2d(side.coordinates[:, 0], side.coordinates[:, 1], bins=edges)
    step = np.arange(_GRID)
    kernel = np.exp(-0.5 * ((step[:, None] - step) / _SPREAD) ** 2)
    kernel /= kernel.sum(axis=1, keepdims=True)
    smooth = kernel @ count @ kernel.T
    top = float(smooth.max()) or 1.0
    middle_x, middle_y = ((e[:-1] + e[1:]) / 2 for e in edges)
    return go.Contour(
        x=middle_x.astype(np.float32),
        y=middle_y.astype(np.float32),
        z=(smooth.T / top).astype(np.float32),
        name="density",
        showscale=False,
        showlegend=False,
        hoverinfo="skip",
        line={"color": color, "width": 1.5},
        contours={"coloring": "none", "start": 0.1, "end": 0.9, "size": 0.16},
    )


def _hollow(symbol: str, outside: BoolArray) -> str | list[str]:
    """Those outside the frame have the hollow form of their group's symbol."""
    return [f"{symbol}-open" if out else symbol for out in outside] if outside.any() else symbol


def _marks(
    go: Any, data: ProjectionData, side: Panel, said: Sequence[str], person: int | None, near: Sequence[int], color: str
) -> list[Any]:
    """A ring around each near person, and a large one with the id around the one who was asked for."""
    nodes = data.sample.nodes
    out = []
    for chosen, size, width in ((near, 13, 2), ([] if person is None else [person], 22, 3)):
        at = np.nonzero(np.isin(nodes, list(chosen)))[0].tolist()
        if not len(at):
            continue
        asked = size > 13
        out.append(
            go.Scattergl(
                x=np.ascontiguousarray(side.coordinates[at, 0]),
                y=np.ascontiguousarray(side.coordinates[at, 1]),
                mode="markers",
                name="the person" if asked else "nearest in all dimensions",
                customdata=nodes[at].astype(np.int32),
                hovertext=[said[i] for i in at],
                hovertemplate="%{hovertext}<extra></extra>",
                marker={
                    "size": size,
                    "color": color,
                    "symbol": "circle-open",
                    "line": {"width": width, "color": color},
                },
                selected={"marker": {"opacity": 1.0}},
                unselected={"marker": {"opacity": 1.0}},
            )
        )
    return out


def _names(
    data: ProjectionData, side: Panel, said: Sequence[str], person: int | None, color: str, dark: bool
) -> list[dict[str, Any]]:
    """The id beside the person who was asked for."""
    return [
        {
            "x": int(side.coordinates[i, 0]),
            "y": int(side.coordinates[i, 1]),
            "text": f"<b>{said[i].partition('<br>')[0]}</b>",
            "font": {"size": 14, "color": color},
            "bgcolor": paper(dark),
            "bordercolor": color,
            "borderpad": 2,
            "arrowcolor": color,
            "ax": 0,
            "ay": -38,
            "standoff": 12,
            "captureevents": False,
        }
        for i in np.nonzero(data.sample.nodes == person)[0].tolist()
    ]


def _shades(colours: Colouring, dark: bool) -> list[str]:
    plain = [g for g in colours.groups if g.kind == "value"]
    out = []
    for group in colours.groups:
        if group.kind != "value":
            out.append(_GREY[dark])
        elif colours.ordered:
            out.append(_VIRIDIS[dark][round(plain.index(group) * (TOP - 1) / max(1, len(plain) - 1))])
        else:
            out.append((*_COLORS[dark], ink(dark))[plain.index(group)])
    return out


def _symbols(colours: Colouring) -> list[str]:
    """A shape each where there are few enough to tell apart."""
    groups: tuple[Group, ...] = colours.groups
    return list(_SYMBOLS[: len(groups)]) if len(groups) <= len(_SYMBOLS) else ["circle"] * len(groups)


def projection_alt(data: ProjectionData, side: Panel, colours: Colouring) -> str:
    """The picture in words."""
    few = any(len(g.members) < FEWEST for g in colours.groups)
    sizes = ", ".join(g.label if few else f"{g.label} {len(g.members):,}" for g in colours.groups)
    return (
        f"{data.sample.words} of run {side.label} as points in a plane, coloured by {colours.title}: {sizes}. "
        "The numbers below say what holds."
    )
