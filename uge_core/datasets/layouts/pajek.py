"""A graph in Pajek's form, ``NAME.net``, with partitions in ``.clu`` files beside it.

Vertices are called by their labels where each has one of its own, else by their numbers. A ``.clu`` file has a class for
each vertex and is one attribute, called like the file; the one called like the graph alone is ``partition``. Keys and
values behind a vertex, as networkx writes them, are attributes; coordinates, shapes and colors are a drawing's. Arcs
have a direction, edges run both ways. What this form may hold besides (several relations, times, two kinds of vertices)
is refused, and files of other kinds beside it (.vec, .per) are said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from uge_core.datasets.beginnings import begin, reason
from uge_core.datasets.bounded import refuse_link_out
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.drawing import DRAWN
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout, Part
from uge_core.datasets.records import Records, graph_bytes, labels_as_ids
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Message

_TOKEN = re.compile(r'"([^"]*)"|(\S+)')
_LINE = re.compile(r'(?:\s*(?:"[^"]*"|[^\s"]+)(?=\s|$))*')
_COMMENT = re.compile(r"/\*.*\*/")
_ENTITY = re.compile(r"&#(\d{1,7});")
_OTHERS = re.compile(r"\.(?:vec|per|cls|hie)(?:\.gz)?", re.IGNORECASE)
"""Endings of Pajek's vectors, permutations, clusters and hierarchies."""
_DIGITS = re.compile(r"[0-9]{1,12}")
_SHAPES = {"ellipse", "box", "diamond", "triangle", "cross", "empty", "house", "man", "woman", "circle"}
_LOOKS = {"ic", "bc", "bw", "lc", "la", "lr", "lphi", "fos", "font", "x_fact", "y_fact", "s_size", "phi", "r", "q"}
"""Keys by which Pajek says how vertices look."""
_LINE_LOOKS = {*_LOOKS, "w", "c", "p", "s", "a", "ap", "l", "lp", "h1", "h2", "a1", "k1", "a2", "k2", "hook"}
_LAST_LETTER = 0x110000
_LONGEST = 2**16  # characters of a line
_OF_VERTEX = 32  # more for each vertex, of which a row of a matrix has a number
_MISSING = {"9999998", "999999998"}
"""Pajek's own numbers for a class that is not given."""


@dataclass
class _Net:
    """What a file holds.

    Attributes:
        path: the file.
        most: the vertices that it can hold.
        size: the number of vertices.
        labels: by number, counted from 0.
        values: of each vertex, by key.
        looks: the keys that say how a drawing looks.
        ends: of each edge or arc, two numbers counted from 0.
        weights: of each.
        both: whether each is an edge.
        relation: the number that the file gives its relation.
    """

    path: Path
    most: int
    size: int = 0
    labels: dict[int, str] = field(default_factory=dict)
    values: dict[int, dict[str, str]] = field(default_factory=dict)
    looks: set[str] = field(default_factory=set)
    ends: list[tuple[int, int]] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    both: list[bool] = field(default_factory=list)
    relation: str = ""


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["graph"]
    net = _parse(path)
    if not net.size:
        raise GraphError(f"{path.name}: has no vertices; expected *Vertices and their number in the first line")
    ids, about = _ids(net)
    nodes = [dict(net.values.get(i, {})) for i in range(net.size)]
    keys = {key.lower() for node in nodes for key in node}
    for name, classes in _partitions(path, net.size).items():
        if name.lower() in keys:
            raise GraphError(
                f"{path.name}: its vertices have {name!r}, which is what a .clu file is called as well; rename that file"
            )
        for node, value in zip(nodes, classes, strict=True):
            if value not in _MISSING:
                node[name] = value
    columns = tuple(Column(path.name, name, "ignored", DRAWN) for name in sorted(net.looks))
    ends = np.array(net.ends, dtype=np.int64).reshape(-1, 2)
    source, target = ends[:, 0], ends[:, 1]
    edges = [{"weight": w} for w in net.weights]
    parts = NodeColumns.join([NodeColumns(columns=columns), about, _unread(path)])
    directed = not all(net.both)
    if directed:  # an edge beside arcs runs both ways
        also = np.flatnonzero(np.array(net.both) & (source != target))
        source, target = np.concatenate([source, target[also]]), np.concatenate([target, source[also]])
        edges += [edges[i] for i in also]
    return Records(path, ids, nodes, source, target, edges, directed, parts).graph(found.name, "pajek", asked)


