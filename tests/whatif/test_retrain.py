"""A scenario trained on: through the queue, on a graph of its own, compared in pairs; and put into a report."""

import csv
import io
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import uge_core as uge
from uge_core import cli, record
from uge_core.errors import ConfigError
from uge_core.jobs.queue import Queue
from uge_core.screens.whatif import judged_view, retrained_view
from uge_core.store import alive
from uge_core.whatif.desk import Desk
from uge_core.whatif.edits import DropEdges, FlipValue
from uge_core.whatif.scenario import Scenario, Scenarios


@pytest.fixture
def own(store_copy: Path) -> Iterator[uge.RunStore]:
    """A store whose workers are ended with the test."""
    store = uge.RunStore(store_copy)
    yield store
    with store.reading() as db:
        workers = db.execute("SELECT pid, born FROM workers").fetchall() if db else []
    for row in workers:
        if alive(row["pid"], row["born"]):
            with suppress(ProcessLookupError):
                os.kill(row["pid"], signal.SIGKILL)


def run_of(store: uge.RunStore, method: str) -> uge.StoredRun:
    return next(r for r in store.list() if r.config["method"] == method)


def trained(store: uge.RunStore, job_id: int) -> None:
    until = time.monotonic() + 240
    while (job := Queue(store).load(job_id)).status in ("queued", "running"):
        assert time.monotonic() < until, Queue(store).last_lines(job)
        Queue(store).supervise()
        time.sleep(0.1)
    assert job.status == "finished", (job.reason, Queue(store).last_lines(job))


def test_a_scenario_is_trained_and_compared_in_pairs(own: uge.RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(own, "uge-w")
    graph = uge.load(run.dataset["source"]["spec"])
    edges = tuple((a, b) for a, b in (graph.ids(e) for e in graph.edges.T[:30]))
    scenario = Scenario(graph.fingerprint, (DropEdges(edges), FlipValue("gender", ("p1",), "f")), "fewer")
    assert uge.retrained(run.id, scenario, own) is None
    job_id = uge.retrain(run.id, scenario, own)
    assert uge.jobs_view(own).open[0].title.endswith("+ scenario fewer")
    trained(own, job_id)
    other = own.load(str(uge.retrained(run.id, scenario, own)))
    assert other.dataset["name"] == "town + scenario fewer" and other.dataset["num_edges"] == graph.num_edges - 30
    assert {k: v for k, v in other.config.items() if k != "dataset"} == {
        k: v for k, v in run.config.items() if k != "dataset"
    }
    assert other.audited
    found = Desk(own).compare(run.id, other.id, ["linear"])
    measures = {(r["metric"], r["attribute"], r["exposure"]) for r in found["rows"]}
    assert ("auc", "city", "unseen") in measures and any(m == "ndcg_at_10" for m, _, _ in measures)
    view = retrained_view(found)
    assert set(view.table["Made by"]) == {"re-train"} and "measures change by more than chance" in view.sentence
    # the run's data are found again, with the scenario, by the command line too
    assert cli.run(["audit", other.id, "--attackers", "linear", "--store", str(own.root)]) in (0, 3)


def test_what_cannot_be_trained_is_said(own: uge.RunStore) -> None:
    run = run_of(own, "none")
    with pytest.raises(ConfigError, match="needs an edit and a name"):
        uge.retrain(run.id, Scenario(run.dataset["fingerprint"]), own)
    edited = Scenario(run.dataset["fingerprint"], (FlipValue("gender", ("p1",), "f"),))
    twin = uge.retrain_offer(run_of(own, "uge-w").id, edited, own)
    assert twin.refusal is None and "with its twin" in twin.words and "UGE-W, city" in twin.words
    assert "twin" not in uge.retrain_offer(run.id, edited, own).words
    with own.writing() as db:
        config = run.config | {"warm_from": 0.5}
        db.execute("UPDATE runs SET config = ? WHERE id = ?", (json.dumps(config), run.id))
    assert "choose as run A one that was trained from its seed" in (
        uge.retrain_offer(run.id, edited, own).refusal or ""
    )
    with own.writing() as db:
        db.execute("UPDATE runs SET config = ? WHERE id = ?", (json.dumps(run.config | {"method": "external"}), run.id))
    assert "came from elsewhere" in (uge.retrain_offer(run.id, edited, own).refusal or "")


def test_what_waits_is_not_asked_for_again(own: uge.RunStore) -> None:
    run = run_of(own, "uge-w")
    edited = uge.named_scenario(Scenario(run.dataset["fingerprint"], (FlipValue("gender", ("p1",), "f"),)))
    assert edited.name == f"edits {edited.hash[:8]}" and uge.retraining(run.id, edited, own) is None
    job_id = uge.retrain(run.id, edited, own)
    assert uge.retrain(run.id, edited, own) == job_id
    card = uge.retraining(run.id, edited, own)
    assert card is not None and card.can_cancel
    uge.cancel(job_id, own)


def test_a_report_holds_the_scenarios_asked_for(own: uge.RunStore, tmp_path: Path) -> None:
    run = run_of(own, "none")
    scenario = Scenario(run.dataset["fingerprint"], (FlipValue("city", ("p1", "p2"), "A"),), "two <b>people</b>")
    kept = Scenarios(own)
    scenario_id = kept.save(scenario)
    plain = uge.contents([run.id], store=own)["html"]().decode()
    assert "What-if scenarios" not in plain
    assert (
        "Not measured with these runs" in uge.contents([run.id], scenarios=[scenario_id], store=own)["html"]().decode()
    )
    answer = Desk(own).judge(run.id, scenario.to_json(), "city")
    kept.keep(scenario_id, run.id, answer)
    page = uge.contents([run.id], scenarios=[scenario_id], store=own)["html"]().decode()
    assert "What-if scenarios" in page and scenario.hash in page and "two &lt;b&gt;people&lt;/b&gt;" in page
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
    assert audit == own.load(run.id).audit and edited["sha256"] == scenario.hash and edited["data"] == scenario.data
    assert edited["edits"] == [e.words for e in scenario.edits]
    (result,) = edited["results"]
    assert (
        result["run_id"] == run.id and result["tier"] == answer["tier"] and len(result["rows"]) == len(answer["rows"])
    )
    for pair, found in zip(result["rows"], answer["rows"], strict=True):
        for side in ("before", "after"):
            assert "cells" not in pair[side] and pair[side]["value"] == found[side]["value"]
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
