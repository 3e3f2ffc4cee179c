"""Maximum-entropy priors: a slow fit over all pairs, cases by hand, sums met, and the bars on real graphs."""

import time
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import maximum_entropy
from strategies import graphs
from toys import expected, observed, popular_town, sigmoid

from uge_core import load
from uge_core.debias.priors import SLIVER, Prior, block_totals, degree_by_group
from uge_core.graph.graph import simple_edges
from uge_core.graph.split import split_links


def shape(graph):
    """Sides, groups by gender (items a group of their own) and the pairs that may be linked."""
    n, users = graph.num_nodes, graph.num_users
    side = np.zeros(n, np.int64)
    if users is not None:
        side[users:] = 1
    group = np.unique(np.stack([side, graph.attributes[0].codes]), axis=1, return_inverse=True)[1].reshape(-1)
    pairs = combinations(range(n), 2) if users is None else product(range(users), range(users, n))
    return side, group.astype(np.int64), list(pairs)


def probabilities(prior, pairs):
    return sigmoid(prior.logit(*np.array(pairs).T))


def summed(edges, sums_of, pairs):
    wanted = {s: 0 for p in pairs for s in sums_of(p)}
    for pair in edges.T.tolist():
        for s in sums_of(tuple(pair)):
            wanted[s] += 1
    return wanted


@given(graphs(attributes=1))
def test_degrees_by_group_equal_the_fit_over_all_pairs(graph):
    side, group, pairs = shape(graph)
    prior = degree_by_group(group, side, graph.edges)

    def sums_of(pair):
        i, j = pair
        return (i, "to", int(group[j])), (j, "to", int(group[i]))

    slow = maximum_entropy(pairs, sums_of, summed(graph.edges, sums_of, pairs))
    # a pair without a chance has a sliver of its block's edges; a certain one lacks what the tolerance allows
    np.testing.assert_allclose(probabilities(prior, pairs), [slow[p] for p in pairs], atol=5e-3)


@given(graphs(attributes=1))
def test_degrees_equal_the_fit_over_all_pairs(graph):
    side, _, pairs = shape(graph)
    slow = maximum_entropy(pairs, lambda p: p, summed(graph.edges, lambda p: p, pairs))
    fast = probabilities(degree_by_group(side, side, graph.edges), pairs)
    np.testing.assert_allclose(fast, [slow[p] for p in pairs], atol=5e-3)


@given(graphs(attributes=1, min_nodes=8))
def test_block_totals_equal_the_fit_over_all_pairs(graph):
    side, group, pairs = shape(graph)

    def sums_of(pair):
        i, j = pair
        return i, j, ("block", *sorted((int(group[i]), int(group[j]))))

    prior = block_totals(group, side, graph.edges)
    slow = maximum_entropy(pairs, sums_of, summed(graph.edges, sums_of, pairs))
    np.testing.assert_allclose(probabilities(prior, pairs), [slow[p] for p in pairs], atol=2e-2)


@given(graphs(attributes=1), st.sampled_from([0.0, 0.3, 1.0]))
def test_every_logit_is_a_number(graph, smoothing):
    side, group, pairs = shape(graph)
    # alternating passes are slow where a node is linked to all, a star's centre
    for fit, bound in ((degree_by_group, 1e-3), (block_totals, 1e-2)):
        prior = fit(group, side, graph.edges, smoothing)
        logit = prior.logit(*np.array(pairs).T)
        assert np.isfinite(logit).all() and np.abs(prior.node_offset).max() < 250 and np.isfinite(prior.error)
        if smoothing == 0.0:
            assert prior.error < bound


