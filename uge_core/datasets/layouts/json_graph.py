"""A graph in one JSON file, ``NAME.json``: nodes and links (or edges), as networkx's node_link_data and D3 write them.

A link names its ends by the nodes' ids; where nodes have none, by the values of another column if all its ends are there,
else by positions, counted from 0. Text ids beside links of whole numbers are positions as well, as networkx 1 and D3 3
wrote them. Where two of these readings fit and differ, the file is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uge_core.datasets.bounded import is_gzip, open_bytes
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.drawing import drawn
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.records import Records, graph_bytes, text_of
from uge_core.datasets.tables import counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Message

_PEEK = 2**16
_MARKS = re.compile(rb'"(?:nodes|links|edges|multigraph|adjacency|elements)"')
_LISTS = re.compile(rb'"(?:nodes|links|edges)"\s*:\s*[\[{]\s*[\[{"]|"(?:adjacency|elements)"\s*:')
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_EXPECTED = '{"directed": false, "nodes": [{"id": 1}, ..], "links": [{"source": 1, "target": 2}, ..]}'
_OTHERS = {
    "adjacency": "networkx's adjacency_data; write it by node_link_data",
    "elements": "Cytoscape's; export GraphML there",
    "children": "a tree; write it by node_link_data",
}
_BOTH = ("source", "target")
_MOST = 0.9  # share of the ends that a column must have for links to mean it, though some name nobody

Pair = tuple[Any, Any]


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["graph"]
    data = _parse(path)
    directed = data.get("directed", False)
    if not isinstance(directed, bool):
        raise GraphError(f"{path.name}: directed is {str(directed)[:40]!r}; allowed: true and false")
    key = "edges" if "edges" in data and not data.get("links") else "links"
    nodes, links = _objects(path, data, "nodes"), _objects(path, data, key)
    if not nodes:
        raise GraphError(f"{path.name}: the graph has no nodes; at least one edge between two nodes is needed")
    with_id = ["id" in node for node in nodes]
    if any(with_id) and not all(with_id):
        raise GraphError(
            f"{path.name}: {counted(with_id.count(False), 'node')} without an id, first: node {with_id.index(False)}; "
            "every node needs an id"
        )
    if all(with_id):
        taken = "id"
        ids = [_id(path, i, node["id"]) for i, node in enumerate(nodes)]
        ends, about = _by_id(path, key, nodes, ids, [_ends(path, key, i, link, "id") for i, link in enumerate(links)])
    else:
        taken, ids, ends, about = _without_ids(path, key, nodes, links)
    people = [{k: v for k, v in node.items() if k != taken} for node in nodes]
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    said = NodeColumns(messages=about)
    return Records(path, ids, people, pairs[:, 0], pairs[:, 1], links, directed, said).graph(found.name, "json", asked)


def _parse(path: Path) -> dict[str, Any]:
    """The object that the file holds."""
    raw = graph_bytes(path)
    try:
        text = raw.decode("utf-8-sig" if json.detect_encoding(raw) == "utf-8" else json.detect_encoding(raw))
        data = json.loads(text, object_pairs_hook=_once)
        if _SURROGATE.search(raw):
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        raise GraphError(
            f"{path.name}: holds {e.object[e.start]!a}, half of a character that is written in two parts; write the text "
            "again"
        ) from None
    except UnicodeDecodeError:
        raise GraphError(f"{path.name}: is not UTF-8 text; save the whole file as UTF-8") from None
    except (ValueError, RecursionError) as e:
        reason = "objects in objects without end" if isinstance(e, RecursionError) else str(e).rstrip(".")
        raise GraphError(f"{path.name}: cannot be read as JSON ({reason}); write it again, as {_EXPECTED}") from None
    if not isinstance(data, dict):
        raise GraphError(f"{path.name}: holds no object at the top; expected {_EXPECTED}")
    for mark, what in _OTHERS.items():
        if mark in data:
            raise GraphError(f"{path.name}: has {mark!r}, so that it is {what}; expected {_EXPECTED}")
    lists = [k for k in ("links", "edges") if k in data]
    if len(lists) == 2 and data["links"] and data["edges"]:
        raise GraphError(f"{path.name}: has both links and edges; which are meant cannot be told, take one away")
    if "nodes" not in data or not lists:
        there = ", ".join(map(repr, list(data)[:5])) or "nothing"
        raise GraphError(f"{path.name}: lacks nodes, or links, found: {there[:200]}; expected {_EXPECTED}")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, in which each name stands once."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice[:40]!r} stands twice in one object")
    return made


def _objects(path: Path, data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """A list of objects."""
    found = data.get(key)
    if not isinstance(found, list):
        raise GraphError(f"{path.name}: {key} is no list; expected {_EXPECTED}")
    wrong = next((i for i, item in enumerate(found) if not isinstance(item, dict)), None)
    if wrong is not None:
        raise GraphError(
            f"{path.name}: item {wrong} of {key} is {str(found[wrong])[:40]!r}, no object; expected {_EXPECTED}"
        )
    return found


def _id(path: Path, place: int, value: object) -> str:
    """An id as text."""
    text = None if isinstance(value, bool) or not isinstance(value, str | int | float) else text_of(value)
    if text is None:
        shown = "empty" if value in (None, "") else repr(value)[:40]
        raise GraphError(f"{path.name}: node {place} has the id {shown}; allowed: text and numbers")
    return text


def _ends(path: Path, key: str, place: int, link: Mapping[str, Any], named: str) -> Pair:
    """Both ends as they are written; D3 puts the node itself there once it has drawn it."""
    ends = []
    for end in _BOTH:
        value = link.get(end)
        if isinstance(value, dict) and named in value:
            value = value[named]
        if value is None or value == "":
            fault = f"its {end} is empty" if end in link else f"has no {end}"
            raise GraphError(
                f"{path.name}: item {place} in {key}{':' * (end in link)} {fault}; every edge needs a source and a target"
            )
        ends.append(value)
    return ends[0], ends[1]


def _by_id(
    path: Path, key: str, nodes: Sequence[Mapping[str, Any]], ids: list[str], ends: Sequence[Pair]
) -> tuple[list[tuple[int, int]], tuple[Message, ...]]:
    """The nodes that the links name, and what is to be said about it."""
    place = {ident: i for i, ident in enumerate(ids)}
    named = [(_place(place, a), _place(place, b)) for a, b in ends]
    lost = [i for i, pair in enumerate(named) if min(pair) < 0]
    as_positions = _are_positions(ends, len(nodes))
    positions = [(int(a), int(b)) for a, b in ends] if as_positions else []
    whole = all(isinstance(node["id"], int | float) for node in nodes)
    if not lost:
        if not as_positions or positions == named:
            return named, ()
        if not whole:
            raise GraphError(
                f"{path.name}: links hold whole numbers, which are both the positions of the nodes, counted from 0, and ids "
                f"that are written as text, and each would join other nodes; write the ids into the {key} as text, or take "
                "the ids out of the nodes if positions are meant"
            )
        text = (
            f"{path.name}: links were taken to name ids, as networkx writes them since version 2; as positions, which "
            "version 1 wrote, they would join other nodes"
        )
        remedy = "nothing to do if the file is newer than 2018; else write ids into the links"
        return named, (Message("warning", "ids-or-positions", text, len(ends), remedy=remedy),)
    if as_positions and not whole and len(lost) == len(ends):
        text = (
            f"{path.name}: ids are text and links whole numbers, so that these were taken for positions, counted from 0"
        )
        remedy = "nothing to do if networkx 1 or D3 3 wrote the file; else write ids into the links"
        return positions, (Message("warning", "positions", text, len(ends), remedy=remedy),)
    first = lost[0]
    end = _BOTH[named[first][0] >= 0]
    where = f"item {first} in {key} ({str(ends[first][named[first][0] >= 0])[:40]!r})"
    remedy = "add the node or remove the link"
    if as_positions:
        remedy = (
            "all links fit as positions, counted from 0, as networkx 1 and D3 3 wrote them: if these are meant, take the "
            "ids out of the nodes or write them into the links"
        )
    else:
        others = (c for c in _scalar_columns(nodes) if c != "id" and _names_ends(nodes, c, ends))
        other = next(others, None)
        remedy = f"they are values of {other!r}: call that id in the nodes" if other else remedy
    raise GraphError(
        f"{path.name}: {counted(len(lost), 'link')} with a {end} that is no node, first: {where}; allowed: the "
        f"{len(ids):,} ids of the nodes; {remedy}"
    )


def _without_ids(
    path: Path, key: str, nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> tuple[str, list[str], list[tuple[int, int]], tuple[Message, ...]]:
    """What the nodes are called where none has an id: the column, the ids, the links' ends and what is to be said."""
    size, nodes = len(nodes), [_flat(node) for node in nodes]
    naming: dict[str, list[tuple[int, int]]] = {}
    flawed: list[str] = []
    for column in _scalar_columns(nodes):
        ends = [_ends(path, key, i, link, column) for i, link in enumerate(links)]
        if _names_ends(nodes, column, ends):
            texts = [text_of(node.get(column)) for node in nodes]
            place = {text: i for i, text in enumerate(texts) if text is not None}
            naming[column] = [(_place(place, a), _place(place, b)) for a, b in ends]
            if None in texts or len(place) < size or any(min(pair) < 0 for pair in naming[column]):
                flawed.append(column)
    ends = [_ends(path, key, i, link, "index") for i, link in enumerate(links)]
    readings = {f"values of {column!r}": pairs for column, pairs in naming.items()}
    if _are_positions(ends, size):
        readings["positions, counted from 0"] = [(int(a), int(b)) for a, b in ends]
    listed = list(readings)
    if any(pairs != readings[listed[0]] for pairs in readings.values()) or (flawed and len(flawed) == len(listed)):
        flaws = f" ({', '.join(map(repr, flawed))} with empty or repeated cells, or without some ends)" * bool(flawed)
        raise GraphError(
            f"{path.name}: no node has an id, and the ends of links are {', or '.join(listed)}{flaws}"
            f"{', each of which would join other nodes' if len(listed) > 1 else ''}; call the column that links name id, or "
            "write an id into every node and ids into the links"
        )
    if naming:
        column = next(iter(naming))
        text = f"{path.name}: no node has an id, and links name values of {column!r}, which are the ids"
        remedy = "nothing to do; call it id in the nodes to be rid of this note"
        note = Message("note", "ids-by-values", text, size, remedy=remedy)
        return column, [str(text_of(node[column])) for node in nodes], naming[column], (note,)
    if not readings:
        first, end = next(
            (i, e) for i, pair in enumerate(ends) for e, v in zip(_BOTH, pair, strict=True) if not _is_position(v, size)
        )
        raise GraphError(
            f"{path.name}: item {first} in {key} has the {end} {str(links[first][end])[:40]!r}, and no node has an id; "
            f"allowed: 0 to {size - 1}, the positions of the nodes; or write an id into every node"
        )
    text = f"{path.name}: no node has an id, so that links name positions, counted from 0, which are the ids"
    remedy = "nothing to do; write an id into every node, and ids into the links, to call them otherwise"
    warning = Message("warning", "positions", text, remedy=remedy)
    return "", [str(i) for i in range(size)], readings["positions, counted from 0"], (warning,)


