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


@pytest.mark.parametrize("index", ["unnamed", "text", "named", "counting and named"])
def test_an_index_of_pandas_says_whose_a_row_is(write, index):
    order = [3, 0, 2, 1, 4]
    names = [f"p{i}" for i in order] if index == "text" else order
    frame = pd.DataFrame({"seat": [1, 2, 0, 4, 3], "g": ["a", "b", "a", "b", "a"]}, index=names)
    if index == "named":
        frame = frame.rename_axis("person")
    if index == "counting and named":
        frame = frame.set_index(pd.RangeIndex(5, name="person"))
    ids = [str(i) for i in frame.index]
    edges = pd.DataFrame({"source": ids[:-1], "target": ids[1:]})
    frame = frame.drop(columns="seat")
    graph = load(write({"nodes.parquet": parquet(frame), "edges.parquet": parquet(edges)}))
    g = graph.attribute("g")
    assert dict(zip(graph.ids(slice(None)), (g.labels[c] for c in g.codes), strict=True)) == dict(
        zip(ids, frame["g"], strict=True)
    )


def test_an_index_beside_another_column_of_ids_is_asked_for(write, tmp_path):
    order = [3, 0, 2, 1, 4]
    frame = pd.DataFrame({"seat": [1, 2, 0, 4, 3], "g": ["a", "b", "a", "b", "a"]}, index=order)
    edges = "source,target\n0,1\n1,2\n2,3\n3,4\n"
    with pytest.raises(GraphError, match=r"nodes.parquet: the ends of edges fit 'Unnamed: 0' and 'seat' alike"):
        load(write({"nodes.parquet": parquet(frame), "edges.csv": edges}))
    card = "edges: edges.csv\nnodes: {file: nodes.parquet, id: 'Unnamed: 0'}\n"
    assert load(write({"dataset.yaml": card})).ids([0, 1]) == ["3", "0"]
    (tmp_path / "made" / "dataset.yaml").unlink()
    levels = frame.set_index(pd.MultiIndex.from_arrays([order, order]))
    with pytest.raises(GraphError, match=r"nodes.parquet: its index has 2 levels without names; call reset_index"):
        load(write({"nodes.parquet": parquet(levels), "edges.csv": edges}))
    for plain in (frame.reset_index(drop=True), frame.set_axis([0, 2, 3, 7, 9])):  # filtering leaves an index, too
        plain = plain.assign(id=[4, 3, 2, 1, 0])[["id", "g"]]
        graph = load(write({"nodes.parquet": parquet(plain), "edges.csv": edges}))
        assert [c.name for c in graph.columns] == ["id", "g", "source", "target"]
        assert graph.ids([0, 4]) == ["4", "0"]


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
        ("g.gml", b"\xff\xfe\x00", "g.gml: is UTF-16 text; save it as UTF-8"),
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


M = 40
"""People of the graphs below: a ring, in which every second one lives in the South."""


def people(kind: str, **more: str) -> list[str]:
    """The nodes of a graph; `more` is what stands in each, {i} for its number."""
    inside = more.get("inside", "")
    data = {
        "graphml": '<node id="p{i}"><data key="r">{r}</data>' + inside + "</node>",
        "gexf": '<node id="p{i}" label="person {i}" {own}><attvalues><attvalue for="0" value="{r}" {when}/></attvalues>'
        + inside
        + "</node>",
        "gml": 'node [ id {i} region "{r}" ' + inside + " ]",
    }[kind]
    own, when = more.get("own", ""), more.get("when", "")
    return [data.format(i=i, r="NS"[i % 2], own=own, when=when) for i in range(M)]


def ring(kind: str, start: int = 0, stop: int = M) -> list[str]:
    data = "edge [ source {a} target {b} ]" if kind == "gml" else '<edge source="p{a}" target="p{b}"/>'
    return [data.format(a=a, b=(a + 1) % M) for a in range(start, stop)]


REGION = '<key id="r" for="node" attr.name="region" attr.type="string"/>'
NAMESPACE = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def graphml(*inside: str, keys: str = REGION, space: str = NAMESPACE, default: str = "undirected") -> str:
    return f'<graphml {space}>{keys}<graph id="G" edgedefault="{default}">{"".join(inside)}</graph></graphml>'


def gexf(nodes: list[str], edges: list[str], space: str = "http://www.gexf.net/1.2draft", **more: str) -> str:
    mode, head = more.get("mode", "static"), more.get("head", "")
    default = more.get("default", "undirected")
    return (
        f'<gexf xmlns="{space}" xmlns:viz="{space}/viz"><graph defaultedgetype="{default}" mode="{mode}">'
        f'<attributes class="node" mode="{mode}"><attribute id="0" title="region" type="string"/>{head}</attributes>'
        f"<nodes>{''.join(nodes)}</nodes><edges>{''.join(edges)}</edges></graph></gexf>"
    )


