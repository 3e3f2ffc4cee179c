"""A graph in one file: GraphML, GEXF or GML, plain or gzipped.

What a file is its beginning says, as GraphML is also called .xml and .gml. The attributes of the nodes get their roles
by the same rules as a table's columns. GraphML and GEXF are XML: a file with a document type declaration is refused
before anything else is parsed, so that no entity, inner or outer, is ever resolved. GML is parsed by networkx, which is
loaded only then.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from uge_core.datasets.beginnings import begin, reason
from uge_core.datasets.bounded import open_bytes
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.graph_xml import Parsed, read_gexf, read_graphml
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.records import Records, graph_bytes, labels_as_ids, text_of
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_READERS = {"graphml": read_graphml, "gexf": read_gexf}
_KINDS = {".graphml": "GraphML", ".xml": "GraphML", ".gexf": "GEXF", ".gml": "GML"}
_PEEK = 2**14
_XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<")
_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:graphml|gexf)[\s>]")
_LIKE_GML = re.compile(rb"\bgraph\s*\[", re.IGNORECASE)
_GML_GRAPH = re.compile(r'"[^"]*"|\b(graph)\s*\[')
_GML_COMMENT = re.compile(r'("[^"]*")|#[^\n]*')
_GML_NAN = re.compile(r"^(\s*\w+\s+)nan(?=\s*$)", re.IGNORECASE | re.MULTILINE)


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = dataset.files["graph"]
    data = graph_bytes(path)
    gml = _XML.match(data) is None
    parsed = _of_gml(path, data) if gml else _of_xml(path, data)
    if not parsed.ids:
        raise GraphError(f"{path.name}: the graph has no nodes; at least one edge between two nodes is needed")
    place = {node: i for i, node in enumerate(parsed.ids)}
    ends = np.array([(place[a], place[b]) for a, b in parsed.ends], dtype=np.int64).reshape(-1, 2)
    ids, called = _called(path.name, parsed, gml=gml)
    about = NodeColumns.join([parsed.about, called])
    records = Records(path, ids, parsed.nodes, ends[:, 0], ends[:, 1], parsed.edges, parsed.directed, about)
    return records.graph(dataset.name, "graph-file", asked)


def _called(file: str, parsed: Parsed, *, gml: bool) -> tuple[list[str], NodeColumns]:
    """What the nodes are called.

    In GML it is their labels, where each has one of its own: networkx writes what people call their nodes as labels, and
    0, 1, 2 as ids. Elsewhere it is their ids, or igraph's names where it numbered the nodes 0, 1 or n0, n1; names that
    are partly the same as such numbers stay an attribute.
    """
    key, labels = "label", [text_of(row.get("label")) for row in parsed.nodes]
    if not gml or not any(labels):
        key, labels = "name", [text_of(row.get("name")) for row in parsed.nodes]
        numbers = [str(i) for i in range(len(labels))]
        if parsed.ids != numbers and parsed.ids != [f"n{i}" for i in numbers]:
            return parsed.ids, NodeColumns()
        if not gml and not set(parsed.ids).isdisjoint(filter(None, labels)):
            return parsed.ids, NodeColumns()
    taken = labels_as_ids(file, parsed.ids, labels, f"{key}s")
    if taken is None:
        return parsed.ids, NodeColumns()
    for row in parsed.nodes:
        del row[key]
    return taken


def _of_xml(path: Path, data: bytes) -> Parsed:
    """The graph of a GraphML or a GEXF file."""
    kind = _KINDS[_ending(path)]
    _refuse_dtd(path, kind, data)
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as e:
        raise _damaged(path, kind, e) from None
    name = root.tag.rpartition("}")[2]
    if name.lower() not in _READERS:
        wanted = "graphml" if kind == "GML" else kind.lower()
        raise GraphError(
            f"{path.name}: cannot be read as {kind} (its outermost element is <{name}>, not <{wanted}>); export it "
            "again, or as edges.csv and nodes.csv"
        )
    return _READERS[name.lower()](path.name, root)


def _refuse_dtd(path: Path, kind: str, data: bytes) -> None:
    """Refuses XML that declares a document type, which it can before its first element alone."""

    class Begun(Exception):
        """The first element is reached."""

    def declared(*_: object) -> NoReturn:
        raise GraphError(
            f"{path.name}: holds a document type declaration (DTD), whose entities are never resolved; "
            "remove the <!DOCTYPE ...> part"
        )

    def begun(*_: object) -> NoReturn:
        raise Begun

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.StartElementHandler = begun
    try:
        parser.Parse(data, True)
    except Begun:
        return
    except (expat.ExpatError, ValueError, LookupError) as e:
        raise _damaged(path, kind, e) from None


def _damaged(path: Path, kind: str, error: Exception) -> GraphError:
    return GraphError(f"{path.name}: is damaged XML ({error}); export it as {kind} again")


def _of_gml(path: Path, data: bytes) -> Parsed:
    """The graph of a GML file."""
    ending = _ending(path)
    if ending != ".gml":
        found = "it does not begin like XML; export it again, or as edges.csv and nodes.csv"
        if _LIKE_GML.search(data[:_PEEK]):
            found = "it looks like GML; rename it to end in .gml"
        raise GraphError(f"{path.name}: cannot be read as {_KINDS[ending]}: {found}")
    begin(path, "utf-8-sig")
    try:
        import networkx as nx
    except ImportError:
        raise GraphError(
            f"{path.name}: reading this file needs networkx; install it, or write edges.csv and nodes.csv"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = _gml(nx, path.name, data.decode("utf-8-sig"))
    except GraphError:
        raise
    except UnicodeDecodeError as e:
        raise GraphError(f"{path.name}: {reason(path, e, 'utf-8-sig')}") from None
    except Exception as e:  # whatever a damaged file makes of networkx's reader
        said = (str(e).strip().splitlines() or [type(e).__name__])[0].rstrip(".")
        raise GraphError(
            f"{path.name}: cannot be read as GML ({said}); export it again, or as edges.csv and nodes.csv"
        ) from None
    links = list(graph.edges(data=True))
    return Parsed(
        list(map(str, graph.nodes)),
        [dict(values) for _, values in graph.nodes(data=True)],
        [(str(a), str(b)) for a, b, _ in links],
        [values for _, _, values in links],
        graph.is_directed(),
        NodeColumns(),
    )


def _gml(nx: Any, file: str, text: str) -> Any:
    """The graph of a GML file as networkx has it; an edge may stand several times."""
    if "#" in text:
        text = _GML_COMMENT.sub(lambda m: m[1] or "", text)
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
    above = {values.get("gid") for _, values in graph.nodes(data=True)}  # yEd's groups
    groups = [
        n
        for n, values in graph.nodes(data=True)
        if isinstance(values.get("graph"), dict | list)
        or n in above
        or str(values.get("isGroup", 0)) not in ("0", "0.0")
    ]
    if groups:
        raise GraphError(
            f"{file}: {counted(len(groups), 'graph')} nested in others, first in node {groups[0]}; nested graphs are "
            "not read: ungroup them in the program that made the file, or move all nodes and edges into the outer "
            "graph and remove the nodes that stood for groups"
        )
    return graph


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _begins(path: Path) -> bool:
    """Whether a file is a graph by its name, or, where it is called .xml, by its first elements."""
    if _ending(path) != ".xml":
        return True
    with open_bytes(path) as file:
        return _ROOT.search(file.read(_PEEK).replace(b"\0", b"")) is not None


POSITION = 100
LAYOUTS = (
    Layout(
        "graph-file",
        "a graph file",
        (Part("graph", ("{}.graphml", "{}.gexf", "{}.gml", "{}.xml"), "nodes with attributes, and edges"),),
        _read,
        begins=_begins,
    ),
)
