r"""Who is recommended to whom: the ten best of all people in each person's list, by the groups of both.

    S_gh = |{(u, v): v among u's ten, u in g, v in h}| / N_g,     P_h = |h| / n,     DP = max_gh |S_gh - P_h|

N_g are the slots in lists of people of group g that go to people of known value, n all those people. u itself and
those it is linked to in training are not recommended. On a bipartite graph items have the lists, users are in them,
and a cell is h alone. Only the order of scores counts, so no scaling of them changes anything.

How uncertain a cell is, over people with a list and people in lists. A slot's residual is r = [v in h] - S_gh; a_u is
their sum over u's list, b_v over the places of v in lists of g, both over N_g, and of S - P v's part of P is taken off
b_v. Pairs that share a person are not independent, and a pair of people counts once (as in `dyadic`):

    Var = sum_u (a_u + b_u)^2 - sum over pairs of (their slots' r / N_g)^2

So S_gh varies as the share of m = S (1 - S) / Var independent slots would, N_g at most. A few people tell little of
their group, and where none is in a list Var is 0: where the places are held by an effective number of under ten
people of h, or of the others, m is at most what it would be were group and popularity independent,
1 / (sum_v k_v^2 / N_g^2) with k_v the places of v, or 1 / (sum_v k_v^2 / N_g^2 - 1 / n) of S - P. Intervals and tests
are Clopper and Pearson's of m slots, as some groups are expected in less than one. P by itself adds to the variance of
S - P where S is near 0 or 1, and takes from it near P.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betaincinv
from scipy.stats import norm

from uge_core.arrays import BoolArray, Float64, IntArray
from uge_core.audit.dyadic import LEVEL, MIN_PEOPLE
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors, Scored
from uge_core.graph.split import fill_strangers
from uge_core.kernels.top import best_columns
from uge_core.machine import cores

TOP = 10
MOST_LISTS = 20_000
RANDOM_ORDERS = 20
"""Random orders behind a floor."""
_LEAST = 1e-9  # of hits, so that no function is asked outside its range
_ROWS = 128  # lists that a thread makes together


@dataclass(frozen=True, eq=False)
class Lists:
    """Recommendations.

    Attributes:
        ranker: (R,) the nodes that have a list, ascending.
        shown: (R, 10) people, best first; -1 where there are no more.
        of: how many nodes could have one; more than R where a sample of them was drawn.
    """

    ranker: IntArray
    shown: IntArray
    of: int

    def slots(self) -> tuple[IntArray, IntArray]:
        """(M,) the list of each filled place, an index into `ranker`, and who has the place."""
        row, column = np.nonzero(self.shown >= 0)
        return row, self.shown[row, column]


def recommend(
    scored: Scored,
    graph: AttributedGraph,
    edges: IntArray,
    *,
    seed: int = 0,
    most: int = MOST_LISTS,
    threads: int | None = None,
) -> Lists:
    """The ten people with the highest scores, of each node or, on a bipartite graph, of each item.

    Args:
        scored: what scores pairs.
        graph: for its sides.
        edges: (2, E) the edges that training knew; their ends are not recommended to each other.
        seed: keys the order of equal scores and the nodes that have a list where there are more than `most`.
        most: lists at most.
        threads: how many to use; None: the cores at hand.
    """
    first = 0 if graph.num_users is None else graph.num_users
    ranker = np.arange(first, graph.num_nodes)
    if len(ranker) > most:
        ranker = np.sort(np.random.default_rng([seed, 63]).choice(ranker, most, replace=False))
    key = np.random.default_rng([seed, 64]).integers(2**64, dtype=np.uint64)
    begin, left_out = _left_out(graph, edges, ranker)
    z = Factors.of(scored)
    dim = -(-z.left.shape[1] // 4) * 4
    people = z.right[graph.people]
    among = np.zeros((dim, len(people)))
    among[: people.shape[1]] = people.T

    def some(start: int) -> IntArray:
        rows = slice(start, start + _ROWS)
        asked = np.zeros((len(ranker[rows]), dim))
        asked[:, : z.left.shape[1]] = z.left[ranker[rows]]
        found: IntArray = best_columns(asked, among, ranker[rows], begin[start : start + _ROWS + 1], left_out, TOP, key)
        return found

    with ThreadPoolExecutor(threads or cores()) as pool:
        parts = list(pool.map(some, range(0, len(ranker), _ROWS)))
    return Lists(ranker, np.concatenate(parts), graph.num_nodes - first)


def _left_out(graph: AttributedGraph, edges: IntArray, ranker: IntArray) -> tuple[IntArray, IntArray]:
    """(R + 1,) where each ranker's part begins, and those who are not recommended to it, ascending."""
    asks, known = edges[::-1] if graph.bipartite else np.concatenate([edges, edges[::-1], [ranker, ranker]], axis=1)
    row = np.full(graph.num_nodes, -1)
    row[ranker] = np.arange(len(ranker))
    asks, known = row[asks[row[asks] >= 0]], known[row[asks] >= 0]
    return np.append(0, np.cumsum(np.bincount(asks, minlength=len(ranker)))), known[np.lexsort((known, asks))]


