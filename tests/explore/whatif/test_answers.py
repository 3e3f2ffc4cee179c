"""What the what-if process answers: each number against the plain audit, the plain count, or the stored bits."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import others_in_ci

import uge_core as uge
from uge_core.audit.run import audit_embedding
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import StoreError
from uge_core.explore.whatif import rejudge
from uge_core.explore.whatif.answers import Answers, _sizes
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
)
from uge_core.explore.whatif.ego import ego_network, positions
from uge_core.explore.whatif.reencode import moved, reencode, refusal
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.explore.whatif.weights import weights_of_run
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.split import split_links
from uge_core.graph.suppression import FEWEST, SUPPRESSED_LEGEND
from uge_core.runs.audits import attributes_read
from uge_core.training.config import RunConfig
from uge_core.training.encode import encode
from uge_core.training.fit import fit
from uge_core.training.weights import edge_weights
from uge_core.views.whatif import (
    compared_scenarios,
    ego_view,
    judged_view,
    links_view,
    on_screen,
    people_view,
    search_view,
)


@pytest.fixture(scope="module")
def graph(town: Path) -> Any:
    return uge.load(town)


def run_of(store: uge.RunStore, backbone: str, method: str = "none") -> uge.StoredRun:
    """The run of a backbone and a method."""
    return next(r for r in store.list() if (r.config["backbone"], r.config["method"]) == (backbone, method))


def scenario(graph: Any, *edits: Edit) -> dict[str, Any]:
    return Scenario(graph.fingerprint, edits, "trial").to_json()


def trained_edge(graph: Any, at: int = 0) -> tuple[str, str]:
    first, second = graph.ids(split_links(graph).train[:, at])
    return first, second


# re-judge


@pytest.mark.parametrize("method", others_in_ci(("none", "uge-w"), "uge-w"))
@pytest.mark.parametrize(
    "edits",
    [
        (FlipValue("city", tuple(f"p{i}" for i in range(40)), "A"),),
        (MergeValues("city", ("A", "B"), "AB"),),
        (DropValue("city", "C"), FlipValue("gender", ("p1", "p2"), "f")),
    ],
    ids=["flip", "merge", "drop"],
)
def test_rejudging_equals_an_audit_of_the_edited_graph(
    graph: Any, store: uge.RunStore, answers: Answers, method: str, edits: tuple[Edit, ...]
) -> None:
    run = run_of(store, "node2vec", method)
    answer = answers.judge(run.id, scenario(graph, *edits), "city", ["linear"])
    assert answer["tier"] == "re-judge" and answer["why_not"] is None
    edited, config = apply_edits(graph, edits), RunConfig.from_json(run.config)
    for side, g in (("before", graph), ("after", edited)):
        audit = audit_embedding(
            np.asarray(run.embedding),
            g,
            split_links(g),
            attributes=answer["attributes"],
            attackers=("linear",),
            treated=config.sensitive,
            read=attributes_read(config, g),
            unknown=config.unknown,
            twin=None if run.twin is None else np.asarray(run.twin),
        )
        assert len(answer["rows"]) > 8
        for pair in answer["rows"]:
            row = pair[side]
            keys = ("metric", "attribute", "attacker", "variant", "exposure")
            measured = audit.find(**{k: row[k] for k in keys})
            for name in ("value", "ci_low", "ci_high", "n", "floor_random", "floor_majority"):
                expected = getattr(measured, name)
                assert (row[name] is None) == (expected is None), (name, row)
                assert expected is None or row[name] == pytest.approx(expected, rel=1e-12, abs=1e-12), (name, row)
            assert [(c["a"], c["b"], c["n"], c["value"]) for c in row["cells"]] == [
                (c.a, c.b, c.n, c.value) for c in measured.cells
            ]


def test_rejudging_says_which_tested_values_the_twin_saw(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    run = run_of(store, "node2vec", "uge-w")
    edits = (FlipValue("city", tuple(f"p{i}" for i in range(60)), "A"),)
    rows = [
        p for p in answers.judge(run.id, scenario(graph, *edits), "city")["rows"] if p["before"]["exposure"] == "unseen"
    ]
    assert rows and all("the twin saw the values of" in p["after"]["note"] for p in rows)
    assert not any("the twin saw" in (p["before"]["note"] or "") for p in rows)


def test_a_threshold_counts_predicted_links(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    run = run_of(store, "node2vec")
    answer = answers.judge(run.id, scenario(graph, Threshold(0.7)), "city")
    (pair,) = [p for p in answer["rows"] if p["thresholds"] and p["before"]["metric"] == "dp"]
    z, city = np.asarray(run.embedding, dtype=np.float64), graph.attribute("city")
    for side, threshold in (("before", 0.5), ("after", 0.7)):
        for cell in pair[side]["cells"]:
            hits = [
                1.0 / (1.0 + np.exp(-(z[i] @ z[j]))) >= threshold
                for i in range(200)
                for j in range(i + 1, 200)
                if sorted((city.labels[city.codes[i]], city.labels[city.codes[j]])) == sorted((cell["a"], cell["b"]))
            ]
            assert cell["n"] == len(hits) and cell["value"] == pytest.approx(np.mean(hits))
    plain = [p for p in answer["rows"] if not p["thresholds"]]
    assert all(p["before"]["value"] == p["after"]["value"] for p in plain)


def test_before_is_the_same_under_every_scenario_and_an_answer_is_kept(
    graph: Any, store: uge.RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, run = Answers(store), run_of(store, "node2vec")
    first = answers.judge(run.id, scenario(graph, FlipValue("city", ("p1",), "B")), "city")
    second = answers.judge(run.id, scenario(graph, DropValue("city", "A")), "city")
    of = [{(p["before"]["metric"], p["before"]["attacker"]): p["before"] for p in a["rows"]} for a in (first, second)]
    assert of[0] == of[1]
    monkeypatch.setattr(rejudge, "audit_embedding", lambda *_, **__: pytest.fail("measured again"))
    again = answers.judge(run.id, scenario(graph, DropValue("city", "A")), "city")
    assert again["rows"] is second["rows"]


# weights and the ego network


def by_hand(graph: Any, train: np.ndarray, u: int, v: int) -> tuple[int, float, float, float]:
    """Observed edges, expected edges, R and R~ of a pair's cell for city, one pair at a time."""
    names = ("city", "gender", "age")
    codes = [graph.attribute(n).codes for n in names]
    known = [i for i in range(graph.num_nodes) if all(c[i] >= 0 for c in codes)]
    joint = {i: tuple(c[i] for c in codes) for i in known}
    rest = {i: joint[i][1:] for i in known}
    edges = [(a, b) for a, b in train.T.tolist() if a in joint and b in joint]

    def count(of: dict[int, Any]) -> tuple[int, int]:
        pairs = sum(1 for i in known for j in known if (of[i], of[j]) == (of[u], of[v]))
        linked = sum((of[a], of[b]) == (of[u], of[v]) for a, b in edges)
        return pairs, linked + sum((of[b], of[a]) == (of[u], of[v]) for a, b in edges)

    (pairs, seen), (wide, seen_wide) = count(joint), count(rest)
    rate = 2 * len(edges) / len(known) ** 2
    expected = pairs * seen_wide / wide
    halved = 2 if joint[u] == joint[v] else 1
    return seen // halved, expected / halved, seen / pairs / rate, seen_wide / wide / rate


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "method"), [("gcn", "none"), ("gcn", "uge-w"), ("node2vec", "uge-c")])
def test_an_ego_network_weighs_edges_as_training_and_says_why(
    graph: Any, store: uge.RunStore, answers: Answers, backbone: str, method: str
) -> None:
    run = run_of(store, backbone, method)
    answer = answers.ego(run.id, ["p10"], attribute="city")
    assert answer["nodes"][0]["id"] == "p10" and answer["nodes"][0]["centre"]
    neighbours = set(graph.edges[1, graph.edges[0] == 10]) | set(graph.edges[0, graph.edges[1] == 10])
    assert {n["id"] for n in answer["nodes"][1:]} == {f"p{i}" for i in neighbours}
    split, config = split_links(graph), RunConfig.from_json(run.config)
    if method == "none":
        config = RunConfig.resolve(graph, sensitive=["city"], method="uge-w", unknown=config.unknown)
    elif method == "uge-c":
        assert config.method_options["shrinkage"] == 0
    numbers = [[int(answer["nodes"][e[k]]["id"][1:]) for e in answer["edges"]] for k in ("a", "b")]
    np.testing.assert_allclose(
        [e["weight"] for e in answer["edges"]], edge_weights(config, graph, split, np.array(numbers))
    )
    test = {tuple(e) for e in split.test.T.tolist()}
    told = 0
    for e, u, v in zip(answer["edges"], *numbers, strict=True):
        assert (e["part"] == "held out") == (tuple(sorted((u, v))) in test)
        for reason in e["reasons"]:
            if reason["observed"] is not None:
                told += 1
                observed, expected, ratio, free = by_hand(graph, split.train, u, v)
                assert reason["observed"] == observed and reason["expected"] == pytest.approx(expected)
                assert reason["ratio"] == pytest.approx(ratio) and reason["bias_free_ratio"] == pytest.approx(free)
                if observed and free:
                    assert e["weight"] == pytest.approx(free / ratio, rel=1e-5)
    assert told > 3


