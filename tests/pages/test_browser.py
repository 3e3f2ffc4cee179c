"""Pages as only a browser shows them: by deep link on a server nobody has visited, an edit tried, people boxed in."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from page_titles import PAGES, heading

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICKERS = ("Data", "Audited attribute", "Run A (before)", "Run B (after)")
ABOUT_NO_RUN = ("data", "runs", "method", "paper")
Visit = Callable[..., "Page"]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(serving: Callable[..., AbstractContextManager[Any]], seeded: Path) -> Iterator[Any]:
    with serving(seeded) as running:
        yield running


def test_every_page_is_visited() -> None:
    found = {p.stem for p in (Path(__file__).resolve().parents[2] / "pages").glob("*.py")}
    assert {page or "overview" for page in PAGES} == found - {"main"}


@pytest.mark.parametrize("pages", [[*PAGES][i::3] for i in range(3)], ids=",".join)
def test_deep_links_show_the_frame(pages: list[str], fresh: Callable[..., Any], visit: Visit, seeded: Path) -> None:
    """The first on a server that nobody has visited, the others each in a session of their own."""
    server = fresh(seeded)
    tab = visit(server, pages[0])
    has_frame(tab, pages[0])
    for page in pages[1:]:
        tab.goto(f"{server.address}/{page}")
        has_frame(tab, page)


def has_frame(tab: "Page", page: str) -> None:
    from playwright.sync_api import expect

    expect(tab.get_by_role("heading", name=heading(PAGES[page]), exact=True)).to_be_visible()
    sidebar = tab.get_by_test_id("stSidebar")
    for title in PAGES.values():
        expect(sidebar.get_by_role("link", name=title)).to_be_visible()
    # What is compared stands above the page, where a phone shows it too.
    for label in () if page in ABOUT_NO_RUN else PICKERS[:3] if page == "tradeoff" else PICKERS:
        expect(tab.get_by_test_id("stMain").get_by_role("combobox", name=label)).to_be_visible()
    expect(sidebar.get_by_text("Runs in")).to_be_visible()
    # Streamlit's own list of the files in pages/ would name the frame too.
    expect(sidebar.get_by_role("link", name="main")).to_have_count(0)
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def test_a_choice_is_in_the_address_and_survives_a_reload(server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "leakage")
    expect(tab.get_by_test_id("stPlotlyChart")).to_be_visible()
    assert "exposure" not in tab.url
    tab.get_by_role("radio", name="Micro-F1").click()
    expect(tab).to_have_url(re.compile(r"metric=Micro-F1"))
    tab.reload()
    expect(tab.get_by_role("radio", name="Micro-F1")).to_be_checked()


def test_an_edit_is_made_seen_and_undone(fresh: Callable[..., Any], visit: Visit, store_copy: Path) -> None:
    from playwright.sync_api import expect

    tab = visit(fresh(store_copy), "whatif?attribute=city&nodes=p10,p11", viewport={"width": 1400, "height": 2400})
    expect(tab.get_by_text("Add an edit, and what it changes")).to_be_visible()
    expect(tab.locator(".js-plotly-plot")).to_have_count(1)
    tab.get_by_role("button", name="Add edit").click()
    expect(tab.get_by_role("button", name="city of nodes p10, p11 becomes A")).to_be_visible()
    expect(tab.get_by_text("city, how often the linear attacker")).to_be_visible()
    expect(tab.get_by_role("button", name="Download CSV")).to_be_visible()
    tab.get_by_role("button", name="Undo", exact=True).click()
    expect(tab.get_by_text("Add an edit, and what it changes")).to_be_visible()
    expect(tab.get_by_text("becomes A")).to_have_count(0)
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def test_a_box_around_people_is_compared_with_everybody(server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "projection?attribute=city", viewport={"width": 1400, "height": 1400})
    plots = tab.locator(".js-plotly-plot")
    expect(plots).to_have_count(2)
    expect(tab.get_by_text("draw around people")).to_be_visible()
    drawn = (
        "() => [...document.querySelectorAll('.js-plotly-plot')].map(g => (g._fullData || []).reduce((n, t) => "
        "n + t.x.length, 0))"
    )
    assert tab.evaluate(drawn) == [200, 200]
    # WebGL is there: each picture has its canvases, and no more than two are on the page.
    assert tab.evaluate("() => document.querySelectorAll('.js-plotly-plot .gl-canvas-focus').length") == 2
    tab.locator("[data-title='Box Select']").first.click(force=True)
    box = plots.first.locator(".nsewdrag").bounding_box()
    assert box is not None
    left, top = box["x"] + 0.02 * box["width"], box["y"] + 0.12 * box["height"]
    tab.mouse.move(left, top)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.95 * box["height"], steps=8)
    tab.mouse.up()
    sentence = tab.get_by_text("people selected")
    expect(sentence).to_be_visible()
    count = int(sentence.inner_text().split()[0])
    assert 10 < count < 200
    # A shows its own box; in B the same people are lifted out, and drawing B anew keeps the selection.
    tab.wait_for_function(
        "n => { const g = document.querySelectorAll('.js-plotly-plot')[1];"
        " return g && g._fullData && g._fullData.reduce((s, t) => s + (t.selectedpoints || []).length, 0) === n }",
        arg=count,
    )
    expect(sentence).to_contain_text(f"{count} people selected")
    # The people themselves are no grid, which would offer its rows as a file.
    expect(tab.get_by_test_id("stDataFrame")).to_have_count(1)
    expect(tab.get_by_test_id("stTable")).to_have_count(1)
    tab.get_by_role("button", name="Clear the selection").click()
    expect(tab.get_by_text("draw around people")).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def test_a_link_is_copied_that_shows_the_same(server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "leakage?attribute=gender", permissions=["clipboard-read", "clipboard-write"])
    expect(tab.get_by_test_id("stPlotlyChart")).to_be_visible()
    tab.get_by_role("radio", name="Micro-F1").click()
    expect(tab).to_have_url(re.compile(r"metric=Micro-F1"))
    tab.get_by_role("button", name="Copy link").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    copied = tab.evaluate("() => navigator.clipboard.readText()")
    assert copied == tab.url and "attribute=gender" in copied and "after=" in copied
    other = visit(server, copied.removeprefix(f"{server.address}/"))
    expect(other.get_by_role("radio", name="Micro-F1")).to_be_checked()
    expect(other.get_by_role("combobox", name="Audited attribute")).to_have_value("gender")


@pytest.mark.parametrize("width", [820, 390])
def test_nothing_is_cut_off_on_a_tablet_or_a_phone(server: Any, visit: Visit, width: int) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "", viewport={"width": width, "height": 1100})
    # Text that leaves the window, but for what scrolls inside its own box.
    beyond = """() => {
      const scrolls = e => e && (/(auto|scroll|hidden)/.test(getComputedStyle(e).overflowX) ? true : scrolls(e.parentElement));
      const main = document.querySelector('[data-testid=stMain]'), words = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      const found = [];
      while (words.nextNode()) {
        const text = words.currentNode, range = document.createRange();
        if (!text.textContent.trim()) continue;
        range.selectNodeContents(text);
        const box = range.getBoundingClientRect();
        const inside = text.parentElement.closest('[data-testid=stDataFrame], [data-baseweb=select], [class*=st-key-maps-]');
        if (box.width && box.height && box.right > window.innerWidth + 1 && !inside) found.push(text.textContent.slice(0, 80));
      }
      return found;
    }"""
    for page in ("", "leakage", "leakage?all=true&picture=As+a+list", "fairness", "tradeoff"):
        tab.goto(f"{server.address}/{page}")
        expect(tab.get_by_role("combobox", name="Run A (before)")).to_be_visible()
        shown = ".uge-gauge" if not page else ".js-plotly-plot .scatterlayer"
        expect(tab.locator(shown).first).to_be_visible()
        tab.wait_for_function("() => !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')")
        assert tab.evaluate(beyond) == [], (page, width)
        assert tab.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth + 1"), (page, width)
