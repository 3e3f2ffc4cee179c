"""Training from the browser: progress, a reload in between, cancelling, a killed worker, two readers at once."""

import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
from uge_core.dashboard.jobs.queue import Job, Queue
from uge_core.processes import since_boot

pytestmark = pytest.mark.browser

EPOCH = re.compile(r"Epoch ([\d,]+) of ([\d,]+)")


def train(tab: Any, graph: str, epochs: int) -> None:
    """Fills in the form and presses Train."""
    from playwright.sync_api import expect

    field = tab.get_by_role("textbox", name="Graph")
    expect(field).to_be_visible()
    if field.input_value() != graph:
        field.fill(graph)
        field.press("Enter")
    number = tab.get_by_role("spinbutton", name="Epochs")
    number.fill(str(epochs))
    number.press("Enter")
    device = tab.get_by_role("combobox", name="Device")
    if device.input_value() != "processor":
        device.click()
        tab.get_by_role("option", name="processor").click()
    button = tab.get_by_role("button", name="Train", exact=True)
    expect(tab.get_by_text("1 run to train")).to_be_visible()
    expect(button).to_be_enabled()
    button.click()


def epoch(tab: Any) -> int:
    """The epoch that the page shows, once it shows one."""
    from playwright.sync_api import expect

    bar = tab.get_by_test_id("stProgress")
    expect(bar).to_contain_text(EPOCH)
    found = EPOCH.search(bar.inner_text())
    assert found
    return int(found[1].replace(",", ""))


def ended(tab: Any, number: int, how: str, **patience: int) -> None:
    """Waits until the page says how a job ended."""
    from playwright.sync_api import expect

    expect(tab.get_by_test_id("stMarkdown").filter(has_text=f"Job {number}:")).to_contain_text(how, **patience)


def until(store: uge.RunStore, number: int, done: Callable[[Job], bool], seconds: float = 60) -> Job:
    limit = time.monotonic() + seconds
    while not done(job := Queue(store).load(number)):
        assert time.monotonic() < limit, (job, Queue(store).last_lines(job))
        time.sleep(0.05)
    return job


def test_watched_reloaded_cancelled_killed_and_resumed(
    fresh: Callable[..., Any], visit: Callable[..., Any], store_copy: Path
) -> None:
    from playwright.sync_api import expect

    server = fresh(store_copy)
    store, queue = server.store, Queue(server.store)
    tab = visit(server, "runs")
    train(tab, "sample:town", 100_000)
    first = epoch(tab)
    expect(tab.get_by_test_id("stSidebar").get_by_role("link", name="1 running")).to_be_visible()
    expect(tab.locator("[data-testid=stMain] .js-plotly-plot")).to_have_count(1)
    moved = time.monotonic()
    while epoch(tab) == first:
        assert time.monotonic() - moved < 60

    stored = queue.load(1)
    began = time.monotonic()
    tab.reload()
    seen = epoch(tab)
    reload = time.monotonic() - began
    assert seen >= stored.progress["done"] > 0
    # What the page shows is never more than two seconds old, but for the second in which it is next drawn.
    time.sleep(3)
    earlier = queue.load(1).progress["done"]
    time.sleep(2)
    assert epoch(tab) >= earlier

    job = queue.load(1)
    began = time.time()
    tab.get_by_role("button", name="Cancel").click()
    ended(tab, 1, "Cancelled")
    cancelled = time.time() - began
    over = queue.load(1).ended
    assert job.started and over
    rate = job.progress["done"] / (began - job.started)

    # As many epochs as last long enough to be killed in between.
    train(tab, "sample:town", int(min(90_000, max(800, 10 * rate))))
    expect(tab.get_by_text("Job 2:")).to_be_visible()
    job = until(store, 2, lambda j: j.progress.get("stage") == "training" and j.progress["done"] > 1)
    limit = time.monotonic() + 60
    while len(list(store.checkpoints.glob("*.npz"))) < 2:  # the first is the cancelled job's; none that is half written
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert job.pid
    os.kill(job.pid, signal.SIGKILL)
    with store.writing() as db:  # of the 30 seconds without a sign of life that end a job, most have gone by
        db.execute("UPDATE jobs SET beat = ? WHERE id = 2", (since_boot() - 25,))
    began = time.monotonic()
    ended(tab, 2, "Interrupted")
    noticed = time.monotonic() - began
    # The newest job stands on top.
    tab.get_by_role("button", name="Resume").first.click()
    began = time.monotonic()
    ended(tab, 2, "Finished", timeout=120_000)
    resumed = time.monotonic() - began
    (run_id,) = queue.load(2).runs
    run = store.load(run_id)
    assert run.audited and run.diagnostics["resumed_at_epoch"]
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    print(
        f"\nreload to the same progress {reload:.1f} s, cancel {cancelled:.1f} s, kill noticed {noticed:.0f} s after 25, "
        f"resumed and finished in {resumed:.0f} s"
    )


