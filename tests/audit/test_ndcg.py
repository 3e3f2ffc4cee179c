"""NDCG@10 and its bias-free form: by hand, against loops, against scikit-learn."""

import math

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score
from strategies import attribute, graphs

from uge_core.audit import audit_embedding
from uge_core.audit.base import Cell
from uge_core.audit.ndcg import (
    Ranking,
    as_coded_task,
    edge_gains,
    ndcg_per_target,
    random_ndcg_per_target,
    rank_candidates,
)
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import RankingTask, ranking_task, split_links
from uge_core.runs.disclosure import Release


def one_list():
    """Node 0 ranks nodes 1 to 12 by score 12, 11, ..., 1; relevant are nodes 1 and 4: ranks 1 and 4."""
    z = np.array([[1.0]] + [[13.0 - i] for i in range(1, 13)], np.float32)
    relevant = np.zeros((1, 12), bool)
    relevant[0, [0, 3]] = True
    return z, RankingTask(np.array([0]), np.arange(1, 13)[None], relevant)


def test_by_hand():
    # DCG = 1/log2(2) + 1/log2(5) = 1 + 0.430677 = 1.430677; ideal = 1 + 1/log2(3) = 1.630930; ratio 0.877215.
    z, task = one_list()
    ranking = rank_candidates(z, task)
    assert ranking.rank.tolist() == [0, 3]
    assert ndcg_per_target(ranking, np.ones(2), 1) == pytest.approx([0.877215], abs=1e-6)


def test_gains_by_hand():
    # Gains 1/2 at rank 1 and 2 at rank 4: DCG = 0.5 + 2 * 0.430677 = 1.361353;
    # ideal = 2 + 0.5 * 0.630930 = 2.315465; ratio 0.587940.
    z, task = one_list()
    assert ndcg_per_target(rank_candidates(z, task), np.array([0.5, 2.0]), 1) == pytest.approx([0.587940], abs=1e-6)


def test_below_the_top_ten_nothing_is_gained():
    ranking = Ranking(np.array([0, 1]), np.array([0, 0]), np.array([10, 9]))
    assert ndcg_per_target(ranking, np.ones(2), 2) == pytest.approx([0.0, 1 / math.log2(11)])


def test_random_order_of_a_hundred():
    # peers.md B: 0.045, 0.056, 0.064 with one, two, three relevant among 100.
    for count, expected in ((1, 0.045), (2, 0.056), (3, 0.064)):
        task = RankingTask(np.array([0]), np.arange(1, 101)[None], np.arange(100)[None] < count)
        ranking = Ranking(np.zeros(count, int), np.arange(count), np.arange(count))
        assert random_ndcg_per_target(task, ranking, np.ones(count))[0] == pytest.approx(expected, abs=6e-4)


def test_ties_are_broken_at_random_so_that_a_constant_embedding_sits_at_the_floor():
    num = 3000
    task = RankingTask(np.zeros(num, int), np.tile(np.arange(1, 41), (num, 1)), np.tile(np.arange(40) < 2, (num, 1)))
    ranking = rank_candidates(np.ones((41, 2), np.float32), task)
    mean = ndcg_per_target(ranking, np.ones(2 * num), num).mean()
    assert mean == pytest.approx(random_ndcg_per_target(task, ranking, np.ones(2 * num)).mean(), abs=0.015)


@given(graphs(), st.integers(0, 99))
def test_equal_to_loops(graph, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(graph.num_nodes, 3)).astype(np.float32)
    held = graph.edges
    w = rng.random(held.shape[1])
    task = ranking_task(graph, held, num_candidates=6)
    ranking = rank_candidates(z, task)
    gains = edge_gains(ranking, task, graph, held, w)
    plain, weighted = (ndcg_per_target(ranking, g, len(task.targets)) for g in (np.ones(len(gains.gain)), gains.gain))
    of_edge = {frozenset(e): x for e, x in zip(held.T.tolist(), w, strict=True)}
    for t, u in enumerate(task.targets.tolist()):
        valid = [(v, r) for v, r in zip(task.candidates[t].tolist(), task.relevant[t], strict=True) if v >= 0]
        ordered = sorted(valid, key=lambda vr: -reference.dot(z, u, vr[0]))
        assert plain[t] == pytest.approx(reference.ndcg([float(r) for _, r in ordered]))
        own = [of_edge[frozenset((u, v))] if r else 0.0 for v, r in ordered]
        assert weighted[t] == pytest.approx(reference.ndcg(own))
        edges = [x for e, x in of_edge.items() if u in e]
        assert gains.target_weight[t] == pytest.approx(sum(edges) / len(edges))


