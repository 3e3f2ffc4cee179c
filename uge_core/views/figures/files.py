"""Figures as files: HTML by plotly alone, pictures by a browser that is on the machine."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from uge_core.errors import ConfigError
from uge_core.files import write_atomically
from uge_core.views.browser import browser, visit
from uge_core.views.figures.leakage import CHART_CONFIG

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORMATS = ("html", "png", "svg")
_IMAGE = "uge-image"
_SCALE = 2  # pixels of a picture for one of the page


def check_figure_file(path: Path) -> None:
    """Says before anything is measured whether a figure can be written there.

    Raises:
        ConfigError: another ending, no such folder, or no browser for a picture.
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise ConfigError(f"{path}: a figure's file ends in {', '.join(f'.{f}' for f in FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.absolute().parent}; make it first")
    if ending != "html" and browser() is None:
        raise ConfigError(f"{path}: no Chromium or Chrome was found to draw a picture; install one, or take .html")


def write_figure(figure: go.Figure, path: Path) -> None:
    """Writes a figure as its file's ending says.

    Raises:
        ConfigError: as `check_figure_file`, or the browser draws nothing.
    """
    check_figure_file(path)
    kind = path.suffix[1:].lower()
    made = figure.to_html(config=CHART_CONFIG).encode() if kind == "html" else _picture(figure, kind)
    write_atomically(path, lambda file: file.write(made))


def _picture(figure: go.Figure, kind: str) -> bytes:
    """The figure as plotly draws it in a browser."""
    asked = json.dumps({"format": kind, "width": figure.layout.width, "height": figure.layout.height, "scale": _SCALE})
    script = (
        f"Plotly.toImage('{{plot_id}}', {asked}).then(image => {{ "
        f"document.body.innerHTML = ''; document.body.setAttribute('{_IMAGE}', image); }});"
    )
    page = visit(figure.to_html(config=CHART_CONFIG, post_script=script), "--dump-dom").decode()
    found = re.search(rf'{_IMAGE}="data:[^,;"]*(;base64)?[^,"]*,([^"]*)"', page)
    if found is None:
        raise ConfigError("the browser drew no picture of the figure; take .html")
    content = found[2].replace("&amp;", "&")
    return base64.b64decode(content) if found[1] else unquote_to_bytes(content)
