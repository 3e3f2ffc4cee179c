"""GraphML and GEXF as plain lists of nodes and edges: what other readers take wrong without a word is put right or refused.

Several graphs or nested ones are refused; namespaces are those of any version; values are brought into
one way of writing, and those that are not given are missing; values over time are read where each node
has one; how a drawing looks is left out. Of edges the weights alone are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn
from xml.etree import ElementTree

from uge_core.datasets.assemble import WEIGHTS
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.drawing import DRAWN
from uge_core.datasets.findings import says_not_given
from uge_core.datasets.records import OF_EDGES
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import Column, Message

Element = ElementTree.Element
_SPACES = {"GraphML": "http://graphml.graphdrawing.org/xmlns", "GEXF": "http://www.gexf.net/1.2draft"}
_KNOWN = {
    "GraphML": re.compile(r"https?://(?:www\.)?graphml\.graphdrawing\.org(?:/.*)?", re.IGNORECASE),
    "GEXF": re.compile(r"https?://(?:www\.)?(?:gexf\.net|gephi\.org/gexf)(?:/.*)?", re.IGNORECASE),
}
_TRUTHS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_WHOLE = ("int", "integer", "long", "short", "byte", "biginteger")
_NUMBER = ("float", "double", "bigdecimal")
_BOOLEAN = ("boolean", "bool")
_TYPED = frozenset(_WHOLE + _NUMBER + _BOOLEAN)
_NOT_GIVEN = ("", "nan", "na", "n/a", "#n/a", "null", "nil", "none", "-", "--", "?", ".")
_TIMES = frozenset(("start", "end", "startopen", "endopen", "timestamp", "timestamps", "intervals"))
_FIRST = 3


@dataclass(frozen=True)
class Parsed:
    """A graph as its file has it.

    Attributes:
        ids: of the nodes.
        nodes: their values.
        ends: of each edge, two ids.
        edges: the values of each edge.
        directed: edges run from the first end to the second.
        about: what is to be said about the file.
    """

    ids: list[str]
    nodes: list[dict[str, str]]
    ends: list[tuple[str, str]]
    edges: list[Mapping[str, str]]
    directed: bool
    about: NodeColumns


@dataclass
class _Key:
    """An attribute as its file declares it.

    Attributes:
        name: what it is called.
        kind: its type.
        default: the value of nodes or edges that have none, or empty.
        looks: it says how a drawing looks.
    """

    name: str
    kind: str
    default: str = ""
    looks: bool = False

    @property
    def weighs(self) -> bool:
        return self.name.lower() in WEIGHTS


def read_graphml(file: str, root: Element) -> Parsed:
    """The graph of a GraphML file.

    Raises:
        GraphError: it holds several graphs, nested ones, or values that are not of their key's type.
    """
    _without_spaces(file, root, "GraphML")
    graph = _only_graph(file, root)
    nodes, edges = graph.findall("node"), graph.findall("edge")
    if graph.find("hyperedge") is not None:
        raise GraphError(
            f"{file}: holds <hyperedge> elements, which join more than two nodes and are not read; write an <edge> for "
            "each pair of nodes that they join"
        )
    ids = _check_ids(file, nodes, edges)
    values = _Values(file)
    keys = _graphml_keys(file, root, values)
    rows, said = _graphml_nodes(file, nodes, keys, values)
    ends, places, directed = _ends(edges, graph.get("edgedefault"), "directed", ("true", "false"))
    weights, names = _graphml_weights(file, edges, keys, values)
    return Parsed(
        ids,
        rows,
        ends,
        [weights[i] for i in places],
        directed,
        NodeColumns.join([said, _of_edges(file, names), NodeColumns(messages=values.messages())]),
    )


def read_gexf(file: str, root: Element) -> Parsed:
    """The graph of a GEXF file.

    Raises:
        GraphError: it holds several graphs, nested ones, or values that are not of their attribute's type.
    """
    _without_spaces(file, root, "GEXF")
    graph = _only_graph(file, root)
    nodes, edges = (
        [e for group in graph.findall(f"{kind}s") for e in group.findall(kind)] for kind in ("node", "edge")
    )
    ids = _check_ids(file, nodes, edges)
    _refuse_groups(file, nodes, set(ids))
    values = _Values(file)
    rows, of_nodes = _gexf_values(file, "node", graph, nodes, values)
    _add_labels(file, nodes, rows)
    weights, of_edges = _gexf_values(file, "edge", graph, edges, values)
    ends, places, directed = _ends(edges, graph.get("defaultedgetype"), "type", ("directed", "undirected"))
    said = [_drawing(file, [*nodes, *edges]), _times(file, nodes, edges), of_nodes, of_edges]
    return Parsed(
        ids,
        rows,
        ends,
        [weights[i] for i in places],
        directed,
        NodeColumns.join([*said, NodeColumns(messages=values.messages())]),
    )


def _named(element: Element) -> str:
    """What an element is called in messages."""
    if element.tag == "node":
        return repr(element.get("id"))
    return f"{element.get('source')} - {element.get('target')}"


def _without_spaces(file: str, root: Element, kind: str) -> None:
    """Calls the elements of all versions of a format by their names alone, and those of drawings viz:NAME."""
    space = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else ""
    name = root.tag.rpartition("}")[2]
    if space and not _KNOWN[kind].fullmatch(space):
        raise GraphError(
            f"{file}: cannot be read as {kind}: its namespace {space!r} is none of {kind}'s; allowed: {_SPACES[kind]} and "
            f'other versions of it; write <{name} xmlns="{_SPACES[kind]}">'
        )
    plain: dict[str, str] = {}
    for element in root.iter():
        if element.tag not in plain:
            own, _, local = element.tag.rpartition("}")
            known = not own or _KNOWN[kind].fullmatch(own[1:])
            drawing = own.rstrip("/").endswith("/viz")
            plain[element.tag] = (f"viz:{local}" if drawing else local) if known else element.tag
        element.tag = plain[element.tag]


def _only_graph(file: str, root: Element) -> Element:
    """The one graph of the file, which holds no other."""

    def contents(of: Element) -> str:
        nodes, edges = (sum(e is not of for e in of.iter(kind)) for kind in ("node", "edge"))
        return f"{counted(nodes, 'node')}, {counted(edges, 'edge')}"

    graphs = root.findall("graph")
    if not graphs:
        raise GraphError(f"{file}: holds no <graph> element; export it again, or as edges.csv and nodes.csv")
    if len(graphs) > 1:
        named = [f"{g.get('id') or g.get('name') or i!s} ({contents(g)})" for i, g in enumerate(graphs[:5], start=1)]
        raise GraphError(
            f"{file}: holds {len(graphs)} graphs: {'; '.join(named)}{'; ...' * (len(graphs) > 5)}; one graph is read "
            "from a file: save each as a file of its own, or leave only one <graph> element in it"
        )
    (graph,) = graphs
    inner = sum(1 for _ in graph.iter("graph")) - 1
    owners = [
        n
        for n in graph.iter("node")
        if any(c.tag in ("graph", "nodes", "edges") for c in n) or "yfiles.foldertype" in n.attrib
    ]
    if inner or owners:
        first = f", first in node {owners[0].get('id')!r} ({contents(owners[0])})" if owners else ""
        raise _nested(file, max(inner, len(owners)), first)
    return graph


def _nested(file: str, count: int, first: str) -> GraphError:
    """The error about groups of nodes."""
    return GraphError(
        f"{file}: {counted(count, 'graph')} nested in others{first}; nested graphs are not "
        "read: ungroup them in the program that made the file, or move all <node> and <edge> elements into the "
        "outer graph and remove the nodes that stood for groups"
    )


def _refuse_groups(file: str, nodes: Sequence[Element], ids: set[str]) -> None:
    """Refuses nodes that stand for groups of others, which say so by pid or <parents>."""
    members: dict[str, int] = defaultdict(int)
    for node in nodes:
        above = [node.get("pid"), *(p.get("for") for c in node if c.tag == "parents" for p in c)]
        for group in above:
            if group is not None and group in ids and group != node.get("id"):
                members[group] += 1
    if members:
        group, size = next(iter(members.items()))
        raise _nested(file, len(members), f", first in node {group!r} ({counted(size, 'node')})")


def _check_ids(file: str, nodes: Sequence[Element], edges: Sequence[Element]) -> list[str]:
    """The ids of the nodes, or of the edges' ends where there are no nodes.

    Raises:
        GraphError: nodes without an id or with the same one, and edges to nodes that are not there.
    """
    ids: dict[str | None, None] = {}
    for node in nodes:
        own = node.get("id")
        if own is None:
            raise GraphError(f"{file}: a <node> has no id; give each node its own")
        if own in ids:
            raise GraphError(f"{file}: the id {own!r} stands twice; each node needs its own")
        ids[own] = None
    if not nodes:
        ids = dict.fromkeys(end for e in edges for end in (e.get("source"), e.get("target")))
        ids.pop(None, None)
    lost = [e for e in edges if e.get("source") not in ids or e.get("target") not in ids]
    if lost:
        first = ", ".join(f"{e.get('source')} - {e.get('target')}" for e in lost[:_FIRST])
        raise GraphError(
            f"{file}: {counted(len(lost), 'edge')} with an end that no <node> describes, first: {first}; add a <node> "
            "for it or remove the edge"
        )
    return [str(own) for own in ids]


def _ends(
    edges: Sequence[Element], default: str | None, own: str, words: tuple[str, str]
) -> tuple[list[tuple[str, str]], list[int], bool]:
    """The ends of the edges, which edge each pair is of, and whether pairs have a direction.

    Among directed edges one without direction runs both ways.
    """
    by_default = (default or "").strip().lower() == "directed"
    ends = [(e.attrib["source"], e.attrib["target"]) for e in edges]
    given = [(e.get(own) or "").strip().lower() for e in edges]
    one_way = [w == words[0] or (by_default and w not in (words[1], "mutual")) for w in given]
    places = list(range(len(edges)))
    directed = any(one_way) or (by_default and not edges)
    if directed:
        both = [i for i, alone in enumerate(one_way) if not alone and ends[i][0] != ends[i][1]]
        ends += [ends[i][::-1] for i in both]
        places += both
    return ends, places, directed


def _of_edges(file: str, names: Mapping[str, None]) -> NodeColumns:
    """The values of edges that are not used."""
    return NodeColumns(columns=tuple(Column(file, name, "ignored", OF_EDGES) for name in names))


def _truth(text: str) -> str | None:
    """A boolean as it is written everywhere, or None."""
    return _TRUTHS.get(text.lower())


def _number(text: str, whole: bool) -> str | None:
    """A number as Python writes it, or None; whole ones keep all digits."""
    try:
        number = float(text)
        if whole and number.is_integer():
            return str(int(text) if text.lstrip("+-").isdecimal() else int(number))
    except ValueError:
        return None
    return None if number != number else str(number)


class _Values:
    """Values of a type, brought into one way of writing; counts those that are not given."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.first: list[str] = []

    def of_type(self, kind: str, text: str | None, owner: Element | None, key: str) -> str:
        """The value as text, empty where it is not given.

        Args:
            kind: the type in the file.
            text: the value in the file.
            owner: the node or edge that has it; None: it is a default.
            key: the name of the attribute.

        Raises:
            GraphError: it is not of the type.
        """
        if kind not in _TYPED:
            return text.strip() if text and "\n" in text else text or ""  # line ends are the writer's
        text = (text or "").strip()
        written = _truth(text) if kind in _BOOLEAN else _number(text, kind in _WHOLE)
        if written is not None:
            return written
        where = "default" if owner is None else f"{owner.tag} {_named(owner)}"
        if where.startswith("edge") or (text.lower() not in _NOT_GIVEN and not says_not_given(text)):
            self._refuse(kind, text, where, key)
        if owner is not None:
            self.count += 1
            if len(self.first) < _FIRST:
                self.first.append(f"{where}, {key}: {text!r}")
        return ""

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


