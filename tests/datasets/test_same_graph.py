"""Random graphs in every form that holds nodes and edges: each is the same graph."""

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from uge_core.datasets import load

nx = pytest.importorskip("networkx")
VALUES = ("red", "blue", "green")


@st.composite
def graphs(draw):
    """Ids, values and edges of weight 1 to 9; every value is somebody's."""
    n = draw(st.integers(4, 14))
    kind = draw(st.sampled_from(["text", "numbers", "zeros"]))
    ids = draw(st.permutations(range(n)))
    written = {
        "text": [f"p {i}" for i in ids],
        "numbers": [str(i * 7 + 3) for i in ids],
        "zeros": [f"0{i * 5 + 2}" for i in ids],
    }
    values = [VALUES[i] if i < 3 else draw(st.sampled_from(VALUES)) for i in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=2, max_size=20, unique=True))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    return written[kind], values, edges, weights


def tables(ids, values, edges, weights):
    rows = (f"{ids[i]},{ids[j]},{w}\n" for (i, j), w in zip(edges, weights, strict=True))
    nodes = "id,g\n" + "".join(f"{i},{v}\n" for i, v in zip(ids, values, strict=True))
    return {"nodes.csv": nodes, "edges.csv": "source,target,weight\n" + "".join(rows)}


def matrix_market(ids, values, edges, weights):
    rows, columns = np.array(edges).T
    lower = sp.coo_array((weights, (rows, columns)), shape=(len(ids), len(ids)))
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, (lower + lower.T).tocoo())
    return {"nodes.csv": tables(ids, values, edges, weights)["nodes.csv"], "g.mtx": buffer.getvalue()}


def made(ids, values, edges, weights):
    graph = nx.Graph()
    graph.add_nodes_from((i, {"g": v}) for i, v in zip(ids, values, strict=True))
    graph.add_weighted_edges_from((ids[i], ids[j], w) for (i, j), w in zip(edges, weights, strict=True))
    return graph


def node_link(*graph):
    return {"g.json": json.dumps(nx.node_link_data(made(*graph), edges="links"))}


def pajek(*graph):
    buffer = io.BytesIO()
    nx.write_pajek(made(*graph), buffer)
    return {"g.net": buffer.getvalue()}


def konect(ids, values, edges, weights):
    rows = "".join(f"{i + 1} {j + 1} {w}\n" for (i, j), w in zip(edges, weights, strict=True))
    return {"out.g": f"% sym posweighted\n% {len(edges)} {len(ids)}\n{rows}", "ent.g.person.g": "\n".join(values)}


def ego(ids, values, edges, weights):
    names = "".join(f"{i} g;{v}\n" for i, v in enumerate(VALUES))
    feat = "".join(
        f"{i.replace(' ', '')} {' '.join('01'[v == w] for w in VALUES)}\n" for i, v in zip(ids, values, strict=True)
    )
    rows = "".join(f"{ids[i]},{ids[j]}\n".replace(" ", "").replace(",", " ") for i, j in edges)
    return {"1.featnames": names, "1.feat": feat, "1.edges": rows}


def read(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content.encode() if isinstance(content, str) else content)
        graph = load(folder)
    g = graph.attribute("g")
    return graph, [g.labels[c] for c in g.codes]


@settings(deadline=None, max_examples=8)
@given(graphs())
def test_every_form_is_the_same_graph(graph):
    ids, values, edges, _ = graph
    plain, _ = read(tables(*graph))
    assert plain.num_edges == len(edges)
    for form in (tables, matrix_market, node_link, pajek, konect, ego):
        found, said = read(form(*graph))
        assert said == values, form
        assert found.edges.tolist() == plain.edges.tolist(), form
        assert not found.directed
        if form is not konect:
            assert [i.replace(" ", "") for i in found.ids(slice(None))] == [i.replace(" ", "") for i in ids], form
        if form is not ego and plain.weighted:
            assert found.edge_weights.tolist() == plain.edge_weights.tolist(), form