def _flat(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node's values, and those of its records under names such as data.id."""
    inner = {f"{k}.{n}": v for k, record in node.items() if isinstance(record, dict) for n, v in record.items()}
    return {**node, **inner} if inner else node


def _scalar_columns(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that nearly all nodes have, and that say nothing about a drawing."""
    names = list(dict.fromkeys(name for node in nodes for name in node))
    looks = set(drawn(names))
    few = nodes[:: max(len(nodes) // 100, 1)]
    return [n for n in names if n not in looks and sum(n in node for node in few) >= _MOST * len(few)]


def _names_ends(nodes: Sequence[Mapping[str, Any]], column: str, ends: Sequence[Pair]) -> bool:
    """Whether a column tells the nodes apart and holds nearly all of the links' ends."""
    values = {text_of(v) for node in nodes if not isinstance(v := node.get(column), dict | list | bool)}
    if len(values) < _MOST * len(nodes):
        return False
    wanted = {text_of(end) for pair in ends for end in pair if not isinstance(end, dict | list)}
    return bool(wanted) and len(wanted & values) >= _MOST * len(wanted)


def _place(place: Mapping[str, int], end: object) -> int:
    """The node that an end names, -1 where it names none."""
    text = None if isinstance(end, bool | dict | list) else text_of(end)
    return -1 if text is None else place.get(text, -1)


def _is_position(end: object, size: int) -> bool:
    return isinstance(end, int | float) and not isinstance(end, bool) and 0 <= end < size and end == int(end)


def _are_positions(ends: Sequence[Pair], size: int) -> bool:
    """Whether all ends are positions of nodes, counted from 0."""
    return bool(ends) and all(_is_position(end, size) for pair in ends for end in pair)


def _begins(path: Path) -> bool | None:
    """Whether a file may hold a graph: other JSON files lie beside graphs of all kinds."""
    if path.suffix != ".gz" and is_gzip(path):
        return None
    with open_bytes(path) as f:
        head = f.read(_PEEK).replace(b"\0", b"")  # of UTF-16
    if _MARKS.search(head) is None:
        return False
    return True if _LISTS.search(head) else None


POSITION = 102
LAYOUTS = (
    Layout(
        "json",
        "a JSON graph's",
        (Part("graph", ("{}.json",), "nodes and links, as networkx writes them"),),
        _read,
        begins=_begins,
    ),
)
