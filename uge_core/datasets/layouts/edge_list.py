"""A list of edges as SNAP writes them, ``NAME.txt``, beside ``nodes.csv``: two ids a line, comments with # above.

A comment ``# Directed graph`` says that edges have a direction. What the columns are is decided as for `tables`.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from pathlib import Path

from uge_core.datasets.beginnings import begin
from uge_core.datasets.bounded import open_bytes
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined, read_any
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_PEEK = 2**16
_EDGE = re.compile(r"\s*\d+(?:\s+|\s*[,;]\s*)\d+(?:[\s,;].*)?")
_DIRECTED = re.compile(r"#\s*directed\b", re.IGNORECASE)


def _read(found: Found, asked: Asked) -> AttributedGraph:
    """The graph."""
    path = found.files["edges"]
    nodes = read_any(found.files["nodes"])
    directed = any(map(_DIRECTED.match, begin(path, "utf-8-sig", comments=True).comments))
    return joined(found.name, "edge-list", nodes, read_any(path), asked, directed=directed)


def _begins(path: Path) -> bool:
    """Whether a text file begins with comments, if any, and then two numbers: other texts lie beside graphs too."""
    with suppress(OSError, EOFError, zlib.error, GraphError), open_bytes(path) as f:
        lines = f.read(_PEEK).decode("latin-1").removeprefix("\xef\xbb\xbf").splitlines()
        first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        return _EDGE.fullmatch(first) is not None
    return False


POSITION = 98
LAYOUTS = (
    Layout(
        "edge-list",
        "SNAP's lists of edges",
        (
            Part("edges", ("{}.txt",), "two ids a line"),
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