def in_random_order(graph: AttributedGraph, edges: IntArray, lists: Lists, seed: int) -> list[Lists]:
    """Lists of the same nodes filled at random, `RANDOM_ORDERS` times, with those who can be recommended to each."""
    n, users = graph.num_nodes, graph.num_users
    turned, shift = edges, 0
    if users is not None:
        # the side that is listed stands second there
        turned, shift = np.stack([edges[1] - users, edges[0] + n - users]), n - users
    known = AttributedGraph(graph.name, n, turned, num_users=None if users is None else n - users)
    rng = np.random.default_rng([seed, 65])
    targets = lists.ranker - (users or 0)
    made = []
    for _ in range(RANDOM_ORDERS):
        shown = np.full(lists.shown.shape, -1, dtype=np.int64)
        fill_strangers(shown, np.zeros(shown.shape, dtype=bool), targets, known, rng)
        made.append(Lists(lists.ranker, np.where(shown >= 0, shown - shift, -1), lists.of))
    return made


def found_links(lists: Lists, graph: AttributedGraph, links: IntArray) -> tuple[Float64, IntArray, Float64]:
    """Which links are recommended.

    Args:
        lists: the recommendations.
        graph: for its sides.
        links: (2, E) held-out links.

    Returns:
        Of the links with an end that has a list: (M,) in how many of these lists the other end is, as a share; (2, M)
        the links; (M,) how many lists there are, 1 or 2.
    """
    row = np.full(graph.num_nodes, -1)
    row[lists.ranker] = np.arange(len(lists.ranker))
    ways = links[None, ::-1] if graph.bipartite else np.stack([links, links[::-1]])
    has_list = row[ways[:, 0]] >= 0
    hit = has_list & (lists.shown[row[ways[:, 0]]] == ways[:, 1, :, None]).any(axis=2)
    num = has_list.sum(axis=0)
    kept = num > 0
    return hit.sum(axis=0)[kept] / num[kept], links[:, kept], num[kept].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Shares:
    """Who has the slots.

    Attributes:
        share: (G, H) S_gh, NaN where g has no slot; G is 1 on a bipartite graph.
        people: (H,) P_h.
        slots: (G,) N_g.
        num_people: n.
    """

    share: Float64
    people: Float64
    slots: IntArray
    num_people: int

    @property
    def apart(self) -> Float64:
        """(G, H) S_gh - P_h, in [-1, 1]."""
        return self.share - self.people

    @property
    def variance_by_people(self) -> Float64:
        """(G, H) what the variance of S_gh - P_h has over that of S_gh: (P (1 - P) - 2 S (1 - S)) / n."""
        S, P = self.share, self.people
        return np.asarray((P * (1 - P) - 2 * S * (1 - S)) / max(self.num_people, 1))


def shares(lists: Lists, graph: AttributedGraph, group: IntArray, num_groups: int) -> Shares:
    """The shares of slots and of people.

    Args:
        lists: the recommendations.
        graph: for its sides.
        group: (N,) group of each person; below 0 leaves it out. Items have none.
        num_groups: H.
    """
    of, h, _, _ = _grouped(lists, graph, group)
    num_lists = 1 if graph.bipartite else num_groups
    count = np.bincount(of * num_groups + h, minlength=num_lists * num_groups).reshape(num_lists, num_groups)
    slots = count.sum(axis=1)
    share = np.full(count.shape, np.nan)
    np.divide(count, slots[:, None], out=share, where=slots[:, None] > 0)
    size = np.bincount(group[graph.people][group[graph.people] >= 0], minlength=num_groups)
    return Shares(share, size / max(size.sum(), 1), slots, int(size.sum()))