@pytest.fixture(scope="module")
def two_graphs(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with runs of two graphs."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copytree(seeded, folder / "store", ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    (folder / "village").mkdir()
    pairs = [f"v{i},v{(i + step) % 60}" for i in range(60) for step in (1, 2, 5)]
    people = [f"v{i},{'xyz'[i // 20]},{'kl'[i % 2]}" for i in range(60)]
    (folder / "village" / "edges.csv").write_text("\n".join(["source,target", *pairs]) + "\n")
    (folder / "village" / "nodes.csv").write_text("\n".join(["id,hamlet,hand", *people]) + "\n")
    uge.sweep(
        uge.load(folder / "village"),
        sensitive="hamlet",
        methods=["none", "uge-w"],
        epochs=5,
        device="cpu",
        store=uge.RunStore(folder / "store"),
        source={"spec": str(folder / "village"), "attributes": None},
    )
    return folder / "store"


def test_two_readers_do_not_disturb_each_other(
    fresh: Callable[..., Any], visit: Callable[..., Any], two_graphs: Path
) -> None:
    from playwright.sync_api import expect

    server = fresh(two_graphs)
    runs = uge.RunStore(two_graphs).list()
    town = next(r for r in runs if r.config["method"] == "uge-ok")
    village = next(r for r in runs if r.dataset["name"] == "village" and r.config["method"] == "uge-w")
    one = visit(server, f"leakage?data={town.dataset['fingerprint'][:8]}&attribute=gender&after={town.id}")
    two = visit(server, f"leakage?data={village.dataset['fingerprint'][:8]}&attribute=hand&after={village.id}")

    def chosen(tab: Any, pickers: int = 4) -> list[str]:
        main = tab.get_by_test_id("stMain")
        return [
            main.get_by_role("combobox", name=label, exact=False).input_value()
            for label in ("Data", "Audited attribute", "Run A (before)", "Run B (after)")[:pickers]
        ]

    def turn(tab: Any, page: str) -> None:
        tab.get_by_test_id("stSidebar").get_by_role("link", name=page).click()
        expect(tab.get_by_role("heading", name=page, exact=True)).to_be_visible()

    for tab in (one, two):
        expect(tab.get_by_test_id("stPlotlyChart")).to_be_visible()
    first, second = chosen(one), chosen(two)
    assert first[1] == "gender" and second[1] == "hand" and not set(first[:2]) & set(second[:2])
    turn(two, "Runs")
    train(two, str(village.dataset["source"]["spec"]), 100_000)
    epoch(two)
    for page in ("Fairness", "Trade-off", "Leakage"):
        turn(one, page)
        expect(one.get_by_test_id("stPlotlyChart").first).to_be_visible()
        expect(one.get_by_test_id("stSidebar").get_by_role("link", name="1 running")).to_be_visible()
        told = 3 if page == "Trade-off" else 4  # run B is chosen in its chart
        assert chosen(one, told) == first[:told] and f"after={town.id}" in one.url
        turn(two, page)
        assert chosen(two, told) == second[:told] and f"after={village.id}" in two.url
    turn(two, "Runs")
    before = epoch(two)
    turn(one, "Fairness")
    two.wait_for_timeout(1500)
    assert epoch(two) > before and chosen(one) == first
    two.get_by_role("button", name="Cancel").click()
    ended(two, 1, "Cancelled")
    for tab in (one, two):
        expect(tab.get_by_test_id("stException")).to_have_count(0)
