"""Of very many people some are drawn: by value, the same for every run, with an error that covers what all would say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uge_core as uge
from uge_core.audit import audit_embedding
from uge_core.audit.compare import Compared, compare_embeddings
from uge_core.audit.ndcg import as_coded_task, planted_task
from uge_core.audit.record import covers
from uge_core.audit.sampling import FEWEST_PEOPLE, Sampling, drawn_by_class
from uge_core.audit.version import VERSION, since
from uge_core.cli.main import run as uge_command
from uge_core.errors import ConfigError
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.split import both_ways, drawn_nodes, probe_split, ranking_task, split_links
from uge_core.runs.audits import EVERYBODY, sampling_of
from uge_core.runs.store import RunStore

NUM = 3_000


@pytest.fixture(scope="module")
def graph() -> AttributedGraph:
    """Three thousand people, of whom an embedding tells two attributes more or less."""
    rng = np.random.default_rng(4)
    ends = np.sort(rng.integers(0, NUM, (2, 12_000)), axis=0)
    edges = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    city, age = rng.integers(0, 4, NUM), rng.integers(0, 2, NUM)
    city[:3] = 4  # a value of three people
    return AttributedGraph(
        "g", NUM, edges, (Attribute("city", city, tuple("abcde")), Attribute("age", age, ("young", "old")))
    )


@pytest.fixture(scope="module")
def vectors(graph: AttributedGraph) -> np.ndarray:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(NUM, 6)).astype(np.float32)
    z[:, 0] += 0.8 * graph.attributes[0].codes
    z[:, 1] += 0.4 * graph.attributes[1].codes
    for u, v in graph.edges.T[:: max(1, graph.num_edges // 4000)]:
        z[v] += 0.3 * z[u]
    return z


@given(st.lists(st.integers(0, 6), min_size=1, max_size=400), st.integers(1, 400), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_each_value_is_drawn_in_its_share(values: list[int], most: int, seed: int) -> None:
    classes = np.array(values)
    drawn = drawn_by_class(classes, most, np.random.default_rng(seed).random(len(classes)))
    assert (np.diff(drawn) > 0).all() and len(drawn) and drawn[0] >= 0 and drawn[-1] < len(classes)
    if len(classes) <= most:
        assert len(drawn) == len(classes)
        return
    for value in set(values):
        wanted = values.count(value) * most / len(values)
        assert abs(np.count_nonzero(classes[drawn] == value) - max(wanted, 1)) <= 0.5 + 1e-9


def test_up_to_so_many_people_nothing_is_drawn(graph: AttributedGraph, vectors: np.ndarray) -> None:
    probe = probe_split(graph.attributes[0])
    assert Sampling(NUM).probe(probe, NUM, 0) is probe and Sampling(None).probe(probe, NUM, 0) is probe
    assert Sampling(NUM - 1).probe(probe, NUM, 0) is not probe
    split = split_links(graph)
    rows = [
        audit_embedding(vectors, graph, split, attackers=("linear", "links"), sampling=sampling)
        for sampling in (None, Sampling(None), Sampling(NUM))
    ]
    assert rows[0] == rows[1] == rows[2]


def test_who_is_drawn_stays_on_its_side_of_the_split(graph: AttributedGraph) -> None:
    whole = probe_split(graph.attributes[0], seed=3)
    few = Sampling(1_000).probe(whole, NUM, 3)
    assert set(few.train) < set(whole.train) and set(few.test) < set(whole.test)
    assert abs(len(few.train) - 800) <= 3 and abs(len(few.test) - 200) <= 3
    again, other = (Sampling(1_000).probe(whole, NUM, seed) for seed in (3, 4))
    assert np.array_equal(few.test, again.test) and not np.array_equal(few.test, other.test)


def test_rows_say_how_many_were_drawn_of_how_many(graph: AttributedGraph, vectors: np.ndarray) -> None:
    split = split_links(graph)
    audit = audit_embedding(vectors, graph, split, attackers=("linear", "trees"), sampling=Sampling(1_000))
    by = {(r.metric, r.attribute, r.attacker, r.variant): r for r in audit.rows}
    leak = by["auc", "city", "worst", "standard"]
    assert abs(leak.n - 200) <= 3
    assert f"of {len(probe_split(graph.attributes[0]).train):,} people to learn from drawn" in leak.note
    assert "people to be tested on drawn" in leak.note and "permutation test (Pillai's trace, 1" in leak.note
    held_out = by["ndcg_at_10", None, None, "held-out"]
    have = len(np.unique(split.test))
    assert held_out.n == 1_000 and f"1,000 of {have:,} people who have lists drawn" in held_out.note
    matched = by["ndcg_at_10_matched", "city", None, "held-out"]
    assert f"these are lists of 1,000 people, drawn of {have:,}" in matched.note
    assert len(np.unique(matched.n)) and matched.n < 2 * split.test.shape[1]


def test_intervals_of_drawn_people_cover_what_all_say(graph: AttributedGraph, vectors: np.ndarray) -> None:
    """Another draw of people each time; the attacker that learns from all reads no less than the interval says."""
    split = split_links(graph)

    def rows(sampling: Sampling, seed: int) -> dict[str, tuple[float, float, float]]:
        audit = audit_embedding(
            vectors, graph, split, attackers=("linear",), split_seed=seed, sampling=sampling, attributes=["age"]
        )
        return {
            f"{r.metric} {r.variant}": (r.value, r.ci_low, r.ci_high)
            for r in audit.rows
            if (r.metric, r.attacker) == ("auc", "linear") or (r.metric, r.variant) == ("ndcg_at_10", "held-out")
        }

    whole = rows(Sampling(None), 0)
    missed = dict.fromkeys(whole, 0)
    for seed in range(40):
        for name, (_, low, high) in rows(Sampling(1_000), seed).items():
            missed[name] += not low <= whole[name][0] <= high
    # 40 trials of 5 % miss more than 7 times by a chance of 1 in 100
    assert max(missed.values()) <= 7, missed


def test_tasks_of_drawn_targets_are_those_of_all(graph: AttributedGraph) -> None:
    held = split_links(graph).test
    few, whole = ranking_task(graph, held, most=200, seed=1), ranking_task(graph, held, seed=1)
    assert len(few.targets) == 200 and few.found == len(whole.targets) and whole.found is None
    friends = {(u, v) for u, v in both_ways(held).T.tolist()}
    linked = {(u, v) for u, v in both_ways(graph.edges).T.tolist()}
    for t, row, right in zip(few.targets.tolist(), few.candidates.tolist(), few.relevant, strict=True):
        assert {(t, v) for v in np.array(row)[right].tolist()} <= friends
        assert not {(t, v) for v in np.array(row)[~right].tolist()} & linked
    coded = as_coded_task(graph, most=150, seed=1)
    everyone = as_coded_task(graph, seed=1)
    place = np.searchsorted(everyone.targets, coded.targets)
    assert len(coded.targets) == 150 and np.array_equal(everyone.targets[place], coded.targets)
    assert np.array_equal(
        np.where(coded.relevant, coded.candidates, -1),
        np.where(everyone.relevant[place], everyone.candidates[place], -1),
    )


def test_planted_lists_of_drawn_targets(tmp_path) -> None:
    truth = uge.load("sample:town")
    few, whole = planted_task(truth, most=100, seed=2), planted_task(truth, seed=2)
    assert len(few.targets) == 100 and few.found == len(whole.targets) and set(few.targets) < set(whole.targets)
    free = {(u, v) for u, v in both_ways(truth.truth.bias_free).T.tolist()}
    seen = {(u, v) for u, v in both_ways(truth.edges).T.tolist()}
    for t, row, right in zip(few.targets.tolist(), few.candidates, few.relevant, strict=True):
        relevant, others = ({(t, v) for v in row[x & (row >= 0)].tolist()} for x in (right, ~right))
        assert relevant <= free - seen and not others & (free | seen)


def test_two_embeddings_are_compared_on_the_same_drawn_people(graph: AttributedGraph, vectors: np.ndarray) -> None:
    split = split_links(graph)
    same = compare_embeddings(
        Compared(vectors), Compared(vectors), graph, split, attackers=("linear",), sampling=Sampling(1_000)
    )
    leak = [r for r in same.rows if r.metric == "auc"]
    assert leak and all(r.value == 0 and abs(r.n - 200) <= 3 for r in leak)
    assert next(r for r in same.rows if r.metric == "ndcg_at_10").n <= 1_000


def test_how_many_may_be_asked_for() -> None:
    assert sampling_of(None).most is None and sampling_of(FEWEST_PEOPLE).most == FEWEST_PEOPLE
    for wrong in (FEWEST_PEOPLE - 1, 0, -1, True, 1e5, "all"):
        with pytest.raises(ConfigError, match="people"):
            sampling_of(wrong)
    assert Sampling().lists(50_000, 20_000) == 20_000 and Sampling().lists(1_600_000, 20_000) == 5_000


@pytest.mark.parametrize(
    ("now", "then", "takes_its_place"),
    [
        ({}, {}, True),
        ({}, {"people": 100_000}, True),
        ({"people": 100_000}, {}, False),
        ({"people": 200_000}, {"people": 150_000}, True),
    ],
)
def test_an_audit_of_fewer_people_takes_no_place(now: dict, then: dict, takes_its_place: bool) -> None:
    asked = {"attributes": None, "attackers": ["linear"]}
    assert covers(asked | now, asked | then) is takes_its_place


def test_drawing_excuses_no_difference_of_an_earlier_record() -> None:
    """It is measured anew of all people."""
    assert not since(4) and VERSION == 5 and EVERYBODY == {"people": None}


def test_who_else_takes_part_hardly_changes_who_is_drawn(graph: AttributedGraph) -> None:
    whole = probe_split(graph.attributes[1], seed=3)
    fewer = replace(whole, train=whole.train[7:], test=whole.test[1:])
    a, b = (Sampling(1_000).probe(p, NUM, 3) for p in (whole, fewer))
    assert len(np.intersect1d(a.train, b.train)) > 780 and len(np.intersect1d(a.test, b.test)) > 195
    nodes = np.arange(NUM)
    (first, _), (second, _) = (drawn_nodes(n, NUM, 500, 1) for n in (nodes, nodes[10:]))
    assert first.sum() == second.sum() == 500 and (first & second).sum() > 480


def test_the_command_line_asks_for_fewer_people_or_all(town, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored audit of all is not replaced by one of fewer."""
    data, store = tmp_path / "data", tmp_path / "store"
    uge_command(["data", "make-sample", "town", str(data), "--nodes", "1500", "--edges", "6000", "--seed", "1"])
    asked = ["--epochs", "2", "--store", str(store), "--attributes", "region"]
    assert uge_command(["train", str(data), "--sensitive", "region", *asked]) == 0
    run_id = capsys.readouterr().out.split()[-1]
    options = ["--attackers", "linear,trees,rbf,links,linked-trees", "--store", str(store), "--json"]
    for people, n in (("1000", 200), ("all", 300)):
        uge_command(["audit", run_id, "--people", people, *options])
        said = capsys.readouterr()
        record = json.loads(said.out)
        assert record["asked"].get("people") == (None if people == "all" else 1000)
        leak = next(r for r in record["rows"] if r["metric"] == "auc" and r["attacker"] == "worst")
        assert abs(leak["n"] - n) <= 2
        kept = RunStore(store).load(run_id).audit
        assert kept is not None and "people" not in kept["asked"]
        assert ("not stored" in said.err and "--people all" in said.err) is (people == "1000")
    assert uge_command(["audit", run_id, "--people", "12", "--store", str(store)]) == 2
    assert "from 1,000" in capsys.readouterr().err


def test_a_value_left_without_tested_people_is_said(graph: AttributedGraph, vectors: np.ndarray) -> None:
    rare = graph.attributes[0]
    audit = audit_embedding(
        vectors, replace(graph, attributes=(rare,)), None, attackers=("linear",), sampling=Sampling(1_000)
    )
    assert "too few nodes: e" in next(r for r in audit.rows if r.metric == "auc").note