def _grouped(lists: Lists, graph: AttributedGraph, group: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(M,) of the slots between known groups: the list's group, the person's group, the list, the person."""
    row, person = lists.slots()
    of = np.zeros(len(row), dtype=np.int64) if graph.bipartite else group[lists.ranker[row]]
    kept = (of >= 0) & (group[person] >= 0)
    return of[kept], group[person][kept], row[kept], person[kept]


def independent_slots(lists: Lists, graph: AttributedGraph, group: IntArray, found: Shares) -> tuple[Float64, Float64]:
    """(G, H) m of S_gh, and of S_gh - P_h where it is near 0; NaN where g has no slot."""
    g, h, row, person = _grouped(lists, graph, group)
    shape = found.share.shape
    own = np.eye(*shape) > 0

    def table(first: IntArray, second: IntArray, weight: Float64 | IntArray) -> Float64:
        summed = np.bincount(first * shape[1] + second, weight, shape[0] * shape[1])
        return np.asarray(summed.reshape(shape), dtype=np.float64)

    S, N = found.share, found.slots[:, None].astype(np.float64)
    length = np.bincount(row, minlength=len(lists.ranker))
    in_list, times = np.unique(row * shape[1] + h, return_counts=True)
    group_of = np.zeros(len(lists.ranker), dtype=np.int64)
    group_of[row] = g
    a = table(group_of[in_list // shape[1]], in_list % shape[1], times**2) - 2 * S * table(g, h, length[row])
    a += S**2 * np.bincount(group_of, length**2, shape[0])[:, None]

    places, at, times = np.unique(g * graph.num_nodes + person, return_inverse=True, return_counts=True)
    squared = table(g, h, times[at])
    all_squared = squared.sum(axis=1, keepdims=True)
    b = (1 - S) ** 2 * squared + S**2 * (all_squared - squared)

    # a person who has a list and is in others' lists of the same group
    r = np.where(own, 1 - S, -S)
    mine = g * graph.num_nodes + lists.ranker[row]
    at = np.searchsorted(places, mine)
    there = at < len(places)
    there[there] = places[at[there]] == mine[there]
    met = np.zeros(len(mine))
    met[there] = times[at[there]]
    both = table(g, h, met)
    both = 2 * r * (both - S * both.sum(axis=1, keepdims=True))
    # a pair's slots, and twice those of two people who are in each other's lists
    pair, back = lists.ranker[row] * graph.num_nodes + person, person * graph.num_nodes + lists.ranker[row]
    mutual = np.isin(back, pair) & (g == h) & (not graph.bipartite)
    pairs = N * S * (1 - S) + r**2 * np.bincount(g[mutual], minlength=shape[0])[:, None]

    share = (S * N + 0.5) / (N + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shown = np.minimum((S * N) ** 2 / squared, ((1 - S) * N) ** 2 / (all_squared - squared))
        few = ~(shown > MIN_PEOPLE - 1e-9)
        variance, popular = (a + b + both - pairs) / N**2, all_squared / N**2
        apart = variance + np.minimum(found.variance_by_people, 0.0)
        # a slot's own variance divided by each
        of_share, of_apart = (
            1 / np.maximum(np.maximum(v / (share * (1 - share)), np.where(few, by_chance, 0.0)), 1 / N)
            for v, by_chance in ((variance, popular), (apart, popular - 1 / max(found.num_people, 1)))
        )
    return of_share, of_apart


def bounds(share: Float64, m: Float64, level: float = LEVEL) -> tuple[Float64, Float64]:
    """Both ends of Clopper and Pearson's intervals of shares of m independent slots, which need be no whole numbers."""
    tail, hits, misses = (1 - level) / 2, share * m, (1 - share) * m
    low = np.where(hits > 0, betaincinv(np.maximum(hits, _LEAST), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, _LEAST), 1 - tail), 1.0)
    return low, high


@dataclass(frozen=True)
class Largest:
    """The cell whose share of slots is farthest from its share of people.

    Attributes:
        value: |S_gh - P_h|, in [0, 1].
        low: lower end of its 95 % interval, which holds under the choice of the cell.
        high: upper end.
        p_value: that of no difference in any cell, Bonferroni's.
        cell: (g, h).
    """

    value: float
    low: float
    high: float
    p_value: float
    cell: tuple[int, int]


def largest(found: Shares, m: Float64, kept: BoolArray) -> Largest:
    """The largest difference, with the interval from the largest lower bound of all cells at once to the largest upper.

    Args:
        found: the shares.
        m: (G, H) as how many independent slots their differences vary.
        kept: (G, H) which cells count, one at least.
    """
    share, people, m = found.share[kept], np.broadcast_to(found.people, kept.shape)[kept], m[kept]
    size, num = np.abs(share - people), len(share)

    def reach(level: float) -> tuple[Float64, Float64]:
        """How far each difference may be below and above what was found; P moves by itself (Newcombe)."""
        low, high = bounds(share, m, level)
        moves = norm.isf((1 - level) / 2) ** 2 * np.maximum(found.variance_by_people[kept], 0.0)
        return np.sqrt((share - low) ** 2 + moves), np.sqrt((high - share) ** 2 + moves)

    down, up = reach(1 - (1 - LEVEL) / num)
    least = size - np.where(share > people, down, up)
    down, up = reach(LEVEL)
    most = np.maximum(people - share + down, share - people + up)
    hits, misses = np.maximum(share * m, _LEAST), np.maximum((1 - share) * m, _LEAST)
    tails = np.minimum(betainc(hits, misses + 1, people), betaincc(hits + 1, misses, people))
    # of two groups one has what the other lacks: the one with more than its share is named
    best = np.lexsort((share < people, -np.round(size, 12)))[0]
    g, h = np.argwhere(kept)[best].tolist()
    p_value = min(1.0, 2 * num * float(tails.min()))
    return Largest(float(size.max()), max(float(least.max()), 0.0), min(float(most.max()), 1.0), p_value, (g, h))
