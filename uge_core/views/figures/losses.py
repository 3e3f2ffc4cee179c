"""The loss of a training as it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uge_core.views.figures.look import finish, ink

if TYPE_CHECKING:
    import plotly.graph_objects as go


def loss_figure(losses: Sequence[tuple[int, float]], *, dark: bool = False) -> go.Figure:
    """A small curve, logarithmic where the loss stays above 0 (a penalty's weight can take it below).

    Args:
        losses: epoch and loss, rising in epoch.
        dark: the page is dark.
    """
    import plotly.graph_objects as go

    epochs, values = zip(*losses, strict=True)
    figure = go.Figure(
        go.Scatter(
            x=epochs,
            y=values,
            mode="lines",
            line={"color": ink(dark), "width": 2},
            hovertemplate="epoch %{x}: %{y:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text="loss", type="log" if min(values) > 0 else "linear")
    finish(figure, dark, height=180, margin={"t": 10, "r": 10, "l": 10, "b": 10}, uirevision="losses")
    return figure
