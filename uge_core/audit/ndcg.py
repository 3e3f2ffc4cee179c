"""How well the embedding ranks links: NDCG@10 of the dot product, and its bias-free form.

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

from uge_core.graph import AttributedGraph, FloatArray, IntArray
from uge_core.split import RankingTask, fill_strangers, ranking_task

TOP = 10
MAX_POSITIVES = 100  # the authors' script leaves out nodes with as many
MIN_TARGETS = 20  # fewer lists are no evidence

_Float64 = npt.NDArray[np.float64]
_CHUNK = 2048
_RESAMPLES = 400


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


def rank_candidates(embedding: FloatArray, task: RankingTask, *, seed: int = 0) -> Ranking:
    """Ranks every list by the dot product with its target; ties at random.

    Args:
        embedding: (N, d) float32.
        task: the lists; -1 pads and is never ranked.
        seed: keys the order of ties.
    """
    rng = np.random.default_rng([seed, 11])
    targets, columns, ranks = [], [], []
    for start in range(0, len(task.targets), _CHUNK):
        candidates = task.candidates[start : start + _CHUNK]
        own = embedding[task.targets[start : start + _CHUNK]]
        scores = np.matmul(embedding[candidates], own[:, :, None])[:, :, 0]
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


def ndcg_per_target(ranking: Ranking, gain: _Float64, num_targets: int) -> _Float64:
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


def random_ndcg_per_target(task: RankingTask, ranking: Ranking, gain: _Float64) -> _Float64:
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


def _share(dcg: npt.NDArray[Any], ideal: npt.NDArray[Any]) -> _Float64:
    """The DCG over the ideal one, NaN where nothing can be gained."""
    out = np.full(len(dcg), np.nan)
    np.divide(dcg, ideal, out=out, where=ideal > 0)
    return out


def _discount(rank: IntArray) -> _Float64:
    """1 / log2(rank + 2) within the top ten, else 0; rank counts from 0."""
    return np.where(rank < TOP, 1.0 / np.log2(rank + 2.0), 0.0)


def _ideal(target: IntArray, gain: _Float64, num_targets: int) -> _Float64:
    """(T,) the DCG of the best order."""
    order = np.lexsort((-gain, target))
    size = np.bincount(target, minlength=num_targets)
    position = np.arange(len(target)) - np.repeat(np.cumsum(size) - size, size)
    return np.asarray(np.bincount(target[order], gain[order] * _discount(position), num_targets), dtype=np.float64)


def weighted_mean(value: _Float64, weight: _Float64, *, seed: int = 0) -> tuple[float, float, float]:
    """sum_u W_u NDCG_u / sum_u W_u with a 95 % interval from resampling targets.

    Args:
        value: (T,) NDCG of each target, finite.
        weight: (T,) W_u, with a positive sum.
        seed: keys the resamples.

    Returns:
        The mean and the ends of the interval, each in [0, 1].
    """
    rng = np.random.default_rng([seed, 13])
    product = value * weight
    means = np.empty(_RESAMPLES)
    for i in range(_RESAMPLES):
        drawn = rng.integers(0, len(value), len(value))
        total = weight[drawn].sum()
        means[i] = product[drawn].sum() / total if total > 0 else np.nan
    low, high = np.nanpercentile(means, [2.5, 97.5])
    return float(product.sum() / weight.sum()), float(low), float(high)


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

    gain: _Float64
    target_weight: _Float64


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


def as_coded_task(graph: AttributedGraph, *, num_candidates: int = 100, seed: int = 0) -> RankingTask:
    """The authors' lists (evaluate.py): a node's first int(degree / 10) + 1 neighbours in id order and strangers.

    The neighbours come from the whole graph, so nine in ten are training edges: a number for
    comparison with the paper, not a measure of prediction. Nodes with 100 positives or more are
    left out, as there. Departure: the node itself is never a candidate (the script can draw it).

    Raises:
        ValueError: the graph is bipartite, for which the script does something else.
    """
    if graph.bipartite:
        raise ValueError("the authors' ranking script for one-mode graphs does not apply to a bipartite graph")
    key = np.sort(graph.edge_index[0] * graph.num_nodes + graph.edge_index[1])
    start = np.cumsum(graph.degree) - graph.degree
    positives = graph.degree // 10 + 1
    targets = np.nonzero((graph.degree > 0) & (positives < min(MAX_POSITIVES, num_candidates)))[0]
    relevant = np.arange(num_candidates)[None, :] < positives[targets][:, None]
    candidates = np.full(relevant.shape, -1, dtype=np.int64)
    row, column = np.nonzero(relevant)
    candidates[row, column] = key[start[targets][row] + column] % graph.num_nodes
    fill_strangers(candidates, relevant, targets, graph, np.random.default_rng([seed, 12]))
    return RankingTask(targets, candidates, relevant)


def planted_task(graph: AttributedGraph, *, num_candidates: int = 100, seed: int = 0) -> RankingTask:
    """Lists that ask a planted graph's embedding for the bias-free graph itself.

    Relevant are a node's bias-free edges that are no observed edge, among strangers with an edge in neither
    graph. The two graphs are drawn independently, so among pairs without an observed edge each is relevant
    with exactly the probability P_M R~ of Eq. (4): what training saw, or held out, tilts nothing.

    Args:
        graph: with its truth.
        num_candidates: length of a list.
        seed: keys the draws.

    Raises:
        ValueError: the graph has no truth.
    """
    if graph.truth is None:
        raise ValueError(f"{graph.name} has no planted truth")
    n = graph.num_nodes
    observed, free = (e[0] * n + e[1] for e in (graph.edges, graph.truth.bias_free))
    either = np.union1d(observed, free)
    new = np.setdiff1d(free, observed)
    union = AttributedGraph(graph.name, n, np.stack([either // n, either % n]), num_users=graph.num_users)
    return ranking_task(union, np.stack([new // n, new % n]), num_candidates=num_candidates, seed=seed)
