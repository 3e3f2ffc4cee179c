"""How unequal link predictions are between groups: DP over node pairs, EO over held-out edges.

    mu_c = mean of sigmoid(s_uv) over the pairs of cell c,     gap = max_c mu_c - min_c mu_c

s_uv is the pair's score, the dot product z_u . z_v unless said otherwise (`scores`).

A cell is an unordered pair of groups {a, b}; on a bipartite graph, whose items carry no attribute
of people, it is a group of users. DP averages over all unordered node pairs u < v (bipartite: all
user-item pairs), exactly up to `EXACT_NODES` nodes; EO over edges that training did not see. Cells
of few pairs would make the gap their noise: they are listed and left out of it. Paper: Sec. 6.2,
which follows DeBayes; the authors' script samples ordered pairs with replacement, here every
unordered pair counts once, since that is exact and no slower.

All attributes share one pass: nodes are sorted by the combination of their values, the pass sums h = p - 1/2 and
h^2 per pair of combinations and, per node, h over the nodes of each value. Cells of every attribute and
the variance of their means (`dyadic`) are sums of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import BoolArray, Float64, FloatArray, IntArray
from uge_core.audit.dyadic import Contribution, edge_sides
from uge_core.audit.metrics import EXACT_NODES as EXACT_NODES
from uge_core.audit.metrics import MIN_EDGES as MIN_EDGES
from uge_core.audit.metrics import MIN_PAIRS as MIN_PAIRS
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors, Scored
from uge_core.kernels.pairs import sum_tile
from uge_core.machine import cores

MOST_PAIRS = 4_000_000
"""Pairs of an attribute in a sample, above `EXACT_NODES` nodes."""

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
_TILE = 256
_TILE_GROUPS = 16  # combinations in one tile at most, as each has a line over all columns
_MAX_JOINT = 3_000  # value combinations per pass: its table is their square
_SHORTEST = 1_000  # sampled pairs per cell at least


@dataclass(frozen=True, eq=False)
class ParityCells:
    """Means per cell of one attribute.

    Attributes:
        a: (C,) first group of each cell.
        b: (C,) second group, ``a <= b``; None when cells are user groups.
        mean: (C,) mean probability, NaN for a cell without pairs.
        n: (C,) int64 pairs or edges in the cell.
        own: (C,) sum of squared residuals of the pairs / n^2 (of the sampled ones, in a sample).
        sides: what each set of people adds to the variance of the means; see `dyadic`.
        se: (C,) standard error of a sampled mean; None where every pair was counted.
        mass: (C,) sum of the pairs' weights; None where each counts one.
        suppressed: (C,) cells that are left out as they have few pairs, or hide how few; None: none.
    """

    a: IntArray
    b: IntArray | None
    mean: Float64
    n: IntArray
    own: Float64
    sides: tuple[Contribution, ...]
    se: Float64 | None = None
    mass: Float64 | None = None
    suppressed: BoolArray | None = None

    def of_shares(self) -> ParityCells:
        """The same where values are 0 or 1: a cell whose pairs all agree varies as one with half a pair of each more."""
        share = (self.mean * self.n + 0.5) / (self.n + 1)
        least = np.divide(share * (1 - share), self.n, out=np.zeros(len(share)), where=self.n > 0)
        return replace(self, own=np.fmax(self.own, least))


def dp_cells(
    embedding: Scored,
    graph: AttributedGraph,
    groups: Mapping[str, IntArray],
    *,
    seed: int = 0,
    exact_nodes: int = EXACT_NODES,
    threshold: float | None = None,
    most_pairs: int = MOST_PAIRS,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, ParityCells]:
    """Mean probability per group pair over all node pairs, for every attribute at once.

    Args:
        embedding: (N, d) float32 for dot products, or factors.
        graph: for its sides.
        groups: by attribute, (N,) int64 group of each node; below 0 leaves it out.
        seed: keys the sample of a graph too large for the exact pass.
        exact_nodes: largest N that is counted exactly; above it each cell is a sample of its pairs.
        threshold: count predicted links, pairs with a probability of at least this, in place of the mean probability;
            exact up to `most_pairs` pairs, else a sample.
        most_pairs: how large a sample is, all cells of an attribute together.
        threads: how many to use; None: the cores at hand.
        progress: called with the share done.

    Returns:
        By attribute, its cells.
    """
    people = np.arange(graph.people.start, graph.people.stop)
    if threshold is not None and graph.num_nodes**2 <= 2 * most_pairs:
        first, second = np.triu_indices(graph.num_nodes, 1)
        if graph.num_users is not None:
            first, second = (part.ravel() for part in np.mgrid[0 : graph.num_users, graph.num_users : graph.num_nodes])
        return eo_cells(embedding, graph, groups, np.stack([first, second]), threshold=threshold)
    if graph.num_nodes > exact_nodes or threshold is not None:
        return {
            name: _sampled_cells(embedding, graph, group, np.random.default_rng([seed, 21, i]), most_pairs, threshold)
            for i, (name, group) in enumerate(groups.items())
        }
    tables = {}
    packs = list(_packs(groups, people))
    for done, (names, joint) in enumerate(packs):

        def step(share: float, done: int = done) -> None:
            if progress is not None:
                progress((done + share) / len(packs))

        sums = _joint_sums(embedding, graph, people, joint, [groups[name] for name in names], threads, step)
        for i, name in enumerate(names):
            tables[name] = _aggregate(sums, i, groups[name], graph)
    return {name: tables[name] for name in groups}


def _packs(groups: Mapping[str, IntArray], people: IntArray) -> Iterator[tuple[list[str], IntArray]]:
    """Attributes to count in one pass, with each person's combination of their values."""
    names: list[str] = []
    joint = np.zeros(len(people), dtype=np.int64)
    for name, group in groups.items():
        values = np.unique(group[people], return_inverse=True)[1]
        crossed = np.unique(joint * (int(values.max()) + 1) + values, return_inverse=True)[1]
        if names and crossed.max() >= _MAX_JOINT:
            yield names, joint
            names, crossed = [], values
        names, joint = [*names, name], crossed
    if names:
        yield names, joint


