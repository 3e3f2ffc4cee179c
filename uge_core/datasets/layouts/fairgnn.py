"""The raw Pokec files of FairGNN: profiles with the users' own ids, and a list of friendships.

``region_job*.csv`` has a header and one row per user; ``region_job*_relationship.txt`` has two
ids a line, separated by a tab. Attributes are gender, region and AGE, where 0 means not given;
I_am_working_in_field (-1: not given) is the label of the papers that use these files and never a
feature; all other columns are. The friendship list also names users without a profile: those
edges are dropped, as everyone who uses these files does. Directed rows become undirected edges.
"""

from __future__ import annotations

from uge_core.datasets.assemble import edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import by_id, node_index
from uge_core.datasets.layouts._pokec import ROLES, defaults
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import counted, read_table
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Message

_LABEL = "I_am_working_in_field"


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One region's graph."""
    roles = {
        **ROLES,
        "user_id": Role("id"),
        _LABEL.lower(): Role("label", missing=("-1",), detail="-1 means not given"),
    }
    profiles = read_table(dataset.files["profiles"], text=[*roles, *(asked or ())])
    ids = node_index(profiles, profiles.require("user_id"))
    ends = ("source", "target")
    edges = read_table(dataset.files["edges"], sep="\t", names=ends)
    source, target = by_id(edges, ends[0], ids), by_id(edges, ends[1], ids)
    inside = (source >= 0) & (target >= 0)
    notes: tuple[Message, ...] = ()
    if not inside.all():
        gone = int((~inside).sum())
        text = (
            f"{edges.file}: {counted(gone, 'row')} of {len(edges):,} dropped, as one end has no row in {profiles.file}"
        )
        if not inside.any():
            raise GraphError(f"{text}; none is left: do the two files belong together?")
        first = [f"{a} - {b}" for a, b in edges.frame[~inside].head(3).itertuples(index=False)]
        notes = (Message("note", "edges-without-profile", text, gone, tuple(first)),)
    nodes = NodeColumns.join(
        [assign(profiles, roles, Role("feature"), asked), edge_columns(edges, ends), NodeColumns(messages=notes)]
    )
    source, target = source[inside], target[inside]
    return finish(dataset.name, "fairgnn", source, target, len(ids), nodes, node_ids=ids, defaults=defaults(len(ids)))


POSITION = 40
LAYOUTS = (
    Layout(
        "fairgnn",
        "FairGNN's raw Pokec",
        (
            Part(
                "profiles",
                ("region_job{}.csv",),
                "a header with user_id,gender,region,AGE and further numbers, one row per user",
            ),
            Part("edges", ("region_job{}_relationship.txt",), "two user ids a line, separated by a tab"),
        ),
        _read,
        named="region_job{}",
    ),
)