def squares():
    """Groups of four: a ring within the one, two couples within the other, each node one friend across."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (6, 7), (0, 4), (1, 5), (2, 6), (3, 7)]
    edges, _, _ = simple_edges(*np.array(edges).T, 8)
    return np.repeat([0, 1], 4), np.zeros(8, np.int64), edges


def test_by_hand():
    # all of a group are alike: 2 of 3 within the one, 1 of 3 within the other, 1 of 4 across
    group, side, edges = squares()
    prior = degree_by_group(group, side, edges)
    logit = prior.logit(np.array([0, 4, 0]), np.array([2, 7, 6]))
    np.testing.assert_allclose(logit, np.log([2, 1 / 2, 1 / 3]), atol=1e-4)
    assert prior.error < 1e-4 and prior.saturated == ()
    # degrees 3 and 2 alone. Of 7 partners a node of degree 3 has three alike and four of the other kind
    p = sigmoid(degree_by_group(side, side, edges).logit(np.array([0, 4, 0]), np.array([2, 7, 6])))
    np.testing.assert_allclose([3 * p[0] + 4 * p[2], 3 * p[1] + 4 * p[2]], [3, 2], rtol=1e-4)
    assert p[0] > p[2] > p[1]
    # here block totals say as much as degrees by group
    np.testing.assert_allclose(block_totals(group, side, edges).logit(*edges), prior.logit(*edges), atol=1e-3)


def test_bounds_by_hand():
    # 0-1-2-3 in halves: each half is its only pair, and across 1-2 is the only pair with neighbours on both ends
    edges, _, _ = simple_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), 4)
    prior = degree_by_group(np.array([0, 0, 1, 1]), np.zeros(4, np.int64), edges)
    p = probabilities(prior, [(0, 1), (2, 3), (1, 2), (0, 2), (1, 3), (0, 3)])
    assert (p[:3] > 1 - 1e-4).all() and (p[3:] < 2 * SLIVER).all() and np.isfinite(prior.node_offset).all()
    assert [(s.a, s.b) for s in prior.saturated] == [(0, 0), (0, 1), (1, 1)]
    assert all(s.highest > 0.99 and s.error < 1e-3 for s in prior.saturated)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_sums_are_met(smoothing):
    group, side, edges = popular_town()
    seen = observed(group, edges, 3)
    by_group = degree_by_group(group, side, edges, smoothing)
    totals = block_totals(group, side, edges, smoothing)
    share = np.stack([seen[group == a].sum(0) for a in range(3)])
    wanted = (1 - smoothing) * seen + smoothing * seen.sum(1, keepdims=True) * (share / share.sum(1, keepdims=True))[
        group
    ]
    assert by_group.error < 1e-3 and totals.error < 1e-3
    np.testing.assert_allclose(expected(by_group), wanted, rtol=2e-3, atol=1e-2)
    # either keeps each node's degree and what the groups share; the untouched graph's sums would not do for both
    for prior in (by_group, totals):
        np.testing.assert_allclose(expected(prior).sum(1), seen.sum(1), rtol=2e-3, atol=2e-2)
    blocks = np.stack([expected(totals)[group == a].sum(0) for a in range(3)])
    at_random = np.outer(share.sum(1), share.sum(1)) / share.sum()
    np.testing.assert_allclose(blocks, (1 - smoothing) * share + smoothing * at_random, rtol=2e-3)
    assert np.abs(expected(totals) - seen).max() > 1


def test_a_shuffled_attribute_leaves_the_degree_prior():
    group, side, edges = popular_town()
    rng = np.random.default_rng(1)
    degrees = degree_by_group(side, side, edges)
    i, j = rng.integers(0, len(group), (2, 20_000))

    def apart(prior):
        return np.abs(prior.logit(i, j) - degrees.logit(i, j)).mean()

    shuffled = rng.permutation(group)
    assert apart(block_totals(shuffled, side, edges)) < 0.1 < 0.5 < apart(block_totals(group, side, edges))
    # by group a node's own three numbers are chance too; smoothed away they leave what block totals leave
    assert apart(degree_by_group(shuffled, side, edges, smoothing=0.999)) < 0.1
    assert apart(degree_by_group(shuffled, side, edges)) < apart(degree_by_group(group, side, edges))


def test_one_group_is_the_degree_prior_whatever_the_form():
    _, side, edges = popular_town()
    pairs = np.random.default_rng(0).integers(0, len(side), (2, 5_000))
    np.testing.assert_allclose(
        block_totals(side, side, edges).logit(*pairs), degree_by_group(side, side, edges).logit(*pairs), atol=1e-2
    )


def test_nodes_without_an_edge_stay_finite():
    side = np.zeros(6, np.int64)
    edges = np.array([[0, 1], [1, 2]])
    group = np.array([0, 0, 1, 1, 2, 2])
    for prior in (
        degree_by_group(group, side, edges),
        block_totals(group, side, edges),
        degree_by_group(side, side, edges),
    ):
        assert isinstance(prior, Prior)
        pairs = np.array(list(combinations(range(6), 2))).T
        logit = prior.logit(*pairs)
        assert np.isfinite(logit).all() and (logit[(pairs >= 3).any(0)] < -5).all()


@given(st.integers(0, 10_000))
def test_names_of_groups_do_not_matter(seed):
    group, side, edges = popular_town(60, seed=seed)
    swapped = degree_by_group(2 - group, side, edges)
    pairs = np.random.default_rng(seed).integers(0, 60, (2, 200))
    p, q = sigmoid(swapped.logit(*pairs)), sigmoid(degree_by_group(group, side, edges).logit(*pairs))
    np.testing.assert_allclose(p, q, atol=2e-3)


@pytest.mark.alone
@pytest.mark.realdata
@pytest.mark.parametrize(("attribute", "seconds"), [("region", 5), ("AGE", 30)])
def test_pokec(shared_data, attribute, seconds):
    # guards against a hang: five times the bars of two quiet cores
    graph = load(shared_data("pokec-n"))
    edges = split_links(graph).train
    codes = graph.attribute(attribute).codes
    group = np.where(codes < 0, graph.attribute(attribute).num_values, codes)
    group = np.unique(group, return_inverse=True)[1].reshape(-1)
    side = np.zeros(graph.num_nodes, np.int64)
    degree_by_group(*popular_town(60))  # compiles
    started = time.monotonic()
    prior = degree_by_group(group, side, edges)
    assert time.monotonic() - started < 5 * seconds
    missed = {(s.a, s.b) for s in prior.saturated if s.error > 1e-3}
    seen, groups = observed(group, edges, int(group.max()) + 1), int(group.max()) + 1
    rng = np.random.default_rng(0)
    everyone = np.arange(graph.num_nodes)
    for i in rng.choice(graph.num_nodes, 50):
        p = sigmoid(prior.logit(np.full(graph.num_nodes, i), everyone))
        p[i] = 0.0
        found = np.bincount(group, p, groups)
        for b in range(groups):
            if seen[i, b] > 0 and (min(group[i], b), max(group[i], b)) not in missed:
                assert found[b] == pytest.approx(seen[i, b], rel=2e-3), (i, b)
