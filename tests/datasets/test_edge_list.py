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
