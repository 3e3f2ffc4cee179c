"""How well the embedding ranks links: NDCG@10 of the scores, and its bias-free form.

    NDCG_u = sum_{r <= 10} g_r / log2(r + 1)  /  the same sum with the gains in their best order

over one candidate list per target node. Relevant candidates gain 1, or w_e = R~/R in the bias-free
form, where training read the sensitive influence R out of the edges (Eq. (3)-(6)): then the list is
graded as the graph without that influence would grade it, in expectation. Ties are broken at random.
Paper: Sec. 6.2, 100 candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import Float64, FloatArray, IntArray
from uge_core.audit.dyadic import Apart, Contribution, Noise, cell_noise, compare_range, edge_sides
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors, Scored
from uge_core.graph.split import RankingTask, drawn_nodes, fill_strangers, neighbour_keys, ranking_task

TOP = 10
MAX_POSITIVES = 100  # the authors' script leaves out nodes with as many
MIN_TARGETS = 20  # fewer lists are no evidence

_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Ranking:
    """Where each relevant candidate came out.

    Attributes:
        target: (P,) index into the task's targets.
        column: (P,) its column in the candidate list.
        rank: (P,) 0 for the top of the list.
    """

    target: IntArray
    column: IntArray
    rank: IntArray


def rank_candidates(embedding: Scored, task: RankingTask, *, seed: int = 0) -> Ranking:
    """Ranks every list by the score with its target; ties at random.

    Args:
        embedding: (N, d) float32 for dot products, or factors.
        task: the lists; -1 pads and is never ranked.
        seed: keys the order of ties.
    """
    rng, z = np.random.default_rng([seed, 11]), Factors.of(embedding)
    targets, columns, ranks = [], [], []
    for start in range(0, len(task.targets), _CHUNK):
        candidates = task.candidates[start : start + _CHUNK]
        scores = z.of_lists(task.targets[start : start + _CHUNK], candidates)
        scores[candidates < 0] = -np.inf
        luck = rng.random(scores.shape, dtype=np.float32)
        row, column = np.nonzero(task.relevant[start : start + _CHUNK])
        mine = scores[row, column][:, None]
        ahead = (scores[row] > mine) | ((scores[row] == mine) & (luck[row] < luck[row, column][:, None]))
        targets.append(row + start)
        columns.append(column)
        ranks.append(ahead.sum(axis=1))
    if not targets:
        none = np.zeros(0, dtype=np.int64)
        return Ranking(none, none, none)
    return Ranking(np.concatenate(targets), np.concatenate(columns), np.concatenate(ranks).astype(np.int64))


def ndcg_per_target(ranking: Ranking, gain: Float64, num_targets: int) -> Float64:
    """NDCG@10 of each list.

    Args:
        ranking: where the relevant candidates came out.
        gain: (P,) what each is worth, at least 0.
        num_targets: T.

    Returns:
        (T,) in [0, 1]; NaN for a list without any gain.
    """
    dcg = np.bincount(ranking.target, gain * _discount(ranking.rank), num_targets)
    return _share(dcg, _ideal(ranking.target, gain, num_targets))


def random_ndcg_per_target(task: RankingTask, ranking: Ranking, gain: Float64) -> Float64:
    """What a random order of the same lists gives on average, exactly.

    Each candidate of a list of C is at each rank with probability 1 / C, so the expected DCG is
    (sum of gains / C) * sum_{r <= min(10, C)} 1 / log2(r + 1).

    Returns:
        (T,) in [0, 1]; NaN for a list without any gain.
    """
    num = len(task.targets)
    length = (task.candidates >= 0).sum(axis=1)
    discounts = np.concatenate([[0.0], np.cumsum(_discount(np.arange(TOP)))])
    expected = np.bincount(ranking.target, gain, num) / np.maximum(length, 1) * discounts[np.minimum(length, TOP)]
    return _share(expected, _ideal(ranking.target, gain, num))


def _share(dcg: npt.NDArray[Any], ideal: npt.NDArray[Any]) -> Float64:
    """The DCG over the ideal one, NaN where nothing can be gained."""
    out = np.full(len(dcg), np.nan)
    np.divide(dcg, ideal, out=out, where=ideal > 0)
    return out


def _discount(rank: IntArray) -> Float64:
    """1 / log2(rank + 2) within the top ten, else 0; rank counts from 0."""
    return np.where(rank < TOP, 1.0 / np.log2(rank + 2.0), 0.0)


def _ideal(target: IntArray, gain: Float64, num_targets: int) -> Float64:
    """(T,) the DCG of the best order."""
    order = np.lexsort((-gain, target))
    size = np.bincount(target, minlength=num_targets)
    position = np.arange(len(target)) - np.repeat(np.cumsum(size) - size, size)
    return np.asarray(np.bincount(target[order], gain[order] * _discount(position), num_targets), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """NDCG@10 by group of the target.

    Attributes:
        mean: (G,) weighted means, NaN for a group without targets.
        n: (G,) targets.
        ends: (G,) the 95 % interval of each mean over people, (None, None) under `MIN_TARGETS`.
        apart: how far the groups with `MIN_TARGETS` lie apart; None with fewer than two of them.
    """

    mean: Float64
    n: IntArray
    ends: tuple[tuple[float | None, float | None], ...]
    apart: Apart | None


def group_means(
    value: Float64,
    group: IntArray,
    num_groups: int,
    task: RankingTask,
    ranking: Ranking,
    *,
    weight: Float64 | None = None,
    seed: int = 0,
) -> GroupMeans:
    """sum_u W_u NDCG_u / sum_u W_u by group, with intervals over people.

    Args:
        value: (T,) NDCG of each target, finite where it counts.
        group: (T,) its group; below 0 leaves it out.
        num_groups: G.
        task: the lists.
        ranking: their relevant candidates.
        weight: (T,) W_u; None for 1.
        seed: keys the draws behind the interval of the largest difference.
    """
    counted = group >= 0
    w = np.ones(len(value)) if weight is None else weight
    n = np.bincount(group[counted], minlength=num_groups)
    total = np.bincount(group[counted], w[counted], num_groups)
    mean = _share(np.bincount(group[counted], (w * value)[counted], num_groups), total)
    deviation = np.zeros(len(value))
    deviation[counted] = (w * (value - mean[group]) / total[group])[counted]
    noise = list_noise(deviation, group, num_groups, task, ranking, seed=seed)
    kept = np.nonzero(n >= MIN_TARGETS)[0]
    ends: list[tuple[float | None, float | None]] = [(None, None)] * num_groups
    if noise is None:
        return GroupMeans(mean, n, tuple(ends), None)
    for g, half in zip(kept, noise.half_width(), strict=True):
        ends[g] = max(0.0, float(mean[g] - half)), min(1.0, float(mean[g] + half))
    return GroupMeans(mean, n, tuple(ends), compare_range(mean[kept], noise) if len(kept) > 1 else None)


def list_noise(
    deviation: Float64, group: IntArray, num_groups: int, task: RankingTask, ranking: Ranking, *, seed: int = 0
) -> Noise | None:
    """How uncertain means over lists are, over people.

    A held-out edge stands in the lists of both its ends, and a popular node in many, so lists are not
    independent (a bootstrap of lists covers 90 %). Each list's deviation is spread evenly over its relevant
    candidates, and these (target, candidate) pairs have the variance of `dyadic`. Where a few nodes have nearly all
    relevant places lists are all there is to count, and the larger of their variance and that of pairs is taken.

    Args:
        deviation: (T,) what each list adds to its group's mean, less its expectation; they sum to 0 in a group.
        group: (T,) below 0 leaves a list out.
        num_groups: G.
        task: the lists.
        ranking: their relevant candidates.
        seed: keys the draws behind differences.

    Returns:
        That of the groups with `MIN_TARGETS` lists; None without one.
    """
    counted = group >= 0
    n = np.bincount(group[counted], minlength=num_groups)
    entries = np.nonzero(counted[ranking.target])[0]
    t = ranking.target[entries]
    share = (deviation / np.maximum(np.bincount(ranking.target, minlength=len(deviation)), 1))[t]
    ends_of_pair = np.stack([task.targets[t], task.candidates[t, ranking.column[entries]]])
    low, high = np.sort(ends_of_pair, axis=0)
    node = int(high.max(initial=0)) + 1
    pair, index = np.unique((low * node + high) * num_groups + group[t], return_inverse=True)
    own = np.asarray(
        np.bincount(pair % num_groups, np.bincount(index, share, len(pair)) ** 2, num_groups), dtype=np.float64
    )
    sides = edge_sides(
        ends_of_pair.ravel(),
        np.zeros(2 * len(t), np.int64),
        np.tile(group[t], 2),
        np.tile(share, 2),
        np.ones(num_groups, np.int64),
    )
    kept = np.nonzero(n >= MIN_TARGETS)[0]
    noise = cell_noise(sides, own, n, kept, seed=seed)
    if noise is None and len(kept):
        squared = np.asarray(np.bincount(group[counted], deviation[counted] ** 2, num_groups), dtype=np.float64)
        for side in sides:
            squared[side.cells] = np.maximum(squared[side.cells], np.diagonal(side.gram) - own[side.cells])
        lists = tuple(Contribution(np.array([g]), squared[g, None, None], n[g, None].astype(np.float64)) for g in kept)
        noise = cell_noise(lists, np.zeros(num_groups), n, kept, seed=seed)
    return noise


@dataclass(frozen=True, eq=False)
class BiasFree:
    """What each held-out edge counts for in the bias-free form.

    Attributes:
        weight: (E_test,) w_e = R~/R.
        note: how it was estimated, where that was not the usual way.
    """

    weight: FloatArray
    note: str | None = None


@dataclass(frozen=True, eq=False)
class EdgeGains:
    """Weights of held-out edges, brought to the lists.

    Attributes:
        gain: (P,) w_e of each relevant candidate.
        target_weight: (T,) W_u, the mean w_e over all of the target's held-out edges.
    """

    gain: Float64
    target_weight: Float64


def edge_gains(
    ranking: Ranking, task: RankingTask, graph: AttributedGraph, held_out: IntArray, weight: npt.ArrayLike
) -> EdgeGains:
    """Looks up each relevant candidate's edge weight.

    Args:
        ranking: the relevant candidates.
        task: the lists.
        graph: for its size and sides.
        held_out: (2, E) the held-out edges.
        weight: (E,) w_e = R~/R of each.
    """
    w = np.asarray(weight, dtype=np.float64)
    key = held_out[0] * graph.num_nodes + held_out[1]
    order = np.argsort(key)
    u = task.targets[ranking.target]
    v = task.candidates[ranking.target, ranking.column]
    wanted = np.minimum(u, v) * graph.num_nodes + np.maximum(u, v)
    gain = w[order[np.searchsorted(key[order], wanted)]]
    total = np.bincount(held_out[0], w, graph.num_nodes)
    count = np.bincount(held_out[0], minlength=graph.num_nodes)
    if not graph.bipartite:
        total += np.bincount(held_out[1], w, graph.num_nodes)
        count += np.bincount(held_out[1], minlength=graph.num_nodes)
    return EdgeGains(gain, total[task.targets] / np.maximum(count[task.targets], 1))


def as_coded_task(
    graph: AttributedGraph, *, num_candidates: int = 100, most: int | None = None, seed: int = 0
) -> RankingTask:
    """The authors' lists (evaluate.py): a node's first int(degree / 10) + 1 neighbours in id order and strangers.

    The neighbours come from the whole graph, so nine in ten are training edges: a number for
    comparison with the paper, not a measure of prediction. Nodes with 100 positives or more are
    left out, as there. Departure: the node itself is never a candidate (the script can draw it).

    Args:
        graph: the graph.
        num_candidates: length of a list.
        most: targets; of more as many are drawn. None: all.
        seed: keys the draws.

    Raises:
        ValueError: the graph is bipartite, for which the script does something else.
    """
    if graph.bipartite:
        raise ValueError("the authors' ranking script for one-mode graphs does not apply to a bipartite graph")
    positives = graph.degree // 10 + 1
    targets = np.nonzero((graph.degree > 0) & (positives < min(MAX_POSITIVES, num_candidates)))[0]
    drawn, found = drawn_nodes(targets, graph.num_nodes, most, seed)
    if drawn is not None:
        targets = np.flatnonzero(drawn)
    key = neighbour_keys(graph.edges, graph.num_nodes, targets)
    start = np.searchsorted(key, targets * graph.num_nodes)
    relevant = np.arange(num_candidates)[None, :] < positives[targets][:, None]
    candidates = np.full(relevant.shape, -1, dtype=np.int64)
    row, column = np.nonzero(relevant)
    candidates[row, column] = key[start[row] + column] % graph.num_nodes
    fill_strangers(candidates, relevant, targets, graph, np.random.default_rng([seed, 12]))
    return RankingTask(targets, candidates, relevant, None if drawn is None else found)


def planted_task(
    graph: AttributedGraph, *, num_candidates: int = 100, most: int | None = None, seed: int = 0
) -> RankingTask:
    """Lists that ask a planted graph's embedding for the bias-free graph itself.

    Relevant are a node's bias-free edges that are no observed edge, among strangers with an edge in neither
    graph. The two graphs are drawn independently, so among pairs without an observed edge each is relevant
    with exactly the probability P_M R~ of Eq. (4): what training saw, or held out, tilts nothing.

    Args:
        graph: with its truth.
        num_candidates: length of a list.
        most: targets; of more as many are drawn. None: all.
        seed: keys the draws.

    Raises:
        ValueError: the graph has no truth.
    """
    if graph.truth is None:
        raise ValueError(f"{graph.name} has no planted truth")
    n = graph.num_nodes
    observed, free = (np.sort(e[0] * n + e[1]) for e in (graph.edges, graph.truth.bias_free))
    new = free[observed[np.minimum(np.searchsorted(observed, free), len(observed) - 1)] != free]
    new = np.stack([new // n, new % n])
    both = [graph.edges, new]
    drawn, _ = drawn_nodes(new[0] if graph.bipartite else new, n, most, seed)
    if drawn is not None:  # the edges of other nodes are not asked for
        both = [edges[:, drawn[edges].any(axis=0)] for edges in both]
    union = AttributedGraph(graph.name, n, np.concatenate(both, axis=1), num_users=graph.num_users)
    return ranking_task(union, new, num_candidates=num_candidates, most=most, seed=seed)
