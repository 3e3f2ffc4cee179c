"""A graph in one JSON file, ``NAME.json``: nodes and links (or edges), as networkx's node_link_data and D3 write them.

A link names its ends by the nodes' ids. Where no node has an id, as in older files of D3's, links name positions,
counted from 0. Both readings of one file are never mixed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.bounded import is_gzip, open_bytes, read_bytes, unpacked_limit
from uge_core.datasets.columns import NodeColumns
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.graph_files import MOST_BYTES, Records
from uge_core.datasets.tables import count, counted
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Message

_PEEK = 2**16
_MARKS = (b'"nodes"', b'"links"', b'"edges"', b'"multigraph"', b'"adjacency"', b'"elements"')
_EXPECTED = '{"directed": false, "nodes": [{"id": 1}, ..], "links": [{"source": 1, "target": 2}, ..]}'
_OTHERS = {
    "adjacency": "networkx's adjacency_data; write it by node_link_data",
    "elements": "Cytoscape's; export GraphML there",
    "children": "a tree; write it by node_link_data",
}


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
    if any(with_id):
        if not all(with_id):
            raise GraphError(
                f"{path.name}: {counted(with_id.count(False), 'node')} without an id, first: node {with_id.index(False)}; "
                "every node needs an id"
            )
        ids = pd.Index([_id(path, "node", i, node["id"]) for i, node in enumerate(nodes)], dtype=object)
        source, target = (_ends(path, key, links, end, ids) for end in ("source", "target"))
        about = _about_positions(path, ids, nodes, links)
    else:
        ids = pd.Index([str(i) for i in range(len(nodes))], dtype=object)
        source, target = (_positions(path, key, links, end, len(nodes)) for end in ("source", "target"))
        text = f"{path.name}: no node has an id, so that links name positions, counted from 0, which are the ids"
        remedy = "nothing to do; write an id into every node, and ids into the links, to call them otherwise"
        about = NodeColumns(messages=(Message("warning", "positions", text, remedy=remedy),))
    people = [{k: v for k, v in node.items() if k != "id"} for node in nodes]
    return Records(path, ids, people, source, target, links, directed, about).graph(found.name, "json", asked)


def _parse(path: Path) -> dict[str, Any]:
    """The object that the file holds."""
    try:
        if path.suffix == ".gz" and not is_gzip(path):
            raise GraphError(f"{path.name}: is not gzip data although its name ends in .gz; rename it or compress it")
        raw = read_bytes(path, min(MOST_BYTES, unpacked_limit()))
    except (OSError, EOFError, zlib.error):
        raise GraphError(f"{path.name}: the file cannot be read, or its gzip data are damaged") from None
    try:
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once)
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
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
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


def _id(path: Path, what: str, place: int, value: object) -> str:
    """An id as text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value or value == "":
        shown = "empty" if value in (None, "") else repr(value)[:40]
        raise GraphError(f"{path.name}: {what} {place} has the id {shown}; allowed: text and numbers")
    return str(value)


def _ends(path: Path, key: str, links: Sequence[Mapping[str, Any]], end: str, ids: pd.Index) -> IntArray:
    """(M,) the node that each link names."""
    named = [
        _id(path, f"{end} of item {i} in {key}:", i, _end(path, key, i, link, end)) for i, link in enumerate(links)
    ]
    number = {ident: i for i, ident in enumerate(ids)}
    found = np.array([number.get(name, -1) for name in named], dtype=np.int64)
    wrong = found < 0
    if wrong.any():
        first = int(np.argmax(wrong))
        remedy = "add the node or remove the link"
        if all(isinstance(link.get(e), int) for link in links for e in ("source", "target")) and wrong.all():
            remedy = "if links name positions, as networkx 1 and D3 3 wrote them, write the ids in their place"
        raise GraphError(
            f"{path.name}: {count(wrong, 'link')} with a {end} that is no node, first: item {first} in {key} "
            f"({named[first][:40]!r}); allowed: the {len(ids):,} ids of the nodes; {remedy}"
        )
    return found


def _positions(path: Path, key: str, links: Sequence[Mapping[str, Any]], end: str, size: int) -> IntArray:
    """(M,) the position that each link names."""
    named = [_end(path, key, i, link, end) for i, link in enumerate(links)]
    wrong = next(
        (i for i, at in enumerate(named) if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < size), None
    )
    if wrong is not None:
        raise GraphError(
            f"{path.name}: item {wrong} in {key} has the {end} {str(named[wrong])[:40]!r}, and no node has an id; allowed: "
            f"0 to {size - 1}, the positions of the nodes; or write an id into every node"
        )
    return np.array(named, dtype=np.int64)


def _end(path: Path, key: str, place: int, link: Mapping[str, Any], end: str) -> Any:
    """One end as it is written; D3 puts the node itself there once it has drawn it."""
    if end not in link:
        raise GraphError(f"{path.name}: item {place} in {key} has no {end}; every edge needs a source and a target")
    value = link[end]
    return value["id"] if isinstance(value, dict) and "id" in value else value


def _about_positions(
    path: Path, ids: pd.Index, nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> NodeColumns:
    """A warning where links could name positions as well, and would then join other nodes."""
    size = len(ids)
    whole = all(isinstance(v, int) for v in [*(n["id"] for n in nodes), *(link[e] for link in links for e in _BOTH)])
    if not whole or list(ids) == [str(i) for i in range(size)]:
        return NodeColumns()
    if not all(0 <= link[e] < size for link in links for e in _BOTH):
        return NodeColumns()
    text = (
        f"{path.name}: links were taken to name ids, as networkx writes them since version 2; as positions, which "
        "version 1 wrote, they would join other nodes"
    )
    remedy = "nothing to do if the file is newer than 2018; else write ids into the links"
    return NodeColumns(messages=(Message("warning", "ids-or-positions", text, len(links), remedy=remedy),))


_BOTH = ("source", "target")


def _begins(path: Path) -> bool:
    """Whether a file may hold a graph: other JSON files lie beside graphs of all kinds."""
    with suppress(OSError, EOFError, zlib.error, GraphError), open_bytes(path) as f:
        head = f.read(_PEEK)
        return any(mark in head for mark in _MARKS)
    return False


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
