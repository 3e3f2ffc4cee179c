from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs

from uge_core.errors import GraphError
from uge_core.graph import graph as graph_module
from uge_core.graph.graph import AttributedGraph, directions_of, simple_edges, weights_of


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_simple_edges_are_the_set_of_unordered_pairs(pairs):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    edges, loops, repeats = simple_edges(array[:, 0], array[:, 1], 7)
    wanted = {tuple(sorted(p)) for p in pairs if p[0] != p[1]}
    assert {tuple(map(int, e)) for e in edges.T} == wanted and edges.shape[1] == len(wanted)
    assert loops == sum(a == b for a, b in pairs) and loops + repeats + len(wanted) == len(pairs)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), max_size=40), st.booleans())
def test_rows_of_an_edge_give_its_weight_and_direction(rows, directed):
    source, target, weight = np.array(rows, np.int64).reshape(-1, 3).T
    edges, _, _ = simple_edges(source, target, 6)
    weights = weights_of(edges, source, target, weight, 6, directed=directed)
    directions = directions_of(edges, source, target, 6)
    assert (weights.dtype, directions.dtype) == (np.float32, np.int8)
    for i, (u, v) in enumerate(edges.T.tolist()):
        up, down = (sum(w for a, b, w in rows if (a, b) == pair) for pair in ((u, v), (v, u)))
        assert directions[i] == (up > 0) - (down > 0)
        assert weights[i] == (up + down) / (2 if directed and up and down else 1)


EDGES = np.array([[0, 1], [1, 2]])
FLOATS, WAYS = np.float32, np.int8


@pytest.mark.parametrize(
    ("edges", "extra", "says"),
    [
        (np.zeros((2, 0), np.int64), {}, "no edge between two different nodes"),
        (np.array([[0], [0]]), {}, "without self-loops"),
        (np.array([[1], [0]]), {}, "smaller end first"),
        (np.array([[0, 0], [1, 1]]), {}, "stands twice"),
        (np.array([[0], [7]]), {}, "allowed: 0 to 2"),
        (EDGES.astype(float), {}, "int64 array of shape"),
        (EDGES, {"num_users": 2}, "stays on one side"),
        (EDGES, {"edge_weights": np.array([1, 2], FLOATS)[:1]}, "edge_weights needs 2 float32"),
        (EDGES, {"edge_weights": np.array([1.0, 2.0])}, "edge_weights needs 2 float32 numbers, found float64"),
        (EDGES, {"edge_weights": np.array([1, 0], FLOATS)}, r"1 edge weights are not allowed, first: 0\.0"),
        (EDGES, {"edge_weights": np.array([np.nan, -1], FLOATS)}, "2 edge weights are not allowed, first: nan"),
        (EDGES, {"directions": np.array([1, 0])}, "directions needs 2 int8 numbers, found int64"),
        (EDGES, {"directions": np.array([1, 2], WAYS)}, "directions holds 1 to 2; allowed"),
        (EDGES[:, 1:], {"directions": np.array([1], WAYS), "num_users": 2}, "bipartite graph have no direction"),
        (EDGES, {"attributes": (attribute("a", [0, 1]),)}, "needs 3 int64 codes"),
        (EDGES, {"attributes": (attribute("a", [0, 1, 1]), attribute("A", [0, 1, 1]))}, "two attributes are called A"),
    ],
)
def test_contradictions_are_refused(edges, extra, says):
    with pytest.raises(GraphError, match=says):
        AttributedGraph("g", 3, edges, **extra)


def test_names_match_without_case_and_the_fingerprint_is_of_the_content():
    a = AttributedGraph("g", 3, EDGES, (attribute("Gender", [0, 1, 1]),))
    b = AttributedGraph("other name", 3, EDGES[:, ::-1].copy(), (attribute("Gender", [0, 1, 1]),))
    c = AttributedGraph("g", 3, EDGES, (attribute("Gender", [1, 1, 0]),))
    assert a.attribute("gENDER").name == "Gender"
    assert a.fingerprint == b.fingerprint != c.fingerprint


@given(graphs())
def test_edge_index_holds_both_directions(graph):
    assert graph.edge_index.shape == (2, 2 * graph.num_edges)
    assert (np.bincount(graph.edge_index[0], minlength=graph.num_nodes) == graph.degree).all()


def test_weights_and_directions_are_part_of_the_fingerprint_where_there_are_any():
    weights, ways = np.array([1, 2], FLOATS), np.array([1, 0], WAYS)
    plain = AttributedGraph("g", 3, EDGES)
    assert not plain.weighted and not plain.directed
    # unchanged by these fields having been added
    assert plain.fingerprint.startswith("465ff042a735")
    made = [
        {"edge_weights": weights},
        {"edge_weights": weights[::-1].copy()},
        {"directions": ways},
        {"directions": -ways},
        {"edge_weights": weights, "directions": ways},
    ]
    graphs = [AttributedGraph("g", 3, EDGES, **m) for m in made]
    assert graphs[0].weighted and graphs[2].directed
    assert len({g.fingerprint for g in (plain, *graphs)}) == 6
    turned = AttributedGraph(
        "g", 3, EDGES[:, ::-1].copy(), edge_weights=weights[::-1].copy(), directions=ways[::-1].copy()
    )
    assert turned.fingerprint == graphs[-1].fingerprint


@pytest.mark.parametrize("block", [1, 2, 7, 2**20])
@given(graphs(), st.integers(0, 99))
def test_the_order_of_edges_is_seen_in_blocks_and_is_no_part_of_the_fingerprint(block, graph, seed):
    order = np.random.default_rng(seed).permutation(graph.num_edges)
    beside = {
        name: None if (x := getattr(graph, name)) is None else x[order] for name in ("edge_weights", "directions")
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_module, "_BLOCK", block)
        again = replace(graph, edges=graph.edges[:, order], **beside)
        assert again._in_order == (order == np.sort(order)).all()
        assert again.fingerprint == graph.fingerprint
        twice = np.concatenate([graph.edges, graph.edges[:, :1]], axis=1)
        with pytest.raises(GraphError, match="an edge stands twice"):
            AttributedGraph("g", graph.num_nodes, twice, num_users=graph.num_users)
