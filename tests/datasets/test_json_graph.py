"""JSON graphs as networkx and D3 write them."""

import gzip
import json

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

nx = pytest.importorskip("networkx")
NODES = [{"id": "a", "g": "x"}, {"id": "b", "g": "y"}, {"id": "c", "g": "x"}, {"id": "d", "g": None}]
LINKS = [{"source": "a", "target": "b"}, {"source": "c", "target": "b"}, {"source": "c", "target": "d"}]


def text(nodes=NODES, links=LINKS, key="links", **more) -> str:
    return json.dumps({"nodes": nodes, key: links, **more})


def made(kind=nx.Graph):
    graph = kind(called="town")
    for node, value in ((30, "x"), (10, "y"), (20, "x"), (0, "y")):
        graph.add_node(node, g=value, ok=value == "x", pay=float("nan") if node == 10 else 1.5, tags=["t"])
    graph.add_weighted_edges_from([(30, 10, 2.0), (20, 10, 1.0), (20, 0, 4.0)])
    return graph


@pytest.mark.parametrize("key", ["links", "edges"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_what_networkx_writes(write, kind, key):
    graph = load(write({"town.json": json.dumps(nx.node_link_data(made(kind), edges=key))}))
    assert (graph.layout, graph.ids(slice(None))) == ("json", ["30", "10", "20", "0"])
    assert graph.edges.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.edge_weights.tolist() == [2, 1, 4]
    assert graph.attribute("g").codes.tolist() == [0, 1, 0, 1]
    assert graph.attribute("ok").labels == ("false", "true")
    assert graph.directed == issubclass(kind, nx.DiGraph)
    roles = {c.name: c.role for c in graph.columns}
    assert roles["tags"] == "ignored"


def test_repeated_edges_add_up(write):
    graph = made(nx.MultiGraph)
    graph.add_edge(10, 30, weight=3.0)
    read = load(write({"town.json": json.dumps(nx.node_link_data(graph, edges="links"))}))
    assert read.num_edges == 3 and read.edge_weights.tolist() == [5, 1, 4]


@pytest.mark.parametrize("name", ["g.json", "g.json.gz"])
def test_missing_values(write, name):
    graph = load(write({name: gzip.compress(text().encode()) if name.endswith("gz") else text()}))
    assert graph.attribute("g").codes.tolist() == [0, 1, 0, -1]
    assert not graph.directed


def test_ids_that_may_be_positions_are_told(write):
    nodes = [{"id": 2, "g": "x"}, {"id": 0, "g": "y"}, {"id": 1, "g": "x"}]
    links = [{"source": 0, "target": 1}]
    graph = load(write({"g.json": text(nodes, links)}))
    assert graph.edges.tolist() == [[1], [2]]
    assert "ids-or-positions" in {m.code for m in graph.messages}
    graph = load(write({"g.json": text(sorted(nodes, key=lambda n: n["id"]), links)}))
    assert "ids-or-positions" not in {m.code for m in graph.messages}


def test_without_ids_links_name_positions(write):
    nodes = [{"name": n["id"], "g": n["g"], "x": 1.5, "y": 2} for n in NODES]
    graph = load(write({"g.json": text(nodes, [{"source": 0, "target": 1}, {"source": 1, "target": 2, "value": 3}])}))
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert "positions" in {m.code for m in graph.messages}
    assert {c.name: c.role for c in graph.columns}["x"] == "ignored"


def test_what_d3_leaves_in_links(write):
    links = [{"source": NODES[0] | {"x": 3}, "target": NODES[1], "index": 0}]
    assert load(write({"g.json": text(links=links)})).edges.tolist() == [[0], [1]]


def test_other_json_files_are_no_graphs(write):
    folder = write({"about.json": '{"year": 2020}', "g.json": text()})
    assert load(folder).num_nodes == 4
    with pytest.raises(GraphError, match=r"no recognised layout|not a file of a recognised layout"):
        load(folder / "about.json")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"nodes": [', "g.json: cannot be read as JSON ("),
        (
            '{"nodes": [{"id": 1, "id": 2}], "links": []}',
            "g.json: cannot be read as JSON ('id' stands twice in one object)",
        ),
        ('{"nodes": ' + "[" * 200_000, "g.json: cannot be read as JSON (objects in objects without end)"),
        ('["nodes"]', "g.json: holds no object at the top"),
        ('{"nodes": []}', "g.json: lacks nodes, or links, found: 'nodes'"),
        ('{"nodes": {}, "links": []}', "g.json: nodes is no list"),
        ('{"nodes": [1], "links": []}', "g.json: item 0 of nodes is '1', no object"),
        ('{"nodes": [], "links": []}', "g.json: the graph has no nodes"),
        (
            json.dumps(nx.adjacency_data(nx.path_graph(3))),
            "g.json: has 'adjacency', so that it is networkx's adjacency_data",
        ),
        (json.dumps(nx.cytoscape_data(nx.path_graph(3))), "g.json: has 'elements', so that it is Cytoscape's"),
        (text(edges=LINKS), "g.json: has both links and edges"),
        (text(directed="no"), "g.json: directed is 'no'; allowed: true and false"),
        (text([*NODES, {"g": "x"}]), "g.json: 1 node without an id, first: node 4"),
        (text([*NODES, {"id": ["a", 1]}]), "g.json: node 4 has the id ['a', 1]; allowed: text and numbers"),
        (text([*NODES, {"id": None}]), "g.json: node 4 has the id empty"),
        (text([*NODES, {"id": "a"}]), "g.json: the id 'a' stands twice"),
        (
            text(links=[*LINKS, {"source": "a", "target": "z"}]),
            "g.json: 1 link with a target that is no node, first: item 3",
        ),
        (text(links=[{"source": "a"}]), "g.json: item 0 in links has no target"),
        (
            text([{"g": 1}, {"g": 2}], [{"source": 0, "target": 2}]),
            "g.json: item 0 in links has the target '2', and no node",
        ),
        (text(links=[{**LINKS[0], "weight": -1}]), "g.json: 1 edge without a usable weight"),
        (b'{"nodes": [{"id": "Z\xfcrich"}], "links": []}', "g.json: is not UTF-8 text"),
    ],
)
def test_refused(write, content, error):
    with pytest.raises(GraphError) as caught:
        load(write({"g.json": content}))
    assert str(caught.value).startswith(error) and "\n" not in str(caught.value)


def test_too_large(write, monkeypatch):
    monkeypatch.setenv("UGE_MAX_UNPACKED", "1000")
    with pytest.raises(GraphError, match=r"g.json: has more than the 166 bytes"):
        load(write({"g.json": text()}))


M = 12
ORDER = [(5 * i + 3) % M for i in range(M)]
RING = [(i, (i + 1) % M) for i in range(M)]


def ring(write, ids, ends, key="id", links="links", **more):
    """The graph of people who are called by `key`, and the pairs of rows that its edges join."""
    nodes = [{key: ident, "g": "xy"[i % 2], **{k: v[i] for k, v in more.items()}} for i, ident in enumerate(ids)]
    graph = load(write({"g.json": text(nodes, [{"source": ends[a], "target": ends[b]} for a, b in RING], links)}))
    assert graph.attribute("g").codes.tolist() == [i % 2 for i in range(M)]
    return graph, [tuple(e) for e in graph.edges.T.tolist()]


ROWS = sorted((min(e), max(e)) for e in RING)


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        ([f"p{i}" for i in ORDER], list(range(M))),
        ([str(i) for i in range(M)], list(range(M))),
        ([str(i + 100) for i in ORDER], [i + 100 for i in ORDER]),
        ([float(i + 1) for i in ORDER], [i + 1 for i in ORDER]),
        ([i + 1 for i in ORDER], [str(i + 1) for i in ORDER]),
    ],
)
def test_links_name_ids_or_else_positions(write, ids, ends):
    graph, rows = ring(write, ids, ends)
    assert sorted(rows) == ROWS and graph.ids([0]) == [str(ids[0]).removesuffix(".0")]
    assert ("positions" in {m.code for m in graph.messages}) == (str(ids[0]).startswith("p"))


