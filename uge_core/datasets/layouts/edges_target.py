"""Social networks with one target: ``NAME_edges.csv`` and ``NAME_target.csv`` (LastFM Asia, Deezer Europe).

The target is the attribute: the country of LastFM's users, the gender of Deezer's, and called
``target`` elsewhere; it answers to ``target`` everywhere. A file without that column, as Twitch's, is read like
`tables`.
"""

from __future__ import annotations

from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import ASK_WITHOUT_CARD, by_id, node_index, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined
from uge_core.datasets.tables import is_number, read_table, refuse_headless
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph

_CALLED = {"deezer": "gender", "lastfm": "country"}


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One graph."""
    edges, nodes = read_table(dataset.files["edges"]), read_table(dataset.files["target"])
    if len(edges.names) < 2:
        raise GraphError(f"{edges.file}: one column ({edges.names[0]}), two are needed: node_1,node_2")
    if nodes.column("target") is None:  # Twitch's call it otherwise, and have two columns of ids
        return joined(dataset.name, "edges-target", nodes, edges, asked)
    id_column, target_column = nodes.require("id"), nodes.require("target")
    ids = node_index(nodes, id_column)
    ends = (edges.names[0], edges.names[1])
    if all(map(is_number, ends)) or all(end in ids for end in ends):
        refuse_headless(edges, ends, "node_1,node_2")
    source, target = by_id(edges, ends[0], ids), by_id(edges, ends[1], ids)
    allowed = f"the {len(ids):,} ids of {nodes.file}, compared as text"
    refuse_unknown(edges, ends, (source, target), allowed, ids, ASK_WITHOUT_CARD)
    called = next((name for stem, name in _CALLED.items() if stem in edges.file.lower()), None)
    role = Role("attribute", name=called, aliases=("target",) if called else ())
    columns = assign(nodes, {id_column.lower(): Role("id"), target_column.lower(): role}, Role("auto"), asked)
    described = NodeColumns.join([columns, edge_columns(edges, ends)])
    return finish(dataset.name, "edges-target", source, target, len(ids), described, node_ids=ids)


POSITION = 60
LAYOUTS = (
    Layout(
        "edges-target",
        "LastFM's and Deezer's",
        (
            Part("edges", ("{}_edges.csv",), "the header node_1,node_2 and one row per edge"),
            Part("target", ("{}_target.csv",), "the header id,target and one row per node"),
        ),
        _read,
    ),
)
