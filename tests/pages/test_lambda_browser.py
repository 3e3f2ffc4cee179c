"""The lambda sliders as fast as fingers: by keyboard, and following the drag. Prints how fast that was.

The figures asked for are 300 ms and 100 ms on a quiet machine; what is asserted is five times as much, so that a
busy one passes and a page that computes anew at each step does not.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uge_core.runs.sample_audit import LAMBDAS

pytestmark = pytest.mark.browser

# From a key to the frame in which numbers, ring and bars are new, both maps are there (theirs may be the same to three
# digits), and nothing on the page waits for its update.
STEP = """key => new Promise(done => {
  const rings = '.st-key-tradeoff_chart .scatterlayer .trace:last-child .points path';
  const state = () => [
    [...document.querySelectorAll('[data-testid=stMetricValue]')].map(e => e.textContent).join(),
    [...document.querySelectorAll(rings)].findIndex(r => getComputedStyle(r).opacity === '1'),
    ...[...document.querySelectorAll('.uge-light')].map(e => e.textContent),
  ];
  const before = state();
  document.addEventListener('keydown', () => {
    const began = performance.now();
    const look = () => {
      const now = state();
      const fresh = now.length === 5 && now[1] >= 0 && [0, 1, 2].every(i => now[i] !== before[i])
        && !document.querySelector('[data-testid=stMain] [data-stale=true]');
      if (fresh) done(performance.now() - began);
      else if (performance.now() - began > 60000) done(60000);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, {capture: true, once: true});
})"""

# From the slider's own event to the painted frame after it.
REDRAW = """() => {
  window.redraws = [];
  document.addEventListener('input', () => {
    const began = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.redraws.push(performance.now() - began)));
  }, true);
}"""

# Presses "End the tour" so many milliseconds after the page's title is there: run B's lambda is known, its slider not
# drawn.
PRESS = """after => new Promise(done => {
  const look = () => {
    const title = document.querySelector('[data-testid=stMain] h2')?.textContent ?? '';
    const end = [...document.querySelectorAll('button')].find(b => b.textContent.includes('End the tour'));
    if (!end || !title.includes('least leakage')) requestAnimationFrame(look);
    else setTimeout(() => { end.click(); done() }, after);
  };
  look();
})"""


@pytest.fixture(scope="module")
def server(serving: Callable[..., AbstractContextManager[Any]], sample_audit: Path) -> Iterator[Any]:
    with serving(sample_audit) as running:
        yield running


def first_of(server: Any, method: str) -> str:
    """The run of a method with the least lambda and seed."""
    runs = [r for r in server.store.list(audits=False) if r.config["method"] == method]
    return min(runs, key=lambda r: (r.config["lambda"], r.config["seed"])).id


@pytest.mark.alone
def test_twenty_steps_by_keyboard(server: Any, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    tab = visit(server, f"tradeoff?attribute=region&after={first_of(server, 'uge-c')}")
    slider = tab.get_by_role("slider", name="λ")
    expect(slider).to_be_visible()
    expect(tab.locator(".uge-light")).to_have_count(3)
    expect(tab.locator(".js-plotly-plot .scatterlayer .trace")).not_to_have_count(0)
    tab.evaluate("() => { document.querySelector('.js-plotly-plot').marked = true }")
    slider.focus()
    times = []
    # From 0 to .9 and back: at 1, another series' lambda, there is nothing of UGE-C to show.
    for key in ([*["ArrowRight"] * 3, *["ArrowLeft"] * 3] * 4)[:20]:
        tab.evaluate(f"() => {{ window.step = ({STEP})() }}")
        tab.keyboard.press(key)
        times.append(tab.evaluate("() => window.step"))
    # Nothing was mounted anew: the curve is the one that was drawn first.
    assert tab.evaluate("() => [...document.querySelectorAll('.js-plotly-plot')].map(p => p.marked)") == [True]
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    print(
        f"\nlambda step: median {np.median(times):.0f} ms, p95 {np.quantile(times, 0.95):.0f} ms, worst "
        f"{max(times):.0f} ms"
    )
    assert np.quantile(times, 0.95) < 5 * 300


@pytest.mark.alone
def test_numbers_follow_the_drag_and_the_charts_its_end(server: Any, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    tab = visit(server, f"tradeoff?attribute=region&live_on=true&after={first_of(server, 'uge-c')}")
    slider = tab.locator(".live input[type=range]")
    expect(slider).to_be_visible()
    expect(tab.locator(".uge-light")).to_have_count(3)
    tab.evaluate(REDRAW)
    numbers = tab.locator(".live dd.value")
    box = slider.bounding_box()
    seen = set()
    address = tab.url
    tab.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    tab.mouse.down()
    for share in np.linspace(0.02, 0.98, 24):
        tab.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        seen.add(tuple(numbers.all_inner_texts()))
    times = tab.evaluate("() => window.redraws")
    assert len(seen) == len(LAMBDAS) and tab.url == address
    tab.mouse.up()
    expect(tab).to_have_url(re.compile(r"lambda=1\.9"))
    expect(tab.locator(".live svg")).to_have_attribute("aria-label", re.compile("λ 1.9"))
    slider.focus()
    tab.keyboard.press("ArrowLeft")
    expect(tab).to_have_url(re.compile(rf"lambda={LAMBDAS[-2]}"))
    expect(tab.locator(".live output")).to_have_text(str(LAMBDAS[-2]))
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    print(
        f"\nredraw while dragging: {len(times)} frames, median {np.median(times):.0f} ms, p95 "
        f"{np.quantile(times, 0.95):.0f} ms"
    )
    assert len(times) >= len(LAMBDAS) - 1 and np.quantile(times, 0.95) < 5 * 100


def test_a_click_on_a_point_chooses_it_again_and_again(server: Any, visit: Callable[..., Any]) -> None:
    from playwright.sync_api import expect

    address = f"tradeoff?attribute=region&lambda=0.3&after={first_of(server, 'uge-c')}"
    tab = visit(server, address, viewport={"width": 1400, "height": 1600})
    series = tab.locator(".st-key-tradeoff_chart .scatterlayer .trace", has=tab.locator("text", has_text="1.9")).first
    point = series.locator(".points path").last
    slider = tab.get_by_role("slider", name="λ")  # of all series: one step left of 1.9 is UGE-ORK's 1
    for _ in range(2):
        expect(point).to_be_visible()
        box = point.bounding_box()
        tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(tab).to_have_url(re.compile(r"lambda=1\.9"))
        expect(tab.get_by_text("At λ 1.9 the strongest attacker").first).to_be_visible()
        slider.focus()
        tab.keyboard.press("ArrowLeft")
        expect(tab).to_have_url(re.compile(r"lambda=1(&|$)"))
    expect(tab.get_by_test_id("stException")).to_have_count(0)


def test_a_press_before_the_slider_is_drawn_leaves_run_b(
    fresh: Callable[..., Any], visit: Callable[..., Any], settled: Callable[[Any], None], tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    server = fresh(tmp_path / "store")
    for after in range(0, 100, 20):
        (tmp_path / "store" / "tour-over").unlink(missing_ok=True)
        tab = visit(server)
        tab.get_by_role("button", name="Take the tour").click()
        tab.get_by_role("button", name="Next stop: Leakage").click()
        tab.get_by_role("button", name="Next stop: Trade-off").click()
        tab.evaluate(PRESS, after)
        expect(tab.get_by_text("Stop 3 of 5: Trade-off.")).to_have_count(0)
        settled(tab)
        expect(tab.get_by_role("combobox", name="Method")).to_have_value("UGE-ORK (ours)")
        assert tab.get_by_role("slider", name="λ").get_attribute("aria-valuetext") == "1", after
        tab.context.close()
