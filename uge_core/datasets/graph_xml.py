"""GraphML and GEXF before networkx builds the graph: what it would read wrong without a word is put right or refused.

Several graphs or nested ones are refused; namespaces are those of any version; values are brought into
one way of writing, and those that are not given are missing; values over time are read where each node
has one; how a drawing looks is left out.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn
from xml.etree import ElementTree

from uge_core.datasets.assemble import WEIGHTS
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.drawing import DRAWN
from uge_core.datasets.findings import says_not_given
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import Column, Message

Element = ElementTree.Element
_GRAPHML = "http://graphml.graphdrawing.org/xmlns"
_GEXF = "http://www.gexf.net/1.2draft"
_KNOWN = {
    _GRAPHML: re.compile(r"https?://(?:www\.)?graphml\.graphdrawing\.org(?:/.*)?", re.IGNORECASE),
    _GEXF: re.compile(r"https?://(?:www\.)?(?:gexf\.net|gephi\.org/gexf)(?:/.*)?", re.IGNORECASE),
}
_TRUTHS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_WHOLE = ("int", "integer", "long", "short", "byte", "biginteger")
_NUMBER = ("float", "double", "bigdecimal")
_BOOLEAN = ("boolean", "bool")
_NOT_GIVEN = ("", "nan", "na", "n/a", "#n/a", "null", "nil", "none", "-", "--", "?", ".")
_TIMES = ("start", "end", "startopen", "endopen", "timestamp", "timestamps", "intervals")
_FIRST = 3


def read_graphml(file: str, data: bytes) -> tuple[Any, NodeColumns]:
    """The graph of a GraphML file as networkx has it, and what is to be said about it.

    Raises:
        GraphError: it holds several graphs, nested ones, or values that are not of their key's type.
    """
    from networkx.readwrite.graphml import GraphMLReader

    root = _root(file, data, "graphml", _GRAPHML)
    graph = _only_graph(file, root, _GRAPHML)
    nodes, edges = (graph.findall(_tag(_GRAPHML, kind)) for kind in ("node", "edge"))
    if graph.find(_tag(_GRAPHML, "hyperedge")) is not None:
        raise GraphError(
            f"{file}: holds <hyperedge> elements, which join more than two nodes and are not read; write an <edge> for "
            "each pair of nodes that they join"
        )
    _check_ids(file, nodes, edges)
    _set_direction(graph, edges, graph, "edgedefault", "directed", ("true", "false"))
    values = _Values(file)
    keys = _graphml_keys(root, values)
    for kind, elements in (("node", nodes), ("edge", edges)):
        for element in elements:
            _graphml_values(file, kind, element, keys, values)
    for element in graph.findall(_tag(_GRAPHML, "data")):  # of the graph as a whole
        graph.remove(element)
    reader = GraphMLReader()
    found, defaults = reader.find_graphml_keys(root)
    read = reader.make_graph(graph, found, defaults)
    for key, value in defaults.items():
        if found[key]["for"] in (None, "all"):  # "all" is what a key is for unless it says so
            read.graph["node_default"].setdefault(found[key]["name"], value)
            read.graph["edge_default"].setdefault(found[key]["name"], value)
    return read, NodeColumns(messages=values.messages())


def read_gexf(file: str, data: bytes) -> tuple[Any, NodeColumns]:
    """The graph of a GEXF file as networkx has it, and what is to be said about it.

    Raises:
        GraphError: it holds several graphs, nested ones, or values that are not of their attribute's type.
    """
    from networkx.readwrite.gexf import GEXFReader

    root = _root(file, data, "gexf", _GEXF)
    graph = _only_graph(file, root, _GEXF)
    nodes, edges = (_gathered(graph, kind) for kind in ("node", "edge"))
    _check_ids(file, nodes, edges)
    _set_direction(
        graph, edges, graph.find(_tag(_GEXF, "edges")), "defaultedgetype", "type", ("directed", "undirected")
    )
    said = [_without_drawing(file, [*nodes, *edges]), _without_times(file, nodes, edges)]
    values = _Values(file)
    for kind, elements in (("node", nodes), ("edge", edges)):
        said.append(_gexf_values(file, kind, graph, elements, values))
    for edge in edges:
        edge.attrib.pop("id", None)  # edges with one id would become one edge
        if "weight" in edge.attrib:
            edge.set("weight", values.of_type("double", edge.get("weight"), "edge", _named(edge), "weight"))
    reader = GEXFReader()
    return reader.make_graph(graph), NodeColumns.join([*said, NodeColumns(messages=values.messages())])


def _tag(space: str, name: str) -> str:
    """How ElementTree calls an element of a namespace."""
    return f"{{{space}}}{name}"


def _local(element: Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _named(element: Element) -> str:
    """What an element is called in messages."""
    if _local(element) == "node":
        return repr(element.get("id"))
    return f"{element.get('source')} - {element.get('target')}"


def _root(file: str, data: bytes, name: str, space: str) -> Element:
    """The outermost element, with every namespace of the format's versions written as `space`."""
    kind = "GraphML" if space == _GRAPHML else "GEXF"
    root = ElementTree.fromstring(data)
    found = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else ""
    if _local(root).lower() != name:
        raise GraphError(
            f"{file}: cannot be read as {kind} (its outermost element is <{_local(root)}>, not <{name}>); export it "
            "again, or as edges.csv and nodes.csv"
        )
    if found and not _KNOWN[space].fullmatch(found):
        raise GraphError(
            f"{file}: cannot be read as {kind}: its namespace {found!r} is none of {kind}'s; allowed: {space} and "
            f'other versions of it; write <{name} xmlns="{space}">'
        )
    for element in root.iter():
        own, _, local = element.tag.rpartition("}")
        if not own:
            element.tag = _tag(space, local)
        elif _KNOWN[space].fullmatch(own[1:]):
            element.tag = f"viz:{local}" if own.rstrip("/").endswith("/viz") else _tag(space, local)
    return root


