"""Edits and scenarios: what they make of a graph, and when two are the same."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import uge_core as uge
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.edits import (
    AddEdges,
    DropEdges,
    DropValue,
    Edit,
    FlipValue,
    MergeValues,
    ReweightEdges,
    Threshold,
    apply_edits,
    edit_from_json,
)
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.explore.whatif.source import scenario_graph
from uge_core.graph.graph import NOT_APPLICABLE, AttributedGraph
from uge_core.graph.split import split_links
from uge_core.runs.store import RunStore


@pytest.fixture(scope="module")
def graph(town: Path) -> AttributedGraph:
    return uge.load(town)


def edge(graph: AttributedGraph, at: int) -> tuple[str, str]:
    first, second = graph.ids(graph.edges[:, at])
    return first, second


def values(graph: AttributedGraph, name: str) -> list[str | None]:
    a = graph.attribute(name)
    return [a.labels[c] if c >= 0 else None for c in a.codes]


def test_a_flip_changes_those_nodes_alone(graph: AttributedGraph) -> None:
    edited = apply_edits(graph, [FlipValue("city", ("p3", "p7"), "C")])
    expected = values(graph, "city")
    expected[3] = expected[7] = "C"
    assert values(edited, "city") == expected
    assert values(edited, "gender") == values(graph, "gender") and (edited.edges == graph.edges).all()
    assert edited.fingerprint != graph.fingerprint and edited.base is graph


def test_merged_and_dropped_groups(graph: AttributedGraph) -> None:
    merged = apply_edits(graph, [MergeValues("city", ("C", "A"), "A or C")])
    assert values(merged, "city") == ["B" if v == "B" else "A or C" for v in values(graph, "city")]
    dropped = apply_edits(graph, [DropValue("city", "B")])
    assert values(dropped, "city") == [None if v == "B" else v for v in values(graph, "city")]
    assert set(dropped.attribute("city").labels) == {"A", "C"}
    assert not dropped.attribute("city").unknown.any()  # left out is not the same as not given
    assert (dropped.attribute("city").codes[np.array(values(graph, "city")) == "B"] == NOT_APPLICABLE).all()


def test_edges_are_dropped_added_and_weighed(graph: AttributedGraph) -> None:
    gone, heavy = edge(graph, 0), edge(graph, 5)
    strangers = next(
        (f"p{a}", f"p{b}")
        for a in range(200)
        for b in range(a + 1, 200)
        if not ((graph.edges[0] == a) & (graph.edges[1] == b)).any()
    )
    edited = apply_edits(graph, [DropEdges((gone,)), AddEdges((strangers,)), ReweightEdges((heavy[::-1],), 3.0)])
    before = {tuple(graph.ids(e)) for e in graph.edges.T}
    assert {tuple(edited.ids(e)) for e in edited.edges.T} == before - {gone} | {strangers}
    assert edited.edge_weights is not None
    weight = {tuple(edited.ids(e)): w for e, w in zip(edited.edges.T, edited.edge_weights, strict=True)}
    assert weight.pop(heavy) == 3.0 and set(weight.values()) == {1.0}


def test_directions_follow_added_edges(graph: AttributedGraph) -> None:
    directed = replace(graph, directions=np.zeros(graph.num_edges, np.int8))
    there = {tuple(e) for e in graph.edges.T.tolist()}
    a, b = next((a, b) for a in range(200) for b in range(a + 1, 200) if (a, b) not in there)
    edited = apply_edits(directed, [AddEdges(((f"p{b}", f"p{a}"),))])
    at = np.nonzero((edited.edges[0] == a) & (edited.edges[1] == b))[0]
    assert edited.directions is not None and edited.directions[at].tolist() == [-1]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda g: FlipValue("city", ("nobody",), "A"), "no node is called 'nobody'"),
        (lambda g: FlipValue("city", ("p1",), "Z"), "unknown value of city 'Z'; allowed: A, B, C"),
        (lambda g: FlipValue("hobby", ("p1",), "Z"), "hobby"),
        (lambda g: MergeValues("city", ("A", "B"), "C"), "another group called 'C'"),
        (lambda g: MergeValues("gender", ("f", "m"), "all"), "would have 1 group"),
        (lambda g: DropValue("gender", "f"), "would have 1 group"),
        (lambda g: DropEdges((("p0", "p0x"),)), "no node is called 'p0x'"),
        (lambda g: AddEdges((edge(g, 0),)), "is there already"),
    ],
)
def test_what_does_not_fit_is_said(graph: AttributedGraph, edit: object, said: str) -> None:
    with pytest.raises(uge.UgeError, match=said):
        apply_edits(graph, [edit(graph)])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Threshold(1.0), "between 0 and 1"),
        (lambda: ReweightEdges((("a", "b"),), 0.0), "above 0"),
        (lambda: DropEdges((("a", "a"),)), "two different nodes"),
        (lambda: FlipValue("city", (), "A"), "0 nodes"),
        (lambda: MergeValues("city", ("A",), "x"), "two groups or more"),
        (lambda: edit_from_json({"kind": "set"}), "unknown edit 'set'"),
        (lambda: edit_from_json({"kind": "threshold", "probability": "high"}), "cannot be read"),
        (lambda: edit_from_json({"kind": "flip", "attribute": "a", "nodes": ["x"]}), "needed: attribute, nodes, value"),
    ],
)
def test_what_cannot_be_an_edit_is_said(make: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()  # type: ignore[operator]


EDITS: tuple[Edit, ...] = (
    FlipValue("city", ("p3", "p7"), "C"),
    MergeValues("city", ("A", "B"), "A+B"),
    DropValue("age", "old"),
    Threshold(0.25),
    DropEdges((("p1", "p2"),)),
    AddEdges((("p9", "p1"),)),
    ReweightEdges((("p3", "p4"),), 2.5),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda e: e.kind)
def test_every_edit_survives_json_and_says_what_it_does(edit: Edit) -> None:
    assert edit_from_json(json.loads(json.dumps(edit.to_json()))) == edit
    assert edit.words and edit.kind not in edit.words.split()[0]


def test_a_hash_is_of_the_edits_in_their_order_and_of_nothing_else() -> None:
    one, two = EDITS[0], EDITS[1]
    base = Scenario("f" * 64, (one, two), "first")
    assert base.hash == Scenario("f" * 64, (one, two), "another name").hash
    assert base.hash != Scenario("f" * 64, (two, one)).hash  # order counts
    assert base.hash != Scenario("e" * 64, (one, two)).hash and base.hash != Scenario("f" * 64, (one,)).hash
    # inside an edit lists are sets, and an edge has no first end
    same = FlipValue("city", ("p7", "p3", "p7"), "C")
    assert Scenario("f" * 64, (same, two)).hash == base.hash
    assert DropEdges((("b", "a"), ("a", "b"))) == DropEdges((("a", "b"),))
    # canonical: a fixed text gives a fixed digest
    assert Scenario("f" * 64, (Threshold(0.25),)).hash == (
        __import__("hashlib")
        .sha256(
            b'{"data":"' + b"f" * 64 + b'","edits":[{"kind":"threshold","probability":0.25}],"schema":"uge-scenario/1"}'
        )
        .hexdigest()
    )


def test_undo_goes_back_edit_by_edit() -> None:
    scenario = Scenario("f" * 64)
    seen = [scenario]
    for edit in EDITS:
        scenario = scenario.with_edit(edit)
        seen.append(scenario)
    for expected in reversed(seen[:-1]):
        scenario = scenario.undo()
        assert scenario == expected and scenario.hash == expected.hash
    assert scenario.undo() == scenario


def test_scenarios_are_kept_listed_and_deleted(tmp_path: Path) -> None:
    scenarios = Scenarios(RunStore(tmp_path / "store"))
    first = Scenario("f" * 64, EDITS[:2], "first <b>")
    scenario_id = scenarios.save(first)
    scenarios.save(Scenario("e" * 64, EDITS[:1], "other data"))
    assert scenarios.load(scenario_id).scenario == first
    assert [s.scenario.name for s in scenarios.list("ffff")] == ["first <b>"] and len(scenarios.list()) == 2
    assert (scenarios.folder.stat().st_mode & 0o077) == 0
    scenarios.save(replace(first, name="renamed"))
    assert [s.scenario.name for s in scenarios.list("ffff")] == ["renamed"]
    scenarios.delete(scenario_id)
    assert scenarios.list("ffff") == []
    with pytest.raises(StoreError, match="no scenario"):
        scenarios.load(scenario_id)
    with pytest.raises(StoreError, match="no scenario"):
        scenarios.load("../../store")
    with pytest.raises(ConfigError, match="needs a name"):
        scenarios.save(replace(first, name=" "))


def test_a_scenario_that_was_changed_on_disk_is_refused(tmp_path: Path) -> None:
    scenarios = Scenarios(RunStore(tmp_path))
    scenario_id = scenarios.save(Scenario("f" * 64, (Threshold(0.25),), "a"))
    path = scenarios.folder / f"{scenario_id}.json"
    path.write_text(path.read_text().replace("0.25", "0.75"))
    assert scenarios.list() == []
    with pytest.raises(ConfigError, match="SHA-256 does not fit"):
        scenarios.load(scenario_id)


def test_a_scenario_is_of_one_graph(graph: AttributedGraph) -> None:
    with pytest.raises(StoreError, match="made for other data"):
        scenario_graph(graph, Scenario("f" * 64, EDITS[:1]))
    named = scenario_graph(graph, Scenario(graph.fingerprint, EDITS[:1], "x"))
    assert named.name == f"{graph.name} + scenario x"


def test_an_edited_graph_is_split_as_its_base(graph: AttributedGraph) -> None:
    base = split_links(graph, validation_share=0.05, seed=3)
    held, trained = (tuple(graph.ids(part[:, 0])) for part in (base.test, base.train))
    edited = apply_edits(graph, [DropEdges((held, trained)), ReweightEdges((tuple(graph.ids(base.train[:, 1])),), 2.0)])
    split = split_links(edited, validation_share=0.05, seed=3)
    assert (split.test == base.test[:, 1:]).all() and (split.validation == base.validation).all()
    assert (split.train == base.train[:, 1:]).all()
    assert split.weights is not None and split.weights[0] == 2.0 and (split.weights[1:] == 1).all()


def test_a_draft_is_kept_apart_from_scenarios_until_it_is_emptied_or_old(
    store: RunStore, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kept = uge.load(town), Scenarios(RunStore(tmp_path / "store"))
    assert kept.keep_draft("", Scenario(graph.fingerprint)) == "" and kept.drafts() == []
    edited = Scenario(graph.fingerprint, (FlipValue("city", ("p1",), "B"),), "a *name*")
    token = kept.keep_draft("", edited)
    assert kept.draft(token, graph.fingerprint) == edited
    assert kept.list() == [] and kept.draft(token, "other data") is None
    # The same name is written again, and nobody else's name leads anywhere.
    more = edited.with_edit(MergeValues("city", ("A", "B"), "AB"))
    assert kept.keep_draft(token, more) == token and [d.scenario for d in kept.drafts()] == [more]
    outside = tmp_path / "draft-outside.json"
    outside.write_text("{}")
    for forged in ("../../draft-outside", "", "0" * 15, "G" * 16):
        assert kept.draft(forged, graph.fingerprint) is None and not kept.drop_draft(forged)
    assert outside.exists()
    # What was changed since it was written is not opened; it is listed, so that it can be removed.
    path = next(kept.folder.glob("draft-*.json"))
    path.write_text(path.read_text().replace("p1", "p3"))
    assert [(d.token, d.scenario) for d in kept.drafts()] == [(token, None)]
    assert kept.draft(token, graph.fingerprint) is None
    # A week later another change clears both away.
    other = kept.keep_draft("", edited)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 8 * 86_400)
    assert {d.token for d in kept.drafts()} == {token, other}
    newest = kept.keep_draft("", edited)
    assert [d.token for d in kept.drafts()] == [newest]
    # It goes with its graph.
    assert kept.store.drop_scenarios({graph.fingerprint}) and kept.drafts() == []


def test_a_draft_that_is_too_old_is_not_opened_and_goes(
    store: RunStore, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kept = uge.load(town), Scenarios(RunStore(tmp_path / "store"))
    edited = Scenario(graph.fingerprint, (FlipValue("city", ("p1",), "B"),))
    token = kept.keep_draft("", edited)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 6 * 86_400)
    assert kept.draft(token, graph.fingerprint) == edited
    monkeypatch.setattr("time.time", lambda: now + 30 * 86_400)
    assert kept.draft(token, graph.fingerprint) is None and not list(kept.folder.glob("draft-*.json"))


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b'{"changed": []}'])
def test_what_cannot_be_read_is_listed_as_damaged(tmp_path: Path, content: bytes) -> None:
    kept = Scenarios(RunStore(tmp_path / "store"))
    assert not kept.damaged() and not kept.drafts()
    kept.folder.mkdir(parents=True)
    for name in ("draft-" + "0" * 16, "draft-else", "0" * 12):
        (kept.folder / f"{name}.json").write_bytes(content)
    assert [d.token for d in kept.drafts()] == ["0" * 16, "else"] and not kept.list()
    assert [p.stem for p in kept.damaged()] == ["0" * 12]
    for draft in kept.drafts():
        assert draft.scenario is None and kept.drop_draft(draft.token) and not kept.drop_draft(draft.token)
    assert not kept.drafts()


def test_one_edit_of_several_is_taken_back() -> None:
    edits = tuple(FlipValue("city", (name,), "B") for name in ("a", "b", "c"))
    made = Scenario("data", edits)
    assert made.without(1).edits == (edits[0], edits[2]) and made.without(9) == made
    assert made.without(2) == made.undo()