def test_small_groups_are_suppressed(graph: Any, store: uge.RunStore) -> None:
    small = apply_edits(graph, [FlipValue("city", tuple(f"p{i}" for i in range(200) if i % 25), "A")])
    config = RunConfig.resolve(small, sensitive=["city"], method="uge-w")
    weights = weights_of_run(config, small, split_links(small), attribute=None)
    assert weights is not None
    sizes = np.bincount(weights._tables[0].group[weights._tables[0].group >= 0])
    for u, v in small.edges.T[:60].tolist():
        for reason in weights.reasons(u, v):
            table = weights._tables[0]
            few = min(table.counts.nodes[table.group[u]], table.counts.nodes[table.group[v]]) < FEWEST
            assert (reason.observed is None) == few == (reason.ratio is None)
    assert (sizes < FEWEST).any()


def test_an_ego_network_is_bounded_and_keeps_the_closest(graph: Any) -> None:
    network = ego_network(graph, split_links(graph), None, [10, 11], most=12)
    assert len(network.nodes) == 12 and [n["centre"] for n in network.nodes[:3]] == [True, True, False]
    shown = {int(n["id"][1:]) for n in network.nodes}
    near = {int(b) for a in (10, 11) for e in graph.edges.T for b in e if a in e} - {10, 11}
    assert network.left_out == len(near - shown)
    ties = {n: sum(a in e for e in graph.edges.T for a in (10, 11) if n in e) for n in near}
    assert min(ties[n] for n in shown & near) >= max(ties[n] for n in near - shown)
    places = positions(12, np.array([[e["a"], e["b"]] for e in network.edges]).T, 2)
    assert len(set(places)) == 12 and np.abs(places).max() <= 1