def refused(write, name: str, content: str) -> str:
    with pytest.raises(GraphError) as error:
        load(folder(write, {name: content}))
    assert str(error.value).startswith(f"{name}: ") and "\n" not in str(error.value)
    return str(error.value)


def right(write, name: str, content: str, **more):
    """The graph of a file, which is the ring with its regions."""
    graph = load(folder(write, {name: content}), **more)
    assert (graph.num_nodes, graph.num_edges) == (M, M)
    region = graph.attribute("region")
    assert (region.labels, region.codes.tolist()) == (("N", "S"), [i % 2 for i in range(M)])
    return graph


def codes(graph) -> dict[str, int]:
    return {m.code: m.count for m in graph.messages}


def test_several_graphs_in_one_file_are_refused_with_their_edges(write):
    nodes = "".join(people("graphml"))
    waves = [f'<graph id="wave{i}">{nodes}{"".join(ring("graphml", i, stop))}</graph>' for i, stop in ((1, 8), (2, M))]
    text = refused(write, "g.graphml", f"<graphml {NAMESPACE}>{REGION}{waves[0]}{waves[1]}</graphml>")
    assert "holds 2 graphs: wave1 (40 nodes, 7 edges); wave2 (40 nodes, 38 edges)" in text
    first = gexf(people("gexf"), ring("gexf"))
    inner = first[first.index("<graph") : first.index("</gexf>")]
    assert "holds 2 graphs: 1 (40 nodes, 40 edges); 2 (" in refused(write, "g.gexf", first.replace(inner, inner * 2))
    one = f"graph [ {' '.join(people('gml') + ring('gml'))} ]"
    assert "holds several graphs; one graph is read from a file: save each" in refused(write, "g.gml", f"{one}\n{one}")
    right(write, "g.gml", one)
    right(write, "g.graphml", graphml(nodes, *ring("graphml")))


@pytest.mark.parametrize("folder_type", ["", 'yfiles.foldertype="group"'])
def test_nested_graphs_are_refused_and_the_remedy_works(write, folder_type):
    nodes = people("graphml")
    inner = (
        f'<node id="dept" {folder_type}><graph id="in">{"".join(nodes[:20] + ring("graphml", 0, 19))}</graph></node>'
    )
    text = refused(write, "g.graphml", graphml(*nodes[20:], inner, *ring("graphml", 19)))
    assert "1 graph nested in others, first in node 'dept' (20 nodes, 19 edges); nested graphs are not read" in text
    moved = (
        inner.replace(inner[: inner.index("<graph")], "").replace('<graph id="in">', "").replace("</graph></node>", "")
    )
    right(write, "g.graphml", graphml(moved, *nodes[20:], *ring("graphml", 19)))


def test_a_closed_group_of_yed_is_no_person(write):
    group = '<node id="dept" yfiles.foldertype="folder"/>'
    assert "first in node 'dept'" in refused(write, "g.graphml", graphml(*people("graphml"), group, *ring("graphml")))


def test_nested_nodes_of_gexf_and_gml_are_refused(write):
    nodes = people("gexf")
    inner = f'<node id="dept"><nodes>{"".join(nodes[:9])}</nodes><edges>{"".join(ring("gexf", 0, 8))}</edges></node>'
    text = refused(write, "g.gexf", gexf([*nodes[9:], inner], ring("gexf", 8)))
    assert "first in node 'dept' (9 nodes, 8 edges); nested graphs are not read" in text
    group = f"node [ id 99 graph [ {' '.join(ring('gml', 0, 8))} ] ]"
    text = refused(write, "g.gml", f"graph [ {' '.join([*people('gml'), group, *ring('gml', 8)])} ]")
    assert "1 graph nested in others, first in node 99; nested graphs are not read" in text


@pytest.mark.parametrize("scheme", ["http://", "https://"])
@pytest.mark.parametrize("host", ["gexf.net", "www.gexf.net"])
@pytest.mark.parametrize("version", ["1.1draft", "1.2", "1.2draft", "1.2draft/", "1.3", "1.3draft", "1.4"])
def test_every_namespace_of_gexf_is_read(write, scheme, host, version):
    right(write, "g.gexf", gexf(people("gexf"), ring("gexf"), f"{scheme}{host}/{version}"))


