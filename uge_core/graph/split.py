"""The link split and the ranking task: which edges are held out, and what each node must rank.

A held-out edge stands in neither direction in messages, weight tables or positives. Every node
that has an edge keeps at least one for training. Edges are held out and ranked as unordered pairs
that count once, whatever their weight or direction. Paper: Sec. 6.1 (90/10, MovieLens 80/20).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import DirectionArray, FloatArray, IntArray
from uge_core.errors import ConfigError
from uge_core.graph.graph import Attribute, AttributedGraph

_LISTS = 8192  # candidate lists filled at once
_SLICE = 1 << 17  # edges looked at at once


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """The edges of a graph in three disjoint parts, each edge once, smaller end first.

    Attributes:
        train: (2, E_train) the only edges that training and the weight tables see.
        validation: (2, E_validation), empty by default.
        test: (2, E_test) held out for NDCG@10 and EO.
        seed: what keyed the draw.
        short: how many fewer edges than asked were held out, as the rest were some node's last.
        weights: (E_train,) weights of the training edges; None on an unweighted graph.
        directions: (E_train,) which way they run, as in `AttributedGraph`; None on an undirected graph.
    """

    train: IntArray
    validation: IntArray
    test: IntArray
    seed: int
    short: int = 0
    weights: FloatArray | None = None
    directions: DirectionArray | None = None


@dataclass(frozen=True, eq=False)
class RankingTask:
    """What each target node must rank.

    Attributes:
        targets: (T,) nodes (bipartite: users) with a held-out edge.
        candidates: (T, C) node numbers; -1 pads where the graph has too few strangers.
        relevant: (T, C) True where the candidate is a held-out neighbour.
        found: how many targets there were to draw from; None: all of them are here.
    """

    targets: IntArray
    candidates: IntArray
    relevant: npt.NDArray[np.bool_]
    found: int | None = None


def split_links(
    graph: AttributedGraph, *, test_share: float | None = None, validation_share: float = 0.0, seed: int = 0
) -> LinkSplit:
    """Holds out a share of the undirected edges at random.

    Args:
        graph: the graph.
        test_share: share of all edges to hold out; None takes the layout's own (0.1, MovieLens 0.2).
        validation_share: share of the remaining training edges to set aside.
        seed: keys the draw.

    Returns:
        The split; sizes are exact (rounded) unless too many edges are some node's last one. A graph with a `base` is
        split as that is, and edges of its own train.

    Raises:
        ConfigError: a share outside 0 to 0.9.
    """
    share = graph.defaults.test_share if test_share is None else test_share
    for name, value in (("test_share", share), ("validation", validation_share)):
        if not 0 <= value <= 0.9:
            raise ConfigError(f"{name} = {value} is out of range; allowed: 0 to 0.9")
    if graph.base is not None:
        return split_as(graph, split_links(graph.base, test_share=share, validation_share=validation_share, seed=seed))
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(graph.num_edges)
    num_test = round(share * graph.num_edges)
    num_validation = round(validation_share * (graph.num_edges - num_test))
    held = _hold_out(graph.edges, order, num_test + num_validation, graph.degree.copy())
    short = num_test + num_validation - len(held)
    test, validation = held[:num_test], held[num_test:]
    stays = np.ones(graph.num_edges, dtype=bool)
    stays[held] = False
    return LinkSplit(
        graph.edges[:, stays],
        graph.edges[:, np.sort(validation)],
        graph.edges[:, np.sort(test)],
        seed,
        short,
        None if graph.edge_weights is None else graph.edge_weights[stays],
        None if graph.directions is None else graph.directions[stays],
    )


def split_as(graph: AttributedGraph, base: LinkSplit) -> LinkSplit:
    """The split of a graph's `base`, of the edges that are still there; those of its own are training edges."""
    n = np.int64(graph.num_nodes)
    key = graph.edges[0] * n + graph.edges[1]
    test, validation = (_among(key, held[0] * n + held[1]) for held in (base.test, base.validation))
    stays = ~(test | validation)
    return LinkSplit(
        graph.edges[:, stays],
        graph.edges[:, validation],
        graph.edges[:, test],
        base.seed,
        base.short,
        None if graph.edge_weights is None else graph.edge_weights[stays],
        None if graph.directions is None else graph.directions[stays],
    )


