r"""DP, EO and relative DP as DeBayes measures them: on held-out edges beside pairs without an edge.

    mu_c = (sum_{P_c} p + r sum_{M_c} p) / (|P_c| + r |M_c|),   r = pairs without an edge / those sampled

P are the held-out edges, M a sample of pairs that have no edge in any part of the graph, which count r
each. Thresholded, p is 1 for scores above the threshold that half the held-out edges and sampled pairs
reach, each kind weighing half, else 0: DeBayes' quantile at the rate of edges, of a balanced set, as among
all pairs so few are edges that a handful of the sampled ones would decide. Relative DP is how well a pair's score tells
its cell from the others, max_c AUC_c, the area weighted as the pairs are; with F a score's place among all pairs, 0 to
1, and W_c the weight of a cell of all W,

    AUC_c = (W mean_c F - W_c / 2) / (W - W_c)

so its uncertainty is that of a mean over the cell. Source: Buyl and De Bie, ICML 2020, and their script.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import Float64, IntArray
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors, Scored
from uge_core.graph.split import LinkSplit

MOST = 200_000
"""Pairs without an edge that are sampled; where there are not twice as many, all count."""


@dataclass(frozen=True, eq=False)
class PairSample:
    """Held-out edges and pairs without an edge.

    Attributes:
        pairs: (2, M) the held-out edges first.
        weight: (M,) how many pairs each stands for.
        num_edges: P, how many are held-out edges.
    """

    pairs: IntArray
    weight: Float64
    num_edges: int

    @property
    def ratio(self) -> float:
        """How many pairs a sampled one stands for."""
        return float(self.weight[-1])

    def predicted(self, score: Float64) -> tuple[Float64, float]:
        """(M,) 1 for the pairs predicted as links, and the threshold, which half of a balanced set reaches."""
        share = np.full(len(score), 0.5 / (len(score) - self.num_edges))
        share[: self.num_edges] = 0.5 / self.num_edges
        order = np.argsort(-score, kind="stable")
        reached = np.searchsorted(np.cumsum(share[order]), 0.5 - 1e-12)
        threshold = float(score[order[reached]])
        return (score >= threshold).astype(np.float64), threshold

    @staticmethod
    def place(score: Float64, weight: Float64) -> Float64:
        """(M,) each score's place among all, counted by their weights, ties in the middle, 0 to 1."""
        _, inverse = np.unique(score, return_inverse=True)
        at = np.bincount(inverse, weight)
        return np.asarray(((np.cumsum(at) - 0.5 * at) / at.sum())[inverse])


def sample_pairs(graph: AttributedGraph, split: LinkSplit, *, most: int = MOST, seed: int = 0) -> PairSample | None:
    """The held-out edges, and at most `most` pairs without an edge; None without either.

    Args:
        graph: all of its edges count as edges, in whichever part they are.
        split: says which are held out.
        most: pairs without an edge; all of them are taken where there are no more than twice as many.
        seed: keys the draw.
    """
    n = graph.num_nodes
    low, high, first = (n, n, 0) if graph.num_users is None else (graph.num_users, n, graph.num_users)
    num_pairs = n * (n - 1) // 2 if graph.num_users is None else low * (high - first)
    num_free = num_pairs - graph.num_edges
    if not split.test.size or not num_free:
        return None
    edges = np.sort(graph.edges[0] * n + graph.edges[1])
    if num_pairs <= 2 * most:
        u, v = np.triu_indices(n, 1) if graph.num_users is None else np.indices((low, high - first)).reshape(2, -1)
        keys = u * n + v + first
        free = keys[~_among(keys, edges)]
    else:
        rng = np.random.default_rng([seed, 35])
        free = np.zeros(0, np.int64)
        while len(free) < most:
            wanted = int(1.1 * (most - len(free))) + 100
            u, v = rng.integers(0, low, wanted), rng.integers(first, high, wanted)
            keys = (np.minimum(u, v) * n + np.maximum(u, v))[u != v]
            free = np.unique(np.concatenate([free, keys[~_among(keys, edges)]]))
        free = rng.permutation(free)[:most]
    pairs = np.concatenate([np.sort(split.test, axis=0), np.stack([free // n, free % n])], axis=1)
    weight = np.ones(pairs.shape[1])
    weight[split.test.shape[1] :] = num_free / len(free)
    return PairSample(pairs, weight, split.test.shape[1])


def scores(embedding: Scored, pairs: IntArray) -> Float64:
    """(M,) the score of each pair."""
    return Factors.of(embedding).scores(*pairs)


def _among(keys: IntArray, edges: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each key is one of the ascending `edges`."""
    at = np.minimum(np.searchsorted(edges, keys), len(edges) - 1)
    return np.asarray(edges[at] == keys)