def test_scikit_learn_agrees():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(400, 4)).astype(np.float32)
    relevant = np.tile(np.arange(100) < 7, (50, 1))
    candidates = np.stack([rng.permutation(np.arange(50, 400))[:100] for _ in range(50)])
    task = RankingTask(np.arange(50), candidates, relevant)
    ours = ndcg_per_target(rank_candidates(z, task), np.ones(350), 50).mean()
    scores = np.einsum("td,tcd->tc", z[:50], z[candidates])
    assert ours == pytest.approx(ndcg_score(relevant.astype(float), scores, k=10), abs=1e-9)


@pytest.mark.parametrize("num_nodes", [60, 900])
def test_as_coded_lists(num_nodes):
    rng = np.random.default_rng(1)
    u, v = np.nonzero(np.triu(rng.random((num_nodes, num_nodes)) < 25 / num_nodes, 1))
    graph = AttributedGraph("g", num_nodes, np.stack([u, v]).astype(np.int64))
    task = as_coded_task(graph)
    neighbours = [set() for _ in range(num_nodes)]
    for a, b in zip(u.tolist(), v.tolist(), strict=True):
        neighbours[a].add(b)
        neighbours[b].add(a)
    for t, node in enumerate(task.targets.tolist()):
        listed = [c for c in task.candidates[t].tolist() if c >= 0]
        assert len(set(listed)) == len(listed) and node not in listed
        positives = task.candidates[t][task.relevant[t]].tolist()
        assert positives == sorted(neighbours[node])[: len(neighbours[node]) // 10 + 1]
        assert not neighbours[node] & (set(listed) - set(positives))
        strangers = num_nodes - 1 - len(neighbours[node])
        assert len(listed) == min(100, len(positives) + strangers)


def test_weights_reach_the_right_edges():
    rng = np.random.default_rng(2)
    u, v = np.nonzero(np.triu(rng.random((80, 80)) < 0.2, 1))
    graph = AttributedGraph("g", 80, np.stack([u, v]).astype(np.int64))
    split = split_links(graph)
    task = ranking_task(graph, split.test)
    ranking = rank_candidates(rng.normal(size=(80, 4)).astype(np.float32), task)
    weight = split.test[0] * 1000.0 + split.test[1]
    gains = edge_gains(ranking, task, graph, split.test, weight)
    a, b = task.targets[ranking.target], task.candidates[ranking.target, ranking.column]
    assert np.array_equal(gains.gain, np.minimum(a, b) * 1000.0 + np.maximum(a, b))


def gap_with_and_without_the_rule(codes, chance):
    """The gap in NDCG@10, exact and as it is released, of 200 people linked by chance."""
    rng = np.random.default_rng(0)
    linked = np.triu(rng.random((200, 200)) < chance, 1)
    graph = AttributedGraph("g", 200, np.stack(np.nonzero(linked)).astype(np.int64), (attribute("x", codes),))
    z = rng.normal(size=(200, 3)).astype(np.float32)
    split = split_links(graph)
    return [
        audit_embedding(z, graph, split, attackers=[], disclosure=rule).find(metric="ndcg_gap")
        for rule in (None, Release())
    ]


def test_groups_of_few_people_have_no_lists():
    exact, told = gap_with_and_without_the_rule(np.repeat([0, 1, 2], [100, 96, 4]), 0.3)
    assert [(c.a, c.n, c.excluded, c.withheld) for c in exact.cells] == [
        ("a", 100, False, False),
        ("b", 95, False, False),
        ("c", 4, True, False),
    ]
    # 8 people of the first group hide how many the third one has
    assert [(c.a, c.n, c.withheld) for c in told.cells] == [("a", 92, False), ("b", 95, False)] and told.n == 187
    assert told.cells[1].value == exact.cells[1].value != told.cells[0].value
    assert "12 people are left out: groups of under 12" in told.note and "of 2 groups" not in told.note


def test_groups_of_few_lists_are_suppressed_with_lists_of_another():
    codes = np.repeat([0, 1, 2], [100, 80, 20])
    exact, told = gap_with_and_without_the_rule(codes, np.where((codes == 2)[:, None] | (codes == 2), 0.02, 0.3))
    a, b, few = (c.n for c in exact.cells)
    assert 0 < few < 12 and not any(c.withheld for c in exact.cells)
    assert told.cells[2] == Cell("c", None, None, 0, excluded=True, withheld=True)
    assert [(c.n, c.withheld) for c in told.cells[:2]] == [(a + few - 12, False), (b, False)]
    assert told.n == a + b + few - 12 and "1 of 3 groups with under 20 lists left out" in told.note
    assert "people are left out" not in told.note
