"""PDF by a browser that is on the machine: it prints the HTML report, charts and all."""

from __future__ import annotations

from uge_core.views.browser import browser as browser
from uge_core.views.browser import visit


def print_pdf(html: str) -> bytes:
    """The page as PDF.

    Raises:
        ConfigError: no browser is found, or it prints nothing.
    """
    return visit(html, "--print-to-pdf", writes=True)
