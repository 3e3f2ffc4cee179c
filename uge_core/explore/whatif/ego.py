"""A node with its neighbours, and why each edge between them weighs what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from uge_core.arrays import IntArray
from uge_core.explore.people import values_of
from uge_core.explore.whatif.weights import Weights
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit

MOST_NODES = 60
_MOST_EDGES = 400


@dataclass(frozen=True)
class Ego:
    """A small part of a graph.

    Attributes:
        nodes: `id`, `degree`, `values` by attribute, and whether it is the `centre`; the centres come first.
        edges: `a`, `b` (positions in `nodes`), `weight` R~/R, `part` (training, held out, dropped), `own` weight or
            None, and `reasons`; those that a scenario drops have weight 0 and come last.
        left_out: neighbours that are not shown.
        edges_left_out: edges between the nodes shown that are not.
    """

    nodes: tuple[dict[str, Any], ...]
    edges: tuple[dict[str, Any], ...]
    left_out: int
    edges_left_out: int


def ego_network(
    graph: AttributedGraph,
    split: LinkSplit,
    weights: Weights | None,
    centres: Sequence[int],
    *,
    dropped: IntArray | None = None,
    most: int = MOST_NODES,
) -> Ego:
    """The centres, their neighbours (those with the most edges to the nodes shown first), and the edges between them.

    Args:
        graph: the graph.
        split: which of its edges train.
        weights: R~/R and the counts behind it; None draws edges alike.
        centres: node numbers, at least one; no more than `most` are taken.
        dropped: (2, k) edges that a scenario took away, so that they can still be seen.
        most: how many nodes are shown.
    """
    kept = np.array(list(dict.fromkeys(centres))[:most], dtype=np.int64)
    gone = np.zeros((2, 0), dtype=np.int64) if dropped is None else dropped
    either = np.concatenate([graph.edges, gone], axis=1)
    touching = either[:, np.isin(either, kept).any(axis=0)]
    others = np.concatenate([touching[1, np.isin(touching[0], kept)], touching[0, np.isin(touching[1], kept)]])
    others, ties = np.unique(others[~np.isin(others, kept)], return_counts=True)
    order = np.lexsort((others, -graph.degree[others], -ties))
    shown = np.concatenate([kept, others[order][: most - len(kept)]])
    place = {int(n): i for i, n in enumerate(shown)}
    inside = np.isin(graph.edges, shown).all(axis=0)
    edges = graph.edges[:, inside]
    # Edges of the centres first: where there are too many, those are kept.
    first = np.argsort(~np.isin(edges, kept).any(axis=0), kind="stable")
    own = None if graph.edge_weights is None else graph.edge_weights[inside][first]
    edges = edges[:, first]
    n = np.int64(graph.num_nodes)
    held = np.isin(edges[0] * n + edges[1], split.test[0] * n + split.test[1])
    drawn = edges[:, :_MOST_EDGES]
    weight = np.ones(drawn.shape[1]) if weights is None else weights.of(drawn)
    gone = gone[:, np.isin(gone, shown).all(axis=0)]
    ids = graph.ids(shown)
    return Ego(
        tuple(
            {
                "id": ids[i],
                "degree": int(graph.degree[node]),
                "centre": i < len(kept),
                "values": values_of(graph, int(node)),
            }
            for i, node in enumerate(shown)
        ),
        tuple(
            {
                "a": place[int(u)],
                "b": place[int(v)],
                "weight": float(weight[i]),
                "part": "held out" if held[i] else "training",
                "own": None if own is None else float(own[i]),
                "reasons": [asdict(r) for r in weights.reasons(int(u), int(v))] if weights else [],
            }
            for i, (u, v) in enumerate(drawn.T)
        )
        + tuple(
            {"a": place[int(u)], "b": place[int(v)], "weight": 0.0, "part": "dropped", "own": None, "reasons": []}
            for u, v in gone.T
        ),
        max(0, len(others) - (len(shown) - len(kept))),
        edges.shape[1] - drawn.shape[1],
    )


def positions(num_nodes: int, edges: IntArray, centres: int) -> list[tuple[float, float]]:
    """(x, y) of each node in [-1, 1]: centres in the middle, the others around, linked ones side by side.

    The others are ordered by a walk over the edges among them, so that few lines cross the middle.

    Args:
        num_nodes: how many.
        edges: (2, E) positions in the list of nodes.
        centres: how many of the first nodes are centres.
    """
    linked: list[list[int]] = [[] for _ in range(num_nodes)]
    for u, v in edges.T.tolist():
        linked[u].append(v)
        linked[v].append(u)
    order: list[int] = []
    seen = set(range(centres))
    for start in range(centres, num_nodes):
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                order.append(node)
                stack += [v for v in reversed(linked[node]) if v not in seen]
    around = len(order)
    out = [(0.0, 0.0)] * num_nodes
    for i in range(centres if centres > 1 else 0):
        angle = 2 * np.pi * i / centres
        out[i] = (0.35 * float(np.cos(angle)), 0.35 * float(np.sin(angle)))
    for i, node in enumerate(order):
        angle = 2 * np.pi * i / max(around, 1) + np.pi / 2
        # Two rings, so that markers and their names do not touch.
        radius = 1.0 if around <= 24 or i % 2 == 0 else 0.78
        out[node] = (radius * float(np.cos(angle)), radius * float(np.sin(angle)))
    return out
