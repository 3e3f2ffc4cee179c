"""A network of KONECT's: ``out.NAME``, with ``ent.NAME.CLASS.ATTRIBUTE`` files beside it, or ``nodes.csv``.

The first line, ``% sym positive``, says whether edges have a direction and what the third column is; the second may say
how many edges and nodes there are. Line i of an ``ent`` file is the value of node i, counted from 1. Networks of two kinds
of nodes, and third columns that are no strengths (signs, ratings, edges that come and go), are refused.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.beginnings import begin, reason
from uge_core.datasets.bounded import open_bytes, read_bytes, refuse_link_out, unpacked_limit
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import refuse_unknown
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined, read_any
from uge_core.datasets.tables import Table, as_numbers, counted, read_table
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_HEAD = re.compile(r"%\s*(sym|asym|bip)\b\s*(\w*)")
_STRENGTHS = ("unweighted", "positive", "posweighted", "multiposweighted", "")
_NAMES = ("source", "target", "weight", "time")
_ENDS = ("source", "target")
_REWRITE = "write edges.csv (source,target) and nodes.csv (id and the attributes)"


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["edges"]
    comments = begin(path, "utf-8-sig", comments=True).comments
    head = _HEAD.match(comments[0]) if comments else None
    if head is None:
        raise GraphError(
            f"{path.name}: must begin with a line such as % sym unweighted, as KONECT's files do; if it is no such file, "
            f"{_REWRITE}"
        )
    if head[1] == "bip":
        raise GraphError(
            f"{path.name}: joins two kinds of nodes (bip), each numbered from 1; write edges.csv and tables of users and "
            "items, named in dataset.yaml"
        )
    if head[2] not in _STRENGTHS:
        raise GraphError(
            f"{path.name}: edges are {head[2]}, so that the third column is no strength of an edge; allowed: "
            f"{', '.join(filter(None, _STRENGTHS))}; keep the edges that are meant, and {_REWRITE}"
        )
    edges = _edges(path, head[2])
    directed = head[1] == "asym"
    attributes = _entity_files(path)
    if "nodes" in found.files:
        if attributes:
            raise GraphError(
                f"{path.name}: both {found.files['nodes'].name} and {attributes[0][1].name} describe the nodes; take one of "
                "them away"
            )
        nodes = read_any(found.files["nodes"])
        return joined(found.name, "konect", nodes, edges, asked, ends=_ENDS, directed=directed)
    size, source, target = _numbered(path, edges, comments[1:], bool(attributes), head[2])
    described = edge_columns(edges, _ENDS)
    parts = [*_attributes(attributes, path, size, asked), described, NodeColumns(directed=directed)]
    ids = pd.Index([str(i) for i in range(1, size + 1)], dtype=object)
    return finish(found.name, "konect", source, target, size, NodeColumns.join(parts), node_ids=ids)


def _edges(path: Path, kind: str) -> Table:
    """The rows of the file."""
    table = read_table(path, sep=" ", header=False)
    if not 2 <= len(table.names) <= len(_NAMES):
        raise GraphError(
            f"{path.name}: found {counted(len(table.names), 'field')} a line; expected two to four: from, to, weight, time"
        )
    edges = Table(
        path.name, table.frame.set_axis(list(_NAMES[: len(table.names)]), axis=1), table.messages, headless=True
    )
    if (
        kind == "unweighted"
        and "weight" in edges.names
        and (edges.frame["weight"] != edges.frame["weight"].iloc[0]).any()
    ):
        raise GraphError(
            f"{path.name}: edges are called unweighted, but the third column differs; say positive or posweighted in the "
            "first line if they are weights, else take the column out"
        )
    return edges


def _numbered(
    path: Path, edges: Table, comments: Sequence[str], described: bool, kind: str
) -> tuple[int, IntArray, IntArray]:
    """How many nodes there are, and the ends of the edges counted from 0."""
    source, target = (as_numbers(edges.frame[end]) for end in _ENDS)
    size = int(np.nan_to_num(np.concatenate([source, target])).max())
    said = [int(n) for n in re.findall(r"\d{1,15}", comments[0])] if comments and _is_sizes(comments[0]) else []
    if len(said) > 1:
        size = max(said[1:])
    if size > 2 * len(edges) and not described:
        raise GraphError(
            f"{path.name}: numbers go up to {size:,} in {counted(len(edges), 'edge')}, so that most would belong to nobody; "
            f"nodes are counted from 1 here: renumber them, or {_REWRITE}"
        )
    fits = [(n >= 1) & (n <= size) & (n == np.floor(n)) for n in (source, target)]
    ends = [np.where(f, n, 0).astype(np.int64) - 1 for f, n in zip(fits, (source, target), strict=True)]
    refuse_unknown(edges, _ENDS, (ends[0], ends[1]), f"1 to {size}, the nodes counted from 1")
    if len(said) > 1 and said[0] > len(edges) and kind == "unweighted":
        raise GraphError(
            f"{path.name}: has {counted(len(edges), 'edge')}, but its second line says {said[0]:,}; it is cut off or was "
            "changed: download it again, or take that line out"
        )
    return size, ends[0], ends[1]


def _is_sizes(comment: str) -> bool:
    """Whether a comment holds nothing but numbers: of edges and of nodes."""
    return re.fullmatch(r"%\s*\d{1,15}(?:\s+\d{1,15})+\s*", comment) is not None


def _entity_files(path: Path) -> list[tuple[str, Path]]:
    """The files with a value for each node, by the attribute's name."""
    stem = re.sub(r"\.gz$", "", path.name)[len("out.") :]
    rule = re.compile(rf"(?i:ent)\.{re.escape(stem)}\.(.+?)(?:\.gz)?")
    files = [(m[1], path.parent / f) for f in Folder.open(path.parent).files if (m := rule.fullmatch(f))]
    short = [name.rpartition(".")[2] for name, _ in files]
    return [(end if short.count(end) == 1 else name, file) for end, (name, file) in zip(short, files, strict=True)]


