"""Ink, axes and legends that all figures share. Templates and fonts are left to Streamlit's theme."""

from __future__ import annotations

import html
from typing import Any

from uge_core.visible import visible


def ink(dark: bool) -> str:
    """The colour of text and reference marks."""
    return "#F2F2F2" if dark else "#1A1A1A"


def paper(dark: bool) -> str:
    """The colour behind a chart."""
    return "#181715" if dark else "#FFFFFF"


def middle(dark: bool) -> str:
    """The neutral colour of no difference."""
    return "#3A3A36" if dark else "#F2F2F2"


def finish(figure: Any, dark: bool, **layout: Any) -> None:
    """Text in full contrast: Streamlit's theme greys axis text below what small text needs."""
    font = {"size": 13, "color": ink(dark)}
    # Plotly's own update_xaxes and update_layout take twice as long, at each step of a slider.
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        axis.update(tickfont=font, title={"font": font}, automargin=True)
    figure.layout.update(font=font, legend_font=font, **layout)


def named(label: str) -> str:
    """A name out of people's data, which plotly would read as markup."""
    return html.escape(visible(label), quote=False)


def escape(text: str) -> str:
    """The text as HTML shows it."""
    return html.escape(visible(text))


def faded(color: str, share: float) -> str:
    """A #RRGGBB colour, partly transparent."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share})"


def mixed(low: str, high: str, share: float) -> str:
    """The colour between two #RRGGBB colours."""
    parts = [(int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in parts)


def readable_on(color: str) -> str:
    """Black or white, whichever has more contrast (WCAG's relative luminance)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#FFFFFF"
