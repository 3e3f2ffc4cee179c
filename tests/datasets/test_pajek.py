"""Pajek's files, as Pajek and networkx write them."""

import io

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

nx = pytest.importorskip("networkx")
NET = """% made
*Vertices 4
1 "Ann" 0.1 0.2 0.5 ic Red bc Blue
2 "Bob B." 0.3 0.2 0.5 box x_fact 2
3 "Cy"
4 "Dee"
*Edges
1 2 3 c Blue
2 3
3 4 1.5
"""
CLU = "*Vertices 4\r\n1\r\n2\r\n1\r\n9999998\r\n"
EDGES = [[0, 1, 2], [1, 2, 3]]


def net(body: str, vertices: str = '*Vertices 4\n1 "a"\n2 "b"\n3 "c"\n4 "d"\n') -> str:
    return vertices + body


def test_partitions_are_attributes(write):
    graph = load(write({"town.net": NET, "town.clu": CLU, "town_gender.clu": CLU.replace("2", "5"), "job.clu.gz": CLU}))
    assert (graph.layout, graph.ids(slice(None))) == ("pajek", ["Ann", "Bob B.", "Cy", "Dee"])
    assert graph.edges.tolist() == EDGES and graph.edge_weights.tolist() == [3, 1, 1.5] and not graph.directed
    assert {a.name for a in graph.attributes} == {"partition", "gender", "job"}
    assert graph.attribute("gender").labels == ("1", "5")
    assert graph.attribute("gender").codes.tolist() == [0, 1, 0, -1]
    roles = {c.name: (c.role, c.detail[:5]) for c in graph.columns}
    assert roles["ic"] == roles["x"] == roles["shape"] == ("ignored", "how a")
    assert not {m.code for m in graph.messages} & {"duplicate-edges", "labels-and-ids"}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_what_networkx_writes(write, kind):
    made = kind()
    for node, value in (("b b", "x"), ("a", "y"), ("d", "long text"), ("c", "x")):
        made.add_node(node, g=value)
    made.add_weighted_edges_from([("b b", "a", 2.0), ("d", "a", 1.0), ("d", "c", 4.0)])
    buffer = io.BytesIO()
    nx.write_pajek(made, buffer)
    graph = load(write({"g.net": buffer.getvalue()}))
    assert graph.ids(slice(None)) == ["b b", "a", "d", "c"]
    assert graph.edges.tolist() == [[0, 1, 2], [1, 2, 3]] and graph.edge_weights.tolist() == [2, 1, 4]
    assert graph.attribute("g").labels == ("long text", "x", "y")
    assert graph.attribute("g").codes.tolist() == [1, 2, 0, 1]
    assert graph.directed == (kind is nx.DiGraph)


@pytest.mark.parametrize(
    ("body", "directed"),
    [
        ("*Edges\n1 2\n2 3\n3 4\n", False),
        ("*Arcs\n1 2\n2 3\n4 3\n", True),
        ("*arcs\n1 2\n*edges\n2 3\n4 3\n", True),
        ("*Arcslist\n2 1 3\n4 3\n", True),
        ("*Edgeslist\n2 1 3\n4 3\n", False),
        ("*Matrix\n0 1 0 0\n1 0 1 0\n0 1 0 1\n0 0 1 0\n", False),
        ("*Matrix\n0 1 0 0\n0 0 1 0\n0 1 0 1\n0 0 1 0\n", True),
    ],
)
def test_the_parts_of_a_network(write, body, directed):
    graph = load(write({"g.net": net(body)}))
    assert graph.edges.tolist() == EDGES and graph.directed == directed and not graph.weighted


def test_weights_of_edges_beside_arcs(write):
    graph = load(write({"g.net": net("*Arcs\n1 2 5\n*Edges\n2 3 3\n3 4 1\n")}))
    assert graph.edge_weights.tolist() == [5, 3, 1]


def test_vertices_without_lines_are_numbers(write):
    graph = load(write({"g.net": "*Vertices 4\n*Edges\n1 2\n2 3\n3 4\n"}))
    assert graph.ids([0, 3]) == ["1", "4"]


def test_labels_that_stand_twice_are_no_ids(write):
    graph = load(write({"g.net": net("*Edges\n1 2\n3 4\n", '*Vertices 4\n1 "a"\n2 "b"\n3 "a"\n4 "d"\n')}))
    assert graph.ids(slice(None)) == ["1", "2", "3", "4"]
    assert "labels-not-used" in {m.code for m in graph.messages}
    graph = load(write({"g.net": net("*Edges\n1 2\n3 4\n", "*Vertices 4\n1 2\n2 1\n3 3\n4 4\n")}))
    assert graph.ids([0]) == ["2"]
    assert "labels-and-ids" in {m.code for m in graph.messages}