def _graphml_keys(file: str, root: Element, values: _Values) -> dict[str, dict[str, _Key]]:
    """The keys of nodes and those of edges, by id: one id may stand for two keys, one of each."""
    keys: dict[str, dict[str, _Key]] = {"node": {}, "edge": {}}
    wider: dict[str, _Key] = {}
    for element in root.iter("key"):
        own, owner = element.get("id"), (element.get("for") or "all").strip().lower()
        if own is None:
            continue
        if own in keys.get(owner, wider if owner == "all" else {}):
            raise GraphError(f"{file}: two <key> elements have the id {own!r}; give each an id of its own")
        drawing = element.get("yfiles.type")
        name = drawing or element.get("attr.name") or own
        kind = (element.get("attr.type") or "string").strip().lower()
        default = element.find("default")
        text = "" if default is None else values.of_type(kind, default.text, None, name)
        key = _Key(name, kind, text, looks=drawing is not None)
        if owner in keys:
            keys[owner][own] = key
        else:  # "all" is what a key is for unless it says so
            wider[own] = key if owner == "all" else _Key(name, kind, looks=key.looks)
    other = {**keys["edge"], **keys["node"]}
    for owner, own_keys in keys.items():
        keys[owner] = {
            **{i: _Key(k.name, k.kind, looks=k.looks) for i, k in other.items()},  # a key for nodes, used by an edge
            **wider,
            **own_keys,
        }
    return keys


