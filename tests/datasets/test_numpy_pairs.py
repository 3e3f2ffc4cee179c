"""Small Pokec's numpy files."""

import io

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
FILES = {"r_edges.npy": npy(EDGES), "r_sens.npy": npy(np.array([0, 1, 1]))}


def test_region_is_the_attribute(write):
    graph = load(write({**FILES, "r_labels.npy": npy(np.array([0.0, 1.0, 1.0]))}))
    assert (graph.layout, graph.edges.tolist()) == ("numpy-pairs", [[0, 1], [1, 2]])
    assert [a.name for a in graph.attributes] == ["region"]
    assert graph.attribute("region").labels == ("0", "1")
    assert graph.attribute("region").codes.tolist() == [0, 1, 1]
    assert {c.name: c.role for c in graph.columns}["label"] == "label"
    assert load(graph_folder(write), attributes=["label"]).attribute("label").labels == ("0", "1")


def graph_folder(write):
    return write({**FILES, "r_labels.npy": npy(np.array([0, 1, 1]))})


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, a=EDGES)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"r_edges.npy": npy(EDGES.T)},
            "r_edges.npy: found shape (4, 2), expected (2, E): one row per end; transpose it",
        ),
        (
            {"r_edges.npy": npy(np.array([[0, 5], [1, 1]]))},
            "r_edges.npy: 1 edge with a node that does not exist, first: column 1 (5, 1); allowed: 0 to 2, the "
            "positions in r_sens.npy",
        ),
        ({"r_edges.npy": npy(np.array([[0.5], [1]]))}, "r_edges.npy: found numbers that are not whole"),
        (
            {"r_edges.npy": npy(np.array([[0, 1], [1, np.nan]]))},
            "r_edges.npy: found numbers that are not whole, first: nan at position (1, 1)",
        ),
        (
            {"r_edges.npy": npy(np.array([[0, -np.inf], [1, 2]]))},
            "r_edges.npy: found numbers that are not whole, first: -inf at position (0, 1)",
        ),
        (
            {"r_edges.npy": npy(np.array([[0, 1e300], [1, 2]]))},
            "r_edges.npy: found numbers beyond 64 bits, first: 1e+300 at position (0, 1)",
        ),
        (
            {"r_edges.npy": npy(np.array([[0, 1], [1, 2**63]], dtype=np.uint64))},
            "r_edges.npy: found numbers beyond 64 bits, first: 9223372036854775808 at position (1, 1)",
        ),
        (
            {"r_sens.npy": npy(np.array([0, 1, np.inf], dtype=np.float16))},
            "r_sens.npy: found numbers that are not whole, first: inf at position (2)",
        ),
        ({"r_edges.npy": npy(EDGES).replace(b"(2, 4)", b"(2,04)")}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(EDGES).replace(b"(2, 4)", b"(2,4i")}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(EDGES).replace(b"'<i8'", b"'\\d '")}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(EDGES).replace(b" 'shape'", b"b'shape'")}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(np.array(["a"]))}, "r_edges.npy: found <U1 values"),
        ({"r_edges.npy": npz()}, "r_edges.npy: found an .npz archive"),
        ({"r_edges.npy": b"src,dst\n0,1\n"}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(EDGES)[:-9]}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": npy(EDGES).replace(b"}", b" ", 1)}, "r_edges.npy: is not a readable .npy file"),
        ({"r_edges.npy": b""}, "r_edges.npy: is not a readable .npy file"),
        ({"r_sens.npy": npy(np.zeros((3, 2)))}, "r_sens.npy: found shape (3, 2), expected (N,)"),
        ({"r_labels.npy": npy(np.zeros(2))}, "r_labels.npy: 2 values, but r_sens.npy has 3"),
        ({"r_edges.npy": npy(np.array([[1], [1]]))}, "made: the graph has only self-loops"),
        ({"r_edges.npy": npy(np.zeros((2, 0)))}, "made: the graph has no edge between its nodes"),
    ],
)
def test_blocking_problems(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert text in str(error.value)


def test_python_objects_are_refused(write):
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(GraphError, match=r"r_sens.npy: holds Python objects, which are never loaded"):
        load(write({**FILES, "r_sens.npy": buffer.getvalue()}))
