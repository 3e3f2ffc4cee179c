"""What stands beside the edges of a file: weights, and which way edges run.

A weight says how often an edge counts, so it is above 0; an edge of weight 0 is none. A graph is
directed where its file says so (GraphML, GEXF, GML, dataset.yaml), or where it is a matrix or an
edge_index in which some edges stand one way only. Lists of edges in tables have no direction.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.datasets.tables import Table, counted
from uge_core.graph.graph import Message

_SAYS_EDGE = re.compile(
    r"labels?|values?|ties?|links?|linked|edge|friends?|friendship|connect(?:ed|ion)|exists?|present|active|adjacent|sign|"
    r"polarity|action|op|operation|status|state|deleted|removed|ended",
    re.IGNORECASE,
)
_HOW_OFTEN = frozenset(["strength", "count", "times", "frequency", "value", "values"])
_NO_EDGE = frozenset(
    [
        "0",
        "0.0",
        "false",
        "no",
        "none",
        "remove",
        "removed",
        "delete",
        "deleted",
        "unfollow",
        "unfriend",
        "inactive",
        "ended",
    ]
)
_SIGNS = frozenset(["-1", "0", "1", "+1", "-1.0", "0.0", "1.0"])
_FEW_VALUES = 5
_SAMPLE = 1_000
_FEWEST_NODES = 10
_NEARLY_ALL = 0.9
BOUND = 1e18
"""Sums of larger weights overflow single precision, and smaller ones than 1 / BOUND vanish in it."""
ALLOWED = f"allowed: 0 (no edge) and {1 / BOUND:g} to {BOUND:g}"


def usable(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """(M,) which numbers can be weights; NaN and negative ones cannot."""
    return np.asarray((weights == 0) | ((weights >= 1 / BOUND) & (weights <= BOUND)))


def no_edges(edges: Table, ends: tuple[str, str], used: str | None) -> str:
    """Why some rows of a table of edges are probably none, or nothing.

    A table may hold a row for every pair, and say in a further column which of them are edges; or it may hold ties that
    ended, or whose sign is negative.

    Args:
        edges: the table.
        ends: the columns with the ends of every edge.
        used: the column with weights, where 0 is no edge.
    """
    others = [c for c in edges.names if c not in (*ends, used)]
    for column in others:
        cells = edges.frame[column]
        counts = column.lower() in _HOW_OFTEN
        if not counts and cells.iloc[:_SAMPLE].nunique() > _FEW_VALUES:
            continue
        written = {v: v.strip().lower() for v in cells.dropna().unique()}
        values = set(written.values())
        signed = "-1" in {v.removesuffix(".0") for v in values} and values <= _SIGNS
        says = _SAYS_EDGE.fullmatch(column) is not None and len(values) <= _FEW_VALUES
        flag = edges.headless and values <= {"0", "1", "0.0", "1.0"}
        none = [v for v, plain in written.items() if plain in _NO_EDGE or (signed and plain.startswith("-"))]
        if 0 < len(none) < len(written) and (signed or counts or says or flag):
            rows = int(cells.isin(none).sum())
            return (
                f"{edges.file}: {counted(rows, 'row')} of {len(edges):,} with {' or '.join(map(repr, none[:3]))} in column "
                f"{column!r}, which probably says that there is no edge; take these rows out, or the column if they are "
                "edges like the others"
            )
    others = [c for c in others if (edges.frame[c] != edges.frame[c].iloc[0]).any()]
    pairs, num_nodes = _pairs(edges, ends) if others else (0, 0)
    if num_nodes < _FEWEST_NODES or pairs < _NEARLY_ALL * num_nodes * (num_nodes - 1) / 2:
        return ""
    return (
        f"{edges.file}: a row for {pairs:,} of the {num_nodes * (num_nodes - 1) // 2:,} pairs of {num_nodes:,} nodes, so that "
        f"column {others[0]!r} probably says which of them are edges; keep those rows, or name it in dataset.yaml (edges: "
        "weight), where 0 is no edge"
    )


def _pairs(edges: Table, ends: tuple[str, str]) -> tuple[int, int]:
    """The number of different pairs of nodes, where it may be nearly all there are, and the number of nodes."""
    least = edges.frame[ends[0]].nunique()
    if len(edges) < _NEARLY_ALL * least * (least - 1) / 2:
        return 0, least
    source, target = edges.frame[ends[0]], edges.frame[ends[1]]
    codes, nodes = pd.factorize(pd.concat([source, target]))
    first, second = np.split(codes, 2)
    apart = first != second
    low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
    return len(np.unique(low * len(nodes) + high)), len(nodes)


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
