"""A fresh server and a real browser: a deep link shows the frame, and the page logs no error."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "": "Overview",
    "runs": "Runs",
    "leakage": "Leakage",
    "fairness": "Fairness",
    "tradeoff": "Trade-off",
    "method": "Method",
}

pytestmark = pytest.mark.browser


@pytest.fixture
def server(seeded: Path) -> Iterator[str]:
    """The address of a server nobody has visited yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"UGE_STORE": str(seeded)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                    break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.mark.parametrize("page", PAGES)
def test_a_deep_link_on_a_fresh_server_shows_the_frame(page: str, server: str, chromium: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    errors: list[str] = []
    outside: list[str] = []
    with sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )
        tab = browser.new_page()
        # Streamlit looks for its own endpoints below the page's path first; the 404s are harmless.
        tab.on(
            "console",
            lambda m: (
                errors.append(m.text) if m.type == "error" and "_stcore/" not in m.location.get("url", "") else None
            ),
        )
        tab.on("pageerror", lambda e: errors.append(str(e)))
        tab.on("request", lambda r: None if r.url.startswith((server, "data:", "blob:")) else outside.append(r.url))
        tab.goto(f"{server}/{page}")
        expect(tab.get_by_role("heading", name=PAGES[page], exact=True)).to_be_visible(timeout=60_000)
        sidebar = tab.get_by_test_id("stSidebar")
        for title in PAGES.values():
            expect(sidebar.get_by_role("link", name=title)).to_be_visible(timeout=60_000)
        expect(sidebar.get_by_text("Runs in")).to_be_visible(timeout=60_000)
        expect(sidebar.get_by_role("link", name="main")).to_have_count(0)
        expect(tab.get_by_test_id("stException")).to_have_count(0)
        if page == "leakage":
            expect(tab.get_by_test_id("stPlotlyChart")).to_be_visible(timeout=60_000)
            assert "exposure" not in tab.url
            tab.get_by_role("radio", name="Micro-F1").click()
            expect(tab).to_have_url(re.compile(r"metric=Micro-F1"), timeout=60_000)
            tab.reload()
            expect(tab.get_by_role("radio", name="Micro-F1")).to_be_checked(timeout=60_000)
        browser.close()
    assert errors == []
    assert [u for u in outside if not u.startswith(server.replace("http", "ws", 1))] == []
