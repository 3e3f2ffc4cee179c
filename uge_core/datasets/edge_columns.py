"""What stands beside the edges of a file: weights, and which way edges run.

A weight says how often an edge counts, so it is above 0; an edge of weight 0 is none. A graph is
directed where its file says so (GraphML, GEXF, GML, dataset.yaml), or where it is a matrix or an
edge_index in which some edges stand one way only. Lists of edges in tables have no direction.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.datasets.tables import counted
from uge_core.graph.graph import Message

BOUND = 1e18
"""Sums of larger weights overflow single precision, and smaller ones than 1 / BOUND vanish in it."""
ALLOWED = f"allowed: 0 (no edge) and {1 / BOUND:g} to {BOUND:g}"


def usable(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """(M,) which numbers can be weights; NaN and negative ones cannot."""
    return np.asarray((weights == 0) | ((weights >= 1 / BOUND) & (weights <= BOUND)))


def half_stored(where: str, source: IntArray, target: IntArray) -> Message | None:
    """A note where each edge of a matrix or an edge_index stands once, from one half of it: no direction is meant then."""
    up, down = source < target, source > target
    if up.any() == down.any():
        return None
    text = (
        f"{where}: every edge stands once, with the {'smaller' if up.any() else 'larger'} number first, and was "
        "taken for half of an undirected graph"
    )
    remedy = "if edges have a direction, write them as CSV with a dataset.yaml that says directed: true"
    return Message("note", "half-stored", text, int((up | down).sum()), remedy=remedy)


def about_weights(name: str, weights: FloatArray) -> Message:
    """The note on a weighted graph."""
    text = (
        f"{name}: edges weigh {weights.min():g} to {weights.max():g}; one of weight 2 counts as two in the loss and in "
        "R and R~, and GCN and SGC weigh messages so; NDCG, DP and EO count each edge once"
    )
    remedy = "--set edge_weights=ignore counts every edge once in training too"
    return Message("note", "weights", text, len(weights), remedy=remedy)


def about_directions(name: str, directions: DirectionArray) -> Message:
    """The note on a directed graph."""
    one_way = int(np.count_nonzero(directions))
    text = (
        f"{name}: directed, {one_way:,} of {counted(len(directions), 'edge')} one way; "
        "messages of GCN, GAT and SGC follow "
        "directions, the rest (loss, R and R~, split, NDCG, DP, EO) is over unordered pairs, as a dot product has "
        "no direction"
    )
    remedy = "--set direction=ignore lets messages run both ways"
    return Message("note", "directed", text, one_way, remedy=remedy)
