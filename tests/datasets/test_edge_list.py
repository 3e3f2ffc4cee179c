"""SNAP's lists of edges beside a table of nodes."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError

NODES = "id,g\n30,x\n7,y\n12,x\n5,y\n"
HEAD = "# {} graph: town.txt\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n"
ROWS = "30\t7\n12\t7\n12\t5\n"
EDGES = [[0, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize("name", ["town.txt", "town.txt.gz"])
@pytest.mark.parametrize("rows", [ROWS, ROWS.replace("\t", " "), ROWS.replace("\t", " ").replace("\n", "\r\n")])
@pytest.mark.parametrize("head", [HEAD.format("Directed"), HEAD.format("Undirected"), "# made\n", ""])
def test_edges_are_joined_by_id(write, head, rows, name):
    graph = load(write({name: head + rows, "nodes.csv": NODES}))
    assert (graph.layout, graph.edges.tolist()) == ("edge-list", EDGES)
    assert graph.directed == head.startswith("# Directed")


def test_other_texts_are_no_edges(write):
    folder = write(
        {"README.txt": "# Town\n\nA graph of 4 people.\n", "notes.txt": "3 people left\n", "nodes.csv": NODES}
    )
    with pytest.raises(GraphError, match=r"edges.csv\[.gz\] or .* is missing"):
        load(folder)
    assert load(write({"town.txt": ROWS})).num_nodes == 4


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (
            {"town.txt": ROWS + "1\t7\n", "nodes.csv": NODES},
            "town.txt: 1 edge names a node that does not exist, first: line 4",
        ),
        ({"town.txt": ROWS + "7\n", "nodes.csv": NODES}, "town.txt: 1 row with nothing in column"),
        ({"town.txt": ROWS, "a.txt": ROWS, "nodes.csv": NODES}, "{folder}: 2 graphs in one folder"),
        ({"town.txt": ROWS}, "{folder}: nodes.csv[.gz] or nodes.parquet is missing"),
    ],
)
def test_refused(write, files, text):
    folder = write(files)
    with pytest.raises(GraphError) as error:
        load(folder)
    assert str(error.value).startswith(text.format(folder=folder)) and "\n" not in str(error.value)


def test_columns_that_are_not_used_are_said(write):
    rows = "30 7 {'weight': 3}\n12 7 {'weight': 5}\n12 5 {'weight': 7}\n"
    for text, remedy in ((rows, "write_weighted_edgelist"), ("30 7 3\n12 7 4\n12 5 8\n", "weight: '3'")):
        graph = load(write({"town.txt": text, "nodes.csv": NODES}))
        assert graph.edges.tolist() == EDGES and not graph.weighted
        (note,) = [m for m in graph.messages if m.code == "columns-not-used"]
        assert remedy in note.remedy
    card = "edges: {file: town.txt, source: '1', target: '2', weight: '3'}\nnodes: nodes.csv\n"
    assert load(write({"dataset.yaml": card})).edge_weights.tolist() == [3, 4, 8]


def test_a_line_that_counts_nodes_and_edges_is_asked_for(write):
    nodes = "id,g\n1,x\n2,y\n3,x\n4,y\n"
    rows = "4 2\n1 2\n2 3\n"
    with pytest.raises(GraphError, match=r"town.txt: its first line \(4 2\) seems to say how many nodes and edges"):
        load(write({"town.txt": rows, "nodes.csv": nodes}))
    assert load(write({"town.txt": "source target\n" + rows, "nodes.csv": nodes})).num_edges == 3
    assert load(write({"town.txt": rows[4:], "nodes.csv": nodes})).num_edges == 2


@pytest.mark.parametrize("name", ["town.txt", "town.ncol", "TOWN.TXT"])
@pytest.mark.parametrize("weight", ["", " 2"])
def test_names_as_igraph_writes_them(write, name, weight):
    rows = f"Ann Bob{weight}\nCy Bob{weight}\nCy Dee{weight}\n"
    graph = load(write({name: rows, "nodes.csv": "id,g\nAnn,x\nBob,y\nCy,x\nDee,y\n"}))
    assert (graph.layout, graph.edges.tolist()) == ("edge-list", EDGES)


def test_embeddings_are_no_edges(write):
    tables = {"edges.csv": "source,target\n30,7\n12,7\n12,5\n", "nodes.csv": NODES}
    vectors = "4 2\n30 0.5 0.25\n7 0.5 -0.25\n12 0.5 0.75\n5 0.5 0.75\n"
    assert load(write({**tables, "emb.txt": vectors, "train.txt": ROWS})).layout == "tables"
