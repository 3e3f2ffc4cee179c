from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import balanced, ratio_weights, shrunk_weights
from strategies import attribute, graphs
from toys import PLAIN, inputs, path_graph

from uge_core.debias.bias_free import joint_weights, offset_cells, weight_cells
from uge_core.errors import ConfigError
from uge_core.graph.graph import UNKNOWN, AttributedGraph, simple_edges
from uge_core.graph.values import resolve_values


def test_path_by_hand():
    # 0-1-2-3 with genders a a b b. Ordered pairs with self-pairs: 4 each of aa, bb, and 8 of ab or ba
    # out of 16; edges in both directions: aa 2, bb 2, ab + ba 2 of 6. So R(aa) = (2/6)/(4/16) = 4/3,
    # R(ab) over one order = (1/6)/(4/16) = 2/3; nothing is non-sensitive, so R~ = 1 and w = 1/R.
    cells = weight_cells(inputs(path_graph()), **PLAIN)
    np.testing.assert_allclose(cells.edge_weight(path_graph().edges), [3 / 4, 3 / 2, 3 / 4], rtol=1e-6)
    offset = offset_cells(inputs(path_graph()), **PLAIN).offset
    np.testing.assert_allclose(np.exp(offset[:2, :2]), [[4 / 3, 2 / 3], [2 / 3, 4 / 3]], rtol=1e-6)


def test_two_attributes_by_hand():
    # gender a a b b a b, city X X X Y Y Y, edges 0-1 1-2 3-5 3-4 2-3 0-4; gender is sensitive.
    # City pair XX: edges 0-1, 1-2, so 4 of 12 directed; XX has 9 of 36 pairs, aaXX 4 pairs with 2
    # directed edges: w(0-1) = X/E = (4 * 4/9) / 2 = 8/9; abXX 2 pairs a way with 1: (4 * 2/9) / 1 = 8/9.
    # City pair XY a way holds 2 of 9 pairs: 2-3 is bb (1 x 2 pairs): (2 * 2/9) / 1 = 4/9, 0-4 is aa (2 x 1): 4/9.
    # Their mean is 20/27, as cells without an edge lose the rest: 8/9 and 4/9 over it are 6/5 and 3/5.
    graph = AttributedGraph(
        "six",
        6,
        np.array([[0, 1, 3, 3, 2, 0], [1, 2, 5, 4, 3, 4]]),
        (attribute("gender", [0, 0, 1, 1, 0, 1]), attribute("city", [0, 0, 0, 1, 1, 1])),
    )
    cells = weight_cells(inputs(graph), **PLAIN)
    np.testing.assert_allclose(cells.edge_weight(graph.edges), [6 / 5] * 4 + [3 / 5] * 2, rtol=1e-6)
    as_it_is = joint_weights(*inputs(graph).joint(), 0.0)
    np.testing.assert_allclose(as_it_is.edge_weight(graph.edges), [8 / 9] * 4 + [4 / 9] * 2, rtol=1e-6)


SENSITIVE = st.sampled_from([("gender",), ("city",), ("gender", "city")])


def labels(graph, sensitive):
    """Each node's whole combination of values, and that of its non-sensitive ones."""
    codes = {a.name: a.codes.tolist() for a in graph.attributes}
    # sides of a bipartite graph never share a group: items carry the code "not applicable" in every attribute
    side = [0 if graph.num_users is None or i < graph.num_users else 1 for i in range(graph.num_nodes)]
    rest = [c for n, c in codes.items() if n not in sensitive]
    return list(zip(*codes.values(), side, strict=True)), list(zip(*rest, side, strict=True))


@given(graphs(), SENSITIVE)
def test_weights_equal_the_exact_fractions(graph, sensitive):
    exact = ratio_weights(graph.num_nodes, graph.edges, *labels(graph, sensitive), graph.num_users)
    as_it_is = joint_weights(*inputs(graph, sensitive).joint(), 0.0).edge_weight(graph.edges)
    np.testing.assert_allclose(as_it_is, [float(w) for w in exact], rtol=1e-5)
    ours = weight_cells(inputs(graph, sensitive), **PLAIN).edge_weight(graph.edges)
    np.testing.assert_allclose(ours, [float(w) for w in balanced(exact)], rtol=1e-5)
    assert (ours > 0).all() and np.isfinite(ours).all()