def test_old_or_no_namespaces_are_read_and_others_named(write):
    nodes, edges = people("gexf"), ring("gexf")
    right(write, "g.gexf", gexf(nodes, edges, "http://www.gephi.org/gexf"))
    bare = gexf(nodes, edges).replace('xmlns="http://www.gexf.net/1.2draft"', "")
    right(write, "g.gexf", bare)
    text = refused(write, "g.gexf", gexf(nodes, edges, "urn:mine"))
    assert "its namespace 'urn:mine' is none of GEXF's; allowed: http://www.gexf.net/1.2draft" in text
    for space in (
        "",
        'xmlns="https://graphml.graphdrawing.org/xmlns/1.1"',
        'xmlns="http://graphml.graphdrawing.org/xmlns/"',
    ):
        right(write, "g.graphml", graphml(*people("graphml"), *ring("graphml"), space=space))
    assert "its namespace 'urn:x'" in refused(write, "g.graphml", graphml(space='xmlns="urn:x"'))


@pytest.mark.parametrize("head", ["directed 1", "directed 0", "", 'comment "graph [ no" multigraph 0'])
def test_repeated_edges_of_gml_are_merged(write, head):
    again = ["edge [ source 0 target 1 ]"] * 3 + ["edge [ source 2 target 1 ]"]
    creator = 'Creator "graph [ of mine"\n# graph [\n'
    text = "\n".join([*people("gml"), *ring("gml"), *again])
    graph = right(write, "g.gml", f"{creator}graph [\n{head}\n{text}\n]")
    assert codes(graph)["duplicate-edges"] == 4
    assert graph.directed == (head == "directed 1")


def test_weights_of_repeated_edges_add_up_in_every_format(write):
    weighted = [f"edge [ source {a} target {(a + 1) % M} weight 2 ]" for a in range(M)]
    text = "\n".join([*people("gml"), *weighted, "edge [ source 1 target 0 weight 3 ]"])
    assert right(write, "g.gml", f"graph [\n{text}\n]").edge_weights.max() == 5
    # Edges of one pair with one id, which a reader by ids would take for one edge.
    key = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
    edges = [
        e.replace("<edge", '<edge id="e"').replace("/>", f'><data key="w">{1 + 2 * (a == 0)}</data></edge>')
        for a, e in enumerate(ring("graphml"))
    ]
    graph = right(write, "g.graphml", graphml(*people("graphml"), *edges, edges[0], keys=REGION + key))
    assert (graph.edge_weights.max(), codes(graph)["duplicate-edges"]) == (6, 1)
    edges = [e.replace("<edge", f'<edge id="e" weight="{1 + 2 * (a == 0)}"') for a, e in enumerate(ring("gexf"))]
    graph = right(write, "g.gexf", gexf(people("gexf"), [*edges, edges[0]]))
    assert (graph.edge_weights.max(), codes(graph)["duplicate-edges"]) == (6, 1)


AGE = '<key id="a" for="node" attr.name="age" attr.type="{}">{}</key>'


def aged(value: str, kind: str = "int", default: str = "") -> str:
    nodes = [n.replace("</node>", f'<data key="a">{20 + i % 4}</data></node>') for i, n in enumerate(people("graphml"))]
    nodes[7] = nodes[7].replace(">23<", f">{value}<")
    return graphml(*nodes, *ring("graphml"), keys=REGION + AGE.format(kind, default))


@pytest.mark.parametrize("value", ["NaN", "", " ", "null", "NA", "None", "n/a"])
@pytest.mark.parametrize("kind", ["int", "long", "Integer", "double"])
@pytest.mark.parametrize("default", ["", "<default>21</default>"])
def test_a_value_that_is_not_given_is_missing_for_its_node(write, value, kind, default):
    graph = right(write, "g.graphml", aged(value, kind, default))
    age = graph.attribute("age")
    assert np.flatnonzero(age.unknown).tolist() == [7]
    assert [float(label) for label in age.labels] == [20, 21, 22, 23]
    (note,) = [m for m in graph.messages if m.code == "values-not-given"]
    assert note.count == 1 and note.examples == (f"node 'p7', age: {value.strip()!r}",)


@pytest.mark.parametrize(("value", "label"), [("25.0", "25"), ("2.5e1", "25"), ("25.5", "25.5"), (" 25 ", "25")])
def test_numbers_written_otherwise_are_read(write, value, label):
    age = right(write, "g.graphml", aged(value), attributes=["region", "age"]).attribute("age")
    assert age.labels[age.codes[7]] == label and not age.unknown.any()


