r"""NDCG@10 among strangers of the friend's own group, and how much of NDCG@10 that leaves out.

Most strangers are of another group than a friend, so an embedding that knows the group ranks them last and gains by
reading the attribute. Here each held-out link (u, v), in both directions, is a list of its own: v among strangers of u
that have v's group. Knowing the group tells them apart by nothing.

    M = (1/|L|) sum_{(u, v) in L} g(rho_uv),     g(rho) = 1 / log2(rho + 1) for rho <= 10, else 0

with L the held-out links whose friend is of known group and rho_uv the rank of v. The *uniform twin* ranks the same
links in the same direction among as many uniform strangers, and weighs them alike. Its mean less M is what the
attribute contributes. On a bipartite graph items rank users, since users have the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from uge_core.arrays import Float64, IntArray
from uge_core.audit import ndcg
from uge_core.audit.leakage import Estimate
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Scored
from uge_core.graph.split import RankingTask, both_ways, drawn_ways
from uge_core.graph.strangers import Strangers

STRANGERS = 99
MOST_LISTS = 50_000
DECILES = 10


@dataclass(frozen=True, eq=False)
class MatchedLists:
    """Held-out links that are ranked one by one.

    Attributes:
        matched: each friend, first, among strangers of its own cell.
        uniform: each among as many strangers of any cell; None where no twin was asked for.
        found: how many lists there were to draw from.
        unknown: share of all links that is left out, as the friend is of no known cell.
        alone: share of the others that is left out, as their cell has no stranger of the target.
        of_targets: how many targets there were where some were drawn first; None: all are here.
    """

    matched: RankingTask
    uniform: RankingTask | None
    found: int
    unknown: float
    alone: float
    of_targets: int | None = None

    @cached_property
    def targets(self) -> int:
        """How many targets the lists have."""
        return len(np.unique(self.matched.targets))

    @cached_property
    def short(self) -> float:
        """Share of the lists with fewer than `STRANGERS` strangers."""
        strangers = (self.matched.candidates >= 0).sum(axis=1) - 1
        return _share_of(strangers < STRANGERS)


def matched_lists(
    graph: AttributedGraph,
    held_out: IntArray,
    cell: IntArray,
    *,
    twin: bool = True,
    num_strangers: int = STRANGERS,
    most: int = MOST_LISTS,
    most_targets: int | None = None,
    seed: int = 0,
) -> MatchedLists:
    """A list per held-out link and direction: the friend among strangers of its cell.

    Args:
        graph: the graph, for the edges a stranger must not have.
        held_out: (2, E) the held-out edges, each once.
        cell: (N,) what strangers share with the friend, such as its group; below 0 it is unknown.
        twin: draw the uniform twin too.
        num_strangers: in a list, where the cell has as many.
        most: lists; of more as many are drawn.
        most_targets: targets, of which as many are drawn before; None: all.
        seed: keys the draws.
    """
    ways = held_out[::-1] if graph.bipartite else both_ways(held_out)
    (target, friend), of_targets = drawn_ways(ways, graph, most_targets, seed)
    order = np.lexsort((friend, target))
    target, friend = target[order], friend[order]
    known = cell[friend] >= 0
    unknown = _share_of(~known)
    target, friend = target[known], friend[known]
    strangers = Strangers(graph, cell, target)
    number = np.minimum(strangers.count(target, cell[friend]), num_strangers)
    alone = _share_of(number == 0)
    target, friend, number = (x[number > 0] for x in (target, friend, number))
    found = len(target)
    if found > most:
        drawn = np.sort(np.random.default_rng([seed, 61]).choice(found, most, replace=False))
        target, friend, number = (x[drawn] for x in (target, friend, number))
    first = np.arange(1 + int(number.max(initial=0))) == 0
    relevant = np.broadcast_to(first, (len(target), len(first)))

    def task(drawn: IntArray) -> RankingTask:
        return RankingTask(target, np.concatenate([friend[:, None], drawn], axis=1), relevant)

    matched = task(strangers.draw(target, cell[friend], number, np.random.default_rng([seed, 62])))
    uniform = None
    if twin:
        anyone = np.where(np.arange(graph.num_nodes) < (graph.num_users or graph.num_nodes), 0, -1)
        drawn = Strangers(graph, anyone, target).draw(target, anyone[friend], number, np.random.default_rng([seed, 63]))
        uniform = task(drawn)
    return MatchedLists(matched, uniform, found, unknown, alone, of_targets)


def degree_cells(graph: AttributedGraph, group: IntArray, edges: IntArray, least: int = 0) -> IntArray:
    """(N,) cells of people of one group and one decile of training degree; -1 where the group is unknown.

    The edges between deciles are quantiles of people's degrees, so that people of one degree share a decile.

    Args:
        graph: the graph, for its size and sides.
        group: (N,) group of each node, below 0 unknown.
        edges: (2, E) the training edges.
        least: deciles of a group with fewer people count as one with those above, the highest with those below.
    """
    degree = np.bincount(edges.ravel(), minlength=graph.num_nodes)
    people = degree[: graph.num_users or graph.num_nodes]
    # a degree that people have, and no mean of two, which rounding could move
    bounds = np.quantile(people, np.arange(1, DECILES) / DECILES, method="inverted_cdf")
    decile = np.searchsorted(bounds, degree, side="left")
    size = np.zeros((max(int(group.max(initial=-1)) + 1, 1), DECILES), dtype=np.int64)
    np.add.at(size, (group[group >= 0], decile[group >= 0]), 1)
    joined = np.zeros_like(size)
    for g, sizes in enumerate(size.tolist()):
        first, total, rest = 0, 0, sum(sizes)
        for d, n in enumerate(sizes):
            joined[g, d], total, rest = first, total + n, rest - n
            if total >= least and rest >= least:
                first, total = d + 1, 0
    return np.where(group >= 0, group * DECILES + joined[group, decile], -1)


def crossed(codes: Sequence[IntArray]) -> IntArray:
    """(N,) the combinations of several groups, numbered; -1 where one of them is unknown.

    Args:
        codes: (N,) groups by each attribute, below 0 unknown.
    """
    table = np.stack(codes)
    known = (table >= 0).all(axis=0)
    joint = np.full(table.shape[1], -1)
    joint[known] = np.unique(table[:, known], axis=1, return_inverse=True)[1].ravel()
    return joint


@dataclass(frozen=True, eq=False)
class Ranked:
    """How lists of one friend each came out.

    Attributes:
        task: the lists.
        ranking: where each friend came out.
    """

    task: RankingTask
    ranking: ndcg.Ranking

    @classmethod
    def of(cls, embedding: Scored, task: RankingTask, *, seed: int) -> Ranked:
        """Ranks the lists by the embedding's scores; the seed keys the order of ties."""
        return cls(task, ndcg.rank_candidates(embedding, task, seed=seed))

    @cached_property
    def value(self) -> Float64:
        """(L,) NDCG@10 of each list."""
        return ndcg.ndcg_per_target(self.ranking, np.ones(len(self.ranking.rank)), len(self.task.targets))

    @property
    def floor(self) -> float:
        """The mean of what a random order of each list gives, exactly."""
        gain = np.ones(len(self.ranking.rank))
        return float(ndcg.random_ndcg_per_target(self.task, self.ranking, gain).mean())

    def mean(self, *, seed: int) -> Estimate:
        """The mean of NDCG@10 over lists, with its interval over people."""
        means = ndcg.group_means(self.value, self._one, 1, self.task, self.ranking, seed=seed)
        return Estimate(float(means.mean[0]), *means.ends[0])

    def mean_below(self, other: Ranked, *, seed: int) -> tuple[Estimate, float | None]:
        """The mean of another ranking of the same links less this one's, and the p-value of no difference.

        Args:
            other: the same links, such as those of the uniform twin.
            seed: keys the draws behind the interval, which is paired and over people.
        """
        difference = other.value - self.value
        mean = float(difference.mean())
        deviation = (difference - mean) / len(difference)
        noise = ndcg.list_noise(deviation, self._one, 1, self.task, self.ranking, seed=seed)
        if noise is None or not noise.variance[0] > 0:
            return Estimate(mean, note="every list differs by the same, which gives no interval"), None
        half = float(noise.half_width()[0])
        p_value = float(2 * t.sf(abs(mean) / np.sqrt(noise.variance[0]), noise.df[0]))
        return Estimate(mean, mean - half, mean + half), p_value

    @property
    def _one(self) -> IntArray:
        """(L,) all lists as one group."""
        return np.zeros(len(self.task.targets), dtype=np.int64)


def _share_of(mask: npt.NDArray[np.bool_]) -> float:
    """The share of a mask that is true, 0 of nothing."""
    return float(mask.mean()) if mask.size else 0.0
