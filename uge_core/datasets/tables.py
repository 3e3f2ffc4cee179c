"""Any graph as two tables: ``edges.csv`` and ``nodes.csv``, comma, semicolon or tab, ids of any kind.

The ends of an edge are the columns source and target (or src and dst, from and to, u and v, or
else the first two); a node's id is the column id (or node, node_id, user_id, or else the first).
Ids are compared as text. What the other columns are is decided by their values, see `base`.
"""

from __future__ import annotations

from uge_core.datasets._tables import Table, by_id, node_index, read_table, refuse_unknown
from uge_core.datasets.base import Found, Layout, NodeColumns, Part, Role, assign, edge_columns, finish
from uge_core.errors import GraphError
from uge_core.graph import AttributedGraph

_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))


def _read(found: Found, asked: frozenset[str]) -> AttributedGraph:
    """The graph."""
    nodes, edges = read_table(found.files["nodes"], sep=None), read_table(found.files["edges"], sep=None)
    id_column = nodes.column("id", "node", "node_id", "user_id") or nodes.names[0]
    ids = node_index(nodes, id_column)
    ends = _ends(edges)
    source, target = by_id(edges, ends[0], ids), by_id(edges, ends[1], ids)
    allowed = f"the {len(ids):,} ids in column {id_column!r} of {nodes.file}, compared as text (7 and 7.0 differ)"
    refuse_unknown(edges, ends, (source, target), allowed)
    columns = assign(nodes, {id_column.lower(): Role("id")}, Role("auto"), asked)
    described = NodeColumns.join([columns, edge_columns(edges, ends)])
    return finish(found.name, "tables", source, target, len(ids), described, node_ids=ids)


def _ends(edges: Table) -> tuple[str, str]:
    """The two columns that hold the ends of an edge."""
    for pair in _ENDS:
        source, target = map(edges.column, pair)
        if source is not None and target is not None:
            return source, target
    if len(edges.names) < 2:
        raise GraphError(f"{edges.file}: one column ({edges.names[0]}), two are needed: source,target")
    return edges.names[0], edges.names[1]


LAYOUTS = (
    Layout(
        "tables",
        "two tables",
        (
            Part("edges", ("edges.csv",), "the header source,target and one row per edge"),
            Part("nodes", ("nodes.csv",), "a header with the column id and one row per node, attributes in the others"),
        ),
        _read,
    ),
)
