"""KONECT's networks."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

OUT = "% sym unweighted\n% 3 4 4\n1 2\n2 3\n3 4 \n"
ENT = "f\nm\n\nf\n"
FILES = {"out.town": OUT, "ent.town.person.gender": ENT, "meta.town": "name: Town\n", "README.town": "A town"}
NODES = "id,g\n4,x\n3,y\n2,x\n1,y\n"


@pytest.mark.parametrize("name", ["out.town", "out.town.gz"])
def test_line_i_is_node_i(write, name):
    files = {**FILES, name: OUT}
    files = files if name == "out.town" else {k: v for k, v in files.items() if k != "out.town"}
    graph = load(write(files))
    assert (graph.layout, graph.ids(slice(None))) == ("konect", ["1", "2", "3", "4"])
    assert graph.edges.tolist() == [[0, 1, 2], [1, 2, 3]] and not graph.directed
    assert graph.attribute("gender").codes.tolist() == [0, 1, -1, 0]
    assert not graph.weighted


def test_directions_weights_and_times(write):
    out = "% asym positive\n1\t2 2\t100\n3 2 1 50\n3 4 4 70\n"
    graph = load(write({**FILES, "out.town": out}))
    assert graph.directed and graph.edge_weights.tolist() == [2, 1, 4]
    assert {c.name: c.role for c in graph.columns}["time"] == "ignored"


def test_several_files_of_values(write):
    graph = load(write({**FILES, "ent.town.person.job": "a\nb\na\nb\n"}))
    assert [a.name for a in graph.attributes] == ["gender", "job"]
    graph = load(write({**FILES, "ent.town.old.job": "a\nb\na\nb\n", "ent.town.person.job": "a\nb\nb\nb\n"}))
    assert [a.name for a in graph.attributes] == ["old.job", "gender", "person.job"]
    assert [a.name for a in load(write(FILES), attributes=["old.job"]).attributes] == ["old.job"]


def test_nodes_beside_it_are_joined_by_id(write):
    graph = load(write({"out.town": OUT, "nodes.csv": NODES}))
    assert graph.ids(slice(None)) == ["4", "3", "2", "1"]
    assert sorted(map(tuple, graph.edges.T.tolist())) == [(0, 1), (1, 2), (2, 3)]


def test_other_files_called_out(write):
    with pytest.raises(GraphError, match=r"no recognised layout"):
        load(write({"out.log": "started\n", "out.csv": "a,b\n"}))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"out.town": OUT.replace("sym", "bip")}, "out.town: joins two kinds of nodes (bip)"),
        (
            {"out.town": OUT.replace("unweighted", "signed")},
            "out.town: edges are signed, so that the third column is no",
        ),
        ({"out.town": OUT.replace("unweighted", "dynamic")}, "out.town: edges are dynamic"),
        (
            {"out.town": "% sym unweighted\n1 2 1\n2 3 5\n3 4 1\n"},
            "out.town: edges are called unweighted, but the third",
        ),
        ({"out.town": "% sym posweighted\n1 2 1\n2 3 -5\n3 4 1\n"}, "out.town: 1 edge without a usable weight"),
        (
            {"out.town": OUT.replace("3 4 \n", "3 5\n")},
            "out.town: 1 edge names a node that does not exist, first: line 5",
        ),
        ({"out.town": OUT.replace("3 4 \n", "3 0\n")}, "out.town: 1 edge names a node that does not exist"),
        ({"out.town": OUT.replace("3 4 \n", "")}, "out.town: has 2 edges, but its second line says 3; it is cut off"),
        ({"out.town": "% sym unweighted\n1 x\n"}, "out.town: 1 edge names a node that does not exist, first: line 2"),
        ({"out.town": OUT.replace("4 4", "4 900000000000")}, "ent.town.person.gender: has 4 lines, but out.town has"),
        ({"out.town": "% sym unweighted\n1\n2\n"}, "out.town: found 1 field a line"),
        ({"ent.town.person.gender": "f\nm\n"}, "ent.town.person.gender: has 2 lines, but out.town has 4 nodes"),
        ({"ent.town.person.gender": b"f\nm\n\xfc\nm\n"}, "ent.town.person.gender: is not UTF-8 text (first: line 3)"),
        ({"nodes.csv": NODES}, "out.town: both nodes.csv and ent.town.person.gender describe the nodes"),
    ],
)
def test_refused(write, change, text):
    with pytest.raises(GraphError) as error:
        load(write({**FILES, **change}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


@pytest.mark.parametrize("out", ["% sym unweighted\n1 2\n1 900000000000\n", OUT.replace("4 4", "4 900000000000")])
def test_numbers_that_are_no_positions(write, out):
    with pytest.raises(GraphError, match=r"out.town: numbers go up to 900,000,000,000 in \d edges"):
        load(write({"out.town": out}))
