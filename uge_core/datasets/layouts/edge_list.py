"""A list of edges as SNAP writes them, ``NAME.txt``, beside ``nodes.csv``: two ids a line, comments with # above.

``NAME.ncol``, as igraph writes it, is such a list. A comment ``# Directed graph`` says that edges have a direction. What
the columns are is decided as for `tables`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from uge_core.datasets.beginnings import begin
from uge_core.datasets.bounded import open_bytes
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined, read_any
from uge_core.datasets.tables import Table
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Message

_PEEK = 2**16
_LINES = 20
_EDGE = re.compile(r"\s*\d+(?:\s+|\s*[,;]\s*)\d+(?:[\s,;].*)?")
_VECTOR = re.compile(r"\s*\S+[\s,;]+-?\d*\.\d.*")
_NAMES = re.compile(r"\s*[^\s,;]+[ \t][^\s,;]+(?:[ \t]\d+(?:\.\d+)?)?\s*")
_DIRECTED = re.compile(r"#\s*directed\b", re.IGNORECASE)


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["edges"]
    nodes, edges = read_any(found.files["nodes"]), read_any(path)
    directed = any(map(_DIRECTED.match, begin(path, "utf-8-sig", comments=True).comments))
    if not edges.headless or len(edges.names) < 2:
        return joined(found.name, "edge-list", nodes, edges, asked, directed=directed)
    _refuse_counts(edges, len(nodes))
    graph = joined(found.name, "edge-list", nodes, edges, asked, directed=directed)
    unused = [c.name for c in graph.columns if c.file == edges.file and c.role == "ignored"]
    if not unused:
        return graph
    text = (
        f"{edges.file}: beside the ends of edges, what stands behind them (column {', '.join(unused[:5])}) is not used"
    )
    remedy = f"if it is a weight, name it in dataset.yaml: edges: {{file: {edges.file}, weight: {unused[0]!r}}}"
    if edges.frame[unused[0]].astype(str).str.startswith("{").any():
        remedy = "networkx writes weights without their names by write_weighted_edgelist"
    message = Message("note", "columns-not-used", text, len(unused), tuple(unused[:5]), remedy)
    return replace(graph, messages=(*graph.messages, message))


def _refuse_counts(edges: Table, size: int) -> None:
    """Refuses a first line that says how many nodes and edges there are: it would be an edge.

    Raises:
        GraphError: it does.
    """
    cells = [str(cell) for cell in edges.frame.iloc[0]]
    counts = {str(size), str(len(edges) - 1)}
    if len(cells) == 2 and {*cells} == counts:
        raise GraphError(
            f"{edges.file}: its first line ({' '.join(cells)}) seems to say how many nodes and edges there are; remove that "
            "line, or write a line source target above it if it is an edge"
        )


def _begins(path: Path) -> bool | None:
    """Whether the first lines below comments are edges: other texts, such as embeddings, lie beside graphs too.

    It cannot be told for sure, so that other graphs come before.
    """
    with open_bytes(path) as f:
        lines = f.read(_PEEK).decode("latin-1").removeprefix("\xef\xbb\xbf").splitlines()
    first = [line for line in lines if line.strip() and not line.startswith("#")][:_LINES]
    if not first or any(map(_VECTOR.fullmatch, first[1:2])):
        return False
    numbers = _EDGE.fullmatch(first[0]) is not None
    names = len(first) > 2 and all(map(_NAMES.fullmatch, first))
    return None if numbers or names or ".ncol" in path.name.lower() else False


POSITION = 98
LAYOUTS = (
    Layout(
        "edge-list",
        "SNAP's lists of edges",
        (
            Part("edges", ("{}.txt", "{}.ncol"), "two ids a line"),
            Part(
                "nodes",
                ("nodes.csv", "nodes.parquet"),
                "a header with the column id and one row per node, attributes in the others",
                telling=False,
            ),
        ),
        _read,
        begins=_begins,
    ),
)
