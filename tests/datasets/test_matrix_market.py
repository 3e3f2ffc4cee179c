"""Matrix Market files, against the same graph as a table."""

import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from uge_core.datasets import load
from uge_core.errors import GraphError

NODES = "id,g\na,x\nb,y\nc,x\nd,y\n"
HEAD = "%%MatrixMarket matrix coordinate"
SYMMETRIC = f"{HEAD} pattern symmetric\n% made\n4 4 3\n2 1\n3 2\n4 3\n"
EDGES = [[0, 1, 2], [1, 2, 3]]


def mtx(matrix, **options) -> bytes:
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, matrix, **options)
    return buffer.getvalue()


def both_ways() -> sp.coo_array:
    return sp.coo_array((np.ones(6), ([0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2])), shape=(4, 4))


@pytest.mark.parametrize("name", ["town.mtx", "town.mtx.gz"])
def test_row_i_is_node_i(write, name):
    graph = load(write({"nodes.csv": NODES, name: SYMMETRIC}))
    assert (graph.layout, graph.edges.tolist(), graph.ids([0, 3])) == ("matrix-market", EDGES, ["a", "d"])
    assert graph.attribute("g").codes.tolist() == [0, 1, 0, 1]
    assert not graph.directed and not graph.weighted
    assert not {m.code for m in graph.messages} & {"half-stored", "duplicate-edges"}


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
def test_what_scipy_writes(write, field, symmetry):
    graph = load(write({"nodes.csv": NODES, "g.mtx": mtx(both_ways(), field=field, symmetry=symmetry)}))
    assert graph.edges.tolist() == EDGES and not graph.directed and not graph.weighted


def test_either_half_of_a_symmetric_matrix(write):
    for row in ("1 2 7", "2 1 7"):
        graph = load(write({"nodes.csv": NODES, "g.mtx": f"{HEAD} real symmetric\n4 4 2\n{row}\n3 2 1\n"}))
        assert graph.edge_weights.tolist() == [7, 1] and not graph.directed


def test_dense(write):
    graph = load(write({"nodes.csv": NODES, "g.mtx": mtx(both_ways().toarray())}))
    assert graph.edges.tolist() == EDGES


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_weights(write, symmetry):
    matrix = both_ways()
    matrix.data = np.array([1.0, 2.0, 4.0] * 2)
    graph = load(write({"nodes.csv": NODES, "g.mtx": mtx(matrix, symmetry=symmetry)}))
    assert graph.edge_weights.tolist() == [1, 2, 4]


def test_directions_are_those_of_the_matrix(write):
    graph = load(write({"nodes.csv": NODES, "g.mtx": f"{HEAD} pattern general\n4 4 3\n1 2\n3 2\n4 3\n"}))
    assert graph.directed and graph.edges.tolist() == EDGES


def test_numbers_in_order_are_ids(write):
    for first in (0, 1):
        nodes = "id,g\n" + "".join(f"{first + i},{'xy'[i % 2]}\n" for i in range(4))
        assert load(write({"nodes.csv": nodes, "g.mtx": SYMMETRIC})).ids([0]) == [str(first)]


def test_several_are_named(write):
    folder = write({"nodes.csv": NODES, "a.mtx": SYMMETRIC, "b.mtx": SYMMETRIC})
    with pytest.raises(GraphError, match="2 graphs in one folder"):
        load(folder)
    assert load(f"{folder}:b").num_edges == 3


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"g.mtx": "1 2\n"}, "g.mtx: does not begin with %%MatrixMarket"),
        ({"g.mtx": f"{HEAD} pattern general\n4 3 1\n1 2\n"}, "g.mtx: found a matrix of 4 rows and 3 columns"),
        ({"g.mtx": f"{HEAD} complex general\n4 4 1\n1 2 1 0\n"}, "g.mtx: found complex numbers"),
        ({"g.mtx": f"{HEAD} real skew-symmetric\n4 4 1\n2 1 1\n"}, "g.mtx: found a skew-symmetric matrix"),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 1000000000000\n1 2\n"}, "g.mtx: claims 1,000,000,000,000 entries"),
        ({"g.mtx": "%%MatrixMarket matrix array real general\n4000000 4000000\n1\n"}, "g.mtx: claims "),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 2\n1 2           \n"}, "g.mtx: cannot be read as Matrix Market"),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 1\n1 5\n"}, "g.mtx: cannot be read as Matrix Market"),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 1\n0 2\n"}, "g.mtx: cannot be read as Matrix Market"),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 1\n1 x\n"}, "g.mtx: cannot be read as Matrix Market"),
        ({"g.mtx": f"{HEAD} pattern symmetric\n4 4 3\n2 1\n3 2null4 "}, "g.mtx: cannot be read as Matrix Market"),
        ({"g.mtx": f"{HEAD} pattern general\n4 4 1\n1 2 3\n"}, "g.mtx: cannot be read as Matrix Market (line 1 of"),
        ({"g.mtx": f"{HEAD} real general\n4 4 1\n1 2 -3\n"}, "g.mtx: 1 value that cannot be a weight"),
        ({"g.mtx": f"{HEAD} pattern general\n5 5 1\n1 2\n"}, "nodes.csv: 4 rows, but the matrix in g.mtx has 5"),
        (
            {"g.mtx": f"{HEAD} real symmetric\n4 4 3\n2 1 3\n1 2 3\n3 2 1\n"},
            "g.mtx: the matrix is called symmetric, but 1 pair of nodes stands in it more than once",
        ),
        ({"g.mtx.gz": b"no gzip"}, "g.mtx.gz: is not gzip data"),
        (
            {"g.mtx": SYMMETRIC, "nodes.csv": "id,g\n2,x\n1,y\n3,x\n4,y\n"},
            "nodes.csv: column 'id' counts the nodes in another order than the rows, first: row 1 is 2",
        ),
    ],
)
def test_refused(write, files, text):
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": NODES, **files}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_a_first_column_that_counts_otherwise(write):
    matrix = f"{HEAD} pattern symmetric\n10 10 2\n2 1\n3 2\n"
    rows = "".join(f"{(i + 3) % 10},{'xy'[i % 2]}\n" for i in range(10))
    with pytest.raises(GraphError, match=r"nodes.csv: column 'person' counts the nodes in another order"):
        load(write({"g.mtx": matrix, "nodes.csv": "person,g\n" + rows}))
    few = load(write({"g.mtx": SYMMETRIC, "nodes.csv": "grown,g\n3,x\n1,y\n2,x\n0,y\n"}))
    assert [a.name for a in few.attributes] == ["grown", "g"]


def test_nodes_are_needed(write):
    with pytest.raises(GraphError, match=r"nodes.csv"):
        load(write({"g.mtx": SYMMETRIC}))


def test_too_large(write, monkeypatch):
    monkeypatch.setenv("UGE_MAX_UNPACKED", "120")
    with pytest.raises(GraphError, match=r"g.mtx: has more than the 60 bytes"):
        load(write({"nodes.csv": NODES, "g.mtx": SYMMETRIC}))


def test_a_byte_order_mark(write):
    matrix = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"
    graph = load(write({"a.mtx": b"\xef\xbb\xbf" + matrix, "nodes.csv": "g\nx\ny\nx\n"}))
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


def test_a_line_of_more_than_an_entry_is_not_parsed(write):
    text = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n" + "1 " * 2**16 + "\n"
    with pytest.raises(GraphError, match=r"^g.mtx: cannot be read .*a line of more than 65,536 characters"):
        load(write({"g.mtx": text, "nodes.csv": "id,g\n1,a\n2,b\n3,a\n"}))
