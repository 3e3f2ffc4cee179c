"""An Excel workbook, ``NAME.xlsx``, with a sheet of edges and a sheet of nodes, read as two tables.

The sheets are known by their names: edges or links, and nodes or people. `tables` says what their columns are.
"""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path

from uge_core.datasets.excel import read_excel, sheet_names
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_EDGES = ("edges", "links", "edge", "link")
_NODES = ("nodes", "people", "users", "members", "node", "persons", "vertices")
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s[^>]*?\bname=\"([^\"]*)\"")
_PEEK = 2**20


def _named(path: Path) -> tuple[str, str] | None:
    """The sheets of edges and of nodes, where there is one of each."""
    names = sheet_names(path)
    edges, nodes = ([n for n in names if n.strip().lower() in called] for called in (_EDGES, _NODES))
    return (edges[0], nodes[0]) if len(edges) == len(nodes) == 1 else None


def _begins(path: Path) -> bool | None:
    """Whether the list of sheets names both; reading it takes no cells."""
    try:
        with zipfile.ZipFile(path) as book, book.open("xl/workbook.xml") as sheets:
            names = [unescape(n.decode("utf-8", "replace")) for n in _SHEET.findall(sheets.read(_PEEK))]
    except Exception:  # damaged or locked, which shows in many ways; whoever reads it says how
        return False if path.stem.lower().endswith(("edges", "nodes")) else None
    return all(any(n.strip().lower() in called for n in names) for called in (_EDGES, _NODES))


def _read(found: Found, asked: Asked) -> AttributedGraph:
    path = found.files["graph"]
    sheets = _named(path)
    if sheets is None:
        raise GraphError(
            f"{path.name}: found the sheets {', '.join(sheet_names(path)) or 'none with cells'}; call the one with a "
            "row per link edges and the one with a row per person nodes"
        )
    edges, nodes = (read_excel(path, sheet) for sheet in sheets)
    return joined(found.name, "workbook", nodes, edges, asked)


POSITION = 95
LAYOUTS = (
    Layout(
        "workbook",
        "an Excel workbook",
        (Part("graph", ("{}.xlsx",), "a sheet called edges and a sheet called nodes"),),
        _read,
        begins=_begins,
    ),
)
