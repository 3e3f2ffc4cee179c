"""Rank exposure and NDCG by group: by hand, against loops, and the rows they make."""

import math

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs
from toys import links, people

from uge_core.audit import audit_embedding
from uge_core.audit.ndcg import BiasFree
from uge_core.audit.ndkl import BLOCKS, half_width, ndkl_per_target, random_ndkl_per_target
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import RankingTask, ranking_task, split_links


def test_by_hand():
    # Ranked a a b b: D_1 = (1, 0), D_2 = (1, 0), D_3 = (2/3, 1/3), D_4 = D_ref = (1/2, 1/2).
    # KL: ln 2, ln 2, 2/3 ln 4/3 + 1/3 ln 2/3 = 0.0566330, 0. Weights 1, 0.630930, 0.5, 0.430677, sum 2.561606.
    # (0.693147 * 1.630930 + 0.0566330 * 0.5) / 2.561606 = 0.452369.
    z = np.array([[1.0], [4.0], [3.0], [2.0], [1.0]], np.float32)
    task = RankingTask(np.array([0]), np.array([[1, 2, 3, 4]]), np.array([[True, False, False, False]]))
    found, _ = ndkl_per_target(z, task, np.array([0, 0, 0, 1, 1]))
    assert found == pytest.approx([0.452369], abs=1e-6)


@given(graphs(unknown=True, bipartite=False), st.integers(0, 99))
def test_equal_to_loops(graph, seed):
    z = np.random.default_rng(seed).normal(size=(graph.num_nodes, 3)).astype(np.float32)
    task = ranking_task(graph, graph.edges, num_candidates=8)
    for a in graph.attributes:
        found, chance = ndkl_per_target(z, task, a.codes, top=4)
        for t, u in enumerate(task.targets.tolist()):
            order = sorted((v for v in task.candidates[t].tolist() if v >= 0), key=lambda v: -reference.dot(z, u, v))
            expected = reference.ndkl([int(a.codes[v]) for v in order], top=4)
            assert found[t] == pytest.approx(expected, abs=1e-9, nan_ok=True)
            assert math.isnan(expected) == math.isnan(chance[t])


@pytest.mark.processors
@given(st.lists(st.integers(-1, 2), min_size=1, max_size=6), st.integers(1, 7))
def test_the_floor_is_the_mean_over_all_orders(groups, top):
    task = RankingTask(np.array([0]), np.arange(1, len(groups) + 1)[None], np.zeros((1, len(groups)), bool))
    found = random_ndkl_per_target(task, np.array([0, *groups]), top=top)
    assert found == pytest.approx([reference.random_ndkl(groups, top)], nan_ok=True, abs=1e-12)


def test_a_random_embedding_sits_at_the_floor():
    rng = np.random.default_rng(0)
    candidates = np.stack([rng.permutation(np.arange(1, 2001))[:100] for _ in range(2000)])
    task = RankingTask(np.zeros(2000, np.int64), candidates, np.tile(np.arange(100) < 1, (2000, 1)))
    groups = rng.integers(0, 5, 2001)
    found, chance = ndkl_per_target(np.ones((2001, 2), np.float32), task, groups)
    assert found.mean() == pytest.approx(chance.mean(), rel=0.03) and found.mean() > 0.3


def blocks(num=240, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, num)
    linked = np.triu(rng.random((num, num)) < 0.03 + 0.12 * (codes[:, None] == codes), 1)
    graph = AttributedGraph("g", num, np.stack(np.nonzero(linked)).astype(np.int64), (attribute("x", codes),))
    z = rng.normal(size=(num, 3)).astype(np.float32) * 0.5
    z[:, 0] += 2.0 * codes - 1.0
    return graph, z


def test_rows_of_a_segregated_embedding():
    graph, z = blocks()
    audit = audit_embedding(z, graph, split_links(graph), attackers=[])
    row = audit.find(metric="ndkl")
    assert row.floor_random < row.ci_low <= row.value <= row.ci_high and row.variant == "held-out"
    gap = audit.find(metric="ndcg_gap")
    assert gap.value == pytest.approx(abs(gap.cells[0].value - gap.cells[1].value)) and gap.n == sum(
        c.n for c in gap.cells
    )
    assert gap.ci_low == 0.0 and gap.p_value > 0.001 and 0 < gap.floor_random < 0.2
    plain = audit.find(metric="ndcg_at_10", variant="held-out")
    assert plain.value == pytest.approx(sum(c.value * c.n for c in gap.cells) / gap.n)


