"""PDF by a browser that is on the machine: it prints the HTML report, charts and all."""

from __future__ import annotations

import os
import shutil
import subprocess

from uge_core.errors import ConfigError
from uge_core.files import temporary_folder
from uge_core.processes import run_bound

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_SECONDS = 120
_SILENT = (
    # No name is looked up, whatever asks for one; the rest says so to what would ask.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-features=MediaRouter,OptimizationHints,OptimizationGuideModelDownloading,AutofillServerCommunication",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
)
"""Switches with which a browser asks nothing of the network."""


def browser() -> str | None:
    """The browser that prints: ``$BROWSER_PATH``, else a Chromium or Chrome on the path; None without one."""
    named = os.environ.get("BROWSER_PATH")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)


def print_pdf(html: str) -> bytes:
    """The page as PDF.

    Raises:
        ConfigError: no browser is found, or it prints nothing.
    """
    program = browser()
    if program is None:
        raise ConfigError("no Chromium or Chrome was found to print a PDF; take html")
    with temporary_folder() as folder:
        page, out = folder / "report.html", folder / "report.pdf"
        page.write_text(html, encoding="utf-8")
        # A browser refuses to sandbox root, which is who runs in many containers.
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [
            program,
            "--headless",
            "--disable-gpu",
            *root,
            *_SILENT,
            "--no-pdf-header-footer",
            "--virtual-time-budget=8000",
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={out}",
            page.as_uri(),
        ]
        try:
            done = run_bound(command, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{program} did not print the report in {_SECONDS} seconds; take html") from None
        if not out.exists():
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise ConfigError(f"{program} printed no PDF: {last[:200]}; take html")
        return out.read_bytes()