def _given(file: str, kind: str, element: Element, keys: Mapping[str, _Key]) -> Iterator[tuple[str, _Key, Element]]:
    """The <data> of a node or an edge, with its key."""
    for data in element:
        if data.tag == "data":
            own = data.get("key") or ""
            if own not in keys:
                raise GraphError(
                    f"{file}: {kind} {_named(element)} has <data> for {own!r}, which no <key> declares; add that <key> or "
                    "remove the value"
                )
            yield own, keys[own], data


def _graphml_nodes(
    file: str, nodes: Sequence[Element], keys: Mapping[str, Mapping[str, _Key]], values: _Values
) -> tuple[list[dict[str, str]], NodeColumns]:
    """The values of the nodes."""
    known = keys["node"]
    defaults = {k.name: k.default for k in known.values() if k.default.strip()}
    used: dict[str, str] = {}
    inner: dict[str, list[str]] = {}
    beside: dict[str, None] = {}
    rows = []
    for node in nodes:
        given: dict[str, str] = {}
        for own, key, data in _given(file, "node", node, known):
            if len(data):
                if key.looks or any("yworks" in child.tag for child in data):
                    given |= _yed(data)
                else:
                    inner.setdefault(key.name, []).append(_named(node))
                continue
            text = values.of_type(key.kind, data.text, node, key.name)
            if given.setdefault(key.name, text) != text:
                raise GraphError(
                    f"{file}: node {_named(node)} has two values of {key.name!r}: {given[key.name]!r} and {text!r}; "
                    "leave one, or give the keys names of their own"
                )
            if used.setdefault(key.name, own) != own:
                raise GraphError(
                    f"{file}: two <key> elements are called {key.name!r} ({used[key.name]} and {own}), and nodes have "
                    "values of both; give each a name of its own (attr.name)"
                )
        rows.append(defaults | given)
        if len(node.attrib) > 1:
            beside |= dict.fromkeys(node.attrib)
    columns = [
        Column(file, name, "ignored", "an attribute of <node> elements; values are read from <data>")
        for name in beside
        if name != "id" and not name.startswith(("{", "yfiles.", "parse."))
    ]
    columns += [Column(file, name, "ignored", "holds elements") for name in inner]
    messages = tuple(
        Message(
            "warning",
            "nested-values",
            f"{file}: {name!r} holds elements and no text for {counted(len(named), 'node')}, and these are not read",
            len(named),
            tuple(named[:_FIRST]),
            "write each value as the text of its <data>",
        )
        for name, named in inner.items()
    )
    return rows, NodeColumns(columns=tuple(columns), messages=messages)


