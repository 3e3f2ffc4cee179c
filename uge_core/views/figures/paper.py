"""A recipe's figure in the paper's layout: a column an attribute, above as published, below as measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uge_core.runs.names import method_class
from uge_core.runs.recipe import Recipe
from uge_core.views.figures.look import faded, finish, ink, named, paper
from uge_core.views.paper import EVALUATIONS, LABELS, Evaluation, PaperTable
from uge_core.views.points import Reading

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from uge_core.explore.projection.paper import Placed

_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")  # Paul Tol's bright scheme
_LOW, _HIGH = " (low is better)", " (high is better)"


def paper_figure(table: PaperTable, backbone: str = "", *, dark: bool = False, width: int = 1200) -> go.Figure | None:
    """The recipe's panels; None where it has none that can be drawn of rows.

    Filled marks are methods, with 95 % intervals; settings of one method are joined in the order of their weights.

    Args:
        table: what to draw.
        backbone: of the recipe's; "": its first.
        dark: on a dark ground.
        width: in pixels.
    """
    panels = [panel for panel in table.recipe.panels if len(panel) == 2]
    if not panels:
        return None
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    recipe, color = table.recipe, ink(dark)
    backbone = backbone or recipe.backbones[0]
    rows = [(panel, how) for panel in panels for how in EVALUATIONS]
    titles = [named(a) for a in recipe.attributes] + [""] * (len(recipe.attributes) * (len(rows) - 1))
    figure = make_subplots(
        rows=len(rows),
        cols=len(recipe.attributes),
        subplot_titles=titles,
        horizontal_spacing=0.07,
        vertical_spacing=min(0.13, 0.4 / len(rows)),
    )
    shown: set[str] = set()
    for row, ((x, y), how) in enumerate(rows, 1):
        for column, attribute in enumerate(recipe.attributes, 1):
            for trace in _traces(go, table, backbone, attribute, x, y, how, shown):
                figure.add_trace(trace, row=row, col=column)
            figure.update_xaxes(title_text=_axis(x, how), row=row, col=column)
        figure.update_yaxes(title_text=_axis(y, how), row=row, col=1)
    figure.update_xaxes(zeroline=False, gridcolor=faded(color, 0.12))
    figure.update_yaxes(zeroline=False, gridcolor=faded(color, 0.12))
    figure.update_layout(
        title={"text": f"{named(recipe.title)}, {named(backbone)}<br><sup>{named(_what(table))}</sup>"},
        width=width,
        paper_bgcolor=paper(dark),
        plot_bgcolor=paper(dark),
    )
    finish(figure, dark, height=130 + 330 * len(rows), margin={"t": 100, "r": 20, "l": 20, "b": 20})
    return figure


def placed_figure(recipe: Recipe, placed: Sequence[Placed], *, dark: bool = False, width: int = 1200) -> go.Figure:
    """The pictures beside one another, a colour a value; people without a value are left out.

    Args:
        recipe: whose pictures these are.
        placed: of `explore.projection.paper.place`.
        dark: on a dark ground.
        width: in pixels.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(placed), subplot_titles=[named(one.label) for one in placed])
    for column, one in enumerate(placed, 1):
        for code, value in enumerate(one.values):
            mine = one.coordinates[one.codes == code]
            trace = go.Scatter(
                x=mine[:, 0],
                y=mine[:, 1],
                mode="markers",
                name=named(f"{recipe.attributes[0]}: {value}"),
                legendgroup=value,
                showlegend=column == 1,
                marker={"size": 4, "color": _COLOURS[code % len(_COLOURS)], "opacity": 0.6},
                hoverinfo="skip",
            )
            figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_layout(
        title={
            "text": f"{named(recipe.title)}<br><sup>{named(placed[0].words)}; distances between clusters mean nothing</sup>"
        },
        width=width,
        paper_bgcolor=paper(dark),
        plot_bgcolor=paper(dark),
    )
    finish(figure, dark, height=width // 2 + 60, margin={"t": 100, "r": 20, "l": 20, "b": 20})
    return figure


def _what(table: PaperTable) -> str:
    seeds = ", ".join(map(str, table.seeds))
    return f"{'seeds' if len(table.seeds) > 1 else 'seed'} {seeds or 'none measured'}; whiskers are 95 % intervals"


def _axis(figure: str, how: Evaluation) -> str:
    if figure == "lambda":
        return "λ"
    return LABELS[figure, how] + (_HIGH if figure == "ndcg" else _LOW)


def _traces(
    go: Any, table: PaperTable, backbone: str, attribute: str, x: str, y: str, how: Evaluation, shown: set[str]
) -> list[Any]:
    series: dict[str, list[tuple[str, float | None, Reading | None, Reading | None]]] = {}
    for column in table.recipe.columns:
        entry = column.entry
        lam = entry.lam if entry else None
        a, b = (None if f == "lambda" else table.reading(backbone, attribute, f, column, how) for f in (x, y))
        if x in ("dp", "eo") and how == "ours":
            b = table.link_quality(backbone, attribute, column)  # of the vectors that the gaps are of
        if (x == "lambda" and lam is None) or (x != "lambda" and a is None) or b is None:
            continue
        name = column.label
        if entry and lam is not None:
            name = name.removesuffix(f" {lam:g}")
        series.setdefault(name, []).append((column.label, lam, a, b))
    made = []
    for name, points in series.items():
        column = table.recipe.column(points[0][0])
        style = method_class(column.entry.method) if column.entry else None
        tint = style.color if style else "#808080"
        joined = len(points) > 1
        made.append(
            go.Scatter(
                x=[lam if a is None else a.value for _, lam, a, _ in points],
                y=[b.value for *_, b in points if b],
                mode="lines+markers" if joined else "markers",
                name=named(name),
                legendgroup=name,
                showlegend=name not in shown,
                text=[named(label) for label, *_ in points],
                line={"color": faded(tint, 0.5), "width": 1.5},
                marker={"symbol": style.symbol if style else "x-thin-open", "size": 11, "color": tint},
                error_x=_whiskers([a for _, _, a, _ in points], tint),
                error_y=_whiskers([b for *_, b in points], tint),
                hovertemplate="%{text}<br>%{x:.4f}, %{y:.4f}<extra></extra>",
            )
        )
        shown.add(name)
    return made


def _whiskers(readings: list[Reading | None], tint: str) -> dict[str, Any]:
    ends = [(r.value - r.low, r.high - r.value) for r in readings if r and r.low is not None and r.high is not None]
    if len(ends) < len(readings):
        return {}
    return {
        "type": "data",
        "symmetric": False,
        "array": [up for _, up in ends],
        "arrayminus": [down for down, _ in ends],
        "color": faded(tint, 0.45),
        "thickness": 1.5,
        "width": 3,
    }
