"""A lambda that nobody trained: the job differs from its series in lambda alone, and is asked for once."""

from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
from uge_core.errors import ConfigError, StoreError
from uge_core.jobs.lambdas import _settings, enqueue_lambda, lambda_offer
from uge_core.jobs.queue import Queue
from uge_core.screens.live import live_assets, live_data
from uge_core.screens.tradeoff import TradeoffView, tradeoff_view


def view_of(root: Path) -> TradeoffView:
    store = uge.RunStore(root)
    return tradeoff_view(store, data=store.list()[0].dataset["fingerprint"][:8], attribute="city")


def test_at_its_own_lambda_a_job_would_be_the_stored_runs(seeded: Path) -> None:
    runs = [r for r in uge.RunStore(seeded).list() if r.config["lambda"] is not None]
    assert len(runs) == 2
    for run in runs:
        settings = _settings((run,), run.dataset["source"], run.config["lambda"])
        planned = uge.plan(uge.load(settings["data"]), **settings["grid"])
        assert [p.run_id for p in planned] == [run.id]


def test_a_job_is_asked_for_once_and_a_trained_lambda_not_at_all(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "supervise", lambda self: None)  # nothing is to be trained here
    store, view = uge.RunStore(store_copy), view_of(store_copy)
    offer = lambda_offer(view, "UGE-C", 0.7)
    assert offer.refusal is None and offer.words.startswith("1 run, about")
    first = enqueue_lambda(offer, store)
    assert enqueue_lambda(lambda_offer(view, "UGE-C", 0.7), store) == first
    assert Queue(store).load(first).settings["grid"]["lams"] == [0.7]
    again = lambda_offer(view, "UGE-C", 0.5)
    assert again.refusal == "UGE-C was trained at λ 0.5 already."
    with pytest.raises(StoreError, match="already"):
        enqueue_lambda(again, store)


@pytest.mark.parametrize("lam", [-0.1, float("nan"), float("inf")])
def test_no_lambda(lam: float, seeded: Path) -> None:
    with pytest.raises(ConfigError, match="0 or more"):
        lambda_offer(view_of(seeded), "UGE-C", lam)


def test_runs_from_python_have_no_place_to_load_from(store_copy: Path) -> None:
    store = uge.RunStore(store_copy)
    for run in store.list():
        store.refresh(run.id, {k: v for k, v in run.dataset.items() if k != "source"})
    assert "trained in Python" in (lambda_offer(view_of(store_copy), "UGE-C", 0.7).refusal or "")


def test_the_live_slider_gets_what_the_page_shows_and_no_more(seeded: Path) -> None:
    view = view_of(seeded)
    data: dict[str, Any] = live_data(view, "UGE-C", 9.0)
    assert data["chosen"] == len(data["points"]) - 1 == 0
    shown = uge.lambda_view(view, "UGE-C", 0.5)
    assert data["points"][0]["sentence"] == shown.sentence
    assert [tuple(f) for f in data["points"][0]["figures"]] == list(shown.figures)
    assert len(str(data)) < 10_000
    assert set(live_assets()) == {"html", "css", "js"} and "innerHTML" not in live_assets()["js"]
