"""A graph in one file: GraphML, GEXF or GML, plain or gzipped.

networkx reads them and is loaded only then. The attributes of the nodes get their roles by the
same rules as a table's columns. GraphML and GEXF are XML: a file with a document type declaration
is refused before anything is parsed, so that no entity, inner or outer, is ever resolved.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import WEIGHTS, edge_columns, finish
from uge_core.datasets.bounded import is_gzip, read_bytes, unpacked_limit
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.drawing import DRAWN, drawn
from uge_core.datasets.graph_xml import read_gexf, read_graphml
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import Table, counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Message

MOST_BYTES = 2**28
"""networkx needs some twenty times a file's size in memory."""
_KINDS = {".graphml": "GraphML", ".gexf": "GEXF", ".gml": "GML"}
_GML_GRAPH = re.compile(r'"[^"]*"|#[^\n]*|\b(graph)\s*\[')
_GML_NAN = re.compile(r"^(\s*\w+\s+)nan(?=\s*$)", re.IGNORECASE | re.MULTILINE)
_ENDS = ("source", "target")


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = dataset.files["graph"]
    graph, about = _parse(path)
    if not graph.number_of_nodes():
        raise GraphError(f"{path.name}: the graph has no nodes; at least one edge between two nodes is needed")
    number = {node: i for i, node in enumerate(graph.nodes)}
    links = list(graph.edges(data=True))
    source = np.array([number[u] for u, _, _ in links], dtype=np.int64)
    target = np.array([number[v] for _, v, _ in links], dtype=np.int64)
    records = Records(
        path,
        pd.Index([str(n) for n in graph.nodes], dtype=object),
        [graph.graph.get("node_default", {}) | data for _, data in graph.nodes(data=True)],
        source,
        target,
        [graph.graph.get("edge_default", {}) | data for _, _, data in links],
        graph.is_directed(),
        about,
    )
    return records.graph(dataset.name, "graph-file", asked)


@dataclass(frozen=True, eq=False)
class Records:
    """A graph whose nodes and edges have values by name.

    Attributes:
        path: its file.
        ids: (N,) of the nodes.
        nodes: (N,) their values.
        source: (M,) the position of one end of each edge.
        target: (M,) the position of the other.
        edges: (M,) their values.
        directed: edges run from source to target.
        about: what is to be said besides.
    """

    path: Path
    ids: pd.Index
    nodes: Sequence[Mapping[str, Any]]
    source: IntArray
    target: IntArray
    edges: Sequence[Mapping[str, Any]]
    directed: bool
    about: NodeColumns

    def graph(self, name: str, layout: str, asked: Asked) -> AttributedGraph:
        """The graph, values that describe nodes having roles as a table's columns have.

        Raises:
            GraphError: an id that stands twice, or weights that are none.
        """
        ids = self.ids
        if ids.has_duplicates:
            raise GraphError(
                f"{self.path.name}: the id {ids[ids.duplicated()][0]!r} stands twice; each node needs its own"
            )
        nodes, nested = _table(self.path, self.nodes)
        parts = [
            NodeColumns(columns=(Column(self.path.name, "(node)", "id"), *nested)),
            self.about,
            _people(nodes, nested, asked),
            _edges(self.path, ids, self.source, self.target, self.edges),
            NodeColumns(directed=self.directed),
        ]
        described = NodeColumns.join(parts)
        return finish(name, layout, self.source, self.target, len(ids), described, node_ids=ids)


def _people(nodes: Table, nested: tuple[Column, ...], asked: Asked) -> NodeColumns:
    """The roles of the nodes' attributes; those of a drawing are none unless the user names them."""
    looks = drawn(nodes.names)
    part = assign(nodes, {n.lower(): Role("ignored", detail=DRAWN) for n in looks}, Role("auto"), asked)
    ignored = [c.name for c in (*nested, *part.columns) if c.role == "ignored" and c.detail.startswith(DRAWN)]
    if not ignored:
        return part
    text = (
        f"{nodes.file}: {counted(len(ignored), 'column')} ignored that {'says' if len(ignored) == 1 else 'say'} how a "
        f"drawing looks: {', '.join(ignored[:10])}{', ...' * (len(ignored) > 10)}"
    )
    remedy = "nothing to do; name one with --attributes if it describes people"
    message = Message("note", "drawing-columns", text, len(ignored), tuple(ignored[:5]), remedy)
    return NodeColumns.join([part, NodeColumns(messages=(message,))])