@dataclass(frozen=True, eq=False)
class _Sums:
    """What one pass yields.

    Attributes:
        order: (P,) the people, sorted by their combination.
        first: (G,) one person of each combination.
        total: (G, G) sums of h = p - 1/2 per ordered pair of combinations with u before v, bipartite (G, 1).
        squares: the same of h^2.
        per_value: by attribute, (K, P) float32 each person's sum of h over the people of each value, in
            the order of `order`; bipartite (K, items), each item's over the users of each value.
        per_person: (P,) each person's sum of h over all items; empty unless bipartite.
    """

    order: IntArray
    first: IntArray
    total: Float64
    squares: Float64
    per_value: tuple[FloatArray, ...]
    per_person: FloatArray


def _joint_sums(
    embedding: Scored,
    graph: AttributedGraph,
    people: IntArray,
    joint: IntArray,
    groups: Sequence[IntArray],
    threads: int | None,
    progress: Callable[[float], None],
) -> _Sums:
    """One pass over all pairs of `people`, whose combinations are `joint`."""
    order = np.argsort(joint, kind="stable")
    group = joint[order]
    size = np.bincount(joint)
    first = people[order[np.cumsum(size) - size]]
    value = np.full((len(groups), len(size)), -1, dtype=np.int64)
    num_values = 0
    slices = []
    for line, own in zip(value, groups, strict=True):
        known = own[first] >= 0
        line[known] = num_values + own[first][known]
        slices.append(slice(num_values, num_values := num_values + int(own[people].max(initial=-1)) + 1))
    z = Factors.of(embedding)
    rows = _columns(z.left[people[order]])
    if graph.bipartite:
        columns = _columns(z.right[int(graph.num_users or 0) :])
        starts, of_column = np.array([0, columns.shape[1]], dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    else:
        columns, of_column = rows if z.right is z.left else _columns(z.right[people[order]]), value
        starts = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    poly = exp2_polynomial()
    total, squares = np.zeros((len(size), len(starts) - 1)), np.zeros((len(size), len(starts) - 1))
    per_value = np.zeros((num_values, columns.shape[1]), dtype=np.float32)
    per_person = np.zeros(len(order) if graph.bipartite else 0, dtype=np.float32)
    tiles = list(_tiles(group))
    width = 1 if graph.bipartite else num_values

    def one(tile: tuple[int, int]) -> tuple[Float64, Float64, FloatArray, FloatArray]:
        return sum_tile(rows, columns, group, starts, of_column, *tile, not graph.bipartite, width, poly)

    # Tiles are added in their order, whatever thread finished first: same input, same digits.
    with ThreadPoolExecutor(threads or cores()) as pool:
        for (begin, end), part in zip(tiles, _bounded_map(pool, one, tiles), strict=True):
            lines = slice(group[begin], group[begin] + len(part[0]))
            total[lines] += part[0]
            squares[lines] += part[1]
            if graph.bipartite:
                per_person[begin:end] = part[2][:, 0]
            else:
                per_value[:, begin:end] += part[2].T
            skip = 0 if graph.bipartite else begin
            for a, g in np.argwhere(value[:, lines] >= 0):
                per_value[value[a, lines][g], skip:] += part[3][g, skip:]
            progress(1.0 - ((len(order) - begin) / len(order)) ** 2)
    return _Sums(people[order], first, total, squares, tuple(per_value[s] for s in slices), per_person)


def _tiles(group: IntArray) -> Iterator[tuple[int, int]]:
    """First row and the one after the last of tiles of neighbouring rows."""
    begin = 0
    while begin < len(group):
        end = int(np.searchsorted(group, group[begin] + _TILE_GROUPS))
        end = min(end, begin + _TILE)
        yield begin, end
        begin = end


def _bounded_map(
    pool: ThreadPoolExecutor, function: Callable[[_Given], _Found], arguments: Sequence[_Given], ahead: int = 32
) -> Iterator[_Found]:
    """`pool.map` that keeps at most `ahead` results waiting, as each may be a large table."""
    waiting: list[Any] = []
    for argument in arguments:
        waiting.append(pool.submit(function, argument))
        if len(waiting) >= ahead:
            yield waiting.pop(0).result()
    for future in waiting:
        yield future.result()


def _columns(z: FloatArray) -> FloatArray:
    """(d, N) with d filled up to a multiple of four, as the kernel wants it."""
    out = np.zeros((-(-z.shape[1] // 4) * 4, z.shape[0]), dtype=np.float32)
    out[: z.shape[1]] = z.T
    return out


def exp2_polynomial() -> FloatArray:
    """(7,) coefficients of 2^f on [-1/2, 1/2], the first one 1, so that 2^f - 1 has all its digits near f = 0.

    Those of (2^f - 1) / f go through the Chebyshev nodes.
    """
    nodes = 0.5 * np.cos(np.pi * (np.arange(6) + 0.5) / 6)
    slope = np.polynomial.polynomial.polyfit(nodes, np.expm1(nodes * np.log(2.0)) / nodes, 5)
    return np.append(1.0, slope).astype(np.float32)


def _aggregate(sums: _Sums, attribute: int, group: IntArray, graph: AttributedGraph) -> ParityCells:
    """One attribute's cells out of the sums per pair of combinations; deviations from the mean are those of h."""
    own, codes = group[sums.first], group[sums.order]
    num = int(codes.max(initial=-1)) + 1
    size = np.bincount(codes[codes >= 0], minlength=num)
    member = np.zeros((num, len(own)))
    member[own[own >= 0], np.nonzero(own >= 0)[0]] = 1.0
    per_value = sums.per_value[attribute]
    if graph.bipartite:
        n = size * int(graph.num_items or 0)
        mean = _ratio((member @ sums.total)[:, 0], n)
        squares = (member @ sums.squares)[:, 0]
        sides = _bipartite_sides(per_value, sums.per_person, codes, mean, size, n)
        return ParityCells(np.arange(num), None, 0.5 + mean, n, _own(squares, mean, n), sides)
    a, b = np.triu_indices(num)
    total, squares = (
        np.where(a == b, table[a, b], table[a, b] + table[b, a])
        for table in (member @ sums.total @ member.T, member @ sums.squares @ member.T)
    )
    n = np.where(a == b, size[a] * (size[a] - 1) // 2, size[a] * size[b])
    mean = _ratio(total, n)
    return ParityCells(a, b, 0.5 + mean, n, _own(squares, mean, n), _sides(per_value, codes, mean, size, n))


def _own(squares: Float64, mean: Float64, n: IntArray) -> Float64:
    """Sum of squared residuals / n^2; 0 without a pair."""
    out = np.zeros(len(n))
    np.divide(np.maximum(squares - n * mean**2, 0.0), n.astype(np.float64) ** 2, out=out, where=n > 0)
    return out


def _sides(
    per_value: FloatArray, codes: IntArray, mean: Float64, size: IntArray, n: IntArray
) -> tuple[Contribution, ...]:
    """Of the cells over all pairs, a side per group: a_uc = (u's sum of h over value b) - (mu_gb - 1/2) (pairs of u)."""
    num = len(size)
    cell = np.zeros((num, num), dtype=np.int64)
    upper = np.triu_indices(num)
    cell[upper] = np.arange(len(n))
    cell.T[upper] = np.arange(len(n))
    sides = []
    for g in np.nonzero(size)[0]:
        others = np.nonzero(n[cell[g]] > 0)[0]
        if not len(others):
            continue
        cells, pairs = cell[g, others], size[others] - (others == g)
        influence = per_value[np.ix_(others, codes == g)] - (mean[cells] * pairs)[:, None]
        influence /= n[cells, None]
        sides.append(Contribution(cells, influence @ influence.T, np.full(len(cells), float(size[g]))))
    return tuple(sides)


def _bipartite_sides(
    per_value: FloatArray, per_person: FloatArray, codes: IntArray, mean: Float64, size: IntArray, n: IntArray
) -> tuple[Contribution, ...]:
    """Of the cells over all user-item pairs: a side per group of users, and the items."""
    cells = np.nonzero(n > 0)[0]
    if not len(cells):
        return ()
    num_items = per_value.shape[1]
    sides = []
    for g in cells:
        influence = (per_person[codes == g] - mean[g] * num_items) / n[g]
        sides.append(Contribution(np.array([g]), np.array([[influence @ influence]]), np.array([float(size[g])])))
    influence = (per_value[cells] - (mean[cells] * size[cells])[:, None]) / n[cells, None]
    sides.append(Contribution(cells, influence @ influence.T, np.full(len(cells), float(num_items))))
    return tuple(sides)


def _ratio(total: npt.NDArray[Any], n: npt.NDArray[Any]) -> Float64:
    """Total / n, NaN where n is 0."""
    out = np.full(len(total), np.nan)
    np.divide(total, n, out=out, where=n > 0)
    return out


def _sampled_cells(
    embedding: Scored,
    graph: AttributedGraph,
    group: IntArray,
    rng: np.random.Generator,
    most_pairs: int,
    threshold: float | None,
) -> ParityCells:
    """Every cell's mean from a sample of its pairs, drawn with replacement, with its standard error."""
    people = np.arange(graph.people.start, graph.people.stop)
    known = people[group[people] >= 0]
    num = int(group[known].max(initial=-1)) + 1
    order = known[np.argsort(group[known], kind="stable")]
    size = np.bincount(group[known], minlength=num)
    start = np.cumsum(size) - size
    if graph.bipartite:
        a, b = np.arange(num), None
        n = size * int(graph.num_items or 0)
    else:
        a, b = np.triu_indices(num)
        n = np.where(a == b, size[a] * (size[a] - 1) // 2, size[a] * size[b])
    draws = max(_SHORTEST, most_pairs // max(len(a), 1))
    pairs = []
    for c in np.nonzero(n)[0]:
        u = order[start[a[c]] + rng.integers(0, size[a[c]], draws)]
        if b is None:
            v = rng.integers(int(graph.num_users or 0), graph.num_nodes, draws)
        elif a[c] == b[c]:
            # A second, different member: a step of 1 to size - 1 around the group.
            step = rng.integers(1, size[a[c]], draws)
            first = rng.integers(0, size[a[c]], draws)
            u = order[start[a[c]] + first]
            v = order[start[a[c]] + (first + step) % size[a[c]]]
        else:
            v = order[start[b[c]] + rng.integers(0, size[b[c]], draws)]
        pairs.append(np.stack([u, v]))
    drawn = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), dtype=np.int64)
    table = _edge_table(predicted(embedding, drawn, threshold), drawn, group, num, graph)
    return replace(table, n=n, se=np.where(n > 0, np.sqrt(table.own), np.nan))


def edge_probabilities(embedding: Scored, edges: IntArray) -> Float64:
    """(E,) sigmoid of each edge's score, in [0, 1]."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * Factors.of(embedding).scores(*edges))))


def predicted(embedding: Scored, edges: IntArray, threshold: float | None = None) -> Float64:
    """(E,) the probability of each pair, or with a threshold whether it reaches that, 1 or 0."""
    prob = edge_probabilities(embedding, edges)
    return prob if threshold is None else (prob >= threshold).astype(np.float64)


def eo_cells(
    embedding: Scored,
    graph: AttributedGraph,
    groups: Mapping[str, IntArray],
    edges: IntArray,
    *,
    threshold: float | None = None,
) -> dict[str, ParityCells]:
    """Mean probability of true edges per group pair, each edge counted once.

    Args:
        embedding: (N, d) float32 for dot products, or factors.
        graph: for its sides.
        groups: by attribute, (N,) int64 group of each node; below 0 leaves it out.
        edges: (2, E) the edges, held out of training.
        threshold: as for `dp_cells`.

    Returns:
        By attribute, its cells.
    """
    prob = predicted(embedding, edges, threshold)
    return {name: listed_cells(prob, edges, group, graph) for name, group in groups.items()}


def listed_cells(
    value: Float64, pairs: IntArray, group: IntArray, graph: AttributedGraph, weight: Float64 | None = None
) -> ParityCells:
    """The cells of listed pairs.

    Args:
        value: (M,) what is averaged.
        pairs: (2, M) the pairs, each once.
        group: (N,) int64 group of each node; below 0 leaves it out.
        graph: for its sides.
        weight: (M,) how much each counts in its cell's mean; None: all alike.
    """
    return _edge_table(value, pairs, group, int(group.max(initial=-1)) + 1, graph, weight)


def _edge_table(
    prob: Float64, edges: IntArray, group: IntArray, num: int, graph: AttributedGraph, weight: Float64 | None = None
) -> ParityCells:
    """The cells of listed pairs between `num` groups."""
    cell = _cell(edges, group, num, graph)
    keep = cell >= 0
    cell = cell[keep]
    if graph.bipartite:
        a, b = np.arange(num), None
        ends = np.zeros(len(cell), np.int64), np.ones(len(cell), np.int64)  # users, items
    else:
        a, b = np.triu_indices(num)
        ends = group[edges[0, keep]], group[edges[1, keep]]
    prob, edges = prob[keep], edges[:, keep]
    n = np.bincount(cell, minlength=len(a))
    counted = np.ones(len(cell)) if weight is None else weight[keep]
    total = np.bincount(cell, counted, len(a)).astype(np.float64)
    mean = _ratio(np.bincount(cell, counted * prob, len(a)), total)
    residual = counted * (prob - mean[cell])
    own = np.zeros(len(a))
    np.divide(np.bincount(cell, residual**2, len(a)), total**2, out=own, where=n > 0)
    sides = edge_sides(edges.ravel(), np.concatenate(ends), np.tile(cell, 2), np.tile(residual, 2), total)
    return ParityCells(a, b, mean, n, own, sides, mass=None if weight is None else total)


def cell_of(pairs: IntArray, group: IntArray, graph: AttributedGraph) -> tuple[IntArray, int]:
    """(M,) the cell of each pair, -1 where an end has no group, and how many cells there are."""
    num = int(group.max(initial=-1)) + 1
    return _cell(pairs, group, num, graph), num if graph.bipartite else num * (num + 1) // 2


def _cell(pairs: IntArray, group: IntArray, num: int, graph: AttributedGraph) -> IntArray:
    first: IntArray = group[pairs[0]]
    second: IntArray = group[pairs[1]]
    if graph.bipartite:
        return first
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.where(low >= 0, low * num - low * (low - 1) // 2 + high - low, -1)


@dataclass(frozen=True)
class Gap:
    """The largest difference between two cells.

    Attributes:
        value: max - min in [0, 1], None with fewer than two cells that count.
        highest: index of the cell with the largest mean.
        lowest: index of the cell with the smallest.
    """

    value: float | None
    highest: int | None = None
    lowest: int | None = None


def gap(table: ParityCells, minimum: int) -> Gap:
    """Max minus min of the cells with at least `minimum` pairs or edges."""
    counted = np.nonzero(table.n >= max(minimum, 1))[0]
    if len(counted) < 2:
        return Gap(None)
    means = table.mean[counted]
    highest, lowest = int(counted[means.argmax()]), int(counted[means.argmin()])
    return Gap(float(table.mean[highest] - table.mean[lowest]), highest, lowest)
