"""A training that the Runs page sends through Ray."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from uge_core.dashboard.jobs.queue import Queue

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_training_on_ray_is_chosen_watched_and_finished(
    fresh: Callable[..., Any], visit: Callable[..., Any], store_copy: Path, plain_town: Path
) -> None:
    from playwright.sync_api import expect

    server = fresh(store_copy)
    tab = visit(server, "runs")
    field = tab.get_by_role("textbox", name="Graph")
    field.fill(str(plain_town))
    field.press("Enter")
    seeds = tab.get_by_role("textbox", name="Seeds")
    seeds.fill("0, 1")
    seeds.press("Enter")
    number = tab.get_by_role("spinbutton", name="Epochs")
    number.fill("400")
    number.press("Enter")
    place = tab.get_by_role("combobox", name="Where it trains")
    place.click()
    tab.get_by_role("option", name="here, a pass on each core, by Ray").click()
    expect(tab.get_by_text("2 runs to train")).to_be_visible()
    button = tab.get_by_role("button", name="Train", exact=True)
    expect(button).to_be_enabled()
    button.click()
    head = tab.get_by_test_id("stMarkdown").filter(has_text="Job 1:")
    expect(tab.get_by_test_id("stProgress")).to_contain_text(re.compile(r"Epoch|[Aa]udit"), timeout=120_000)
    expect(tab.get_by_test_id("stProgress")).to_contain_text(
        re.compile(r"On 127\.0\.0\.1 \([0-9a-f]{4}\)"), timeout=120_000
    )
    worker = Queue(server.store).load(1).pid
    assert worker and of_ray(worker)
    expect(head).to_contain_text("Finished", timeout=300_000)
    job = Queue(server.store).load(1)
    assert job.settings["on"] == "ray" and job.settings["solo"] and len(job.runs) == 2
    log = Queue(server.store).log(1).read_text()
    assert re.search(r"pass 1 of 2\) on 127\.0\.0\.1 \([0-9a-f]{4}\)", log), log
    runs = [server.store.load(run_id) for run_id in job.runs]
    assert all(run.audited and run.environment["threads"] == 1 and len(run.diagnostics["members"]) == 1 for run in runs)
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    limit = time.monotonic() + 30
    while left := of_ray(worker):
        assert time.monotonic() < limit, left
        time.sleep(0.2)


def of_ray(worker: int) -> list[str]:
    """Ray's processes of a worker: they are started with its folder, whose name ends in the worker's number."""
    commands = [" ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])]
    return [command for command in commands if f".{worker}/r/" in command]