# re-encode


@pytest.mark.parametrize("method", ["none", "uge-c"])
@pytest.mark.parametrize("backbone", ["gcn", "gat", "sgc"])
def test_reencoding_without_an_edit_gives_the_stored_bits(
    graph: Any, store: uge.RunStore, backbone: str, method: str
) -> None:
    run = run_of(store, backbone, method)
    assert refusal(run) is None
    np.testing.assert_array_equal(reencode(run, graph, split_links(graph)), run.embedding)


def test_a_run_that_keeps_an_earlier_epoch_has_no_parameters(graph: Any, store: uge.RunStore) -> None:
    config = RunConfig.resolve(graph, backbone="gcn", validation=0.1, epochs=80, options={"learning_rate": 0.2})
    (fitted,) = fit([config], graph, split_links(graph, validation_share=0.1), device="cpu")
    assert fitted.best_epoch < 80 and fitted.parameters == {}
    run = run_of(store, "gcn")
    bare = replace(run, id="0" * 12, sums={k: v for k, v in run.sums.items() if k != "parameters.npz"})
    assert bare.parameters == {} and "were not kept" in str(refusal(bare))


def test_runs_without_messages_say_why_they_cannot(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    run = run_of(store, "node2vec")
    assert run.parameters == {} and "passes no messages" in str(refusal(run))
    answer = answers.judge(run.id, scenario(graph, DropEdges((trained_edge(graph),))), "city")
    assert answer["tier"] == "re-judge" and "until it is trained again" in answer["why_not"] and answer["moved"] == []


@pytest.mark.parametrize("backbone", ["gcn", "gat", "sgc"])
def test_reencoding_moves_those_near_an_edited_edge(
    graph: Any, store: uge.RunStore, answers: Answers, backbone: str
) -> None:
    run = run_of(store, backbone)
    edge = trained_edge(graph)
    answer = answers.judge(run.id, scenario(graph, DropEdges((edge,))), "city")
    assert answer["tier"] == "re-encode" and {p["tier"] for p in answer["rows"]} == {"re-encode"}
    far = {m["who"]: m for m in answer["moved"]}
    assert far["edited nodes"]["nodes"] == 2 and far["edited nodes"]["still"] == 0
    assert far["edited nodes"]["median"] > far["their neighbours"]["median"] > far["all others"]["median"]
    edited = apply_edits(graph, [DropEdges((edge,))])
    z = reencode(run, edited, split_links(edited))
    assert not np.array_equal(z, run.embedding)
    audit = audit_embedding(z, edited, split_links(edited), attributes=["city"], attackers=("linear",))
    for pair in answer["rows"]:
        measured = audit.find(**{k: pair["after"][k] for k in ("metric", "attribute", "attacker", "variant")})
        assert pair["after"]["value"] == measured.value


def test_weights_of_edges_reach_gcn_and_not_gat(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    edits = scenario(graph, ReweightEdges((trained_edge(graph),), 5.0))
    far = {b: answers.judge(run_of(store, b).id, edits, "city")["moved"] for b in ("gcn", "gat")}
    assert far["gcn"][0]["median"] > 0 and far["gat"][0]["median"] == 0


def test_how_far_is_relative_to_a_nodes_length() -> None:
    before = np.array([[3.0, 4.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    after = before + np.array([[0.0, 5.0], [0.5, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    movements = moved(before, after, np.array([0]), np.array([[0], [1]]))
    assert [(m.who, m.nodes, m.largest, m.still) for m in movements] == [
        ("edited nodes", 1, 1.0, 0),
        ("their neighbours", 1, 0.5, 0),
        ("all others", 2, 0.0, 2),
    ]


# what a page shows of it


def test_a_view_names_the_tier_of_every_number_and_has_three_verdicts(
    graph: Any, store: uge.RunStore, answers: Answers
) -> None:
    run = run_of(store, "gcn")
    edits = (FlipValue("city", tuple(f"p{i}" for i in range(150)), "A"), AddEdges((("p0", stranger(graph, 0)),)))
    answer = answers.judge(run.id, scenario(graph, *edits), "city")
    view = judged_view(answer)
    assert set(view.table["Made by"]) == {"re-encode"} and set(view.weights["Made by"]) == {"re-judge"}
    assert set(view.moved["Made by"]) == {"re-encode"}
    assert set(view.table["Shows"]) <= {"Lower", "Higher", "The same", "No change is shown", "Not enough evidence"}
    assert any(s.startswith("city, how often the linear attacker") for s in view.sentences)
    assert view.table["n after"].notna().all() and "Measure,Of,Made by" in view.csv()
    assert len(view.cells) and {"R before", "R after", "Edges"} <= set(view.cells)
    assert len(view.groups) and not (view.groups == f"under {FEWEST}").any(axis=None)


def test_suppressed_cells_tell_neither_value_nor_number() -> None:
    row: dict[str, Any] = dict.fromkeys(
        ("attacker", "variant", "exposure", "ci_low", "ci_high", "floor_random", "floor_majority", "note")
    )
    row |= {"metric": "dp", "attribute": "city", "value": 0.2, "n": 500, "direction": "lower", "evidence": "ok"}

    def cell(b: str, n: int, value: float | None, **more: Any) -> dict[str, Any]:
        return {"a": "A", "b": b, "value": value, "n": n, "ci_low": None, "ci_high": None, "excluded": n < 100} | more

    before = row | {"cells": [cell("A", 500, 0.5), cell("B", 11, 0.987654), cell("C", 0, None)]}
    after = row | {"cells": [cell("A", 500, 0.4), cell("B", 500, 0.3), cell("C", 0, None, withheld=True)]}
    pair = {"before": before, "after": after, "tier": "re-judge", "thresholds": None}
    answer = {"rows": [pair], "attributes": ["city"], "tier": "re-judge", "moved": [], "why_not": None}
    view = judged_view(answer | {"weights": {"note": None, "more": 0, "before": None}})
    table = view.groups
    assert table["Before, n"].tolist() == ["500", "suppressed", "0"]
    assert table["After, n"].tolist() == ["500", "500", "suppressed"]
    assert table["Counts"].tolist() == ["yes", "suppressed", "suppressed"]
    assert table["Before"].isna().tolist() == [False, True, True] and "0.98" not in table.to_csv()
    assert view.remarks.count(SUPPRESSED_LEGEND) == 1


def test_two_scenarios_stand_side_by_side(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    run = run_of(store, "gcn")
    answers = [
        answers.judge(run.id, scenario(graph, edit), "city")
        for edit in (DropEdges((trained_edge(graph),)), FlipValue("city", ("p1", "p2", "p3"), "B"))
    ]
    table = compared_scenarios(answers[0], answers[1], ("one", "two"))
    assert list(table.columns[:4]) == ["Measure", "Of", "Before", "one"] and len(table) > 4
    assert set(table["one, made by"]) == {"re-encode"} and set(table["two, made by"]) == {"re-judge"}


def test_an_ego_view_is_one_record_for_picture_and_table(graph: Any, store: uge.RunStore, answers: Answers) -> None:
    from uge_core.views.figures.ego import ego_figure

    view = ego_view(answers.ego(run_of(store, "gcn").id, ["p10"], attribute="city"), "city")
    assert len(view.table) == len(view.edges) and view.alt.startswith("Edges of p10 weigh")
    figure = ego_figure(view)
    drawn = [t for t in figure.data if t.mode == "lines"]
    assert sum(len(t.x) for t in drawn) == 3 * len(view.edges)
    clicked = [c for t in figure.data for c in (t.customdata if t.customdata is not None else ())]
    assert sorted(c[1] for c in clicked if c[0] == "node") == sorted(n["id"] for n in view.nodes)
    ends = {(view.nodes[e["a"]]["id"], view.nodes[e["b"]]["id"]) for e in view.edges}
    assert {(c[1], c[2]) for c in clicked if c[0] == "edge"} == ends


def test_a_dropped_edge_stays_in_the_picture_so_that_it_can_be_had_again(
    graph: Any, store: uge.RunStore, answers: Answers
) -> None:
    run = run_of(store, "gcn")
    first = ego_view(answers.ego(run.id, ["p10"], attribute="city"), "city")
    edge = next(e for e in first.edges if first.nodes[e["a"]]["id"] == "p10" or first.nodes[e["b"]]["id"] == "p10")
    ends = tuple(first.nodes[edge[end]]["id"] for end in ("a", "b"))
    trial = scenario(graph, DropEdges((ends,)))
    after = ego_view(answers.ego(run.id, ["p10"], scenario=trial, attribute="city"), "city")
    gone = [tuple(after.nodes[e[end]]["id"] for end in ("a", "b")) for e in after.edges if e["part"] == "dropped"]
    assert [set(pair) for pair in gone] == [set(ends)]
    assert len(after.edges) == len(first.edges) and "1 dropped edge drawn dashed" in after.caption
    assert "weigh 0.00" not in after.title, "a dropped edge has no weight to speak of"


def test_people_are_found_by_id_by_value_and_in_lists(store: uge.RunStore, answers: Answers, graph: Any) -> None:
    run = run_of(store, "gcn")
    found = answers.find(run.id, "city b gender f")
    city, gender = graph.attribute("city"), graph.attribute("gender")
    both = (city.codes == city.labels.index("B")) & (gender.codes == gender.labels.index("f"))
    assert found["total"] == both.sum() and all(v["city"] == "B" and v["gender"] == "f" for v in found["values"])
    view = search_view(answers.find(run.id, "p3; p5, nobody"), "p3; p5, nobody")
    assert view.named == ("p3", "p5") and "nobody called 'nobody'" in view.error
    view = search_view(answers.find(run.id, "zzz"), "zzz")
    assert not view.people and "nobody called 'zzz'" in view.error
    many = search_view(answers.find(run.id, "p1"), "p1")
    assert next(iter(many.people)) == "p1" and "more people fit" in many.note and not many.error


def test_values_are_told_with_what_the_edits_made_of_them(answers: Answers, store: uge.RunStore, graph: Any) -> None:
    run, old = run_of(store, "gcn"), graph.attribute("city")
    other = next(v for v in old.labels if v != old.labels[old.codes[1]])
    edits = scenario(graph, FlipValue("city", ("p1",), other), AddEdges((("p1", distant(graph, 1)),)))
    view = people_view(answers.people(run.id, ["p1", "p2", "x"], edits))
    row = view.table.set_index("id").loc["p1"]
    assert row["city"] == f"{other} (was {old.labels[old.codes[1]]})"
    assert row["Links"] == f"{graph.degree[1] + 1} (was {graph.degree[1]})"
    assert view.ids == ("p1", "p2") and "nobody called 'x'" in view.error
    assert "(was" not in " ".join(view.table.set_index("id").loc["p2", ["city", "gender", "age"]])


@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_first_links_are_the_highest_scores_of_those_not_linked_in_training(
    backbone: str, answers: Answers, store: uge.RunStore, graph: Any
) -> None:
    run, split = run_of(store, backbone), split_links(graph)
    z = np.asarray(run.embedding, dtype=np.float64)
    linked = {int(v) for e in split.train.T if 10 in e for v in e}
    order = sorted(set(range(200)) - linked - {10}, key=lambda n: -float(z[n] @ z[10]))[:10]
    answer = answers.links(run.id, "p10")
    assert [one["id"] for one in answer["before"]] == [f"p{n}" for n in order] and answer["tier"] == "re-judge"
    assert answer["before"] == answer["after"]
    # The end of a dropped training link may be recommended again.
    near = max(linked - {10}, key=lambda n: float(z[n] @ z[10]))
    edits = scenario(graph, DropEdges((("p10", f"p{near}"),)))
    after = answers.links(run.id, "p10", edits)
    assert after["tier"] == ("re-encode" if backbone == "gcn" else "re-judge")
    view = links_view(after, "p10", "city")
    assert len(view.table) == 10 and view.sentence.startswith("p10: ")
    if backbone == "node2vec" and float(z[near] @ z[10]) > float(z[order[-1]] @ z[10]):
        assert f"Entered: p{near}. Left: p{order[-1]}." in view.sentence and "stays as it is" in view.note
        assert view.table["After"].str.contains("entered").sum() == 1
        assert view.table["Before"].str.contains("left").sum() == 1
    with pytest.raises(uge.UgeError, match="no node is called 'x'"):
        answers.links(run.id, "x")
    # By a run that was trained on the edits, what is after is that run's own list.
    other = run_of(store, backbone, "uge-w")
    trained = answers.links(run.id, "p10", other=other.id)
    assert trained["tier"] == "re-train" and trained["after"] == answers.links(other.id, "p10")["before"]


def test_a_measure_in_the_chart_has_both_intervals_its_floor_and_its_own_scale(
    answers: Answers, store: uge.RunStore, graph: Any
) -> None:
    from uge_core.views.figures.changes import changes_alt, changes_figure

    edits = scenario(graph, FlipValue("city", ("p1", "p2", "p3"), "A"))
    view = judged_view(answers.judge(run_of(store, "gcn").id, edits, "city"))
    assert len(view.measures) == len(view.table)
    figure = changes_figure(view.measures)
    metrics = list(dict.fromkeys(m.metric for m in view.measures))
    assert len([a for a in figure.layout if str(a).startswith("xaxis")]) == len(metrics)
    points = {name: [t for t in figure.data if t.name == name] for name in ("before", "after", "chance")}
    assert [x for t in points["before"] for x in t.x] == [m.before[0] for m in view.measures if m.before[0] is not None]
    assert [x for t in points["chance"] for x in t.x] == [m.floor for m in view.measures if m.floor is not None]
    first = view.measures[0]
    ends = points["after"][0].error_x
    assert first.after[0] + ends.array[0] == pytest.approx(first.after[2])
    assert first.after[0] - ends.arrayminus[0] == pytest.approx(first.after[1])
    assert all(m.metric[0] in "↓↑" for m in view.measures)
    assert changes_alt(view.measures).count(" before, ") == len(view.measures)
    # What the page calls them; a record's words stay.
    assert {p["tier"] for p in answers.judge(run_of(store, "gcn").id, edits, "city")["rows"]} == {"re-judge"}
    assert set(on_screen(view.table)["Made by"]) == {"recomputed"}
    assert not {"seen", "unseen"} & {part for m in view.measures for part in m.of.split(" · ")}


def test_hostile_names_are_escaped(graph: Any) -> None:
    from uge_core.views.figures.ego import ego_figure

    odd = replace(graph, node_ids=np.array([f"<b>{i}</b>" for i in range(200)], dtype=object))
    network = ego_network(odd, split_links(odd), None, [10])
    record = {
        "nodes": [n | {"x": 0.0, "y": 0.0} for n in network.nodes],
        "edges": list(network.edges),
        "left_out": 0,
        "edges_left_out": 0,
        "sensitive": [],
        "note": None,
    }
    text = ego_figure(ego_view(record, "city")).to_json()
    shown = [t for trace in ego_figure(ego_view(record, "city")).data for t in (trace.text or ())]
    assert "&lt;b&gt;10" in text and shown and not any("<b>" in t for t in shown)


def distant(graph: Any, node: int) -> str:
    """A stranger other than p2."""
    linked: Iterable[int] = {int(v) for e in graph.edges.T if node in e for v in e}
    return next(f"p{i}" for i in range(3, graph.num_nodes) if i not in linked)


def stranger(graph: Any, node: int) -> str:
    linked: Iterable[int] = {int(v) for e in graph.edges.T if node in e for v in e}
    return next(f"p{i}" for i in range(1, graph.num_nodes) if i not in linked)


def test_names_asked_for_are_checked(store: uge.RunStore, answers: Answers, graph: Any) -> None:
    run = run_of(store, "gcn")
    assert answers.describe(run.id, "city")["attributes"]["city"]["values"].keys() == {"A", "B", "C"}
    assert answers.find(run.id, "p19")["nodes"][:2] == ["p19", "p190"]
    with pytest.raises(uge.UgeError, match="no node is called 'x'"):
        answers.ego(run.id, ["x"])
    with pytest.raises(uge.UgeError, match="knows no 'walk'"):
        answers.answer({"what": "walk"})
    with pytest.raises(uge.UgeError, match="made for other data"):
        answers.judge(run.id, Scenario("f" * 64, (Threshold(0.3),)).to_json(), "city")


def test_a_gap_without_intervals_shows_nothing() -> None:
    from uge_core.views.whatif import EMPTY, _paired_verdict, _verdict

    before = {"value": 0.1, "evidence": "ok", "ci_low": None, "ci_high": None}
    assert _verdict(before, before | {"value": 0.4}) == EMPTY
    assert _paired_verdict({"evidence": "ok", "value": 0.2, "p_holm": None}) == EMPTY


def test_a_deleted_scenario_leaves_no_edits_in_jobs_that_are_over(tmp_path: Path) -> None:
    store = uge.RunStore(tmp_path / "store")
    scenario = Scenario("0", (FlipValue("city", ("p0123",), "A"),), "mine")
    other = Scenario("0", (FlipValue("city", ("p0124",), "A"),), "theirs")
    jobs = [Queue(store).add({"device": "cpu", "scenario": s.to_json()}) for s in (scenario, other, scenario)]
    with store.writing() as db:
        db.execute("UPDATE jobs SET status = 'finished' WHERE id != ?", (jobs[-1],))
    Scenarios(store).delete(Scenarios(store).save(scenario))
    scenarios = [Queue(store).load(job_id).settings["scenario"] for job_id in jobs]
    assert scenarios == [{"name": "(deleted)", "sha256": scenario.hash}, other.to_json(), scenario.to_json()]


def test_what_a_run_gave_makes_no_folder_of_one_that_was_deleted(
    store_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = uge.RunStore(store_copy)
    run = store.list()[0]
    load = uge.RunStore.load

    def meanwhile(self: uge.RunStore, run_id: str) -> uge.StoredRun:
        stored = load(self, run_id)
        self.delete(run_id)
        return stored

    monkeypatch.setattr(uge.RunStore, "load", meanwhile)
    with pytest.raises(StoreError, match="cannot be written"):
        Scenarios(store).keep("0" * 12, run.id, {})
    assert not run.folder.exists()


def test_sizes_of_small_groups_are_not_shown() -> None:
    codes = np.repeat([0, 1, 2, -1], [40, 20, 7, 12])
    assert _sizes(Attribute("g", codes, ("a", "b", "c"))) == {"a": "40", "b": "20", "c": f"under {FEWEST}"}
    assert _sizes(Attribute("g", codes[:67], ("a", "b", "c"))) == {"a": "40", "b": "20", "c": f"under {FEWEST}"}


def test_an_edited_weight_or_hub_moves_nobody_whom_no_message_reaches() -> None:
    """A chain of 40: what is edited at one end is out of reach of two layers at the other."""
    chain = np.stack([np.arange(39), np.arange(1, 40)])
    graph = AttributedGraph("chain", 40, chain)
    split = replace(split_links(graph, test_share=0.0, seed=0), train=chain)
    weights = np.ones(39, dtype=np.float32)
    weights[0] = 1e4
    hub = np.concatenate([chain, [[0] * 8, range(2, 10)]], axis=1)
    options: dict[str, Any]
    for options in ({}, {"input": "degree"}):
        config = RunConfig.resolve(graph, backbone="gcn", options={"epochs": 3} | options)
        (fitted,) = fit([config], graph, split, device="cpu")
        for edges, own in ((chain, weights), (hub, None)):
            other = replace(split, train=edges, weights=own)
            z = encode(config, fitted.parameters, graph, other, split)
            np.testing.assert_array_equal(z[20:], fitted.embedding[20:])
            assert not np.array_equal(z[:3], fitted.embedding[:3])
