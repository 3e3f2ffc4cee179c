"""A dashboard of its own and a real Chromium, for the tests that need what only a browser shows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from background import end_processes

from uge_core.runs.store import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
# WebGL in software, and it alone: pages that are composed by it take twice the processor's time. Nothing here may
# depend on a graphics card.
ARGUMENTS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
]
PATIENCE = 60_000  # milliseconds: how long a busy machine may take to show something


@dataclass(frozen=True)
class Server:
    """A dashboard that runs."""

    address: str
    store: RunStore
    pid: int

    @property
    def place(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.address.removeprefix("http://").split(":")
        return host, int(port)

    def memory(self) -> int:
        """The bytes its process holds."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.fixture(scope="session")
def seeded(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the seeded store, as pages write to the store that they show."""
    root = tmp_path_factory.mktemp("shown") / "store"
    shutil.copytree(seeded, root, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    return root


@contextmanager
def _serving(root: Path, *options: str, base: str = "") -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    process = subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env=os.environ | {"UGE_STORE": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    server = Server(f"http://127.0.0.1:{port}", RunStore(root), process.pid)
    try:
        limit = time.monotonic() + PATIENCE / 1000
        while True:
            try:
                with urllib.request.urlopen(f"{server.address}{base}/_stcore/health", timeout=1):
                    break
            except OSError:
                assert process.poll() is None and time.monotonic() < limit, "the dashboard does not start"
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=10)
        end_processes(server.store)  # they have sessions of their own


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[Server]]:
    """Runs a fresh dashboard: ``with serving(store_folder, "--option=value") as server``."""
    return _serving


@pytest.fixture
def fresh() -> Iterator[Callable[..., Server]]:
    """Starts dashboards that end with the test."""
    with ExitStack() as stack:
        yield lambda root, *options, **more: stack.enter_context(_serving(root, *options, **more))


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as p:
        running = p.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, fresh: Callable[..., Server]) -> Iterator[Callable[..., Page]]:
    """Opens a page in a browser window of its own: ``visit(server, "leakage")``.

    Further arguments are Playwright's of a new context. After the test no window may have logged an error, opened a
    dialog or asked another host for anything.
    """
    faults: list[str] = []
    windows = []

    def window(server: Server, path: str = "", **options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1400, "height": 1000}} | options))
        windows.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        # Streamlit looks for its own endpoints below the page's path first; the 404s are harmless.
        page.on(
            "console",
            lambda m: (
                faults.append(f"logged: {m.text}")
                if m.type == "error" and "_stcore/" not in m.location.get("url", "")
                else None
            ),
        )
        page.on("pageerror", lambda error: faults.append(f"threw: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"asked: {dialog.message}"), dialog.dismiss()))
        own = (server.address, server.address.replace("http", "ws", 1), "data:", "blob:")
        page.on("request", lambda r: None if r.url.startswith(own) else faults.append(f"went to {r.url}"))
        page.on("websocket", lambda w: None if w.url.startswith(own) else faults.append(f"went to {w.url}"))
        page.goto(f"{server.address}/{path}")
        return page

    yield window
    for context in windows:
        context.close()
    assert faults == []


# A run may begin and end between two looks, so that what the attribute was counts as well.
RUN = """() => {
  let began = false;
  window.pageRan = false;
  const watch = new MutationObserver((changes) => {
    const now = changes[0].target.getAttribute('data-test-script-state');
    began ||= now === 'running' || changes.some((change) => change.oldValue === 'running');
    if (began && now === 'notRunning') { watch.disconnect(); window.pageRan = true; }
  });
  const filter = ['data-test-script-state'];
  watch.observe(document.body, { subtree: true, attributeFilter: filter, attributeOldValue: true });
}"""


@pytest.fixture(scope="session")
def one_run() -> Callable[[Page], AbstractContextManager[None]]:
    """Waits for the end of the page's run that is begun inside: ``with one_run(tab): ...``.

    Streamlit's own page drops what is done in the tenths of a second before such a run begins, which is quicker than
    people are: a file for another dropper, or a field's value when the page is left.
    """

    @contextmanager
    def wait(page: Page) -> Iterator[None]:
        page.wait_for_function("() => document.querySelector('[data-test-script-state=notRunning]')")
        page.evaluate(RUN)
        yield
        page.wait_for_function("() => window.pageRan")

    return wait


@pytest.fixture(scope="session")
def settled() -> Callable[[Page], None]:
    """Waits until a page is drawn, its script has ended, and no other run has begun since, as a press takes a moment."""

    def wait(page: Page) -> None:
        page.evaluate("() => { window.quiet = 0; }")
        page.wait_for_function(
            """() => {
              const drawn = document.querySelector('[data-test-script-state=notRunning]')
                && document.querySelector('[data-testid=stMain] h1')
                && !document.querySelector('[data-stale=true], [data-testid=stSkeleton], [data-testid=stSpinner]');
              window.quiet = drawn ? window.quiet || performance.now() : 0;
              return drawn && performance.now() - window.quiet > 400;
            }"""
        )

    return wait