def test_one_group_is_ranked_worse():
    # The links of group 1 are random to its embedding, those of group 0 follow it.
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 3)).astype(np.float32) * 2
    codes = (np.arange(400) >= 200).astype(np.int64)
    score = z @ z.T
    chance = np.where((codes[:, None] + codes) == 0, 0.2 * (score > 4), 0.06 * (codes[:, None] == codes))
    edges = np.stack(np.nonzero(np.triu(rng.random((400, 400)) < chance, 1))).astype(np.int64)
    graph = AttributedGraph("g", 400, edges, (attribute("x", codes),))
    gap = audit_embedding(z, graph, split_links(graph), attackers=[]).find(metric="ndcg_gap")
    assert gap.ci_low > gap.floor_random and gap.p_value < 0.01 and gap.note.startswith("highest a")


def test_without_a_split_the_rows_stand_and_say_why():
    graph, z = blocks()
    for metric in ("ndkl", "ndcg_gap"):
        row = audit_embedding(z, graph, None, attackers=[]).find(metric=metric)
        assert row.value is None and row.evidence == "insufficient" and "held out" in row.note


def test_weights_that_rest_on_a_few_lists_are_no_evidence():
    graph, z = blocks()
    split = split_links(graph)
    weight = np.full(split.test.shape[1], 1e-3, np.float32)
    weight[:4] = 100.0
    kwargs = {"attackers": [], "bias_free": {"x": BiasFree(weight)}}
    row = audit_embedding(z, graph, split, **kwargs).find(metric="ndcg_at_10_bias_free")
    # Two of a node's held-out edges at most are among the four, which leaves no more than eight lists.
    assert row.value is None and row.evidence == "insufficient" and "lists count as" in row.note
    kwargs["bias_free"] = {"x": BiasFree(np.ones_like(weight))}
    even = audit_embedding(z, graph, split, **kwargs).find(metric="ndcg_at_10_bias_free")
    assert even.value is not None and f"weighted lists count as {even.n:,.1f} of equal weight" in even.note


def test_the_interval_is_a_jackknife_over_people():
    rng = np.random.default_rng(0)
    num = 60
    edges = np.unique(np.sort(rng.integers(0, num, (2, 300)), axis=0), axis=1)
    graph = AttributedGraph("g", num, edges[:, edges[0] < edges[1]], (attribute("a", rng.integers(0, 3, num)),))
    z = rng.normal(size=(num, 2)).astype(np.float32)
    task, codes = ranking_task(graph, graph.edges[:, ::4], num_candidates=12), graph.attributes[0].codes
    block = np.random.default_rng([7, 36]).permutation(num) % BLOCKS
    means = []
    for j in range(BLOCKS):
        lists = []
        for t, u in enumerate(task.targets.tolist()):
            order = sorted((v for v in task.candidates[t].tolist() if v >= 0), key=lambda v: -reference.dot(z, u, v))
            if block[u] != j:
                lists.append(reference.ndkl([-1 if block[v] == j else int(codes[v]) for v in order], top=10))
        means.append(np.nanmean(lists))
    error = math.sqrt((BLOCKS - 1) / BLOCKS * sum((m - np.mean(means)) ** 2 for m in means))
    assert half_width(z, task, codes, seed=7) == pytest.approx(2.0930 * error, rel=1e-4)  # t with 19 degrees


def ndkl_coverage(trials, num=400):
    values, halves = [], []
    for trial in range(trials):
        rng = np.random.default_rng([5, trial])
        codes, z, activity = people(rng, num, 0.5)
        edges = links(rng, z, activity, 16.0)
        graph = AttributedGraph("drawn", num, edges)
        task = ranking_task(graph, edges[:, rng.random(edges.shape[1]) < 0.15], seed=trial)
        values.append(np.nanmean(ndkl_per_target(z, task, codes, seed=trial)[0]))
        halves.append(half_width(z, task, codes, seed=trial))
    return np.mean(np.abs(np.array(values) - np.mean(values)) <= np.array(halves))


@pytest.mark.slow
def test_ndkl_coverage_in_few_trials():
    assert 0.85 <= ndkl_coverage(40, num=250) <= 1.0


@pytest.mark.acceptance
def test_ndkl_coverage():
    share = ndkl_coverage(2000)
    print("ndkl", share)
    assert 0.93 <= share <= 0.97