def _attributes(files: Sequence[tuple[str, Path]], path: Path, size: int, asked: Asked) -> list[NodeColumns]:
    """What the values of the nodes become; each file is a column of its own."""
    parts = []
    for name, file in files:
        refuse_link_out(file)
        values = [line.strip() or None for line in _lines(file)]
        if values[-1:] == [None]:
            values.pop()  # behind the last line's end
        if len(values) != size:
            raise GraphError(
                f"{file.name}: has {counted(len(values), 'line')}, but {path.name} has {size:,} nodes; line i is the value "
                "of node i, so they must be equally many"
            )
        frame = pd.DataFrame({name: values}, index=pd.RangeIndex(1, size + 1), dtype="str")
        parts.append(assign(Table(file.name, frame), {}, Role("auto"), asked))
    return parts


def _lines(file: Path) -> list[str]:
    """The lines of a text file, less comments at its start."""
    try:
        if file.suffix == ".gz":
            begin(file, "utf-8-sig")
        text = read_bytes(file, unpacked_limit(), settable=True).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as e:
        raise GraphError(f"{file.name}: {reason(file, e, 'utf-8-sig')}") from None
    lines = re.split(r"\r\n|\n|\r", text)
    while lines and lines[0].startswith("%"):
        lines.pop(0)
    return lines


def _begins(path: Path) -> bool:
    """Whether a file begins as KONECT's do; others are called out.NAME as well."""
    with open_bytes(path) as f:
        return _HEAD.match(f.readline(200).decode("latin-1").removeprefix("\xef\xbb\xbf")) is not None


POSITION = 96
LAYOUTS = (
    Layout(
        "konect",
        "KONECT's",
        (
            Part("edges", ("out.{}",), "a line % sym unweighted, and two numbers of nodes a line"),
            Part("nodes", ("nodes.csv", "nodes.parquet"), optional=True),
        ),
        _read,
        begins=_begins,
    ),
)
