"""Whom a person would be recommended first: the ten best of all they are not linked to in training."""

from __future__ import annotations

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.audit.top_ten import TOP
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import scorer
from uge_core.graph.split import LinkSplit


def first_links(
    embedding: FloatArray, score: str, graph: AttributedGraph, split: LinkSplit | None, node: int
) -> list[tuple[int, float]]:
    """The ten nodes with the highest scores with one node, the best first, and their scores.

    Left out are the node itself and those it is linked to in training; held-out links may be among the ten, as they are
    what is predicted. On a bipartite graph a user's are items, and an item's are users. Of equal ones the first by
    number.

    Args:
        embedding: (N, d).
        score: a name that `scores.scorer` knows.
        graph: the graph.
        split: which of its edges train, or None where nobody knows: then all edges count.
        node: whose list.
    """
    side = np.arange(graph.num_nodes)
    if graph.num_users is not None:
        side = side[graph.num_users :] if node < graph.num_users else side[: graph.num_users]
    edges = graph.edges if split is None else split.train
    mine = edges[:, (edges == node).any(axis=0)]
    candidates = side[~np.isin(side, np.append(mine.ravel(), node))]
    factors = scorer(score).factors(np.asarray(embedding, dtype=np.float32)[np.append(candidates, node)])
    scores = factors.right[:-1].astype(np.float64) @ factors.left[-1].astype(np.float64)
    order = np.argsort(-scores, kind="stable")[:TOP]
    return [(int(candidates[i]), float(scores[i])) for i in order]
