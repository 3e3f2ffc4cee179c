"""What axe finds on each page, light and dark: nothing beyond what Streamlit itself brings.

And every chart has words.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from page_titles import PAGES, heading

pytestmark = pytest.mark.browser

# Streamlit's own: rule, and what stands in the selector of the element that breaks it.
OWN = (
    ("list", "stSidebarNavItems"),
    ("listitem", '<li class="st-emotion-cache'),
    ("presentation-role-conflict", "stFileUploaderDropzone"),
    ("scrollable-region-focusable", "katex-display"),
)


@pytest.fixture(scope="module")
def server(serving: Callable[..., AbstractContextManager[Any]], seeded: Path) -> Iterator[Any]:
    with serving(seeded) as running:
        yield running


# What does not depend on colours is the same in the dark.
@pytest.mark.parametrize(("scheme", "options"), [("light", {}), ("dark", {"runOnly": ["color-contrast"]})])
def test_nothing_of_ours(
    scheme: str, options: dict[str, Any], server: Any, visit: Callable[..., Any], settled: Callable[[Any], None]
) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    axe = Axe()
    tab = visit(server, color_scheme=scheme)
    faults = []
    for page in PAGES.values():
        tab.get_by_test_id("stSidebar").get_by_role("link", name=page).click()
        expect(tab.get_by_role("heading", name=heading(page), exact=True)).to_be_visible()
        settled(tab)
        tab.wait_for_timeout(500)  # headings and charts fade in
        expect(tab.get_by_test_id("stException")).to_have_count(0)
        for broken in axe.run(tab, options=options).response["violations"]:
            for node in broken["nodes"]:
                target = " ".join(map(str, node["target"]))
                if not any(rule == broken["id"] and part in target + node["html"] for rule, part in OWN):
                    faults.append((page, broken["id"], target, node["html"][:300], node["failureSummary"][:400]))
        charts = tab.locator("[data-testid=stPlotlyChart]")
        words = charts.evaluate_all(
            "all => all.map(c => (c.closest('[aria-label]') || "
            "c.querySelector('[aria-label]'))?.getAttribute('aria-label') || '')"
        )
        faults += [(page, "chart without words", "", "", "")] * sum(not w.strip() for w in words)
    assert not faults, "\n".join(map(str, faults))