def _yed(data: Element) -> dict[str, str]:
    """What yEd's drawing of a node says: its label, its place and its shape."""
    looks: dict[str, str] = {}
    for element in data.iter():
        local = element.tag.rpartition("}")[2]
        if local == "Geometry":
            looks |= {axis: element.attrib[axis] for axis in "xy" if axis in element.attrib}
        elif local == "Shape" and "type" in element.attrib:
            looks.setdefault("shape_type", element.attrib["type"])
        elif local == "NodeLabel" and (element.text or "").strip():
            looks.setdefault("label", str(element.text).strip())
    return looks


def _graphml_weights(
    file: str, edges: Sequence[Element], keys: Mapping[str, Mapping[str, _Key]], values: _Values
) -> tuple[list[Mapping[str, str]], dict[str, None]]:
    """The weight of each edge where it has one, and what their other values are called."""
    known = keys["edge"]
    defaults = {k.name: k.default for k in known.values() if k.weighs and k.default.strip()}
    names: dict[str, None] = {}
    rows: list[Mapping[str, str]] = []
    for edge in edges:
        if not len(edge):
            rows.append(defaults)
            continue
        given: dict[str, str] = {}
        for _, key, data in _given(file, "edge", edge, known):
            if not key.weighs:
                names[key.name] = None
                continue
            text = values.of_type(key.kind, data.text, edge, key.name)
            if given.setdefault(key.name, text) != text:
                raise GraphError(
                    f"{file}: edge {_named(edge)} has two values of {key.name!r}: {given[key.name]!r} and {text!r}; "
                    "leave one, or give the keys names of their own"
                )
        rows.append(defaults | given if given else defaults)
    return rows, names