def _among(key: IntArray, few: IntArray) -> npt.NDArray[np.bool_]:
    """Which of the keys are among a few: numpy's own way sorts them all."""
    if not few.size:
        return np.zeros(len(key), dtype=bool)
    few = np.sort(few)
    return np.asarray(few[np.minimum(np.searchsorted(few, key), len(few) - 1)] == key)


def _hold_out(edges: IntArray, order: IntArray, wanted: int, left: IntArray) -> IntArray:
    """The first `wanted` edges of `order` that leave both ends another edge; `left` is consumed."""
    taken: list[IntArray] = [order[:0]]
    # a slice at a time: few more edges are looked at than are held out
    for first in range(0, len(order), _SLICE):
        part = order[first : first + _SLICE]
        ends = edges[:, part]
        # A node that keeps an edge even if the whole slice is held out decides nothing.
        scarce = np.bincount(ends.ravel(), minlength=len(left)) >= left
        unsure = np.asarray(scarce[ends].any(axis=0))
        held = np.asarray(~unsure)
        rows = np.flatnonzero(unsure)
        few = np.unique(ends[:, rows])
        remaining = dict(zip(few.tolist(), left[few].tolist(), strict=True))
        for row, (u, v) in zip(rows.tolist(), ends[:, rows].T.tolist(), strict=True):
            if remaining[u] > 1 and remaining[v] > 1:
                remaining[u] -= 1
                remaining[v] -= 1
                held[row] = True
        kept = part[held][:wanted]
        taken.append(kept)
        wanted -= len(kept)
        if not wanted:
            break
        left -= np.bincount(edges[:, kept].ravel(), minlength=len(left))
    return np.concatenate(taken)


def ranking_task(
    graph: AttributedGraph,
    held_out: IntArray,
    *,
    num_candidates: int = 100,
    max_relevant: int = 50,
    most: int | None = None,
    seed: int = 0,
) -> RankingTask:
    """Candidate lists: held-out neighbours and random strangers. Paper: Sec. 6.2, 100 candidates.

    Args:
        graph: the graph, for the edges a stranger must not have.
        held_out: (2, E) the held-out edges to rank, each once.
        num_candidates: length of a list, relevant ones included.
        max_relevant: at most so many of a node's held-out neighbours (drawn at random).
        most: targets; of more as many are drawn. None: all.
        seed: keys the draws.

    Returns:
        One list per node with a held-out edge (bipartite: per user). A stranger is a node of the
        right side, other than the target, with no edge to it in any part; where fewer exist than
        the list needs, all of them are taken and the rest is padded with -1.
    """
    rng = np.random.default_rng([seed, 2])
    (source, target), found = drawn_ways(held_out if graph.bipartite else both_ways(held_out), graph, most, seed)
    order = np.lexsort((rng.random(len(source)), source))
    source, target = source[order], target[order]
    targets, start, count = np.unique(source, return_index=True, return_counts=True)
    count = np.minimum(count, min(max_relevant, num_candidates - 1))
    num = len(targets)
    candidates = np.full((num, num_candidates), -1, dtype=np.int64)
    relevant = np.arange(num_candidates)[None, :] < count[:, None]
    row, column = np.nonzero(relevant)
    candidates[row, column] = target[start[row] + column]

    fill_strangers(candidates, relevant, targets, graph, rng)
    return RankingTask(targets, candidates, relevant, found)