def test_values_of_another_type_name_node_and_key(write):
    text = refused(write, "g.graphml", aged("old"))
    assert "node 'p7': 'age' is of type int and holds 'old'; write a whole number, or nothing" in text
    text = refused(write, "g.graphml", aged("20", default="<default>old</default>"))
    assert "default: 'age' is of type int and holds 'old'" in text
    text = refused(write, "g.graphml", aged("20", kind="boolean"))
    assert "node 'p0': 'age' is of type boolean and holds '20'; write true or false" in text
    right(write, "g.graphml", aged("old", kind="string"))
    right(write, "g.graphml", aged("old", kind="date"))
    head = '<attribute id="1" title="age" type="integer"/>'
    nodes = [n.replace("<attvalues>", '<attvalues><attvalue for="1" value="{}"/>') for n in people("gexf")]
    made = [n.format(20 + i % 3 if i != 5 else "NaN") for i, n in enumerate(nodes)]
    age = right(write, "g.gexf", gexf(made, ring("gexf"), head=head)).attribute("age")
    assert np.flatnonzero(age.unknown).tolist() == [5]
    made[5] = nodes[5].format("old")
    assert "node 'p5': 'age' is of type integer and holds 'old'" in refused(
        write, "g.gexf", gexf(made, ring("gexf"), head=head)
    )


def test_a_weight_that_is_none_is_refused_with_its_edge(write):
    key = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
    for value in ("NaN", "much", ""):
        edges = [e.replace("/>", f'><data key="w">{value}</data></edge>') for e in ring("graphml")]
        text = refused(write, "g.graphml", graphml(*people("graphml"), *edges, keys=REGION + key))
        assert f"edge p0 - p1: 'weight' is of type double and holds {value!r}" in text
        edges = [e.replace("<edge", f'<edge weight="{value}"') for e in ring("gexf")]
        text = refused(write, "g.gexf", gexf(people("gexf"), edges))
        assert f"edge p0 - p1: 'weight' is of type double and holds {value!r}" in text


@pytest.mark.parametrize(
    "key",
    [
        '<key id="r" attr.name="region" attr.type="string">{}</key>',
        '<key id="r" for="all" attr.name="region">{}</key>',
        '<key id="region" attr.type="string">{}</key>',
    ],
)
def test_keys_without_for_or_name_and_their_defaults(write, key):
    own = "region" if "region" in key.split()[1] else "r"
    nodes = [n.replace('key="r"', f'key="{own}"') for n in people("graphml")]
    right(write, "g.graphml", graphml(*nodes, *ring("graphml"), keys=key.format("")))
    north = [n.replace(f'<data key="{own}">N</data>', "") for n in nodes]
    right(write, "g.graphml", graphml(*north, *ring("graphml"), keys=key.format("<default>N</default>")))
    graph = load(write({"g.graphml": graphml(*north, *ring("graphml"), keys=key.format("<default/>"))}))
    assert "region" not in [a.name for a in graph.attributes]  # South alone, and nobody is called None


def test_ids_that_stand_twice_or_nowhere(write):
    nodes, edges = people("graphml"), ring("graphml")
    assert "the id 'p3' stands twice" in refused(write, "g.graphml", graphml(*nodes, nodes[3], *edges))
    assert "a <node> has no id" in refused(write, "g.graphml", graphml("<node/>", *nodes, *edges))
    text = refused(write, "g.graphml", graphml(*nodes, *edges, '<edge source="p0" target="x"/>'))
    assert "1 edge with an end that no <node> describes, first: p0 - x; add a <node>" in text
    text = refused(write, "g.gexf", gexf(people("gexf"), [*ring("gexf"), '<edge source="y" target="p0"/>']))
    assert "first: y - p0" in text
    twice = nodes[3].replace("</node>", '<data key="r">N</data></node>')
    assert "node 'p3' has two values of 'region': 'S' and 'N'" in refused(
        write, "g.graphml", graphml(*nodes[:3], twice, *nodes[4:], *edges)
    )


def test_edges_of_both_kinds(write):
    edges = [e.replace("/>", ' directed="true"/>') for e in ring("graphml")]
    graph = right(write, "g.graphml", graphml(*people("graphml"), *edges))
    assert np.count_nonzero(graph.directions) == M
    edges[0] = edges[0].replace("true", "false")  # runs both ways
    graph = right(write, "g.graphml", graphml(*people("graphml"), *edges))
    assert np.count_nonzero(graph.directions) == M - 1
    edges = [e.replace("/>", ' type="directed"/>') for e in ring("gexf")]
    edges[0] = edges[0].replace("directed", "undirected")
    edges[2] = edges[2].replace("directed", "mutual")
    graph = right(write, "g.gexf", gexf(people("gexf"), edges, default="mixed"))
    assert np.count_nonzero(graph.directions) == M - 2


LOOKS = {
    "gephi": ["size", "r", "g", "b", "x", "y"],
    "gephi 3d": ["r", "g", "b", "a", "x", "y", "z"],
    "networkx": ["color", "Size", "shape", "pos_x", "pos_y"],
    "igraph": ["colour", "label.cex", "frame.color", "label.dist"],
    "vis": ["dashes", "viz:size", "label_x", "font size", "borderWidth"],
    "cytoscape": ["SUID", "shared name", "selected", "name"],
}