def _drawing(file: str, elements: Sequence[Element]) -> NodeColumns:
    """What says how nodes and edges are drawn."""
    names = dict.fromkeys(child.tag for element in elements for child in element if child.tag.startswith("viz:"))
    return NodeColumns(columns=tuple(Column(file, n, "ignored", DRAWN) for n in names))


def _times(file: str, nodes: Sequence[Element], edges: Sequence[Element]) -> NodeColumns:
    """What is to be said about nodes and edges that exist at some times."""
    timed = [
        element
        for element in (*nodes, *edges)
        if not _TIMES.isdisjoint(element.attrib) or any(c.tag in ("spells", "slices") for c in element)
    ]
    if not timed:
        return NodeColumns()
    number = sum(e.tag == "node" for e in timed)
    both = f"{counted(number, 'node')} and {counted(len(timed) - number, 'edge')}"
    text = f"{file}: {both} with times at which they exist; times are not read, and all count as if always there"
    remedy = "export the graph of one time if you mean that one"
    first = tuple(_named(e) for e in timed[:_FIRST])
    message = Message("warning", "times-ignored", text, len(timed), first, remedy)
    return NodeColumns(columns=(Column(file, "start, end", "ignored", "times are not read"),), messages=(message,))


def _add_labels(file: str, nodes: Sequence[Element], rows: Sequence[dict[str, str]]) -> None:
    """The label of each node, which stands beside its values."""
    for node, row in zip(nodes, rows, strict=True):
        label = node.get("label")
        if label is not None and row.setdefault("label", label) != label:
            raise GraphError(
                f"{file}: node {_named(node)} has the label {label!r} and an attribute titled 'label' with the value "
                f"{row['label']!r}; give that <attribute> another title"
            )