def _parse(path: Path) -> tuple[Any, NodeColumns]:
    """The file as networkx has it, and what is to be said about it."""
    try:
        import networkx  # noqa: F401
    except ImportError:
        raise GraphError(
            f"{path.name}: reading this file needs networkx; install it, or write edges.csv and nodes.csv"
        ) from None
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    kind = _KINDS[suffix]
    try:
        if path.suffix == ".gz" and not is_gzip(path):
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        data = read_bytes(path, min(MOST_BYTES, unpacked_limit()))
    except (OSError, EOFError, zlib.error):
        raise GraphError(f"{path.name}: the file cannot be read, or its gzip data are damaged") from None
    if suffix != ".gml":
        _refuse_dtd(path, kind, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suffix == ".graphml":
                return _by_name(path.name, *read_graphml(path.name, data))
            if suffix == ".gexf":
                return read_gexf(path.name, data)
            return _by_label(path.name, _gml(path.name, data.decode("utf-8-sig")))
    except GraphError:
        raise
    except Exception as e:  # whatever a damaged file makes of networkx's readers
        reason = (str(e).strip().splitlines() or [type(e).__name__])[0].rstrip(".")
        raise GraphError(
            f"{path.name}: cannot be read as {kind} ({reason}); export it again, or as edges.csv and nodes.csv"
        ) from None


def _gml(file: str, text: str) -> Any:
    """The graph of a GML file as networkx has it; an edge may stand several times."""
    import networkx as nx

    try:
        graph = nx.parse_gml(text.splitlines(), label=None)
    except nx.NetworkXError as e:
        if "more than one graph" in str(e):
            raise GraphError(
                f"{file}: holds several graphs; one graph is read from a file: save each as a file of its own"
            ) from None
        told = _GML_NAN.sub(r"\1NAN", text)
        if "is duplicated" in str(e) and str(e).startswith("edge"):
            told = _GML_GRAPH.sub(lambda m: f"{m[0]} multigraph 1 " if m[1] else m[0], told)
        if told == text:
            raise
        graph = nx.parse_gml(told.splitlines(), label=None)
    groups = [n for n, data in graph.nodes(data=True) if isinstance(data.get("graph"), dict | list)]
    if groups:
        raise GraphError(
            f"{file}: {counted(len(groups), 'graph')} nested in others, first in node {groups[0]}; nested graphs are "
            "not read: ungroup them in the program that made the file, or move all nodes and edges into the outer "
            "graph and remove the nodes that stood for groups"
        )
    return graph


def _by_label(file: str, graph: Any) -> tuple[Any, NodeColumns]:
    """A graph of GML with the nodes' labels as ids, where each has one of its own: writers number nodes anew.

    networkx writes what people call their nodes as labels, and 0, 1, 2 as ids.
    """
    import networkx as nx

    labels = {n: _cell(data.get("label")) for n, data in graph.nodes(data=True)}
    if set(labels.values()) == {None}:
        return _by_name(file, graph, NodeColumns())
    if None in labels.values() or len(set(labels.values())) < len(labels):
        return graph, NodeColumns()
    for _, data in graph.nodes(data=True):
        del data["label"]
    ids = set(map(str, labels))
    moved = sum(str(n) != label for n, label in labels.items())
    if not moved:
        return graph, NodeColumns()
    column = Column(file, "id", "ignored", "numbers of the file's writer; labels are the ids")
    messages: tuple[Message, ...] = ()
    if ids & set(labels.values()):
        text = (
            f"{file}: ids and labels are partly the same names, but of {counted(moved, 'node')} they differ; labels are "
            "taken, so rows of an embedding must be keyed by the label"
        )
        remedy = "if your embedding is keyed by id, remove the labels from the file"
        messages = (Message("warning", "labels-and-ids", text, moved, remedy=remedy),)
    return nx.relabel_nodes(graph, labels), NodeColumns(columns=(column,), messages=messages)


def _by_name(file: str, graph: Any, about: NodeColumns) -> tuple[Any, NodeColumns]:
    """The same with igraph's names as ids, where its nodes are numbered n0, n1, or 0, 1, and each has a name of its own."""
    import networkx as nx

    names = {n: _cell(data.get("name")) for n, data in graph.nodes(data=True)}
    if not names or None in names.values() or len(set(names.values())) < len(names):
        return graph, about
    counted_ids = [str(n).removeprefix("n") for n in names]
    if counted_ids != [str(i) for i in range(len(names))] or list(map(str, names)) == list(names.values()):
        return graph, about
    for _, data in graph.nodes(data=True):
        del data["name"]
    column = Column(file, "id", "ignored", "numbers of the file's writer; names are the ids")
    return nx.relabel_nodes(graph, names), NodeColumns.join([about, NodeColumns(columns=(column,))])


def _refuse_dtd(path: Path, kind: str, data: bytes) -> None:
    """Refuses XML that is damaged or declares a document type."""

    def declared(*_: object) -> None:
        raise GraphError(
            f"{path.name}: holds a document type declaration (DTD), whose entities are never resolved; "
            "remove the <!DOCTYPE ...> part"
        )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as e:
        raise GraphError(f"{path.name}: is damaged XML ({e}); export it as {kind} again") from None


def _table(path: Path, rows: Sequence[Mapping[str, Any]]) -> tuple[Table, tuple[Column, ...]]:
    """Attributes as a table of text, one row per node or edge; those that are lists or records are left out."""
    names = list(dict.fromkeys(str(k) for row in rows for k in row))
    nested = {str(k) for row in rows for k, v in row.items() if isinstance(v, dict | list | tuple | set)}
    kept = {n: [_cell(row.get(n)) for row in rows] for n in names if n not in nested}
    frame = pd.DataFrame(kept, index=pd.RangeIndex(1, len(rows) + 1), dtype="str")
    frame.columns = pd.Index([re.sub(r"\s+", " ", n).strip() for n in kept], dtype=object)
    frame = frame.loc[:, ~frame.columns.duplicated()]
    looks = set(drawn(names))
    return Table(path.name, frame), tuple(
        Column(path.name, n, "ignored", DRAWN if n in looks else "holds records") for n in sorted(nested)
    )


def _cell(value: object) -> str | None:
    """One value as text; an empty one is missing."""
    if value is None or value == "" or value != value:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _edges(path: Path, ids: pd.Index, source: Any, target: Any, rows: Sequence[Mapping[str, Any]]) -> NodeColumns:
    """The roles of the edges' own attributes.

    An edge without a weight among others that have one weighs 1, as in GEXF.
    """
    table, nested = _table(path, rows)
    own = table.frame.drop(columns=[c for c in table.names if c.lower() in _ENDS])
    weight = table.column(*WEIGHTS)
    if weight is not None and own[weight].notna().any():
        own[weight] = own[weight].fillna("1")
    ends = pd.DataFrame({"source": ids[source], "target": ids[target]}, index=own.index, dtype="str")
    described = edge_columns(Table(path.name, pd.concat([ends, own], axis=1)), _ENDS)
    return NodeColumns.join([described, NodeColumns(columns=nested)])


POSITION = 100
LAYOUTS = (
    Layout(
        "graph-file",
        "a graph file",
        (Part("graph", ("{}.graphml", "{}.gexf", "{}.gml"), "nodes with attributes, and edges"),),
        _read,
    ),
)
