"""A thousand stored runs, and a server that has been used for a while. Prints the figures it asserts loosely."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_titles import PAGES, heading

from uge_core.runs.store import RunStore

pytestmark = pytest.mark.browser

MANY = 1000
# Words and table, or picture, are there; looked for at each frame, where Playwright's own checks are up to a second apart.
DRAWN = """words => document.querySelector('[data-testid=stMain]')?.textContent.includes(words)
  && document.querySelector('[data-testid=stMain] :is([data-testid=stDataFrame] canvas, .uge-gauge)')"""


@pytest.fixture(scope="module")
def many(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a thousand runs: those of the seeded one, under other seeds."""
    root = tmp_path_factory.mktemp("many") / "store"
    shutil.copytree(seeded, root, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    with RunStore(root).writing() as db:
        rows = [dict(row) for row in db.execute("SELECT * FROM runs")]
        for number in range(MANY - len(rows)):
            row = dict(rows[number % len(rows)])
            old, row["id"] = row["id"], f"{number:012x}"
            row["config"] = json.dumps(json.loads(row["config"]) | {"seed": 1 + number})
            row["created"] -= number
            db.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(row))})", list(row.values()))
            shutil.copytree(root / "runs" / old, root / "runs" / row["id"], copy_function=os.link)
    return root


@pytest.mark.alone
def test_a_thousand_runs(fresh: Callable[..., Any], visit: Callable[..., Any], many: Path) -> None:
    from playwright.sync_api import expect

    tab = visit(fresh(many), "method")
    expect(tab.get_by_role("heading", name="Method", exact=True)).to_be_visible()
    sidebar = tab.get_by_test_id("stSidebar")
    took: dict[str, float] = {}
    # The first round fills Streamlit's caches, the second is what people meet.
    for page, words in [("Runs", "1,000 of 1,000 runs"), ("Overview", "Verdicts are of run B")] * 2:
        began = time.monotonic()
        sidebar.get_by_role("link", name=page).click()
        tab.wait_for_function(DRAWN, arg=words)
        took[page] = time.monotonic() - began
        expect(tab.get_by_test_id("stMain").get_by_text(words)).to_be_visible()
        shown = tab.get_by_test_id("stDataFrame") if page == "Runs" else tab.locator(".uge-gauge")
        expect(shown.first).to_be_visible()
        sidebar.get_by_role("link", name="Method").click()
        expect(tab.get_by_role("heading", name="Method", exact=True)).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    print("\n1,000 runs: " + ", ".join(f"{page} {seconds:.1f} s" for page, seconds in took.items()))
    assert all(seconds < 5 for seconds in took.values())  # the bar is a second on a quiet machine


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.acceptance)])
def test_page_switches_leave_the_server_as_it_was(
    rounds: int, fresh: Callable[..., Any], visit: Callable[..., Any], seeded: Path
) -> None:
    from playwright.sync_api import expect

    server = fresh(seeded)
    tab = visit(server)
    pages = [*list(PAGES.values())[1:], PAGES[""]]
    held = []
    for _ in range(rounds):
        for page in pages:
            tab.get_by_test_id("stSidebar").get_by_role("link", name=page).click()
            expect(tab.get_by_role("heading", name=heading(page), exact=True)).to_be_visible()
            tab.wait_for_function("() => !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')")
        held.append(server.memory())
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert "libpython" in maps or "python" in maps
    assert "libtorch" not in maps and "libgomp" not in maps
    print(f"\nweb process after 10 to {10 * rounds} switches: " + ", ".join(f"{b / 2**20:.0f}" for b in held) + " MiB")
    assert held[-1] < 1.15 * held[0]