def _only_graph(file: str, root: Element, space: str) -> Element:
    """The one graph of the file, which holds no other."""

    def contents(of: Element) -> str:
        nodes, edges = (sum(e is not of for e in of.iter(_tag(space, kind))) for kind in ("node", "edge"))
        return f"{counted(nodes, 'node')}, {counted(edges, 'edge')}"

    graphs = root.findall(_tag(space, "graph"))
    if not graphs:
        raise GraphError(f"{file}: holds no <graph> element; export it again, or as edges.csv and nodes.csv")
    if len(graphs) > 1:
        named = [f"{g.get('id') or g.get('name') or i!s} ({contents(g)})" for i, g in enumerate(graphs[:5], start=1)]
        raise GraphError(
            f"{file}: holds {len(graphs)} graphs: {'; '.join(named)}{'; ...' * (len(graphs) > 5)}; one graph is read "
            "from a file: save each as a file of its own, or leave only one <graph> element in it"
        )
    (graph,) = graphs
    inner = [g for g in graph.iter(_tag(space, "graph")) if g is not graph]
    owners = [n for n in graph.iter(_tag(space, "node")) if any(_local(c) in ("graph", "nodes", "edges") for c in n)]
    if inner or owners:
        first = f", first in node {owners[0].get('id')!r} ({contents(owners[0])})" if owners else ""
        raise GraphError(
            f"{file}: {counted(max(len(inner), len(owners)), 'graph')} nested in others{first}; nested graphs are not "
            "read: ungroup them in the program that made the file, or move all <node> and <edge> elements into the "
            "outer graph and remove the nodes that stood for groups"
        )
    return graph


def _check_ids(file: str, nodes: Sequence[Element], edges: Sequence[Element]) -> None:
    """Refuses nodes without an id or with the same one, and edges to nodes that are not there."""
    ids: set[str | None] = set()
    for node in nodes:
        own = node.get("id")
        if own is None:
            raise GraphError(f"{file}: a <node> has no id; give each node its own")
        if own in ids:
            raise GraphError(f"{file}: the id {own!r} stands twice; each node needs its own")
        ids.add(own)
    lost = [e for e in edges if e.get("source") not in ids or e.get("target") not in ids]
    if lost and nodes:
        first = ", ".join(f"{e.get('source')} - {e.get('target')}" for e in lost[:_FIRST])
        raise GraphError(
            f"{file}: {counted(len(lost), 'edge')} with an end that no <node> describes, first: {first}; add a <node> "
            "for it or remove the edge"
        )


def _set_direction(
    graph: Element, edges: list[Element], parent: Element | None, whole: str, own: str, words: tuple[str, str]
) -> None:
    """Writes the direction of edges at the graph alone; among directed edges one without direction runs both ways."""
    default = (graph.get(whole) or "").strip().lower() == "directed"
    plain: list[Element] = []
    for edge in edges:
        word = (edge.attrib.pop(own, None) or "").strip().lower()
        if not (word == words[0] or (default and word not in (words[1], "mutual"))):
            plain.append(edge)
    directed = len(plain) < len(edges) or (default and not edges)
    graph.set(whole, "directed" if directed else "undirected")
    if directed and parent is not None:
        for edge in plain:
            back = copy.deepcopy(edge)
            back.attrib["source"], back.attrib["target"] = edge.attrib["target"], edge.attrib["source"]
            parent.append(back)
            edges.append(back)