def _parse(path: Path) -> _Net:
    """The sections of the file, line by line."""
    lines = _lines(path)
    net = _Net(path, sum(map(len, lines)))
    section = ""
    row = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("%") or _COMMENT.fullmatch(text):
            continue
        if text.startswith("*"):
            section = _section(net, number, text)
            row = 0
            continue
        most = _LONGEST + _OF_VERTEX * net.size
        if len(text) > most:
            raise _fault(net, number, text, f"has {len(text):,} characters; allowed in this network: {most:,}")
        if not _LINE.fullmatch(text):
            raise _fault(net, number, text, "has quotation marks that do not go together; write labels without them")
        tokens = [_ENTITY.sub(_letter, quoted or plain) for quoted, plain in _TOKEN.findall(text)]
        if any(re.fullmatch(r"\[[\d*,\s-]+\]", t) for t in tokens):
            raise _fault(net, number, text, "has a time, which is not read; generate the network of one time in Pajek")
        if section == "vertices":
            _vertex(net, number, text, tokens)
        elif section in ("edges", "arcs"):
            _line(net, section, number, text, tokens)
        elif section in ("edgeslist", "arcslist"):
            first, *others = [_place(net, number, text, t) for t in tokens]
            for other in others:
                _add(net, section, first, other, "1")
        elif section == "matrix":
            if len(tokens) != net.size or row >= net.size:
                raise _fault(net, number, text, f"is no row of a matrix of {net.size:,} rows and columns")
            for place, value in enumerate(tokens):
                if _number(net, number, text, value) != 0:
                    _add(net, "arcs", row, place, value)
            row += 1
        else:
            raise _fault(net, number, text, "stands before *Vertices and their number; expected that line first")
    return net


def _section(net: _Net, number: int, text: str) -> str:
    """The section that a line begins."""
    words = text[1:].split()
    kind = words[0].lower().rstrip(":") if words else ""
    if kind == "network" and not net.size:
        return "network"
    if kind == "vertices" and not net.size:
        sizes = words[1:]
        if not sizes or not all(_DIGITS.fullmatch(s) for s in sizes) or not 0 < int(sizes[0]) <= net.most:
            raise _fault(
                net,
                number,
                text,
                f"must say how many vertices there are, from 1 to {net.most:,}, which a file of this length can hold",
            )
        if len(sizes) > 1 and int(sizes[1]) not in (0, int(sizes[0])):
            raise _fault(
                net,
                number,
                text,
                "has two kinds of vertices; write edges.csv and tables of users and items, named in dataset.yaml",
            )
        net.size = int(sizes[0])
        return "vertices"
    if kind in ("network", "vertices", "partition", "vector", "permutation", "cluster", "hierarchy"):
        raise _fault(
            net, number, text, "begins a second network or a partition; one network is read, save each by itself"
        )
    if kind not in ("edges", "arcs", "edgeslist", "arcslist", "matrix"):
        raise _fault(
            net, number, text, "begins no known part; allowed: *Vertices, *Edges, *Arcs, *Edgeslist, *Arcslist, *Matrix"
        )
    if not net.size:
        raise _fault(net, number, text, "stands before *Vertices and their number; expected that line first")
    relation = words[1] if len(words) > 1 and words[1].startswith(":") else ""
    if net.ends and relation != net.relation:
        raise _fault(net, number, text, "begins one of several relations; extract one as a network of its own in Pajek")
    net.relation = relation
    if kind == "matrix" and net.ends:
        raise _fault(net, number, text, "begins a matrix behind other edges; save each as a file of its own")
    return kind


