"""A lambda that nobody trained: the job differs from its series in lambda alone, and is asked for once."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.cli import main as cli
from uge_core.dashboard.jobs.like import settings_like
from uge_core.dashboard.jobs.queue import Queue
from uge_core.dashboard.lambda_offer import enqueue_lambda, lambda_offer
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.edits import DropEdges
from uge_core.explore.whatif.scenario import Scenario
from uge_core.explore.whatif.source import load_source, scenario_graph
from uge_core.views.live import live_assets, live_data
from uge_core.views.tradeoff import TradeoffView, tradeoff_view, train_command


def view_of(root: Path) -> TradeoffView:
    store = uge.RunStore(root)
    return tradeoff_view(store, data=store.list()[0].dataset["fingerprint"][:8], attribute="city")


def test_at_its_own_lambda_a_job_would_be_the_stored_runs(seeded: Path) -> None:
    runs = [r for r in uge.RunStore(seeded).list() if r.config["lambda"] is not None]
    assert len(runs) == 2
    for run in runs:
        settings = settings_like(run)
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
    shown = ui.lambda_view(view, "UGE-C", 0.5)
    assert data["points"][0]["sentence"] == shown.sentence
    assert [tuple(f) for f in data["points"][0]["figures"]] == list(shown.figures)
    assert len(str(data)) < 10_000
    assert set(live_assets()) == {"html", "css", "js"} and "innerHTML" not in live_assets()["js"]


@pytest.mark.slow
def test_a_run_on_a_scenario_keeps_its_graph_and_one_from_python_needs_a_place_alone(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "supervise", lambda self: None)
    store, graph = uge.RunStore(tmp_path / "store"), uge.load(town)
    a, b = graph.ids(graph.edges[:, 0])
    scenario = Scenario(graph.fingerprint, (DropEdges(((a, b),)),), "one fewer")
    training: dict[str, Any] = {"sensitive": "city", "method": "uge-c", "store": store, "epochs": 2, "device": "cpu"}
    source = {"spec": str(town), "scenario": scenario.to_json()}
    run = uge.train(scenario_graph(graph, scenario), source=source, **training)
    view = tradeoff_view(store, data=run.dataset["fingerprint"][:8], attribute="city")
    settings = Queue(store).load(enqueue_lambda(lambda_offer(view, "UGE-C", 0.7), store)).settings
    assert settings["attributes"] is None and settings["scenario"] == scenario.to_json()
    edited = load_source({"spec": settings["data"], "scenario": settings["scenario"]}, store)
    (planned,) = uge.plan(edited, **settings["grid"] | {"lams": [run.config["lambda"]]})
    assert planned.run_id == run.id


@pytest.mark.slow
def test_the_command_line_at_the_own_lambda_gives_the_stored_runs(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = uge.RunStore(tmp_path / "store")
    options = {"learning_rate": 0.05, "init_std": 0.2}
    uge.train(
        uge.load(town),
        sensitive="city",
        method="uge-c",
        store=store,
        epochs=2,
        device="cpu",
        exposure="seen",
        options=options,
        source={"spec": str(town)},
    )
    view = tradeoff_view(store, data=store.list()[0].dataset["fingerprint"][:8], attribute="city", exposure="seen")
    command = shlex.split(train_command(view, "UGE-C", 0.5))
    assert "--exposure" in command and "learning_rate=0.05" in command and not [x for x in command if "dim=" in x]
    assert "--attributes" not in command
    shown = replace(
        view.points[0].runs[0],
        dataset=view.points[0].runs[0].dataset | {"source": {"spec": "x", "attributes": ["a", "b c"]}},
    )
    narrow = replace(view, points=(replace(view.points[0], runs=(shown,)),))
    assert "--attributes 'a,b c'" in train_command(narrow, "UGE-C", 0.5)
    assert cli.run([*command[1:], "--dry-run"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["stored"]
