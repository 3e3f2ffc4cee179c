"""Parquet, sparse matrices and graph files, against the same graph as CSV."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from uge_core.datasets import describe, inspect, load
from uge_core.errors import GraphError

nx = pytest.importorskip("networkx")
NODES = "id,g,score\n007,a,0.5\n7,b,1.5\nNA,a,\nnull,,2\n"
EDGES = "source,target\n007,7\nNA,null\n7,NA\n"


@pytest.fixture
def plain(write):
    return load(write({"nodes.csv": NODES, "edges.csv": EDGES}))


def parquet(frame: pd.DataFrame) -> bytes:
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def cells(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, na_values=[""])


def npz(matrix, **options) -> bytes:
    buffer = io.BytesIO()
    sp.save_npz(buffer, matrix, **options)
    return buffer.getvalue()


def same(graph, plain) -> None:
    assert graph.ids(slice(None)) == plain.ids(slice(None))
    assert graph.edges.tolist() == plain.edges.tolist()
    for a, b in zip(graph.attributes, plain.attributes, strict=True):
        assert (a.name, a.labels, a.codes.tolist()) == (b.name, b.labels, b.codes.tolist())


def folder(write, files):
    made = write(files)
    for path in made.iterdir():
        if path.name not in files:
            path.unlink()
    return made


def test_parquet_is_the_same_graph(write, plain):
    files = {"nodes.parquet": parquet(cells(NODES)), "edges.csv.gz": EDGES}
    same(load(folder(write, files)), plain)
    same(load(folder(write, {"nodes.csv": NODES, "edges.parquet": parquet(cells(EDGES))})), plain)


def test_parquet_numbers_keep_their_meaning(write):
    n = 60
    age = pd.array([i % 5 + 20 for i in range(n)], dtype="Int64")
    age[3] = None
    nodes = pd.DataFrame(
        {
            "id": [float(i) for i in range(n)],
            "age": age,
            "kind": pd.Categorical(["x", "y"] * (n // 2)),
            "ok": [True, False] * (n // 2),
            "pay": np.arange(n) + 0.25,
            "gap": [np.nan if i == 1 else float(i % 3) for i in range(n)],
        }
    )
    edges = pd.DataFrame({"source": range(n - 1), "target": range(1, n)})
    graph = load(write({"nodes.parquet": parquet(nodes), "edges.parquet": parquet(edges)}))
    assert graph.ids([0, 59]) == ["0", "59"]
    assert graph.num_edges == n - 1
    assert graph.attribute("age").labels == ("20", "21", "22", "23", "24")
    assert graph.attribute("age").unknown.sum() == graph.attribute("gap").unknown.sum() == 1
    assert graph.attribute("kind").labels == ("x", "y")
    assert graph.attribute("ok").labels == ("false", "true")
    assert graph.attribute("gap").labels == ("0", "1", "2")
    assert graph.features[2, 0] == 2.25


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"PAR1nothing", "nodes.parquet: cannot be read as Parquet"),
        (pd.DataFrame({"id": ["1", "2"], "g": [[1], [2]]}), "nodes.parquet: column 'g' holds lists or records"),
        (pd.DataFrame({"id": []}), "nodes.parquet: there are no rows"),
    ],
)
def test_parquet_that_cannot_be_a_table(write, content, text):
    data = content if isinstance(content, bytes) else parquet(content)
    with pytest.raises(GraphError) as error:
        load(write({"nodes.parquet": data, "edges.csv": EDGES}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_parquet_that_unpacks_into_too_much(write, monkeypatch):
    monkeypatch.setenv("UGE_MAX_UNPACKED", "100000")
    nodes = parquet(pd.DataFrame({"id": [str(i) for i in range(20)], "g": ["a", "b"] * 10}))
    edges = parquet(pd.DataFrame({"source": ["1"] * 100_000, "target": ["2"] * 100_000}))
    assert len(edges) < 10_000
    with pytest.raises(GraphError, match=r"edges.parquet: unpacks into more than 100,000 bytes"):
        load(write({"nodes.parquet": nodes, "edges.parquet": edges}))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrix(write, plain, kind):
    matrix = sp.coo_array((np.ones(6), ([0, 1, 2, 3, 1, 2], [1, 0, 3, 2, 2, 1])), shape=(4, 4))
    graph = load(folder(write, {"nodes.csv": NODES, "edges.npz": npz(matrix.asformat(kind))}))
    same(graph, plain)
    codes = {m.code for m in graph.messages}
    assert not codes & {"weights", "directed", "half-stored"}
    assert not graph.weighted and not graph.directed
    assert [c.role for c in graph.columns][-3:] == ["source", "target", "weight"]


FOUR = "g\na\nb\na\nb\n"


def of_matrix(write, entries, shape=(4, 4), **more):
    row, column, value = zip(*entries, strict=True)
    return load(write({"nodes.csv": FOUR, "edges.npz": npz(sp.csr_array((value, (row, column)), shape=shape)), **more}))


def test_sparse_matrix_with_weights_and_directions(write):
    graph = of_matrix(write, [(0, 1, 1.0), (2, 1, 2.0), (2, 3, 0.0), (3, 0, 1.0), (0, 3, 4.0)])
    assert graph.edges.tolist() == [[0, 0, 1], [1, 3, 2]]
    assert graph.node_ids is None
    # 0 - 3 runs both ways, with the mean of 1 and 4
    assert (graph.directions.tolist(), graph.edge_weights.tolist()) == ([1, 0, -1], [1, 2.5, 2])
    notes = {m.code: (m.level, m.count) for m in graph.messages}
    assert (notes["weights"], notes["directed"]) == (("note", 3), ("note", 2))


def test_symmetric_matrix_keeps_its_weights_and_has_no_direction(write):
    graph = of_matrix(write, [(0, 1, 3.0), (1, 0, 3.0), (1, 2, 0.5), (2, 1, 0.5)])
    assert (graph.directed, graph.edge_weights.tolist()) == (False, [3, 0.5])


@pytest.mark.parametrize("turn", [False, True])
def test_half_of_a_symmetric_matrix_is_undirected_unless_a_card_says_otherwise(write, turn):
    entries = [(b, a, w) if turn else (a, b, w) for a, b, w in [(0, 1, 3.0), (1, 2, 0.5), (0, 3, 1.0)]]
    graph = of_matrix(write, entries)
    assert (graph.directed, graph.edge_weights.tolist()) == (False, [3, 1, 0.5])
    assert {m.code: m.count for m in graph.messages}["half-stored"] == 3
    for said, directions in (("true", [-1 if turn else 1] * 3), ("false", None)):
        card = f"edges: edges.npz\nnodes: nodes.csv\ndirected: {said}\n"
        graph = of_matrix(write, entries, **{"dataset.yaml": card, "nodes.csv": "id,g\n0,a\n1,b\n2,a\n3,b\n"})
        assert (None if graph.directions is None else graph.directions.tolist()) == directions
        assert "half-stored" not in {m.code for m in graph.messages}


def test_matrix_with_values_that_cannot_be_weights(write):
    with pytest.raises(GraphError) as error:
        of_matrix(write, [(0, 1, 1.0), (1, 2, -2.0), (0, 3, np.nan)])
    text = str(error.value)
    assert (
        "edges.npz: 2 values that cannot be a weight, first: nan at (0, 3); allowed: 0 (no edge) and 1e-18 to 1e+18"
        in text
    )


def arrays(**members) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


CSR = {"format": b"csr", "shape": [2, 2], "data": [1], "indices": [1], "indptr": [0, 1, 1]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"PK\x03\x04 no archive", "edges.npz: is not a readable .npz file"),
        (arrays(x=[1]), "edges.npz: holds x; expected a square matrix saved by scipy.sparse.save_npz"),
        (arrays(**{**CSR, "format": b"dia"}), "edges.npz: found a matrix in the format 'dia'"),
        (arrays(**{k: v for k, v in CSR.items() if k != "indptr"}), "edges.npz: lacks indptr"),
        (arrays(**{**CSR, "indptr": [0, 1]}), "edges.npz: indptr contradicts the other arrays"),
        (arrays(**{**CSR, "indptr": [0, 2, 1]}), "edges.npz: indptr contradicts the other arrays"),
        (arrays(**{**CSR, "indices": [5]}), "edges.npz: 1 entries outside the matrix, first: (0, 5)"),
        (arrays(**{**CSR, "data": [1, 2]}), "edges.npz: 2 values for 1 positions"),
        (arrays(**{**CSR, "shape": [2, 3]}), "edges.npz: found shape (2, 3)"),
        (arrays(**{**CSR, "indices": [[1]]}), "edges.npz: indices is int64 of shape (1, 1)"),
        (
            arrays(**{**CSR, "shape": [3, 3], "indptr": [0, 1, 1, 1]}),
            "nodes.csv: 2 rows, but the matrix in edges.npz has 3",
        ),
    ],
)
def test_sparse_matrices_that_cannot_be(write, content, text):
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": "id,g\n0,a\n1,b\n", "edges.npz": content}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def written(kind: str, graph) -> bytes:
    buffer = io.BytesIO()
    {"graphml": nx.write_graphml, "gexf": nx.write_gexf, "gml": nx.write_gml}[kind](graph, buffer)
    return buffer.getvalue()


def social(directed: bool = False):
    graph = nx.DiGraph() if directed else nx.Graph()
    for i in range(60):
        graph.add_node(i, city="AB"[i % 2], pay=i + 0.5, young=bool(i % 3))
    graph.add_edges_from([(i, i + 1, {"weight": 1.0 + i % 2}) for i in range(59)])
    return graph


@pytest.mark.parametrize("kind", ["graphml", "gexf", "gml"])
@pytest.mark.parametrize("zipped", [False, True])
def test_graph_files(write, kind, zipped):
    data = written(kind, social())
    name = f"people.{kind}" + ".gz" * zipped
    made = write({name: gzip.compress(data) if zipped else data})
    graph = load(made)
    assert (graph.name, graph.layout, graph.num_nodes, graph.num_edges) == ("made", "graph-file", 60, 59)
    assert graph.ids([0, 59]) == ["0", "59"]
    assert graph.attribute("city").labels == ("A", "B")
    assert graph.attribute("young").num_values == 2
    assert "pay" in graph.feature_names
    assert {m.code for m in graph.messages} >= {"weights"}
    assert (graph.edge_weights == 1 + np.arange(59) % 2).all()
    assert ("weight", "weight") in {(c.name, c.role) for c in graph.columns}
    assert load(made / name).fingerprint == graph.fingerprint
    assert (inspect(graph)["directed"], inspect(graph)["weighted"]) == (False, True)


@pytest.mark.parametrize("kind", ["graphml", "gexf", "gml"])
def test_directed_graph_files(write, kind):
    made = social(directed=True)
    made.add_edge(1, 0, weight=4.0)
    made.remove_edge(8, 9)
    made.add_edge(9, 8)  # weighs 1, like every edge without a weight among weighted ones
    graph = load(write({f"people.{kind}": written(kind, made)}))
    assert graph.directions.tolist() == [0] + [1] * 7 + [-1] + [1] * 50
    assert graph.edge_weights[[0, 1, 8]].tolist() == [2.5, 2, 1]
    (note,) = [m for m in graph.messages if m.code == "directed"]
    assert (note.level, note.count) == ("note", 58) and "58 of 59 edges one way" in note.text
    assert (inspect(graph)["directed"], inspect(graph)["weighted"]) == (True, True)
    assert "59 weighted directed edges" in describe(graph)


def test_an_attribute_called_id_stays_one(write):
    graph = nx.Graph()
    for i in range(20):
        graph.add_node(f"p{i}", id="xy"[i % 2], source="ab"[i % 2])
    graph.add_edges_from([(f"p{i}", f"p{i + 1}", {"id": str(i), "source": "q"}) for i in range(19)])
    loaded = load(write({"g.graphml": written("graphml", graph)}))
    assert [a.name for a in loaded.attributes] == ["id", "source"]
    assert loaded.ids([0]) == ["p0"]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("g.graphml", "<graphml", "g.graphml: is damaged XML"),
        ("g.gexf", "<a/>", "g.gexf: cannot be read as GEXF"),
        ("g.graphml", "<a/>", "g.graphml: cannot be read as GraphML"),
        ("g.gml", "graph [ node [ id 1 ] node [ id 1 ] ]", "g.gml: cannot be read as GML"),
        ("g.gml", "graph [ " * 5000, "g.gml: cannot be read as GML"),
        ("g.gml", b"\xff\xfe\x00", "g.gml: cannot be read as GML"),
        ("g.gml", "graph [ ]", "g.gml: the graph has no nodes"),
        ("g.gml", "graph [ node [ id 1 ] ]", "made: the graph has no edge between its nodes"),
        ("g.gml.gz", b"graph", "g.gml.gz: is not gzip data"),
    ],
)
def test_graph_files_that_cannot_be(write, name, content, text):
    with pytest.raises(GraphError) as error:
        load(write({name: content}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_defaults_of_nodes_and_edges_are_theirs(write):
    text = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="r" for="node" attr.name="region" attr.type="string"><default>North</default></key>
<key id="w" for="edge" attr.name="weight" attr.type="double"><default>5.0</default></key>
<graph edgedefault="undirected">
<node id="a"/><node id="b"><data key="r">South</data></node><node id="c"/>
<edge source="a" target="b"/><edge source="b" target="c"><data key="w">2</data></edge>
</graph></graphml>"""
    graph = load(write({"g.graphml": text}))
    labels = graph.attribute("region")
    assert [labels.labels[c] for c in labels.codes] == ["North", "South", "North"]
    assert sorted(graph.edge_weights.tolist()) == [2, 5]