def _vertex(net: _Net, number: int, text: str, tokens: Sequence[str]) -> None:
    """A vertex: number, label, up to three coordinates, a shape, keys and values."""
    place = _place(net, number, text, tokens[0])
    if place in net.values:
        raise _fault(net, number, text, f"describes vertex {tokens[0]} again; each vertex stands once")
    own = net.values.setdefault(place, {})
    if len(tokens) > 1 and tokens[1].strip():
        net.labels[place] = tokens[1]
    rest = list(tokens[2:])
    for axis in "xyz":
        if rest and _is_number(rest[0]):
            rest.pop(0)
            net.looks.add(axis)
    if rest and (rest[0].lower() in _SHAPES or len(rest) % 2):
        if rest.pop(0).lower() not in _SHAPES:
            raise _fault(
                net,
                number,
                text,
                "has no value for its last key; expected a number, a label in quotation marks, coordinates, a shape, and "
                "keys with a value each",
            )
        net.looks.add("shape")
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if key.lower() in _LOOKS:
            net.looks.add(key)
        elif key in own:
            raise _fault(net, number, text, f"has {key} twice")
        else:
            own[key] = value


def _line(net: _Net, section: str, number: int, text: str, tokens: Sequence[str]) -> None:
    """An edge or an arc: two vertices, a weight; what stands behind is not used."""
    if len(tokens) < 2:
        raise _fault(net, number, text, "has one vertex; every edge needs two")
    ends = [_place(net, number, text, t) for t in tokens[:2]]
    weight = "1"
    if len(tokens) > 2 and (_is_number(tokens[2]) or tokens[2].lower() not in _LINE_LOOKS):
        _number(net, number, text, tokens[2])
        weight = tokens[2]
    _add(net, section, ends[0], ends[1], weight)


def _add(net: _Net, section: str, first: int, second: int, weight: str) -> None:
    """An edge or an arc."""
    net.ends.append((first, second))
    net.weights.append(weight)
    net.both.append(section.startswith("edges"))


def _place(net: _Net, number: int, text: str, token: str) -> int:
    """The vertex of a number counted from 1."""
    if not _DIGITS.fullmatch(token) or not 1 <= int(token) <= net.size:
        raise _fault(net, number, text, f"names the vertex {token[:40]!r}; allowed: 1 to {net.size}")
    return int(token) - 1


def _number(net: _Net, number: int, text: str, token: str) -> float:
    """A number."""
    if not _is_number(token):
        raise _fault(net, number, text, f"has {token[:40]!r} where a weight belongs; allowed: a number")
    return float(token)


def _is_number(token: str) -> bool:
    """Whether a token is a number."""
    return re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", token) is not None


def _fault(net: _Net, number: int, text: str, what: str) -> GraphError:
    """The error about a line."""
    return GraphError(f"{net.path.name}: line {number} ({text[:60]!r}) {what}")


def _letter(entity: re.Match[str]) -> str:
    """The character that Pajek writes as its number in Unicode."""
    return chr(int(entity[1])) if int(entity[1]) < _LAST_LETTER else entity[0]


def _ids(net: _Net) -> tuple[list[str], NodeColumns]:
    """What the vertices are called, and what is to be said about it."""
    numbers = [str(i + 1) for i in range(net.size)]
    labels = [net.labels.get(i, "") for i in range(net.size)]
    name = net.path.name
    if not net.labels:
        return numbers, NodeColumns()
    taken = labels_as_ids(name, numbers, [label or None for label in labels])
    if taken is None:
        lacking = labels.count("")
        why = f"{counted(lacking, 'vertex') if lacking == 1 else f'{lacking:,} vertices'} without a label"
        why = why if lacking else "labels that stand twice"
        text = f"{name}: vertices are called by their numbers, as there are {why}"
        column = Column(name, "label", "ignored", why)
        message = Message("warning", "labels-not-used", text, remedy="give each vertex a label of its own to use them")
        return numbers, NodeColumns(columns=(column,), messages=(message,))
    return taken