def _gexf_keys(file: str, kind: str, graph: Element, values: _Values) -> dict[str, _Key]:
    """The attributes of nodes or of edges, by id."""
    keys: dict[str, _Key] = {}
    titles: dict[str, str] = {}
    for group in graph.findall("attributes"):
        for attribute in group.findall("attribute") if group.get("class") == kind else ():
            own = attribute.get("id") or attribute.get("title") or ""
            title, of_type = attribute.get("title") or own, (attribute.get("type") or "string").strip().lower()
            if (titles.setdefault(title, own) != own or own in keys) and (kind == "node" or title.lower() in WEIGHTS):
                raise GraphError(
                    f"{file}: two <attribute> elements of class {kind!r} are called {title!r}; give each an id and a title "
                    "of its own"
                )
            default = attribute.find("default")
            text = "" if default is None else values.of_type(of_type, default.text, None, title)
            keys[own] = _Key(title, of_type, text)
    return keys


def _gexf_values(
    file: str, kind: str, graph: Element, elements: Sequence[Element], values: _Values
) -> tuple[list[dict[str, str]], NodeColumns]:
    """The values of nodes, or the weights of edges; an attribute with several values for one is left out, and said."""
    keys = _gexf_keys(file, kind, graph, values)
    if kind == "edge":
        keys.setdefault("weight", _Key("weight", "double"))
    asked = {own for own, key in keys.items() if kind == "node" or key.weighs}
    defaults = {keys[own].name: keys[own].default for own in asked if keys[own].default.strip()}
    several: dict[str, list[str]] = {}
    others: dict[str, None] = {}
    rows = []
    for element in elements:
        given: dict[str, list[str]] = {}
        for own, value in _attvalues(element):
            if own not in keys:
                _refuse_unknown(file, kind, element, own)
            key = keys[own]
            if own in asked:
                text = values.of_type(key.kind, value, element, key.name)
                given.setdefault(key.name, []).append(text)
            else:
                others[key.name] = None
        row = dict(defaults)
        if kind == "edge" and "weight" in element.attrib:
            weight = values.of_type("double", element.get("weight"), element, "weight")
            given.setdefault("weight", []).append(weight)
        for name, all_texts in given.items():
            texts = list(dict.fromkeys(filter(None, all_texts)))
            row[name] = texts[0] if texts else ""
            if len(texts) > 1:
                several.setdefault(name, []).append(f"{_named(element)}: {', '.join(texts[:5])}")
        rows.append(row)
    for row in rows if several else ():
        for name in several:
            row.pop(name, None)
    messages = []
    for name, named in several.items():
        text = (
            f"{file}: {name!r} has several values for {counted(len(named), kind)}; values over time are not "
            "read, and it is left out"
        )
        remedy = f"leave one <attvalue> of it for each {kind}, for instance the last, and load the file again"
        messages.append(Message("warning", "values-over-time", text, len(named), tuple(named[:_FIRST]), remedy))
    columns = tuple(Column(file, name, "ignored", "values over time are not read") for name in several)
    said = NodeColumns(columns=columns, messages=tuple(messages))
    return rows, NodeColumns.join([said, _of_edges(file, others)])


def _attvalues(element: Element) -> Iterator[tuple[str, str | None]]:
    """The values of a node or an edge, with the ids of their attributes."""
    for child in element:
        for value in child if child.tag == "attvalues" else (child,):
            if value.tag == "attvalue":
                yield value.get("for") or value.get("id") or "", value.get("value")


def _refuse_unknown(file: str, kind: str, element: Element, own: str) -> NoReturn:
    raise GraphError(
        f"{file}: {kind} {_named(element)} has an <attvalue> for {own!r}, which no <attribute> of class {kind!r} "
        "declares; add that <attribute> or remove the value"
    )
