"""An Excel workbook, ``NAME.xlsx``, with a sheet of edges and a sheet of nodes, read as two tables.

The sheets are known by their names: edges or links, and nodes or people. `tables` says what their columns are.
"""

from __future__ import annotations

import re
from pathlib import Path

from uge_core.datasets.excel import NAME_SHEETS, Sheets, read_sheets, sheet_names
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_EDGES = ("edges", "links", "edge", "link")
_NODES = ("nodes", "people", "users", "members", "node", "persons", "vertices")
_TABLES = re.compile(r"\.(?:csv|tsv|txt|dat|parquet|xlsx|yaml)(?:\.gz)?$", re.IGNORECASE)


def _named(sheets: Sheets) -> tuple[list[str], list[str]]:
    """The sheets that are called like one of edges, and like one of nodes."""
    edges, nodes = ([n for n in sheets.shown if n.strip().lower() in called] for called in (_EDGES, _NODES))
    return edges, nodes


def _begins(path: Path) -> bool | None:
    """Whether a workbook has a sheet of each, or is alone in its folder, so that nothing else tells what is missing."""
    if path.stem.lower() in ("edges", "nodes"):
        return False
    try:
        sheets = sheet_names(path)
    except GraphError:  # damaged; whoever reads it says how
        return False if path.stem.lower().endswith(("edges", "nodes")) else None
    edges, nodes = _named(sheets)
    others = [n for n in Folder.open(path.parent).files if _TABLES.search(n) and n != path.name]
    return (len(edges) == len(nodes) == 1) or (not others and len(sheets.shown) + len(sheets.hidden) > 1)


def _read(found: Found, asked: Asked) -> AttributedGraph:
    path = found.files["graph"]
    sheets = sheet_names(path)
    edges, nodes = _named(sheets)
    if not len(edges) == len(nodes) == 1:
        twice = next(
            (f", of which {' and '.join(names)} count alike" for names in (edges, nodes) if len(names) > 1), ""
        )
        raise GraphError(
            f"{path.name}: found {sheets}{twice}; {NAME_SHEETS} ({', '.join(_EDGES[1:])} and {', '.join(_NODES[1:])} "
            "count as well)"
        )
    links, people = read_sheets(path, (edges[0], nodes[0]))
    return joined(found.name, "workbook", people, links, asked)


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