@given(graphs(), SENSITIVE, st.sampled_from([1, 2, 7]))
def test_pseudo_edges_are_as_many_within_a_group_as_between_two(graph, sensitive, shrinkage):
    exact = shrunk_weights(graph.num_nodes, graph.edges, *labels(graph, sensitive), shrinkage, graph.num_users)
    options = {**PLAIN, "shrinkage": float(shrinkage)}
    ours = weight_cells(inputs(graph, sensitive), **options).edge_weight(graph.edges)
    np.testing.assert_allclose(ours, [float(w) for w in balanced(exact)], rtol=1e-5)
    offset = offset_cells(inputs(graph, sensitive), **options).edge_offset(graph.edges)
    np.testing.assert_allclose(offset, [-np.log(float(w)) for w in exact], rtol=1e-4, atol=1e-5)


@given(graphs())
def test_without_sensitive_attributes_every_weight_is_one(graph):
    np.testing.assert_allclose(weight_cells(inputs(graph, ()), **PLAIN).edge_weight(graph.edges), 1.0, rtol=1e-6)


@given(graphs(), SENSITIVE, st.booleans(), st.sampled_from([0.0, 2.0]))
def test_mean_weight_is_one(graph, sensitive, independence, shrinkage):
    cells = weight_cells(inputs(graph, sensitive), shrinkage=shrinkage, independence=independence, item_cells="none")
    found = cells.diagnostics(graph.edges)
    assert found["weight_mean"] == pytest.approx(1.0, abs=1e-5)
    assert found["effective_sample_size"] <= graph.num_edges * (1 + 1e-9)


@given(graphs())
def test_what_weights_lose_as_they_are_is_the_uncovered_mass(graph):
    found = joint_weights(*inputs(graph).joint(), 0.0).diagnostics(graph.edges)
    assert found["weight_mean"] == pytest.approx(1.0 - found["uncovered_mass"], abs=1e-5)


@given(graphs())
def test_weighted_edges_of_a_non_sensitive_cell_keep_their_number_when_covered(graph):
    cells = weight_cells(inputs(graph), **PLAIN)
    if cells.uncovered_mass > 0:
        return
    city = graph.attribute("city").codes
    u, v = graph.edges
    key = np.minimum(city[u], city[v]) * 10 + np.maximum(city[u], city[v])
    w = cells.edge_weight(graph.edges)
    for k in np.unique(key):
        assert w[key == k].sum() == pytest.approx((key == k).sum(), rel=1e-5)


@given(graphs())
def test_weighted_edges_per_pair_are_equal_inside_a_non_sensitive_cell(graph):
    """The claim of the method in finite form: no sensitive pair of groups is denser than another."""
    member = inputs(graph)
    _, counts = member.joint()
    weight = weight_cells(member, **PLAIN).weight[:-1, :-1]
    held = counts.edges > 0
    density = np.divide(counts.edges * weight, counts.pairs, out=np.zeros_like(counts.edges), where=held)
    cell = counts.coarse[:, None] * 100 + counts.coarse[None, :]
    for c in np.unique(cell[held]):
        inside = density[held & (cell == c)]
        np.testing.assert_allclose(inside, inside[0], rtol=1e-5)


@given(graphs(bipartite=False), st.randoms(use_true_random=False))
def test_renaming_values_and_permuting_nodes_changes_nothing(graph, random):
    order = list(range(graph.num_nodes))
    random.shuffle(order)
    order = np.array(order)
    place = np.argsort(order)
    shuffled, _, _ = simple_edges(place[graph.edges[0]], place[graph.edges[1]], graph.num_nodes)
    swapped = AttributedGraph(
        "p",
        graph.num_nodes,
        shuffled,
        tuple(attribute(a.name, (2 - a.codes)[order], num_values=3) for a in graph.attributes),
    )
    before = weight_cells(inputs(graph), **PLAIN).edge_weight(graph.edges)
    cells = weight_cells(inputs(swapped), **PLAIN)
    np.testing.assert_allclose(cells.edge_weight(place[graph.edges]), before, rtol=1e-5)
    np.testing.assert_allclose(cells.edge_weight(place[graph.edges[::-1]]), before, rtol=1e-5)


