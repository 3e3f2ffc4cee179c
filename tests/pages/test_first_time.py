"""The first minutes: a start in an empty place, the sample audit, the lambda slider by keys, a report in the hand."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uge_core.runs.sample_audit import LAMBDAS

pytestmark = [pytest.mark.browser, pytest.mark.alone]

# The page is whole; looked for at each frame, where Playwright's own checks are up to a second apart.
WHOLE = """() => document.querySelector('[data-testid=stMain]')?.textContent.includes('This is the sample audit')
  && document.querySelectorAll('[data-testid=stMain] .uge-gauge').length === 5"""
LIMIT = 180  # seconds from the start of the server to a printed report
PAINT = 3  # seconds to the first page on a quiet machine; a busy one may take five times as long
LARGEST = 8 * 10**6  # bytes of an HTML report


def saved(tab: Any, label: str, folder: Path) -> Path:
    """The file behind a download button."""
    with tab.expect_download() as download:
        tab.get_by_role("button", name=label, exact=True).click()
    target = folder / download.value.suggested_filename
    download.value.save_as(target)
    return target


def test_from_nothing_to_a_report(
    fresh: Callable[..., Any], visit: Callable[..., Any], settled: Callable[[Any], None], browser: Any, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    began = time.monotonic()
    server = fresh(tmp_path / "store")
    opened = time.monotonic()
    tab = visit(server)
    tab.wait_for_function(WHOLE)
    painted = time.monotonic() - opened
    expect(tab.get_by_text("This is the sample audit")).to_be_visible()
    # Within the first screen: what this is, a verdict with its picture, and what to do next.
    expect(tab.get_by_role("heading", name="UGE audit", exact=True)).to_be_visible()
    expect(tab.get_by_text("region: reduced")).to_be_in_viewport()
    expect(tab.get_by_role("link", name="Write the report").first).to_be_in_viewport()
    tab.get_by_role("button", name="Take the tour").click()
    expect(tab.get_by_text("Stop 1 of 5: Overview.")).to_be_visible()
    tab.get_by_role("button", name="Next stop: Leakage").click()
    expect(tab.get_by_role("heading", name="Leakage", exact=True)).to_be_visible()
    expect(tab.get_by_test_id("stPlotlyChart")).to_be_visible()
    tab.get_by_role("button", name="Next stop: Trade-off").click()
    expect(tab.get_by_text("Stop 3 of 5: Trade-off.")).to_be_visible()
    tab.get_by_role("button", name="End the tour").click()
    expect(tab.get_by_text("Stop 3 of 5: Trade-off.")).to_have_count(0)
    settled(tab)  # a list that opens while the page is still drawn anew is closed by it
    tab.get_by_role("combobox", name="Method").click()
    tab.get_by_role("option", name="UGE-C", exact=True).click()
    expect(tab).to_have_url(re.compile(r"lambda=0\.9(&|$)"))  # the nearest to run B's 1 that was trained
    expect(tab.get_by_text("At λ 0.9 the strongest attacker").first).to_be_visible()
    # Keys alone: Tab reaches the slider, arrows move it, and numbers and ring go along.
    slider = tab.get_by_role("slider", name="λ")
    expect(slider).to_be_visible()
    tab.get_by_role("combobox", name="Method").focus()
    tab.keyboard.press("Tab")
    for _ in range(5):
        if slider.evaluate("s => s === document.activeElement"):
            break
        tab.keyboard.press("Tab")
    expect(slider).to_be_focused()
    numbers = tab.get_by_test_id("stMetricValue")
    expect(numbers).to_have_count(4)
    before = numbers.all_inner_texts()
    for lam in LAMBDAS[2::-1]:
        tab.keyboard.press("ArrowLeft")
        if lam != LAMBDAS[0]:  # the slider's first, which an address leaves out: run B says it
            expect(tab).to_have_url(re.compile(rf"lambda={lam}(&|$)"))
        expect(tab.get_by_text(f"At λ {lam:g} the strongest attacker").first).to_be_visible()
    assert all(a != b for a, b in zip(before, numbers.all_inner_texts(), strict=True))
    tab.get_by_test_id("stSidebar").get_by_role("link", name="Report").click()
    expect(tab.get_by_role("heading", name="Report", exact=True)).to_be_visible()
    page, pdf, record = (saved(tab, label, tmp_path) for label in ("HTML", "PDF", "JSON"))
    took = time.monotonic() - began
    print(f"\nfirst paint {painted:.1f} s, report in the hand after {took:.1f} s")
    assert took < LIMIT and painted < 5 * PAINT

    text = page.read_text()
    assert page.stat().st_size < LARGEST and pdf.read_bytes().startswith(b"%PDF-")
    stamps = {audit["sha256"] for audit in json.loads(record.read_text())}
    # All embeddings with all their seeds.
    told = re.search(r'<table class="runs">.*?</table>', text, re.S)
    assert told and len(stamps) == 27 and stamps <= set(re.findall(r"<code>([0-9a-f]{64})</code>", told[0]))
    # The file names no address, and as a reader opens it asks for none and runs no script.
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", text)
    context = browser.new_context()
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    reader = context.new_page()
    reader.goto(page.as_uri())
    expect(reader.locator("svg.chart circle").first).to_be_visible()
    expect(reader.locator(".uge-gauge").first).to_be_visible()
    context.close()
    assert [u for u in asked if not u.startswith(("file:", "data:", "blob:"))] == []