def _truth(text: str) -> str | None:
    """A boolean as it is written everywhere, or None."""
    return _TRUTHS.get(text.lower())


def _number(text: str, whole: bool) -> str | None:
    """A number as Python writes it, or None; whole ones keep all digits."""
    try:
        number = float(text)
        if whole and number.is_integer():
            return str(int(text) if re.fullmatch(r"[+-]?\d+", text) else int(number))
    except ValueError:
        return None
    return None if number != number else str(number)


class _Values:
    """Values of a type, brought into one way of writing; counts those that are not given."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.first: list[str] = []

    def of_type(self, kind: str, text: str | None, owner: str, named: str, key: str) -> str:
        """The value as text, empty where it is not given.

        Args:
            kind: the type in the file.
            text: the value in the file.
            owner: node, edge or default.
            named: what the node or edge is called.
            key: the name of the attribute.

        Raises:
            GraphError: it is not of the type.
        """
        if kind not in _WHOLE + _NUMBER + _BOOLEAN:
            return text or ""
        text = (text or "").strip()
        written = _truth(text) if kind in _BOOLEAN else _number(text, kind in _WHOLE)
        weighs = owner == "edge" and key.lower() in WEIGHTS  # other values of edges are not used
        if written is None and text.lower() not in _NOT_GIVEN and not says_not_given(text):
            if owner != "edge" or weighs:
                self._refuse(kind, text, f"{owner} {named}".strip(), key)
        elif written is None and weighs:
            self._refuse(kind, text, f"{owner} {named}", key)
        if written is None and owner == "node":
            self.count += 1
            if len(self.first) < _FIRST:
                self.first.append(f"node {named}, {key}: {text!r}")
        return written or ""

    def _refuse(self, kind: str, text: str, where: str, key: str) -> NoReturn:
        needed = "true or false" if kind in _BOOLEAN else "a whole number" if kind in _WHOLE else "a number"
        instead = "1" if where.startswith("edge") else "nothing where none is known, or give it the type string"
        raise GraphError(
            f"{self.file}: {where}: {key!r} is of type {kind} and holds {text!r}; write {needed}, or {instead}"
        )

    def messages(self) -> tuple[Message, ...]:
        """What is to be said about values that are not given."""
        if not self.count:
            return ()
        text = f"{self.file}: {counted(self.count, 'value')} of a number or a boolean taken as not given"
        remedy = "nothing to do; write a value where one is known"
        return (Message("note", "values-not-given", text, self.count, tuple(self.first), remedy),)


def _graphml_keys(root: Element, values: _Values) -> dict[str, tuple[str, str]]:
    """The name and type of each key; in the file all become text, as values are checked here."""
    keys: dict[str, tuple[str, str]] = {}
    for key in root.findall(_tag(_GRAPHML, "key")):
        own = key.get("id")
        if own is None:
            root.remove(key)
            continue
        name = key.get("yfiles.type") or key.get("attr.name") or own
        kind = (key.get("attr.type") or "string").strip().lower()
        keys[own] = name, kind
        key.set("attr.name", name)
        key.set("attr.type", "string")
        default = key.find(_tag(_GRAPHML, "default"))
        if default is not None:
            default.text = values.of_type(kind, default.text, "default", "", name)
            if not default.text.strip():
                key.remove(default)
    return keys


def _graphml_values(file: str, kind: str, element: Element, keys: dict[str, tuple[str, str]], values: _Values) -> None:
    """Checks the values of a node or an edge."""
    if kind == "edge":
        element.attrib.pop("id", None)  # edges with one id would become one edge
    given: dict[str, str | None] = {}
    for data in element.findall(_tag(_GRAPHML, "data")):
        if len(data) or data.get("key") not in keys:
            continue
        name, of_type = keys[data.attrib["key"]]
        data.text = values.of_type(of_type, data.text, kind, _named(element), name)
        if given.setdefault(name, data.text) != data.text:
            raise GraphError(
                f"{file}: {kind} {_named(element)} has two values of {name!r}: {given[name]!r} and {data.text!r}; "
                "leave one, or give the keys names of their own"
            )


def _gathered(graph: Element, kind: str) -> list[Element]:
    """All nodes or edges of a GEXF graph, moved into one list where it has several."""
    lists = graph.findall(_tag(_GEXF, f"{kind}s"))
    for more in lists[1:]:
        lists[0].extend(list(more))
        graph.remove(more)
    return lists[0].findall(_tag(_GEXF, kind)) if lists else []


def _without_drawing(file: str, elements: Iterable[Element]) -> NodeColumns:
    """Removes what says how nodes and edges are drawn."""
    names: dict[str, None] = {}
    for element in elements:
        for child in [c for c in element if c.tag.startswith("viz:")]:
            names[child.tag] = None
            element.remove(child)
    return NodeColumns(columns=tuple(Column(file, n, "ignored", DRAWN) for n in names))


def _without_times(file: str, nodes: Sequence[Element], edges: Sequence[Element]) -> NodeColumns:
    """Removes when nodes and edges exist."""
    timed: list[Element] = []
    for element in (*nodes, *edges):
        spans = [c for c in element if _local(c) in ("spells", "slices")]
        own = [name for name in _TIMES if element.attrib.pop(name, None) is not None]
        for span in spans:
            element.remove(span)
        if spans or own:
            timed.append(element)
    if not timed:
        return NodeColumns()
    number = sum(_local(e) == "node" for e in timed)
    both = f"{counted(number, 'node')} and {counted(len(timed) - number, 'edge')}"
    text = f"{file}: {both} with times at which they exist; times are not read, and all count as if always there"
    remedy = "export the graph of one time if you mean that one"
    first = tuple(_named(e) for e in timed[:_FIRST])
    message = Message("warning", "times-ignored", text, len(timed), first, remedy)
    return NodeColumns(columns=(Column(file, "start, end", "ignored", "times are not read"),), messages=(message,))


def _gexf_values(file: str, kind: str, graph: Element, elements: Sequence[Element], values: _Values) -> NodeColumns:
    """Checks the values of nodes or of edges; an attribute with several values for one is left out, and said."""
    keys: dict[str, tuple[str, str]] = {"weight": ("weight", "double")} if kind == "edge" else {}
    for group in graph.findall(_tag(_GEXF, "attributes")):
        if group.get("class") not in ("node", "edge"):
            graph.remove(group)
        if group.get("class") != kind:
            continue
        group.set("mode", "static")
        for attribute in group.findall(_tag(_GEXF, "attribute")):
            own = attribute.get("id") or attribute.get("title") or ""
            title, of_type = attribute.get("title") or own, (attribute.get("type") or "string").strip().lower()
            keys[own] = title, of_type
            attribute.attrib.update(id=own, title=title, type="string")
            default = attribute.find(_tag(_GEXF, "default"))
            if default is not None:
                default.text = values.of_type(of_type, default.text, "default", "", title)
                if not default.text.strip():
                    attribute.remove(default)
    several: dict[str, list[str]] = {}
    for element in elements:
        given: dict[str, list[Element]] = {}
        for held in element.findall(_tag(_GEXF, "attvalues")):
            for value in list(held):
                own = value.get("for") or value.get("id") or ""
                if own not in keys:
                    _refuse_unknown(file, kind, element, own)
                value.set("for", own)
                text = values.of_type(keys[own][1], value.get("value"), kind, _named(element), keys[own][0])
                value.set("value", text)
                given.setdefault(own, []).append(value)
        for own, found in given.items():
            texts = list(dict.fromkeys(filter(None, (v.attrib["value"] for v in found))))
            found[-1].set("value", texts[0] if texts else "")  # networkx takes the last
            if len(texts) > 1:
                several.setdefault(own, []).append(f"{_named(element)}: {', '.join(texts[:5])}")
    _leave_out(graph, kind, elements, several)
    messages = []
    for own, named in several.items():
        text = (
            f"{file}: {keys[own][0]!r} has several values for {counted(len(named), kind)}; values over time are not "
            "read, and it is left out"
        )
        remedy = f"leave one <attvalue> of it for each {kind}, for instance the last, and load the file again"
        messages.append(Message("warning", "values-over-time", text, len(named), tuple(named[:_FIRST]), remedy))
    columns = tuple(Column(file, keys[k][0], "ignored", "values over time are not read") for k in several)
    return NodeColumns(columns=columns, messages=tuple(messages))


def _refuse_unknown(file: str, kind: str, element: Element, own: str) -> NoReturn:
    raise GraphError(
        f"{file}: {kind} {_named(element)} has an <attvalue> for {own!r}, which no <attribute> of class {kind!r} "
        "declares; add that <attribute> or remove the value"
    )


def _leave_out(graph: Element, kind: str, elements: Sequence[Element], left_out: Collection[str]) -> None:
    """Removes the values and the defaults of the attributes in `left_out`."""
    if not left_out:
        return
    for element in elements:
        for held in element.findall(_tag(_GEXF, "attvalues")):
            for value in [v for v in held if v.get("for") in left_out]:
                held.remove(value)
    for group in graph.findall(_tag(_GEXF, "attributes")):
        for attribute in group if group.get("class") == kind else ():
            if attribute.get("id") in left_out:
                for default in list(attribute):
                    attribute.remove(default)