def both_ways(edges: IntArray) -> IntArray:
    """(2, 2 E) source and target of edges (2, E) in both directions."""
    return np.concatenate([edges, edges[::-1]], axis=1)


def drawn_ways(ways: IntArray, graph: AttributedGraph, most: int | None, seed: int) -> tuple[IntArray, int | None]:
    """Those of directed edges whose source is one of `most` nodes, drawn of all sources.

    Args:
        ways: (2, M) sources and targets.
        graph: whose nodes they are.
        most: how many sources to keep; None: all.
        seed: keys the draw; equal sources, equal draw.

    Returns:
        (2, m), and how many sources there were to draw from; all and None where all are kept.
    """
    drawn, found = drawn_nodes(ways[0], graph.num_nodes, most, seed)
    return (ways, None) if drawn is None else (ways[:, drawn[ways[0]]], found)


def drawn_nodes(
    nodes: IntArray, num_nodes: int, most: int | None, seed: int
) -> tuple[npt.NDArray[np.bool_] | None, int]:
    """Which nodes are kept where a list names more different ones than `most`.

    Args:
        nodes: node numbers, each as often as you like.
        num_nodes: N.
        most: how many to keep; None: all.
        seed: keys the draw.

    Returns:
        (N,) whether a node was drawn, None where all are kept; and how many there were to draw from.
    """
    there = np.zeros(num_nodes, dtype=bool)
    there[nodes.ravel()] = True
    different = np.flatnonzero(there)
    if most is None or len(different) <= most:
        return None, len(different)
    there[:] = False
    luck = np.random.default_rng([seed, 79]).random(num_nodes)[different]  # a node keeps its own, whoever else is there
    there[different[np.argpartition(luck, most - 1)[:most]]] = True
    return there, len(different)


def fill_strangers(
    candidates: IntArray,
    relevant: npt.NDArray[np.bool_],
    targets: IntArray,
    graph: AttributedGraph,
    rng: np.random.Generator,
) -> None:
    """Fills the places of `candidates` that are not `relevant` with distinct random strangers, in place.

    A stranger of a node is another node of the right side without an edge to it in any part. Where
    fewer exist than there are places, all are taken and the rest stays -1.

    Args:
        candidates: (T, C) node numbers; relevant ones stand first.
        relevant: (T, C) where they stand.
        targets: (T,) whose lists they are.
        graph: the graph with all its edges.
        rng: draws.
    """
    n = graph.num_nodes
    low, high = (0, n) if graph.num_users is None else (graph.num_users, n)
    keys = neighbour_keys(graph.edges, n, targets)
    start = np.searchsorted(keys, targets * n)
    for begin in range(0, len(targets), _LISTS):
        part = slice(begin, begin + _LISTS)
        _fill(candidates[part], relevant[part], targets[part], start[part], keys, graph.degree, (low, high, n), rng)


def neighbour_keys(edges: IntArray, num_nodes: int, targets: IntArray) -> IntArray:
    """-1, then ascending u * N + v of each edge in the direction in which u is one of the targets, few of a large graph.

    Args:
        edges: (2, E) each edge once.
        num_nodes: N.
        targets: (T,) nodes.
    """
    asked = np.zeros(num_nodes, dtype=bool)
    asked[targets] = True
    parts = []
    for u, v in (edges, edges[::-1]):
        mine = asked[u]
        parts.append(u[mine] * num_nodes + v[mine])
    keys = np.concatenate([[-1], *parts])
    keys.sort()
    return keys


