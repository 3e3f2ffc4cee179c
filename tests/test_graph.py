import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs

from uge_core.errors import GraphError
from uge_core.graph import AttributedGraph, simple_edges


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_simple_edges_are_the_set_of_unordered_pairs(pairs):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    edges, loops, repeats = simple_edges(array[:, 0], array[:, 1], 7)
    wanted = {tuple(sorted(p)) for p in pairs if p[0] != p[1]}
    assert {tuple(map(int, e)) for e in edges.T} == wanted and edges.shape[1] == len(wanted)
    assert loops == sum(a == b for a, b in pairs) and loops + repeats + len(wanted) == len(pairs)


EDGES = np.array([[0, 1], [1, 2]])


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
