"""Social networks with one target: ``NAME_edges.csv`` and ``NAME_target.csv`` (LastFM Asia, Deezer Europe).

The target is the attribute: the country of LastFM's users, the gender of Deezer's, and called
``target`` elsewhere; it answers to ``target`` everywhere. A file without that column, as Twitch's, is read like
`tables`.
"""

from __future__ import annotations

from uge_core.datasets.columns import Role
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.layouts.tables import joined
from uge_core.datasets.tables import read_table
from uge_core.graph.graph import AttributedGraph

_CALLED = {"deezer": "gender", "lastfm": "country"}


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """One graph."""
    edges, nodes = read_table(dataset.files["edges"]), read_table(dataset.files["target"])
    called = next((name for stem, name in _CALLED.items() if stem in edges.file.lower()), None)
    role = Role("attribute", name=called, aliases=("target",) if called else ())
    return joined(dataset.name, "edges-target", nodes, edges, asked, roles={"target": role})


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