@pytest.mark.parametrize("key", ["ID", "key", "name", "person", "nr"])
@pytest.mark.parametrize("values", [[f"p{i}" for i in ORDER], [i + 1 for i in ORDER], [100 + i for i in ORDER]])
def test_links_may_name_another_column(write, key, values):
    graph, rows = ring(write, values, values, key, "edges")
    assert sorted(rows) == ROWS and graph.ids(slice(None)) == [str(v) for v in values]
    assert "ids-by-values" in {m.code for m in graph.messages} and key not in graph.feature_names


@pytest.mark.parametrize("flaw", [None, 7, ""])
def test_positions_and_values_that_both_fit_are_asked_for_and_the_remedies_work(write, flaw):
    values = [flaw if flaw is not None and i == 3 else v for i, v in enumerate(ORDER)]
    with pytest.raises(GraphError) as error:
        ring(write, values, list(range(M)), "key")
    assert "no node has an id, and the ends of links are values of 'key'" in str(error.value)
    assert "or positions, counted from 0" in str(error.value)
    assert sorted(ring(write, ORDER, ORDER)[1]) == ROWS  # called id
    assert sorted(ring(write, list(range(M)), list(range(M)), nr=values)[1]) == ROWS  # positions as ids


def test_ids_in_records_of_the_nodes(write):
    data = [{"id": f"p{i}", "age": i % 3} for i in ORDER]
    graph, rows = ring(write, data, [d["id"] for d in data], "data")
    assert sorted(rows) == ROWS and graph.ids([0]) == ["p3"]
    with pytest.raises(GraphError, match=r"values of 'data.id', or positions, counted from 0"):
        ring(write, [{"id": i} for i in ORDER], list(range(M)), "data")