@pytest.mark.parametrize("program", LOOKS)
@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_how_a_drawing_looks_is_ignored_and_said(write, program, kind):
    made = nx.Graph()
    for i in range(M):
        made.add_node(f"p{i}", region="NS"[i % 2], **{name: float(i % 5) for name in LOOKS[program]})
    made.add_edges_from((f"p{i}", f"p{(i + 1) % M}") for i in range(M))
    graph = right(write, f"g.{kind}", written(kind, made))
    assert [a.name for a in graph.attributes] == ["region"] and graph.features is None
    (note,) = [m for m in graph.messages if m.code == "drawing-columns"]
    assert note.count == len(LOOKS[program]) and ", ".join(LOOKS[program]) in note.text
    detail = {c.name: (c.role, c.detail) for c in graph.columns}
    assert all(detail[name] == ("ignored", "how a drawing looks, which describes nobody") for name in LOOKS[program])
    named = LOOKS[program][0]
    assert [a.name for a in load(write({}), attributes=named).attributes] == [named]


def test_single_letters_and_words_that_may_be_anything_stay(write):
    made = nx.Graph()
    for i in range(M):
        made.add_node(f"p{i}", region="NS"[i % 2], g=i % 3, x=i % 4, selected=i % 5, name="ab"[i % 2], height=i % 7)
    made.add_edges_from((f"p{i}", f"p{(i + 1) % M}") for i in range(M))
    graph = right(write, "g.graphml", written("graphml", made))
    assert [a.name for a in graph.attributes] == ["region", "g", "x", "selected", "name", "height"]


def test_drawings_inside_nodes(write):
    looks = '<viz:size value="3"/><viz:color r="1" g="2" b="3"/><viz:position x="1" y="2" z="0"/>'
    for space in ("http://www.gexf.net/1.3", "http://www.gexf.net/1.1draft"):
        graph = right(write, "g.gexf", gexf(people("gexf", inside=looks), ring("gexf"), space))
        detail = {c.name: c.detail for c in graph.columns}
        assert detail["viz:size"] == detail["viz:position"] == "how a drawing looks, which describes nobody"
    text = " ".join([*people("gml", inside='graphics [ x 1.0 y 2.0 fill "#ff0000" ]'), *ring("gml")])
    graph = right(write, "g.gml", f"graph [ {text} ]")
    assert codes(graph)["drawing-columns"] == 1
    assert {c.name: c.detail for c in graph.columns}["graphics"] == "how a drawing looks, which describes nobody"
    drawn = (
        '<data key="d"><y:ShapeNode xmlns:y="http://www.yworks.com/xml/graphml"><y:Geometry x="1.0" y="{i}.5"/>'
        '<y:NodeLabel>person {i}</y:NodeLabel><y:Shape type="ellipse"/></y:ShapeNode></data>'
    )
    key = REGION + '<key id="d" for="node" yfiles.type="nodegraphics"/>'
    graph = right(write, "g.graphml", graphml(*people("graphml", inside=drawn), *ring("graphml"), keys=key))
    assert graph.features is None and codes(graph)["drawing-columns"] == 3


@pytest.mark.parametrize("when", ['start="2009.0" end="2010.0"', 'timestamp="2009"', 'start="2009-01-01"', ""])
def test_one_value_over_time_is_the_attribute(write, when):
    graph = right(write, "g.gexf", gexf(people("gexf", when=when), ring("gexf"), mode="dynamic"))
    assert not {"values-over-time", "times-ignored"} & set(codes(graph))


def test_values_that_do_not_change_are_the_attribute(write):
    twice = [
        n.replace("</attvalues>", n[n.index("<attvalue ") : n.index("</attv")] + "</attvalues>") for n in people("gexf")
    ]
    right(write, "g.gexf", gexf(twice, ring("gexf"), mode="dynamic"))


def test_values_over_time_are_said_and_the_remedy_works(write):
    head = '<attribute id="1" title="city" type="string"><default>A</default></attribute>'
    more = '<attvalues><attvalue for="1" value="{}" end="1"/>{}'
    later = '<attvalue for="1" value="B" start="1"/>'
    nodes = people("gexf")
    made = [n.replace("<attvalues>", more.format("AB"[i % 2], later * (i < 6))) for i, n in enumerate(nodes)]
    graph = right(write, "g.gexf", gexf(made, ring("gexf"), mode="dynamic", head=head))
    assert [a.name for a in graph.attributes] == ["region"]
    (warning,) = [m for m in graph.messages if m.code == "values-over-time"]
    assert (warning.level, warning.count) == ("warning", 3)
    assert warning.text == (
        "g.gexf: 'city' has several values for 3 nodes; values over time are not read, and it is left out"
    )
    assert warning.examples[0] == "'p0': A, B" and "leave one <attvalue>" in warning.remedy
    one = [n.replace(later, "") for n in made]
    assert right(write, "g.gexf", gexf(one, ring("gexf"), mode="dynamic", head=head)).attribute("city").labels == (
        "A",
        "B",
    )