@given(graphs(bipartite=False))
def test_independence_is_the_product_of_one_attribute_ratios(graph):
    both = weight_cells(
        inputs(graph, ("gender", "city")), shrinkage=0.0, independence=True, item_cells="none"
    ).edge_weight(graph.edges)
    alone = []
    for name in ("gender", "city"):
        narrow = AttributedGraph("n", graph.num_nodes, graph.edges, (graph.attribute(name),))
        alone.append(weight_cells(inputs(narrow, (name,)), **PLAIN).edge_weight(graph.edges))
    product = alone[0] * alone[1]
    np.testing.assert_allclose(both, product / product.mean(), rtol=1e-4)


def test_shrinkage_pulls_a_ratio_towards_its_bias_free_rate():
    found = [
        np.exp(offset_cells(inputs(path_graph()), **{**PLAIN, "shrinkage": k}).offset[0, 0]) for k in (0.0, 2.0, 1e6)
    ]
    # one edge within a where 3/4 of one is expected: (1 + 2) / (3/4 + 2)
    np.testing.assert_allclose(found, [4 / 3, 3 / 2.75, 1.0], rtol=1e-5)


def test_uncovered_mass_by_hand():
    # genders a b, the only edge is ab: aa and bb hold no edge though each should hold a quarter
    graph = AttributedGraph("two", 2, np.array([[0], [1]]), (attribute("gender", [0, 1]),))
    cells = weight_cells(inputs(graph), **PLAIN)
    assert cells.uncovered_mass == pytest.approx(0.5)
    np.testing.assert_allclose(joint_weights(*inputs(graph).joint(), 0.0).edge_weight(graph.edges), [0.5])
    np.testing.assert_allclose(cells.edge_weight(graph.edges), [1.0])  # the one edge stands for all


def test_thin_mass_by_hand():
    # one group of 4 nodes expects all 5 edges in its cell, and none of 4; two groups of 2 expect 1 1/4, 2 1/2 and 1 1/4
    five = np.array([[0, 1, 2, 0, 0], [1, 2, 3, 3, 2]])
    for codes, edges, thin in (([0] * 4, five, 0.0), ([0] * 4, five[:, :4], 1.0), ([0, 0, 1, 1], five, 1.0)):
        graph = AttributedGraph("ring", 4, edges, (attribute("gender", codes),))
        assert weight_cells(inputs(graph), **PLAIN).thin_mass == thin


def test_held_out_edges_are_not_counted():
    graph = path_graph()
    train = graph.edges[:, :1]
    part, counts = inputs(graph, edges=train).joint()
    assert counts.edges.sum() == 2 and part.num_groups == 2


class TestUnknown:
    graph = AttributedGraph(
        "u",
        6,
        np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]),
        (attribute("gender", [0, 0, 1, 1, UNKNOWN, UNKNOWN], num_values=2),),
    )

    def test_level_is_a_group_of_its_own(self):
        part, counts = inputs(self.graph, unknown="level").joint()
        assert part.num_groups == 3 and counts.nodes.tolist() == [2, 2, 2]

    def test_exclude_takes_the_node_out_and_leaves_its_edges_alone(self):
        cells = weight_cells(inputs(self.graph, unknown="exclude"), **PLAIN)
        # nodes 0-3 form the path of the golden case; edges 3-4 and 4-5 touch an excluded node
        np.testing.assert_allclose(cells.edge_weight(self.graph.edges), [3 / 4, 3 / 2, 3 / 4, 1, 1], rtol=1e-6)

    def test_a_hidden_value_is_excluded_when_asked(self):
        hidden = np.array([True, False, False, False, False, False])
        values = resolve_values(
            self.graph.attributes[0],
            self.graph,
            self.graph.edges,
            unknown="level",
            hidden=hidden,
            hidden_policy="exclude",
            rng=np.random.default_rng(0),
        )
        assert values.codes.tolist() == [-1, 0, 1, 1, 2, 2] and values.fitted.tolist() == [False] + [True] * 5


