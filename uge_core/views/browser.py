"""A browser that is on the machine, without a window: it draws a page that this program made."""

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
    """The browser: ``$BROWSER_PATH``, else a Chromium or Chrome on the path; None without one."""
    named = os.environ.get("BROWSER_PATH")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)


def visit(html: str, switch: str, *, writes: bool = False) -> bytes:
    """What a browser makes of a page.

    Args:
        html: the page, which needs nothing but itself.
        switch: what is to be made of it, "--print-to-pdf" or "--dump-dom".
        writes: the browser makes a file; else it prints what it makes.

    Raises:
        ConfigError: no browser is found, or it makes nothing.
    """
    program = browser()
    if program is None:
        raise ConfigError("no Chromium or Chrome was found to draw the page; take html")
    with temporary_folder() as folder:
        page, out = folder / "page.html", folder / "made"
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
            f"{switch}={out}" if writes else switch,
            page.as_uri(),
        ]
        try:
            done = run_bound(command, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{program} did not draw the page in {_SECONDS} seconds; take html") from None
        made = out.read_bytes() if out.exists() else b"" if writes else done.stdout.encode()
        if not made:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise ConfigError(f"{program} made nothing of the page: {last[:200]}; take html")
        return made