def test_times_of_nodes_and_edges_are_said(write):
    nodes = people("gexf", own='start="2001" end="2004"', inside='<spells><spell start="2001" end="2002"/></spells>')
    edges = [e.replace("/>", ' start="2001-05-05"/>') for e in ring("gexf")]
    graph = right(write, "g.gexf", gexf(nodes, edges, mode="dynamic"))
    (warning,) = [m for m in graph.messages if m.code == "times-ignored"]
    assert warning.level == "warning" and "40 nodes and 40 edges with times at which they exist" in warning.text
    assert graph.features is None and [a.name for a in graph.attributes] == ["region"]


def test_values_of_undeclared_attributes_are_named(write):
    nodes = people("gexf", when="").copy()
    nodes[2] = nodes[2].replace('for="0"', 'for="7"')
    text = refused(write, "g.gexf", gexf(nodes, ring("gexf")))
    assert "node 'p2' has an <attvalue> for '7', which no <attribute> of class 'node' declares" in text
    older = [n.replace('for="0"', 'id="0"') for n in people("gexf")]
    right(write, "g.gexf", gexf(older, ring("gexf")))


@pytest.mark.parametrize("value", ["NaN", "nan", "NAN"])
def test_numbers_that_are_none_in_gml_are_missing(write, value):
    nodes = [n.replace(" ]", f"\n age {20 + i % 3 if i != 4 else value}\n ]") for i, n in enumerate(people("gml"))]
    graph = right(write, "g.gml", "graph [\n" + "\n".join([*nodes, *ring("gml")]) + "\n]")
    assert np.flatnonzero(graph.attribute("age").unknown).tolist() == [4]


def gml(labels):
    """A ring whose nodes are numbered by the writer and called `labels`."""
    nodes = "".join(f'node [ id {i} label "{name}" g "{"xy"[i % 2]}" ]\n' for i, name in enumerate(labels))
    n = len(labels)
    return f"graph [\n{nodes}{''.join(f'edge [ source {i} target {(i + 1) % n} ]' for i in range(n))}\n]\n"


@pytest.mark.parametrize(
    ("labels", "warned"), [(["c", "a", "b", "d"], False), (["0", "1", "2", "3"], False), (["3", "0", "1", "2"], True)]
)
def test_people_in_gml_are_called_by_their_labels(labels, warned, tmp_path):
    """networkx numbers nodes anew when it writes GML, and keeps their names as labels."""
    (tmp_path / "t.gml").write_text(gml(labels))
    graph = load(tmp_path)
    assert sorted(graph.ids(slice(None))) == sorted(labels) and "label" not in graph.feature_names
    a = graph.attribute("g")
    assert {i: a.labels[c] for i, c in zip(graph.ids(slice(None)), a.codes, strict=True)} == {
        name: "xy"[i % 2] for i, name in enumerate(labels)
    }
    ring = {frozenset((labels[i], labels[(i + 1) % 4])) for i in range(4)}
    assert {frozenset(graph.ids(e)) for e in graph.edges.T} == ring
    assert any(m.code == "labels-and-ids" for m in graph.messages) == warned


def test_labels_in_gml_that_call_two_nodes_alike_are_no_ids(tmp_path):
    (tmp_path / "t.gml").write_text(gml(["a", "a", "b", "b"]))
    assert sorted(load(tmp_path).ids(slice(None))) == ["0", "1", "2", "3"]


ORDER = [(7 * i + 3) % M for i in range(M)]
"""Another numbering of the people than 0, 1, 2."""


