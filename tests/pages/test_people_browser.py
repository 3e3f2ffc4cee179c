"""People as they are looked for and edited in a browser: typed, clicked, sent from page to page, and still there afterwards."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import uge_core as uge
from uge_core.explore.projection.job import project
from uge_core.runs.store import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import Page

Visit = Callable[..., "Page"]

pytestmark = pytest.mark.browser
CLICKED = """(which) => {
    const chart = document.querySelector('.js-plotly-plot');
    const why = chart && chart._fullData && chart._fullData.find(t => t.name === 'why');
    if (!why) return null;
    const at = which === 'last' ? why.x.length - 3 : 2;
    const box = chart.getBoundingClientRect(), {xaxis, yaxis} = chart._fullLayout;
    return {x: box.left + xaxis._offset + xaxis.d2p(why.x[at]), y: box.top + yaxis._offset + yaxis.d2p(why.y[at]),
            ids: why.customdata[at].slice(1), edges: why.x.length / 5};
}"""


@pytest.fixture(scope="module")
def pictured(seeded: Path, town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of its own with pictures that a job makes."""
    root = tmp_path_factory.mktemp("pictured") / "store"
    shutil.copytree(seeded, root, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    store, graph = RunStore(root), uge.load(town)
    runs = [r for r in store.list(audits=False) if r.dataset["fingerprint"] == graph.fingerprint]
    project(graph, [runs], ["t-sne"], size=200)
    return root


@pytest.fixture(scope="module")
def server(serving: Callable[..., AbstractContextManager[Any]], pictured: Path) -> Iterator[Any]:
    with serving(pictured) as running:
        yield running


def boxed(tab: "Page") -> int:
    """Draws a box around the left half of picture A; how many people are in it."""
    from playwright.sync_api import expect

    expect(tab.locator(".js-plotly-plot")).to_have_count(2)
    tab.locator("[data-title='Box Select']").first.click(force=True)
    box = tab.locator(".js-plotly-plot").first.locator(".nsewdrag").bounding_box()
    assert box is not None
    tab.mouse.move(box["x"] + 0.02 * box["width"], box["y"] + 0.12 * box["height"])
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.95 * box["height"], steps=8)
    tab.mouse.up()
    sentence = tab.get_by_text("people selected")
    expect(sentence).to_be_visible()
    return int(sentence.inner_text().split()[0])


@pytest.mark.parametrize("address", ["projection=t-SNE", "projection_density=true", ""])
def test_a_selection_is_sent_to_whatif_whatever_the_address_holds(address: str, server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, f"projection?attribute=city&{address}", viewport={"width": 1400, "height": 1800})
    chosen = boxed(tab)
    tab.get_by_role("button", name="Send to What-if").click()
    expect(tab.get_by_role("heading", name="What-if", exact=True)).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    looked_at = tab.get_by_text(f"{chosen} people are looked at") if chosen > 60 else tab.locator("[data-tag]").first
    expect(looked_at).to_be_visible()
    assert "projection" not in tab.url.partition("?")[2]


def test_a_person_who_is_typed_is_marked_in_both_pictures(server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "projection?attribute=city", viewport={"width": 1400, "height": 1800})
    expect(tab.locator(".js-plotly-plot")).to_have_count(2)
    # Suggestions come while one types, without a key that ends it.
    tab.get_by_placeholder("an id, or values").press_sequentially("p17")
    tab.get_by_role("button", name=re.compile("^(person )?p17: ")).click()
    tab.wait_for_function(
        "() => [...document.querySelectorAll('.js-plotly-plot')].filter(g => (g._fullData || []).some(t =>"
        " t.name === 'the person' && t.x.length === 1)).length === 2"
    )
    expect(tab.get_by_role("heading", name="Nearest to p17")).to_be_visible()
    expect(tab.get_by_test_id("stTable")).to_have_count(2)
    # The lists are no grid, which would offer its rows as a file.
    expect(tab.get_by_test_id("stDataFrame")).to_have_count(0)
    tab.get_by_role("button", name="Edit in What-if").click()
    expect(tab.get_by_role("heading", name="What-if", exact=True)).to_be_visible()
    expect(tab.locator("[data-tag]", has_text="p17")).to_be_visible()


def test_a_point_that_is_clicked_is_a_person(server: Any, visit: Visit) -> None:
    from playwright.sync_api import expect

    tab = visit(server, "projection?attribute=city", viewport={"width": 1400, "height": 1800})
    expect(tab.locator(".js-plotly-plot")).to_have_count(2)
    place = tab.wait_for_function(
        """() => {
            const chart = document.querySelector('.js-plotly-plot'), trace = (chart._fullData || [])[0];
            if (!trace || !chart._fullLayout.xaxis.d2p) return null;
            // The one that stands farthest from the middle stands alone.
            let at = 0;
            const far = i => trace.x[i] ** 2 + trace.y[i] ** 2;
            for (let i = 0; i < trace.x.length; i++) if (far(i) > far(at)) at = i;
            const box = chart.getBoundingClientRect(), {xaxis, yaxis} = chart._fullLayout;
            return {x: box.left + xaxis._offset + xaxis.d2p(trace.x[at]),
                    y: box.top + yaxis._offset + yaxis.d2p(trace.y[at]), words: trace.hovertext[at]};
        }"""
    ).json_value()
    tab.mouse.move(place["x"], place["y"])
    name, *values = place["words"].split("<br>")
    hover = tab.locator(".hoverlayer text").first
    expect(hover).to_contain_text(name)
    assert values and all(value in hover.text_content() for value in values)
    tab.mouse.click(place["x"], place["y"])
    expect(tab.get_by_role("heading", name=f"Nearest to {name}")).to_be_visible()


