"""DP and EO of held-out edges beside pairs without an edge: by loops, against scikit-learn, and where nothing differs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from strategies import attribute, graphs

from uge_core.audit import pair_sample
from uge_core.audit.parity import listed_cells
from uge_core.audit.run import audit_embedding
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import split_links


def sampled(graph, most=10**6, seed=0):
    split = split_links(graph, seed=0)
    return split, pair_sample.sample_pairs(graph, split, most=most, seed=seed)


@given(graphs(unknown=True), st.integers(0, 99))
def test_small_graphs_count_every_pair_without_an_edge(graph, seed):
    split, sample = sampled(graph)
    edges = {tuple(sorted(e)) for e in graph.edges.T.tolist()}
    n, users = graph.num_nodes, graph.num_users
    free = {(u, v) for u in range(users or n) for v in range(max(u + 1, users or 0), n)} - edges
    if sample is None:
        assert not free or not split.test.size
        return
    held = sample.num_edges
    assert sorted(map(tuple, sample.pairs[:, held:].T.tolist())) == sorted(free)
    assert {tuple(p) for p in sample.pairs[:, :held].T.tolist()} == {tuple(sorted(e)) for e in split.test.T.tolist()}
    assert (sample.weight == 1).all()


def test_a_sample_has_no_edge_no_pair_twice_and_stands_for_all():
    graph = town()
    split, sample = sampled(graph, most=2000)
    free = sample.pairs[:, sample.num_edges :]
    edges = set(map(tuple, graph.edges.T.tolist()))
    listed = set(map(tuple, free.T.tolist()))
    assert len(listed) == 2000 and not listed & edges and (free[0] < free[1]).all()
    n = graph.num_nodes
    assert sample.weight.sum() == pytest.approx(n * (n - 1) / 2 - graph.num_edges + split.test.shape[1])
    assert np.array_equal(sample.pairs, sampled(graph, most=2000)[1].pairs)
    assert not np.array_equal(sample.pairs, sampled(graph, most=2000, seed=1)[1].pairs)


def town(num_nodes=400, seed=0):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, num_nodes, (2, 12 * num_nodes)), axis=0)
    edges = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    return AttributedGraph("town", num_nodes, edges, (attribute("city", rng.integers(0, 3, num_nodes).tolist()),))


def test_items_are_paired_with_users_alone():
    rng = np.random.default_rng(0)
    edges = np.unique(np.stack([rng.integers(0, 300, 2000), rng.integers(300, 420, 2000)]), axis=1)
    graph = AttributedGraph("b", 420, edges, num_users=300)
    for most in (10**6, 500):
        _, sample = sampled(graph, most=most)
        assert (sample.pairs[0] < 300).all() and (sample.pairs[1] >= 300).all()
        assert sample.weight.sum() - sample.num_edges == pytest.approx(300 * 120 - graph.num_edges)


def test_cells_and_relative_dp_against_loops_and_scikit_learn():
    graph = town()
    _, sample = sampled(graph, most=3000)
    rng = np.random.default_rng(1)
    z = (rng.normal(size=(graph.num_nodes, 4)) + graph.attributes[0].codes[:, None] * 0.4).astype(np.float32)
    scores = pair_sample.scores(z, sample.pairs).round(1)  # with ties
    codes = graph.attributes[0].codes
    cell = np.sort(codes[sample.pairs], axis=0)
    table = listed_cells(1 / (1 + np.exp(-scores)), sample.pairs, codes, graph, sample.weight)
    place = sample.place(scores, sample.weight)
    ranks = listed_cells(place, sample.pairs, codes, graph, sample.weight)
    for c, (a, b) in enumerate(zip(table.a, table.b, strict=True)):
        mine = (cell[0] == a) & (cell[1] == b)
        assert table.mean[c] == pytest.approx(np.average(1 / (1 + np.exp(-scores[mine])), weights=sample.weight[mine]))
        share = ranks.mass[c] / ranks.mass.sum()
        area = (ranks.mean[c] - share / 2) / (1 - share)
        assert area == pytest.approx(roc_auc_score(mine, scores, sample_weight=sample.weight), abs=1e-9)


def test_half_of_a_balanced_set_is_predicted():
    graph = town()
    _, sample = sampled(graph, most=3000)
    scores = np.random.default_rng(2).normal(size=len(sample.weight))
    scores[: sample.num_edges] += 1.5
    predicted, threshold = sample.predicted(scores)
    edges, others = predicted[: sample.num_edges].mean(), predicted[sample.num_edges :].mean()
    assert edges + others == pytest.approx(1.0, abs=0.01) and edges > 0.7
    assert np.array_equal(predicted == 1, scores >= threshold)


def test_rows_of_an_audit():
    graph = town(200)
    split = split_links(graph, seed=0)
    z = np.random.default_rng(0).normal(size=(graph.num_nodes, 4)).astype(np.float32)
    audit = audit_embedding(z, graph, split, attackers=[])
    whole = audit.find(metric="dp", variant=None)
    test_set = audit.find(metric="dp", variant="test-set")
    # A 200-node graph has 19,900 pairs, all of which count: they miss the training edges alone.
    assert test_set.value == pytest.approx(whole.value, abs=0.02)
    assert [c.a for c in test_set.cells] == [c.a for c in whole.cells]
    for metric, variant in (("dp", "thresholded"), ("eo", "thresholded"), ("dp", "relative")):
        row = audit.find(metric=metric, variant=variant)
        assert row.ci_low <= row.value <= row.ci_high and row.n and row.note
    assert not audit_embedding(z, graph, None, attackers=[]).select(variant="relative")


def p_value(seed):
    graph = town(300, seed)
    z = np.random.default_rng([seed, 1]).normal(size=(300, 4)).astype(np.float32)
    audit = audit_embedding(z, graph, split_links(graph, seed=0), parts=["parity"], seed=seed)
    return audit.find(metric="dp", variant="relative").p_value, audit.find(metric="dp", variant="thresholded").p_value


@pytest.mark.slow
def test_no_difference_is_found_no_more_often_than_it_says():
    """Embeddings that know no attribute: p is below .1 in a tenth of the trials at most, within Monte-Carlo error."""
    found = np.array([p_value(seed) for seed in range(30)])
    assert ((found <= 0.1).mean(axis=0) <= 0.1 + 2.6 * np.sqrt(0.1 * 0.9 / len(found))).all()