def numbered(kind: str, key: str, ids: list[str], values: list[str]) -> str:
    """The ring with `ids`, and another number of each person as the value of `key`."""
    pairs = [(ids[i], ids[(i + 1) % M]) for i in range(M)]
    if kind == "gexf":
        own = f'<attribute id="1" title="{key}" type="string"/>' if key != "label" else ""
        value = '<attvalue for="1" value="{v}"/>' if own else ""
        label = "" if own else 'label="{v}"'
        node = f'<node id="{{i}}" {label}><attvalues><attvalue for="0" value="{{r}}"/>{value}</attvalues></node>'
        nodes = [node.format(i=i, v=v, r="NS"[n % 2]) for n, (i, v) in enumerate(zip(ids, values, strict=True))]
        return gexf(nodes, [f'<edge source="{a}" target="{b}"/>' for a, b in pairs], head=own)
    keys = REGION + f'<key id="k" for="node" attr.name="{key}" attr.type="string"/>'
    node = '<node id="{i}"><data key="r">{r}</data><data key="k">{v}</data></node>'
    nodes = [node.format(i=i, v=v, r="NS"[n % 2]) for n, (i, v) in enumerate(zip(ids, values, strict=True))]
    return graphml(*nodes, *(f'<edge source="{a}" target="{b}"/>' for a, b in pairs), keys=keys)


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@pytest.mark.parametrize("key", ["label", "name", "old"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("flaw", [False, True])
def test_another_numbering_of_the_same_people_is_said_and_no_feature(write, kind, key, start, flaw):
    values = [str(i + start) for i in ORDER]
    if flaw:
        values[5] = ""
    graph = right(write, f"g.{kind}", numbered(kind, key, [str(i) for i in range(M)], values))
    assert graph.ids([0, 7]) == ["0", "7"] and not graph.feature_names
    (warning,) = [m for m in graph.messages if m.code == "labels-and-ids"]
    assert warning.level == "warning" and f"{key!r} holds the values of the ids" in warning.text


def test_names_that_igraph_gives_its_numbers_are_the_ids(write):
    numbers = [f"n{i}" for i in range(M)]
    graph = right(write, "g.graphml", numbered("graphml", "name", numbers, [str(i) for i in ORDER]))
    assert graph.ids([0, 1]) == ["3", "10"] and "labels-and-ids" not in codes(graph)
    graph = right(write, "g.graphml", numbered("graphml", "id", numbers, [f"{i}.0" for i in ORDER]))
    assert graph.ids([0]) == ["n0"] and "labels-and-ids" in codes(graph)
    graph = right(write, "g.graphml", numbered("graphml", "person", numbers, numbers))
    assert not {"labels-and-ids", "identifier-column"} & set(codes(graph))
    names = " ".join(f'node [ id {i} name "{ORDER[i]}" region "{"NS"[i % 2]}" ]' for i in range(M))
    graph = right(write, "g.gml", f"graph [ {names} {' '.join(ring('gml'))} ]")
    assert graph.ids([0]) == ["3"] and "labels-and-ids" in codes(graph)


def test_groups_of_gephi_and_yed_are_refused_and_the_remedy_works(write):
    for own, inside in (('pid="g"', ""), ("", '<parents><parent for="g"/></parents>')):
        nodes = people("gexf", own=own, inside=inside)
        group = '<node id="g" label="a group"/>'
        text = refused(write, "g.gexf", gexf([group, *nodes], ring("gexf")))
        assert "1 graph nested in others, first in node 'g' (40 nodes)" in text
        right(write, "g.gexf", gexf(nodes, ring("gexf")))
    nodes = people("gml", inside="gid 99")
    text = refused(write, "g.gml", f"graph [ node [ id 99 isGroup 1 ] {' '.join([*nodes, *ring('gml')])} ]")
    assert "1 graph nested in others, first in node 99" in text
    right(write, "g.gml", f"graph [ {' '.join([*nodes, *ring('gml')])} ]")


def test_attributes_with_one_name_are_refused(write):
    head = '<attribute id="1" title="{}" type="string"/>'
    more = [n.replace("</attvalues>", '<attvalue for="1" value="z"/></attvalues>') for n in people("gexf")]
    text = refused(write, "g.gexf", gexf(more, ring("gexf"), head=head.format("region")))
    assert "two <attribute> elements of class 'node' are called 'region'" in text
    text = refused(write, "g.gexf", gexf(more, ring("gexf"), head=head.format("label")))
    assert "node 'p0' has the label 'person 0' and an attribute titled 'label' with the value 'z'" in text
    text = refused(write, "g.gexf", gexf(more, ring("gexf"), head=head.format("region ")))
    assert "the attributes 'region' and 'region ' differ in blanks alone" in text
    right(write, "g.gexf", gexf(more, ring("gexf"), head=head.format("Region2")))
    key = '<key id="q" for="node" attr.name="{}" attr.type="string"/>'
    half = [n.replace('key="r"', 'key="q"') if i < 9 else n for i, n in enumerate(people("graphml"))]
    text = refused(write, "g.graphml", graphml(*half, *ring("graphml"), keys=REGION + key.format("region")))
    assert "two <key> elements are called 'region' (q and r), and nodes have values of both" in text
    text = refused(write, "g.graphml", graphml(*half, *ring("graphml"), keys=REGION + key.format(" region")))
    assert "the attributes ' region' and 'region' differ in blanks alone" in text
    text = refused(write, "g.graphml", graphml(*half, *ring("graphml"), keys=REGION + REGION))
    assert "two <key> elements have the id 'r'" in text


@pytest.mark.parametrize("order", [1, -1])
def test_a_key_of_nodes_may_have_the_id_of_one_of_edges(write, order):
    """As APOC of Neo4j writes them."""
    keys = [REGION, '<key id="r" for="edge" attr.name="weight" attr.type="double"><default>9</default></key>']
    keys += ['<key id="r" for="graph" attr.name="title" attr.type="string"/>']
    edges = [e.replace("/>", f'><data key="r">{1 + (i == 2)}</data></edge>') for i, e in enumerate(ring("graphml"))]
    inside = '<data key="r">a club</data>'
    graph = right(write, "g.graphml", graphml(inside, *people("graphml"), *edges, keys="".join(keys[::order])))
    assert sorted(graph.edge_weights.tolist()) == [1] * (M - 1) + [2]


def test_keys_inside_the_graph_and_values_on_lines_of_their_own(write):
    nodes = [n.replace(">N<", ">\n   N\n  <") for n in people("graphml")]
    right(write, "g.graphml", graphml(REGION, *nodes, *ring("graphml"), keys=""))


def test_values_that_are_elements_are_said(write):
    inside = '<data key="a"><v>x</v></data>'
    graph = right(
        write,
        "g.graphml",
        graphml(*people("graphml", inside=inside), *ring("graphml"), keys=REGION + AGE.format("string", "")),
    )
    (warning,) = [m for m in graph.messages if m.code == "nested-values"]
    assert (warning.level, warning.count) == ("warning", M) and "'age' holds elements and no text" in warning.text


@pytest.mark.parametrize("name", ["G.GRAPHML", "g.GraphML", "g.xml", "g.gml", "g.gexf", "g.XML.gz"])
def test_graphml_under_other_names(write, name):
    right(write, name, graphml(*people("graphml"), *ring("graphml")))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("g.net", "<graphml/>", "g.net: is XML and no network of Pajek's; rename it to end in .graphml"),
        ("g.graphml", gzip.compress(b"<graphml/>", mtime=0), "g.graphml: is gzip data; rename it to g.graphml.gz"),
        ("g.graphml", "graph [ node [ id 1 ] ]", "g.graphml: cannot be read as GraphML: it looks like GML; rename it"),
        ("g.gml", 'graph [ node [ id 1 label "\xe9" ] ]'.encode("latin-1"), "g.gml: is not UTF-8 text (first: line 1)"),
        ("g.gml", 'graph [ node [ id 1 label "&#55296;" ] ]', "g.gml: holds "),
    ],
)
def test_files_that_are_not_what_their_names_say(write, name, content, text):
    with pytest.raises(GraphError) as error:
        load(folder(write, {name: content}))
    assert str(error.value).startswith(text)