class TestBipartite:
    graph = AttributedGraph(
        "b",
        7,
        np.array([[0, 0, 0, 1, 2, 2], [3, 4, 5, 3, 3, 6]]),
        (attribute("gender", [0, 0, 1, -2, -2, -2, -2], side="users", num_values=2),),
        num_users=3,
    )

    def test_without_item_cells_the_weight_is_one_constant_per_user_group(self):
        # gender a: 2 of 3 users with 4 of 6 edges, so R = 1; so is gender b's
        np.testing.assert_allclose(
            weight_cells(inputs(self.graph), **PLAIN).edge_weight(self.graph.edges), 1.0, rtol=1e-6
        )

    def test_popularity_deciles_are_by_training_degree(self):
        cells = inputs(self.graph).item_cells("popularity")
        assert cells[:3].tolist() == [-1] * 3 and cells[3] == cells[3:].max()

    def test_items_as_cells_make_weights_differ(self):
        cells = weight_cells(inputs(self.graph), shrinkage=0.0, independence=False, item_cells="popularity")
        assert len(np.unique(cells.edge_weight(self.graph.edges))) > 1

    def test_an_attribute_of_users_is_no_item_cell(self):
        with pytest.raises(ConfigError, match="not an attribute of items"):
            inputs(self.graph).item_cells("gender")


def test_too_many_groups_is_refused_with_a_remedy():
    n = 12000
    rng = np.random.default_rng(0)
    edges, _, _ = simple_edges(rng.integers(0, n, 900), rng.integers(0, n, 900), n)
    wide = [attribute(name, rng.permutation(n) % 71) for name in ("gender", "city")]
    graph = AttributedGraph("wide", n, edges, tuple(type(a)(a.name, a.codes, tuple(map(str, range(71)))) for a in wide))
    with pytest.raises(ConfigError, match=r"allowed: 4096.*--attributes"):
        weight_cells(inputs(graph), **PLAIN)


def test_no_node_with_every_value_is_refused_with_the_emptiest_attribute():
    graph = AttributedGraph(
        "halves",
        4,
        path_graph().edges,
        (
            attribute("gender", [0, UNKNOWN, 1, UNKNOWN]),
            attribute("city", [UNKNOWN, 0, UNKNOWN, UNKNOWN], num_values=2),
        ),
    )
    with pytest.raises(ConfigError, match="no node has a value of every attribute; city is given for 1 nodes"):
        weight_cells(inputs(graph, unknown="exclude"), **PLAIN)


@pytest.mark.parametrize(("unknown", "way"), [("exclude", "level or impute"), ("impute", "level")])
def test_who_is_refused_is_not_told_to_do_what_was_tried(unknown, way):
    known = np.arange(40) < 20
    columns = [np.where(has, np.arange(40) % 2, UNKNOWN) for has in (known, ~known)]
    named = zip(("gender", "city"), columns, strict=True)
    graph = AttributedGraph("halves", 40, np.array([[0], [1]]), tuple(attribute(n, c) for n, c in named))
    with pytest.raises(ConfigError, match=f"use --unknown {way}$"):
        weight_cells(inputs(graph, unknown=unknown), **PLAIN)


def test_independence_weights_have_mean_one_over_nodes_with_values():
    graph = TestUnknown.graph
    cells = weight_cells(inputs(graph, unknown="exclude"), shrinkage=0.0, independence=True, item_cells="none")
    assert cells.edge_weight(graph.edges[:, :3]).mean() == pytest.approx(1.0)
    assert cells.edge_weight(graph.edges[:, 3:]).tolist() == [1.0, 1.0]


def test_fractions_are_what_the_reference_returns():
    graph = path_graph()
    gender = graph.attributes[0].codes.tolist()
    assert ratio_weights(4, graph.edges, gender, [0] * 4) == [Fraction(3, 4), Fraction(3, 2), Fraction(3, 4)]