def test_text_ids_and_positions_that_both_fit_are_asked_for(write):
    with pytest.raises(
        GraphError, match="both the positions of the nodes, counted from 0, and ids that are written as"
    ):
        ring(write, [str(i) for i in ORDER], list(range(M)))
    with pytest.raises(GraphError, match="both the positions of the nodes"):
        ring(write, [str(i) for i in ORDER], [float(i) for i in range(M)])
    assert sorted(ring(write, [str(i) for i in ORDER], [str(i) for i in ORDER])[1]) == ROWS


def test_positions_beside_ids_counted_from_1_are_said(write):
    with pytest.raises(GraphError) as error:
        ring(write, [i + 1 for i in range(M)], list(range(M)))
    assert "all links fit as positions, counted from 0" in str(error.value) and "remove" not in str(error.value)
    with pytest.raises(GraphError, match="they are values of 'name': call that id"):
        ring(write, list(range(M)), [f"p{i}" for i in range(M)], name=[f"p{i}" for i in range(M)])


def test_what_a_simulation_of_d3_leaves_in_nodes(write):
    more = {k: [i * 1.5 for i in range(M)] for k in ("x", "y", "vx", "vy", "fx", "fy")}
    graph, _ = ring(write, [f"p{i}" for i in ORDER], [f"p{i}" for i in ORDER], index=list(range(M)), **more)
    assert not graph.feature_names and [a.name for a in graph.attributes] == ["g"]


def test_another_numbering_is_said(write):
    graph, _ = ring(write, list(range(M)), list(range(M)), label=ORDER)
    assert "labels-and-ids" in {m.code for m in graph.messages} and not graph.feature_names


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_encodings_that_json_may_have(write, encoding):
    assert load(write({"g.json": text().encode(encoding)})).num_edges == 3


def test_numbers_are_written_in_one_way(write):
    ages = [1.0 if i % 4 else 1 for i in range(M)]
    ages[:3] = [2.0, 2.5, 2]
    graph, _ = ring(write, list(range(M)), list(range(M)), age=ages)
    assert graph.feature_names == ("age",)  # decimal numbers are no attribute until somebody asks
    nodes = [{"id": i, "age": age} for i, age in enumerate(ages)]
    asked = load(write({"g.json": text(nodes, [{"source": a, "target": b} for a, b in RING])}), attributes=["age"])
    assert asked.attribute("age").labels == ("1", "2", "2.5")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (gzip.compress(text().encode()), "g.json: is gzip data; rename it to g.json.gz"),
        (text([{"id": "\ud800"}], []), "g.json: holds '\\ud800', half of a character"),
        (text(links=[{"source": "a", "target": None}]), "g.json: item 0 in links: its target is empty; every edge"),
        (text(links=[{"source": "a", "target": True}]), "g.json: 1 link with a target that is no node"),
    ],
)
def test_more_that_is_refused(write, content, error):
    with pytest.raises(GraphError) as caught:
        load(write({"g.json": content}))
    assert str(caught.value).startswith(error)


def test_an_object_of_many_names_with_one_twice_is_refused_at_once(write):
    names = ",".join(f'"k{i}":1' for i in range(100_000))
    with pytest.raises(GraphError, match="'k0' stands twice in one object"):
        load(write({"g.json": '{"nodes":[{' + names + ',"k0":2}],"links":[]}'}))


def test_values_that_are_records_are_said(write):
    graph = load(write({"g.json": text([{**n, "attributes": {"age": 3}} for n in NODES])}))
    (note,) = [m for m in graph.messages if m.code == "nested-values"]
    assert "1 attribute of lists or records ignored: attributes" in note.text
