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
        (text(links=[{"source": 0, "target": 1}]), "g.json: 1 link with a source that is no node"),
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
    monkeypatch.setenv("UGE_MAX_UNPACKED", "100")
    with pytest.raises(GraphError, match=r"g.json: has more than the 100 bytes"):
        load(write({"g.json": text()}))