def _fill(
    candidates: IntArray,
    relevant: npt.NDArray[np.bool_],
    targets: IntArray,
    start: IntArray,
    keys: IntArray,
    degree: IntArray,
    span: tuple[int, int, int],
    rng: np.random.Generator,
) -> None:
    low, high, n = span
    count = relevant.sum(axis=1)
    width = candidates.shape[1]
    itself = (targets >= low) & (targets < high)
    few = (high - low) - degree[targets] - itself < 4 * width
    for t in np.nonzero(few)[0]:
        linked = keys[start[t] : start[t] + degree[targets[t]]] - targets[t] * n
        free = rng.permutation(np.setdiff1d(np.arange(low, high), np.append(linked, targets[t])))[: width - count[t]]
        candidates[t, count[t] : count[t] + len(free)] = free
    # with four times as many strangers as places a few rounds of redrawing suffice
    empty = ~relevant & ~few[:, None]
    while True:
        row, column = np.nonzero(empty)
        if not len(row):
            return
        drawn = rng.integers(low, high, len(row))
        candidates[row, column] = drawn
        key = targets[row] * n + drawn
        linked = keys[np.minimum(np.searchsorted(keys, key), len(keys) - 1)] == key
        empty[row, column] = linked | (drawn == targets[row])
        touched = np.unique(row)
        empty[touched] |= _repeated(candidates[touched])


def _repeated(rows: IntArray) -> npt.NDArray[np.bool_]:
    """Where a row holds a number that stands further left in it already."""
    order = np.argsort(rows, axis=1, kind="stable")
    values = np.take_along_axis(rows, order, axis=1)
    later = np.zeros(rows.shape, dtype=bool)
    later[:, 1:] = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] >= 0)
    out = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(out, order, later, axis=1)
    return out


@dataclass(frozen=True, eq=False)
class ProbeSplit:
    """Which nodes an attacker learns from and which it is tested on, for one attribute.

    Attributes:
        train: node numbers, ascending.
        test: node numbers, ascending; an `unseen` twin never sees their values.
        classes: (N,) class of each node, -1 for nodes that take no part.
        labels: the classes' names; under the policy "level" a missing value is a class, the last.
    """

    train: IntArray
    test: IntArray
    classes: IntArray
    labels: tuple[str, ...]


def probe_classes(attribute: Attribute, unknown: str) -> tuple[IntArray, tuple[str, ...]]:
    """The attribute as classes: under the policy "level" missing values are the last class, else -1."""
    classes = np.where(attribute.known, attribute.codes, -1)
    labels = attribute.labels
    if unknown == "level" and attribute.unknown.any():
        classes = np.where(attribute.unknown, len(labels), classes)
        labels = (*labels, attribute.unknown_label)
    return classes, labels


def probe_split(
    attribute: Attribute, *, unknown: str = "exclude", seed: int = 0, test_share: float = 0.2
) -> ProbeSplit:
    """Splits the nodes 80/20, stratified by class; a class of one node goes to train.

    Paper: Sec. 6.2, 80 % of the nodes train the classifier. The shares are exact by largest
    remainder, so that small classes are not all rounded the same way.

    Args:
        attribute: the attribute to be attacked.
        unknown: "level" makes missing values a class; otherwise those nodes take no part.
        seed: keys the draw; the same seed gives every run the same nodes.
        test_share: share of the nodes that are tested on.
    """
    classes, labels = probe_classes(attribute, unknown)
    rng = np.random.default_rng([seed, 3])
    priority = rng.random(len(classes))
    nodes = np.nonzero(classes >= 0)[0]
    sizes = np.bincount(classes[nodes], minlength=len(labels))
    quota = np.where(sizes > 1, sizes * test_share, 0.0)
    take = np.floor(quota).astype(np.int64)
    rest = round(float(quota.sum())) - int(take.sum())
    by_remainder = np.lexsort((rng.random(len(labels)), take - quota))
    room = by_remainder[(take < np.maximum(sizes - 1, 0))[by_remainder] & (quota > take)[by_remainder]]
    take[room[:rest]] += 1
    order = nodes[np.lexsort((priority[nodes], classes[nodes]))]
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.arange(len(order)) - start[classes[order]]
    in_test = rank < take[classes[order]]
    return ProbeSplit(np.sort(order[~in_test]), np.sort(order[in_test]), classes, labels)