def test_one_press_adds_what_was_just_typed(
    fresh: Callable[..., Any], visit: Visit, store_copy: Path, settled: Callable[[Any], None]
) -> None:
    from playwright.sync_api import expect

    tab = visit(fresh(store_copy), "whatif?attribute=city&nodes=p10", viewport={"width": 1400, "height": 2400})
    expect(tab.locator(".js-plotly-plot")).to_have_count(1)
    spot = tab.wait_for_function(CLICKED, arg="first").json_value()
    settled(tab)
    tab.get_by_role("combobox", name="Kind of edit").click()
    tab.get_by_role("option", name="Drop edges").click()
    typed = tab.get_by_role("textbox", name="Edges, one a line")
    typed.press_sequentially("p10, nobody")
    tab.get_by_role("button", name="Add edit").click()
    # What is wrong is said at the field, once, and the field keeps what was typed.
    expect(tab.get_by_text("no node is called 'nobody'")).to_be_visible()
    expect(tab.get_by_text("no node is called")).to_have_count(1)
    expect(typed).to_have_value("p10, nobody")
    typed.fill(", ".join(spot["ids"]))
    tab.get_by_role("button", name="Add edit").click()
    expect(tab.get_by_role("button", name="without edge")).to_be_visible()
    expect(typed).to_have_value("")


def test_a_clicked_edge_is_dropped_outlives_a_reload_and_is_had_again(
    fresh: Callable[..., Any], visit: Visit, store_copy: Path, settled: Callable[[Any], None]
) -> None:
    from playwright.sync_api import expect

    server = fresh(store_copy)
    tab = visit(server, "whatif?attribute=city&nodes=p10", viewport={"width": 1400, "height": 2400})
    tab.wait_for_function(CLICKED, arg="first")
    settled(tab)  # the picture has its place
    spot = tab.wait_for_function(CLICKED, arg="first").json_value()
    tab.mouse.click(spot["x"], spot["y"])
    edit = tab.get_by_role("button", name=re.compile(f"without edge {' - '.join(sorted(spot['ids']))}"))
    expect(edit).to_be_visible()
    expect(tab.get_by_text("1 dropped edge drawn dashed")).to_be_visible()
    expect(tab.get_by_text("p10: ").first).to_be_visible()
    # Whoever is sent the address sees the edit, not who was looked at, and takes back a copy.
    sent = visit(server, tab.url.removeprefix(f"{server.address}/"))
    theirs = sent.get_by_role("button", name=re.compile("without edge"))
    expect(theirs).to_be_visible()
    expect(sent.get_by_text("Nobody yet.")).to_be_visible()
    expect(sent.locator("[data-tag]", has_text="p10")).to_have_count(0)
    theirs.click()
    expect(theirs).to_have_count(0)
    expect(sent).not_to_have_url(re.compile("draft="))
    tab.reload()
    expect(edit).to_be_visible()
    tab.get_by_role("searchbox", name="Find people").fill("p10")
    tab.get_by_role("button", name=re.compile("^(person )?p10: ")).click()
    expect(tab.locator("[data-tag]", has_text="p10")).to_be_visible()
    sidebar = tab.get_by_test_id("stSidebar")
    sidebar.get_by_role("link", name="Method").click()
    expect(tab.get_by_role("heading", name="Method", exact=True)).to_be_visible()
    sidebar.get_by_role("link", name="What-if").click()
    expect(edit).to_be_visible()
    expect(tab.locator("[data-tag]", has_text="p10")).to_be_visible()
    # The dropped edge is in the picture still; a click on it takes the edit back.
    tab.wait_for_function("() => document.querySelector('.js-plotly-plot')?._fullData?.some(t => t.name === 'dropped')")
    settled(tab)
    spot = tab.wait_for_function(CLICKED, arg="last").json_value()
    tab.mouse.click(spot["x"], spot["y"])
    expect(edit).to_have_count(0)
    expect(tab.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.parametrize("width", [390, 820])
def test_nothing_is_cut_off_on_a_phone_or_a_tablet(width: int, server: Any, visit: Visit, settled: Any) -> None:
    tab = visit(server, "projection?attribute=city", viewport={"width": width, "height": 900})
    tab.wait_for_selector(".js-plotly-plot")
    tab.get_by_placeholder("an id, or values").fill("p17")
    tab.get_by_role("button", name=re.compile("^(person )?p17: ")).click()
    tab.wait_for_selector("text=Nearest to p17")
    settled(tab)
    assert cut_off(tab) == []
    tab.goto(f"{server.address}/whatif?attribute=city&nodes=p10,p11")
    tab.get_by_role("button", name="Add edit").click()
    tab.wait_for_selector("text=Download CSV")
    settled(tab)
    assert cut_off(tab) == []


def cut_off(tab: "Page") -> list[str]:
    """What stands beyond the window or does not fit its own box; what scrolls by itself is not cut off."""
    found: list[str] = tab.evaluate(
        """() => [...document.querySelectorAll('[data-testid=stMain] :is(p, label, button, h1, h2, input, svg, td, th)')]
        .filter(e => !e.closest('.js-plotly-plot, [aria-hidden=true], details:not([open])') && e.offsetParent)
        .filter(e => {
            const box = e.getBoundingClientRect();
            for (let at = e; at.dataset.testid !== 'stMain'; at = at.parentElement)
                if (['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) return false;
            const ellipsis = getComputedStyle(e).textOverflow === 'ellipsis' && e.scrollWidth > e.clientWidth + 1;
            return box.width > 0 && (box.right > innerWidth + 1 || ellipsis);
        }).map(e => `${e.tagName} ${e.textContent.slice(0, 60)}`)"""
    )
    return found
