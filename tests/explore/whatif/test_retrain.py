"""A scenario trained on: through the queue, on a graph of its own, compared in pairs; and put into a report."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from background import end_processes

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.audit import record
from uge_core.cli import main as cli
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.answers import Answers
from uge_core.explore.whatif.edits import DropEdges, Edit, FlipValue, Threshold
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.explore.whatif.source import scenario_graph
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.disclosure import coarse_row
from uge_core.views.report.scenarios import scenario_digest
from uge_core.views.whatif import judged_view, retrained_view


@pytest.fixture
def own(store_copy: Path) -> Iterator[uge.RunStore]:
    """A store whose workers are ended with the test."""
    store = uge.RunStore(store_copy)
    yield store
    end_processes(store)


def run_of(store: uge.RunStore, method: str) -> uge.StoredRun:
    return next(r for r in store.list() if r.config["method"] == method)


@pytest.mark.slow
def test_a_scenario_is_trained_and_compared_in_pairs(
    own: uge.RunStore, work_here: Callable[[uge.RunStore], None]
) -> None:
    run = run_of(own, "uge-w")
    graph = uge.load(run.dataset["source"]["spec"])
    edges = tuple((a, b) for a, b in (graph.ids(e) for e in graph.edges.T[:30]))
    scenario = Scenario(graph.fingerprint, (DropEdges(edges), FlipValue("gender", ("p1",), "f")), "fewer")
    assert ui.retrained(run.id, scenario, own) is None
    job_id = ui.retrain(run.id, scenario, own)
    assert ui.jobs_view(own).open[0].title.endswith("+ scenario fewer")
    work_here(own)
    job = Queue(own).load(job_id)
    assert job.status == "finished", job
    other = own.load(str(ui.retrained(run.id, scenario, own)))
    assert other.dataset["name"] == "town + scenario fewer" and other.dataset["num_edges"] == graph.num_edges - 30
    assert {k: v for k, v in other.config.items() if k != "dataset"} == {
        k: v for k, v in run.config.items() if k != "dataset"
    }
    assert other.audited
    answer = Answers(own).compare(run.id, other.id, ["linear"])
    measures = {(r["metric"], r["attribute"], r["exposure"]) for r in answer["rows"]}
    assert ("auc", "city", "unseen") in measures and any(m == "ndcg_at_10" for m, _, _ in measures)
    view = retrained_view(answer)
    assert set(view.table["Made by"]) == {"re-train"} and "measures change by more than chance" in view.sentence
    # the run's data are found again, with the scenario, by the command line too
    assert cli.run(["audit", other.id, "--attackers", "linear", "--store", str(own.root)]) in (0, 3)


def test_what_cannot_be_trained_is_said(own: uge.RunStore) -> None:
    run = run_of(own, "none")
    with pytest.raises(ConfigError, match="needs an edit and a name"):
        ui.retrain(run.id, Scenario(run.dataset["fingerprint"]), own)
    edited = Scenario(run.dataset["fingerprint"], (FlipValue("gender", ("p1",), "f"),))
    twin = ui.retrain_offer(run_of(own, "uge-w").id, edited, own)
    assert twin.refusal is None and "with its twin" in twin.words and "UGE-W, city" in twin.words
    assert "twin" not in ui.retrain_offer(run.id, edited, own).words
    with own.writing() as db:
        config = run.config | {"warm_from": 0.5}
        db.execute("UPDATE runs SET config = ? WHERE id = ?", (json.dumps(config), run.id))
    assert "choose as run A one that was trained from its seed" in (ui.retrain_offer(run.id, edited, own).refusal or "")
    with own.writing() as db:
        db.execute("UPDATE runs SET config = ? WHERE id = ?", (json.dumps(run.config | {"method": "external"}), run.id))
    assert "came from elsewhere" in (ui.retrain_offer(run.id, edited, own).refusal or "")


def test_what_waits_is_not_asked_for_again(own: uge.RunStore) -> None:
    run = run_of(own, "uge-w")
    edited = ui.named_scenario(Scenario(run.dataset["fingerprint"], (FlipValue("gender", ("p1",), "m"),)))
    assert edited.name == f"edits {edited.hash[:8]}" and ui.retraining(run.id, edited, own) is None
    job_id = ui.retrain(run.id, edited, own)
    assert ui.retrain(run.id, edited, own) == job_id
    card = ui.retraining(run.id, edited, own)
    assert card is not None and card.can_cancel
    ui.cancel(job_id, own)


@pytest.mark.slow
def test_a_report_holds_the_scenarios_asked_for(own: uge.RunStore, tmp_path: Path) -> None:
    run = run_of(own, "none")
    scenario = Scenario(run.dataset["fingerprint"], (FlipValue("city", ("p1", "p2"), "A"),), "two <b>people</b>")
    scenarios = Scenarios(own)
    scenario_id = scenarios.save(scenario)
    plain = ui.contents([run.id], store=own)["html"]().decode()
    assert "what-if scenarios" not in plain
    assert (
        "Not measured with these runs" in ui.contents([run.id], scenarios=[scenario_id], store=own)["html"]().decode()
    )
    answer = Answers(own).judge(run.id, scenario.to_json(), "city")
    scenarios.keep(scenario_id, run.id, answer)
    page = ui.contents([run.id], scenarios=[scenario_id], store=own)["html"]().decode()
    assert "what-if scenarios" in page and scenario.hash in page and "two &lt;b&gt;people&lt;/b&gt;" in page
    assert (
        "city of nodes p1, p2 becomes A" in page
        and page.count("<td>re-judge</td>") == len(judged_view(answer).table) > 4
    )
    out = tmp_path / "made"
    assert (
        cli.run(
            [
                "report",
                run.id,
                "--sensitive-output",
                "--scenarios",
                scenario.name,
                "--format",
                "json,csv",
                "--out",
                str(out),
                "--store",
                str(own.root),
            ]
        )
        == 0
    )
    audit, edited = json.loads((out / "report.json").read_text())
    assert edited["record_sha256"] == scenario_digest(edited)
    assert audit == own.load(run.id).audit and edited["sha256"] == scenario.hash and edited["data"] == scenario.data
    assert edited["edits"] == [e.words for e in scenario.edits]
    (result,) = edited["results"]
    assert (
        result["run_id"] == run.id and result["tier"] == answer["tier"] and len(result["rows"]) == len(answer["rows"])
    )
    for pair, row in zip(result["rows"], answer["rows"], strict=True):
        for side in ("before", "after"):
            assert "cells" not in pair[side] and pair[side]["value"] == coarse_row(row[side])["value"]
    lines = list(csv.DictReader(io.StringIO((out / "report.csv").read_text("utf-8-sig"), newline="")))
    after = [x for x in lines if x["kind"] == "scenario, after"]
    assert [x["value"] for x in after] == [
        "" if p["after"]["value"] is None else repr(p["after"]["value"]) for p in result["rows"]
    ]
    assert {x["scenario"] for x in after} == {scenario.name} and {x["sha256"] for x in after} == {scenario.hash}
    # Who checks the report checks its audits.
    assert [r["run_id"] for r in record.read(out / "report.json")] == [run.id]
    with pytest.raises(ConfigError, match="there is no scenario 'other'; name one by its id; stored: " + scenario_id):
        uge.report([run.id], out, scenarios=["other"], store=own)
    own.delete(run.id)
    assert not (own.root / "runs" / run.id).exists()


def without_an_edge(town: Path, folder: Path) -> tuple[AttributedGraph, Scenario, AttributedGraph]:
    """The graph, a scenario that drops an edge of it, and files of the same content."""
    graph = uge.load(town)
    a, b = graph.ids(graph.edges[:, 0])
    shutil.copytree(town, folder)
    edges = (town / "edges.csv").read_text().splitlines()
    (folder / "edges.csv").write_text("\n".join(e for e in edges if e != f"{a},{b}") + "\n")
    return graph, Scenario(graph.fingerprint, (DropEdges(((a, b),)),), "one fewer"), uge.load(folder)


@pytest.mark.slow
def test_a_run_on_a_scenario_is_not_one_on_files_of_the_same_content(town: Path, tmp_path: Path) -> None:
    graph, scenario, files = without_an_edge(town, tmp_path / "files")
    edited, store = scenario_graph(graph, scenario), uge.RunStore(tmp_path / "store")
    source = {"spec": str(town), "attributes": None, "scenario": scenario.to_json()}
    shared: dict[str, Any] = {"store": store, "epochs": 2, "device": "cpu"}
    assert edited.content == files.fingerprint != edited.fingerprint
    tried = uge.train(edited, source=source, **shared)
    trained = uge.train(files, source={"spec": str(tmp_path / "files"), "attributes": None}, **shared)
    assert trained.id != tried.id and trained.dataset["name"] == "files"
    assert store.load(tried.id).dataset == tried.dataset and uge.audit(tried, edited)
    with pytest.raises(StoreError, match="trained on other data"):
        uge.audit(tried, files)


@pytest.mark.parametrize("edit", [Threshold(0.3), FlipValue("city", ("p0",), "?")])
def test_edits_that_leave_the_graph_as_it_is_are_not_trained_on(edit: Edit, own: uge.RunStore) -> None:
    run = run_of(own, "uge-w")
    graph = uge.load(run.dataset["source"]["spec"])
    if isinstance(edit, FlipValue):
        city = graph.attribute("city")
        edit = FlipValue("city", ("p0",), city.labels[city.codes[0]])
    scenario = Scenario(run.dataset["fingerprint"], (edit,), "nothing")
    with pytest.raises(ConfigError, match="leave the graph as it is"):
        ui.retrain(run.id, scenario, own)
    # nor does anybody else's training on them turn the run into one on a scenario
    source = run.dataset["source"] | {"scenario": scenario.to_json()}
    options = {"learning_rate": 0.05}
    same = uge.train(
        scenario_graph(graph, scenario),
        sensitive="city",
        method="uge-w",
        store=own,
        epochs=60,
        options=options,
        device="cpu",
        source=source,
    )
    assert same.id == run.id and same.dataset == run.dataset


@pytest.mark.slow
def test_other_edits_that_make_the_same_graph_find_its_run(
    own: uge.RunStore, town: Path, tmp_path: Path, work_here: Callable[[uge.RunStore], None]
) -> None:
    graph, scenario, _ = without_an_edge(town, tmp_path / "files")
    run, gender = run_of(own, "uge-w"), graph.attribute("gender")
    there = gender.labels[gender.codes[0]]
    away = FlipValue("gender", ("p0",), next(v for v in gender.labels if v != there))
    more = Scenario(graph.fingerprint, (*scenario.edits, away, FlipValue("gender", ("p0",), there)), "and back")
    for edits in (scenario, more):
        ui.retrain(run.id, edits, own)
        work_here(own)
    other = ui.retrained(run.id, scenario, own)
    assert other and ui.retrained(run.id, more, own) == other
    assert own.load(other).dataset["name"] == "town + scenario one fewer"