def _beside(path: Path, ending: str) -> list[tuple[str, str]]:
    """The files of this graph whose names match an ending, and their names without it."""
    files = Folder.open(path.parent).files
    stem = _stem(path.name, r"\.net")
    nets = {_stem(n, r"\.net") for n in files if _stem(n, r"\.net") != n}
    named = [(file, _stem(file, ending)) for file in files]
    return [
        (file, name)
        for file, name in named
        if name != file and (len(nets) == 1 or name == stem or re.match(re.escape(stem) + r"[_.\- ]", name))
    ]


def _unread(path: Path) -> NodeColumns:
    """A warning about Pajek's files that are not read."""
    files = [file for file, _ in _beside(path, _OTHERS.pattern)]
    if not files:
        return NodeColumns()
    text = (
        f"{path.name}: {counted(len(files), 'file')} of Pajek's beside it {'was' if len(files) == 1 else 'were'} not read: "
        f"{', '.join(files[:5])}"
    )
    remedy = "partitions (.clu) are read; make one of a vector in Pajek to use it"
    return NodeColumns(messages=(Message("warning", "files-not-read", text, len(files), tuple(files[:5]), remedy),))


def _partitions(path: Path, size: int) -> dict[str, list[str]]:
    """The classes of all vertices in each .clu file of this graph, by name."""
    stem = _stem(path.name, r"\.net")
    own: dict[str, Path] = {}
    for file, name in _beside(path, r"\.clu"):
        called = "partition" if name == stem else re.sub(rf"^{re.escape(stem)}[_.\- ]+", "", name)
        if called in own:
            raise GraphError(f"{file}: is called {called} like {own[called].name}; rename one of the two")
        own[called] = path.parent / file
        refuse_link_out(own[called])
    return {name: _classes(file, path, size) for name, file in own.items()}


def _stem(name: str, ending: str) -> str:
    """A file's name without an ending, plain or gzipped."""
    return re.sub(ending + r"(?:\.gz)?$", "", name, flags=re.IGNORECASE)


def _classes(file: Path, net: Path, size: int) -> list[str]:
    """The class of each vertex."""
    lines = [line.strip() for line in _lines(file)]
    rows = [(i, line) for i, line in enumerate(lines, start=1) if line and not line.startswith("%")]
    head = rows[0][1].split() if rows else []
    if len(head) < 2 or head[0].lower() != "*vertices" or not _DIGITS.fullmatch(head[1]):
        raise GraphError(f"{file.name}: must begin with *Vertices and their number, and hold a class a line")
    if int(head[1]) != size or len(rows) - 1 != size:
        raise GraphError(
            f"{file.name}: says {head[1][:20]} vertices and has {counted(len(rows) - 1, 'value')}, "
            f"but {net.name} has {size:,}; one value a line is needed for each vertex, in order"
        )
    wrong = next(((i, line) for i, line in rows[1:] if not re.fullmatch(r"-?\d+", line)), None)
    if wrong is not None:
        raise GraphError(f"{file.name}: line {wrong[0]} is {wrong[1][:40]!r}; allowed: whole numbers, one a line")
    return [line for _, line in rows[1:]]


def _lines(path: Path) -> list[str]:
    """The lines of a text file."""
    begin(path, "utf-8-sig")
    try:
        text = graph_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise GraphError(f"{path.name}: {reason(path, e, 'utf-8-sig')}") from None
    if text.lstrip().startswith("<"):
        raise GraphError(
            f"{path.name}: is XML and no network of Pajek's; rename it to end in .graphml or .gexf if it is such a graph"
        )
    return re.split(r"\r\n|\n|\r", text)


POSITION = 104
LAYOUTS = (Layout("pajek", "Pajek's", (Part("graph", ("{}.net",), "*Vertices, and *Edges or *Arcs"),), _read),)
