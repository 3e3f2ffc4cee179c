"""What Fairwalk, CrossWalk and FairDrop count each edge, against loops and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import crosswalk_boundary, crosswalk_chances, edge_factors, step_chances, transitions_of
from strategies import attribute, graphs
from toys import inputs

from uge_core.debias.fair_walks import FairSteps, sensitive_groups
from uge_core.debias.methods.crosswalk import CrossWalk, boundary
from uge_core.debias.methods.fairdrop import FairDrop
from uge_core.debias.methods.fairwalk import Fairwalk
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph


def drawn_weights(graph, seed=0):
    own = np.random.default_rng(seed).uniform(0.1, 5, graph.num_edges)
    return (own / own.mean()).astype(np.float32)


def drawn_directions(graph, seed=0):
    return np.random.default_rng(seed).integers(-1, 2, graph.num_edges).astype(np.int8)


@given(graphs(unknown=True), st.booleans(), st.booleans())
def test_fairwalk_is_a_fair_step_against_a_plain_one(graph, weighted, directed):
    own = drawn_weights(graph) if weighted else None
    ways = drawn_directions(graph) if directed else None
    known = replace(inputs(graph), weights=own, directions=ways)
    group = sensitive_groups(known)
    roads = transitions_of(graph.edges, graph.num_nodes, own, ways)
    chances = {u: step_chances(roads, u, group=group) for u in roads}
    factor = Fairwalk().edges(known).in_loss(1)
    np.testing.assert_allclose(factor, edge_factors(graph.edges, roads, chances), rtol=1e-5)
    assert directed or np.average(factor, weights=own) == pytest.approx(1, rel=1e-5)
    assert Fairwalk().edges(known).in_messages(1) is None


@given(
    graphs(bipartite=False),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(0.5, 2.0, 3), (0.9, 0.0, 1), (0.0, 1.0, 4), (1.0, 4.0, 2)]),
)
def test_crosswalk_is_a_step_by_its_weights_against_a_plain_one(graph, weighted, directed, settings):
    alpha, power, length = settings
    own = drawn_weights(graph) if weighted else None
    directions = drawn_directions(graph) if directed else None
    known = replace(inputs(graph), weights=own, directions=directions)
    group = sensitive_groups(known)
    roads = transitions_of(graph.edges, graph.num_nodes, own, directions)
    near = crosswalk_boundary(roads, group, length)
    steps = FairSteps(graph.edges, group, own, directions)
    np.testing.assert_allclose(boundary(steps, graph.num_nodes, length), near, rtol=1e-9)
    chances = {u: crosswalk_chances(roads, u, group, near, alpha, power) for u in roads}
    method = CrossWalk(alpha=alpha, power=power, boundary_length=length)
    factor = method.edges(known).in_loss(1)
    np.testing.assert_allclose(factor, edge_factors(graph.edges, roads, chances), rtol=1e-5)
    assert directed or np.average(factor, weights=own) == pytest.approx(1, rel=1e-5)
    # walks are drawn by the same weights
    ways = method.walks(known).weights
    for i, (u, v) in enumerate(graph.edges.T.tolist()):
        for way, (a, b) in enumerate(((u, v), (v, u))):
            exact = chances[a].get(b, 0.0) * sum(roads[a].values())
            assert ways[way, i] == pytest.approx(exact, rel=1e-9)


def hand():
    """0 knows 1, 2 and 3 of group a and 4 of group b; 4 knows 5 of b besides."""
    edges = np.array([[0, 0, 0, 0, 4], [1, 2, 3, 4, 5]])
    return AttributedGraph("hand", 6, edges, (attribute("group", [0, 0, 0, 0, 1, 1]),))


def test_fairwalk_by_hand():
    # from 0 a third of half the steps go to each of 1, 2, 3 and half to 4, of a quarter each: 2/3 and 2;
    # 1, 2, 3 and 5 have one way to go; 4 goes to 0 and 5 half and half, as a plain walk does
    known = inputs(hand(), ("group",))
    np.testing.assert_allclose(Fairwalk().edges(known).in_loss(1), [5 / 6, 5 / 6, 5 / 6, 3 / 2, 1])
    np.testing.assert_array_equal(Fairwalk().walks(known).groups, [0, 0, 0, 0, 1, 1])


def test_crosswalk_by_hand():
    # m after one step: 0 meets another group once in four, 4 once in two, the rest never
    known = inputs(hand(), ("group",))
    steps = FairSteps(known.train_edges, sensitive_groups(known))
    np.testing.assert_allclose(boundary(steps, 6, 1), [0.251, 0.001, 0.001, 0.001, 0.501, 0.001])
    # alpha = 3/4: from 0 a twelfth to 1, 2 and 3 each, three quarters to 4; from 4 three quarters to 0, a quarter to 5
    factor = CrossWalk(alpha=0.75, boundary_length=1).edges(known).in_loss(1)
    np.testing.assert_allclose(factor, [2 / 3, 2 / 3, 2 / 3, (3 + 1.5) / 2, 0.75])


def test_missing_values_are_a_group_of_their_own():
    graph = hand()
    graph = AttributedGraph("hand", 6, graph.edges, (attribute("group", [0, 0, -1, 0, 1, 1], num_values=2),))
    known = inputs(graph, ("group",), "exclude")
    groups = sensitive_groups(known)
    assert len(set(groups.tolist())) == 3 and (groups == groups[2]).sum() == 1
    # from 0: a third of the steps to 1 or 3, to 2, to 4
    np.testing.assert_allclose(Fairwalk().edges(known).in_loss(1), [5 / 6, 7 / 6, 5 / 6, 7 / 6, 1])


def test_fairdrop_keeps_mixed_edges_more_often():
    rng = np.random.default_rng(0)
    n = 2000
    left, right = rng.permutation(n)[:1000], rng.permutation(n)[:1000]
    keep = left != right
    edges = np.unique(np.sort(np.stack([left[keep], right[keep]]), axis=0), axis=1)
    group = rng.integers(0, 2, n)
    known = inputs(AttributedGraph("drop", n, edges, (attribute("group", group),)), ("group",))
    mixed = group[edges[0]] != group[edges[1]]
    for delta, every in ((0.0, 1), (0.3, 3), (0.5, 10)):
        factors = FairDrop(delta=delta, every=every).edges(known)
        masks = [factors.in_messages(e) for e in range(1, 31)]
        drawn = np.stack(masks[::every])
        for kind, chance in ((mixed, 0.5 + delta), (~mixed, 0.5 - delta)):
            share, count = drawn[:, kind].mean(), drawn[:, kind].size
            assert share == pytest.approx(chance, abs=4 * np.sqrt(0.25 / count))
        # one draw for `every` epochs, one object, then another
        assert all((masks[i] is masks[i - 1]) == (i % every > 0) for i in range(1, 30))
        loss = factors.in_loss(30)
        assert loss.mean() == pytest.approx(1, rel=1e-5)
        np.testing.assert_array_equal(loss > 0, factors.in_messages(30) > 0)
        again = FairDrop(delta=delta, every=every).edges(known)
        np.testing.assert_array_equal(again.in_messages(30), masks[29])
        other = FairDrop(delta=delta, every=every, draw_seed=1).edges(known)
        assert delta == 0.5 or (other.in_messages(30) != masks[29]).any()


def test_fairdrops_loss_is_the_mean_over_what_stays_by_the_edges_own_weights():
    graph = hand()
    own = np.array([4.0, 0.25, 0.25, 0.25, 0.25], np.float32)
    factors = FairDrop(every=1).edges(replace(inputs(graph, ("group",)), weights=own))
    for epoch in range(1, 30):
        assert np.average(factors.in_loss(epoch), weights=own) == pytest.approx(1, rel=1e-5)


def test_without_power_no_boundary_is_looked_for():
    assert CrossWalk(power=0.0).unread(False) == {"boundary_length"} and not CrossWalk().unread(False)
    known = inputs(hand(), ("group",))
    one, other = (CrossWalk(power=0.0, boundary_length=n).edges(known).in_loss(1) for n in (1, 9))
    np.testing.assert_array_equal(one, other)


@given(graphs(bipartite=True))
def test_bipartite_graphs_have_no_edge_between_people(graph):
    known = inputs(graph)
    for method in (CrossWalk(), FairDrop()):
        with pytest.raises(ConfigError, match="bipartite"):
            method.check(known, "cross-entropy")
    # a fair step to an item is a plain one
    steps = FairSteps(graph.edges, sensitive_groups(known))
    node = steps.block_node
    assert (np.bincount(node)[: graph.num_users] <= 1).all()


def test_fairdrop_refuses_to_drop_everything():
    graph = AttributedGraph("alike", 3, np.array([[0, 1], [1, 2]]), (attribute("group", [0, 0, 0], num_values=2),))
    with pytest.raises(ConfigError, match="delta"):
        FairDrop(delta=0.5).check(inputs(graph, ("group",)), "cross-entropy")