def test_partitions_of_several_networks(write):
    small = net("*Edges\n1 2\n", "*Vertices 2\n")
    folder = write({"a.net": NET, "a.clu": CLU, "ab.net": small, "ab.clu": "*Vertices 2\n1\n2\n"})
    assert load(f"{folder}:a").attribute("partition").codes.tolist() == [0, 1, 0, -1]
    assert load(f"{folder}:ab").num_nodes == 2


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"g.net": "1 2\n"}, "g.net: line 1 ('1 2') stands before *Vertices"),
        ({"g.net": "*Edges\n1 2\n"}, "g.net: line 1 ('*Edges') stands before *Vertices"),
        ({"g.net": "*Vertices x\n"}, "g.net: line 1 ('*Vertices x') must say how many vertices there are"),
        ({"g.net": "*Vertices 99999999999\n*Edges\n1 2\n"}, "g.net: line 1 ('*Vertices 99999999999') must say"),
        ({"g.net": "*Vertices 4 2\n*Edges\n1 3\n"}, "g.net: line 1 ('*Vertices 4 2') has two kinds of vertices"),
        ({"g.net": net("*Edges\n1 5\n")}, "g.net: line 7 ('1 5') names the vertex '5'; allowed: 1 to 4"),
        ({"g.net": net("*Edges\n1 " + "9" * 5000)}, "g.net: line 7 ('1 9"),
        ({"g.net": net("*Edges\n1\n")}, "g.net: line 7 ('1') has one vertex"),
        ({"g.net": net("*Edges\n1 2 x\n")}, "g.net: line 7 ('1 2 x') has 'x' where a weight belongs"),
        ({"g.net": net("*Edges\n1 2 -1\n")}, "g.net: 1 edge without a usable weight"),
        ({"g.net": net("*Edges\n1 2 1 [1-3]\n")}, "g.net: line 7 ('1 2 1 [1-3]') has a time"),
        (
            {"g.net": net('*Arcs :1 "knows"\n1 2\n*Arcs :2 "likes"\n1 2\n')},
            "g.net: line 8 ('*Arcs :2 \"likes\"') begins one of several relations",
        ),
        ({"g.net": net("*Arcslist\n1 -2\n")}, "g.net: line 7 ('1 -2') names the vertex '-2'"),
        ({"g.net": net("*Edges\n1 2\n*Vertices 3\n")}, "g.net: line 8 ('*Vertices 3') begins a second network"),
        ({"g.net": net("*Matrix\n0 1\n")}, "g.net: line 7 ('0 1') is no row of a matrix of 4 rows"),
        ({"g.net": net("*Events\n1 2\n")}, "g.net: line 6 ('*Events') begins no known part"),
        ({"g.net": net("*Edges\n1 2\n", '*Vertices 2\n1 "a\n')}, "g.net: line 2 ('1 \"a') has quotation marks"),
        (
            {"g.net": net("*Edges\n1 2\n", '*Vertices 2\n1 "a "b" c"\n')},
            'g.net: line 2 (\'1 "a "b" c"\') has quotation',
        ),
        ({"g.net": net("*Edges\n1 2\n", "*Vertices 2\n1 Ann Smith\n")}, "g.net: line 2 ('1 Ann Smith') has no value"),
        ({"g.net": net("*Edges\n1 2\n", "*Vertices 2\n1 a\n1 b\n")}, "g.net: line 3 ('1 b') describes vertex 1 again"),
        ({"g.net": NET, "g.clu": "1\n2\n"}, "g.clu: must begin with *Vertices"),
        ({"g.net": NET, "g.clu": "*Vertices 3\n1\n2\n1\n"}, "g.clu: says 3 vertices and has 3 values, but g.net has 4"),
        ({"g.net": NET, "g.clu": CLU.replace("2", "x")}, "g.clu: line 3 is 'x'; allowed: whole numbers"),
        ({"g.net": NET, "a.clu": CLU, "a.clu.gz": CLU}, "a.clu.gz: is called a like a.clu"),
        ({"g.net": NET.replace('"Cy"', '"Cy" job x'), "job.clu": CLU}, "g.net: its vertices have 'job'"),
        ({"g.net": NET.replace("Ann", "Zoë").encode("latin-1")}, "g.net: is not UTF-8 text (first: line 3)"),
    ],
)
def test_refused(write, files, text):
    with pytest.raises(GraphError) as error:
        load(write(files))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_too_large(write, monkeypatch):
    monkeypatch.setenv("UGE_MAX_UNPACKED", "600")
    with pytest.raises(GraphError, match=r"g.net: has more than the 100 bytes"):
        load(write({"g.net": NET}))


def test_letters_that_pajek_writes_as_numbers(write):
    graph = load(write({"g.net": NET.replace("Ann", "Zo&#235; &#26085;").replace("Dee", "&#9999999;")}))
    assert graph.ids([0, 3]) == ["Zoë 日", "&#9999999;"]


@pytest.mark.parametrize("name", ["G.NET", "g.Net.gz"])
def test_one_relation_comments_and_capitals(write, name):
    body = '/* made */\n*Arcs :1 "knows"\n1 2\n2 3\n*Edges :1 "knows"\n3 4\n'
    graph = load(write({name: net(body), f"{name[0]}_job.CLU": CLU}))
    assert graph.edges.tolist() == EDGES and [a.name for a in graph.attributes] == ["job"]


def test_files_of_other_kinds_are_said(write):
    more = {"town_age.vec": "*Vertices 4\n1.0\n2\n3\n4\n", "town.per": "*Vertices 4\n2\n1\n3\n4\n"}
    graph = load(write({"town.net": NET, **more}))
    (warning,) = [m for m in graph.messages if m.code == "files-not-read"]
    assert (
        warning.level == "warning"
        and "2 files of Pajek's beside it were not read: town.per, town_age.vec" in warning.text
    )


def test_a_line_that_is_longer_than_a_row_of_a_matrix_is_refused(write):
    text = "*Vertices 2\n*Edges\n1 2\n" + "1 " * 2**16 + "\n"
    with pytest.raises(GraphError, match=r"^g.net: line 4 .* has 131,071 characters; allowed in this network: 65,600$"):
        load(write({"g.net": text}))