def test_other_xml_is_no_graph(write):
    right(write, "g.graphml", graphml(*people("graphml"), *ring("graphml")))
    made = write({"settings.xml": "<settings><graphmlish/></settings>"})
    assert load(made).num_nodes == M
    with pytest.raises(GraphError, match="not a file of a recognised layout"):
        load(made / "settings.xml")


def test_a_quotation_mark_in_a_comment_of_gml(write):
    comment = '# what "we made [\n'
    right(write, "g.gml", f"{comment}graph [\n{comment}{' '.join([*people('gml'), *ring('gml')])}\n{comment}]")


def test_a_weight_that_is_none_names_its_edge(write):
    edges = " ".join(f"edge [ source {a} target {(a + 1) % M} weight {-(a == 3)} ]" for a in range(M))
    text = refused(write, "g.gml", f"graph [ {' '.join(people('gml'))} {edges} ]")
    assert "1 edge without a usable weight in 'weight', first: 3 - 4 ('-1'); allowed" in text
    right(write, "g.gml", f"graph [ {' '.join(people('gml'))} {edges.replace('weight', 'sign')} ]")


def test_more_attributes_than_a_table_may_have(write, monkeypatch):
    monkeypatch.setattr("uge_core.datasets.records.MOST_COLUMNS", 30)
    nodes = " ".join(n.replace(" ]", f" k{i} 1 ]") for i, n in enumerate(people("gml")))
    text = refused(write, "g.gml", f"graph [ {nodes} {' '.join(ring('gml'))} ]")
    assert "its 40 nodes have more than 30 attributes; allowed: 30" in text
    monkeypatch.undo()
    monkeypatch.setattr("uge_core.datasets.records._ROOM", 100)
    monkeypatch.setattr("uge_core.datasets.records._SPARSE", 20)
    text = refused(write, "g.gml", f"graph [ {nodes} {' '.join(ring('gml'))} ]")
    assert "its 40 nodes have 41 attributes, of which each node has 2.0; keep those that many nodes have" in text
