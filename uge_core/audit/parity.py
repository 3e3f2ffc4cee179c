"""How unequal link predictions are between groups: DP over node pairs, EO over held-out edges.

    mu_c = mean of sigmoid(z_u . z_v) over the pairs of cell c,     gap = max_c mu_c - min_c mu_c

A cell is an unordered pair of groups {a, b}; on a bipartite graph, whose items carry no attribute
of people, it is a group of users. DP averages over all unordered node pairs u < v (bipartite: all
user-item pairs), exactly up to `EXACT_NODES` nodes; EO over edges that training did not see. Cells
of few pairs would make the gap their noise: they are listed and left out of it. Paper: Sec. 6.2,
which follows DeBayes; the authors' script samples ordered pairs with replacement, here every
unordered pair counts once, since that is exact and no slower.

All attributes share one pass: nodes are sorted by the combination of their values, the pass sums
per pair of combinations, and each attribute's cells are sums of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.environment import cores
from uge_core.graph import AttributedGraph, FloatArray, IntArray

EXACT_NODES = 100_000
MIN_PAIRS = 100
MIN_EDGES = 30

_Float64 = npt.NDArray[np.float64]
_TILE = 256
_MAX_JOINT = 3_000  # value combinations per pass: its table is their square
_SAMPLE = 4_000_000  # sampled pairs per attribute above EXACT_NODES
_SHORTEST = 1_000  # sampled pairs per cell at least


@dataclass(frozen=True, eq=False)
class CellTable:
    """Means per cell of one attribute.

    Attributes:
        a: (C,) first group of each cell.
        b: (C,) second group, ``a <= b``; None when cells are user groups.
        mean: (C,) mean probability, NaN for a cell without pairs.
        n: (C,) int64 pairs or edges in the cell.
        se: (C,) standard error of a sampled mean; None where every pair was counted.
    """

    a: IntArray
    b: IntArray | None
    mean: _Float64
    n: IntArray
    se: _Float64 | None = None


def dp_cells(
    embedding: FloatArray,
    graph: AttributedGraph,
    groups: Mapping[str, IntArray],
    *,
    seed: int = 0,
    exact_nodes: int = EXACT_NODES,
    compiled: bool = True,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, CellTable]:
    """Mean probability per group pair over all node pairs, for every attribute at once.

    Args:
        embedding: (N, d) float32.
        graph: for its sides.
        groups: by attribute, (N,) int64 group of each node; below 0 leaves it out.
        seed: keys the sample of a graph too large for the exact pass.
        exact_nodes: largest N that is counted exactly; above it each cell is a sample of its pairs.
        compiled: use the numba kernel where numba is installed.
        threads: how many to use; None: the cores at hand.
        progress: called with the share done.

    Returns:
        By attribute, its cells.
    """
    people = np.arange(graph.people.start, graph.people.stop)
    if graph.num_nodes > exact_nodes:
        return {
            name: _sampled_cells(embedding, graph, group, np.random.default_rng([seed, 21, i]))
            for i, (name, group) in enumerate(groups.items())
        }
    tables = {}
    packs = list(_packs(groups, people))
    for done, (names, joint) in enumerate(packs):

        def step(share: float, done: int = done) -> None:
            if progress is not None:
                progress((done + share) / len(packs))

        sums, first = _joint_sums(embedding, graph, people, joint, compiled, threads, step)
        for name in names:
            own = groups[name][people[first]]
            tables[name] = _aggregate(sums, own, groups[name][people], graph)
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


def _joint_sums(
    embedding: FloatArray,
    graph: AttributedGraph,
    people: IntArray,
    joint: IntArray,
    compiled: bool,
    threads: int | None,
    progress: Callable[[float], None],
) -> tuple[_Float64, IntArray]:
    """Sums of probabilities: (G, G) per ordered pair of combinations with u before v, bipartite (G, 1).

    Also one person of each combination, by index into `people`.
    """
    order = np.argsort(joint, kind="stable")
    group = joint[order]
    size = np.bincount(joint)
    rows = _columns(embedding[people[order]])
    if graph.bipartite:
        columns = _columns(embedding[int(graph.num_users or 0) :])
        starts = np.array([0, columns.shape[1]], dtype=np.int64)
    else:
        columns, starts = rows, np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    tile_sum = _tile_function(compiled)
    sums = np.zeros((len(size), len(starts) - 1))
    begins = range(0, len(order), _TILE)

    def one(begin: int) -> _Float64:
        end = min(begin + _TILE, len(order))
        return tile_sum(rows, columns, group, starts, begin, end, not graph.bipartite)

    # Tiles are added in their order, whatever thread finished first: same input, same digits.
    with ThreadPoolExecutor(threads or cores()) as pool:
        for begin, part in zip(begins, _bounded_map(pool, one, begins), strict=True):
            sums[group[begin] : group[begin] + len(part)] += part
            progress(1.0 - ((len(order) - begin) / len(order)) ** 2)
    return sums, order[np.cumsum(size) - size]


def _bounded_map(
    pool: ThreadPoolExecutor, function: Callable[[int], _Float64], arguments: range, ahead: int = 32
) -> Iterator[_Float64]:
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
    """(6,) coefficients of 2^f on [-1/2, 1/2], through the Chebyshev nodes; relative error 1.1e-7."""
    nodes = 0.5 * np.cos(np.pi * (np.arange(6) + 0.5) / 6)
    return np.polynomial.polynomial.polyfit(nodes, 2.0**nodes, 5).astype(np.float32)


def _tile_function(compiled: bool) -> Callable[..., _Float64]:
    """The compiled tile sum where numba can be used, else the numpy one."""
    if compiled:
        try:
            from uge_core.audit.pair_kernel import sum_tile
        except (ImportError, RuntimeError):  # RuntimeError: numba found no writable place for its cache
            return _sum_tile
        poly = exp2_polynomial()
        kernel: Callable[..., _Float64] = sum_tile
        return lambda *tile: kernel(*tile, poly)
    return _sum_tile


def _sum_tile(
    rows: FloatArray,
    columns: FloatArray,
    row_group: IntArray,
    column_start: IntArray,
    first: int,
    last: int,
    triangular: bool,
) -> _Float64:
    """What `pair_kernel.sum_tile` computes, in numpy."""
    skip = first + 1 if triangular else 0
    base = row_group[first]
    out = np.zeros((row_group[last - 1] - base + 1, len(column_start) - 1))
    if skip >= columns.shape[1]:
        return out
    prob = rows[:, first:last].T @ columns[:, skip:]
    np.clip(prob, -87.0, 87.0, out=prob)
    prob = 1.0 / (1.0 + np.exp(-prob))
    if triangular:
        prob[np.tril_indices(last - first, -1, prob.shape[1])] = 0.0
    g = int(np.searchsorted(column_start, skip, side="right")) - 1
    bounds = np.concatenate([[skip], column_start[g + 1 : -1]]) - skip
    np.add.at(out[:, g:], row_group[first:last] - base, np.add.reduceat(prob, bounds, axis=1, dtype=np.float64))
    return out


def _aggregate(sums: _Float64, own: IntArray, group: IntArray, graph: AttributedGraph) -> CellTable:
    """One attribute's cells out of the sums per pair of combinations."""
    num = int(group.max(initial=-1)) + 1
    size = np.bincount(group[group >= 0], minlength=num)
    member = np.zeros((num, len(own)))
    member[own[own >= 0], np.nonzero(own >= 0)[0]] = 1.0
    if graph.bipartite:
        n = size * int(graph.num_items or 0)
        return CellTable(np.arange(num), None, _ratio((member @ sums)[:, 0], n), n)
    ordered = member @ sums @ member.T
    a, b = np.triu_indices(num)
    total = np.where(a == b, ordered[a, b], ordered[a, b] + ordered[b, a])
    n = np.where(a == b, size[a] * (size[a] - 1) // 2, size[a] * size[b])
    return CellTable(a, b, _ratio(total, n), n)


def _ratio(total: npt.NDArray[Any], n: IntArray) -> _Float64:
    """Total / n, NaN where n is 0."""
    out = np.full(len(total), np.nan)
    np.divide(total, n, out=out, where=n > 0)
    return out


def _sampled_cells(
    embedding: FloatArray, graph: AttributedGraph, group: IntArray, rng: np.random.Generator
) -> CellTable:
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
    draws = max(_SHORTEST, _SAMPLE // max(len(a), 1))
    mean, se = np.full(len(a), np.nan), np.full(len(a), np.nan)
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
        prob = edge_probabilities(embedding, np.stack([u, v]))
        mean[c], se[c] = prob.mean(), prob.std(ddof=1) / math.sqrt(draws)
    return CellTable(a, b, mean, n, se)


def edge_probabilities(embedding: FloatArray, edges: IntArray) -> _Float64:
    """(E,) sigmoid of each edge's dot product, in [0, 1]."""
    score = np.einsum("ed,ed->e", embedding[edges[0]], embedding[edges[1]]).astype(np.float64)
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * score)))


def eo_cells(
    embedding: FloatArray, graph: AttributedGraph, groups: Mapping[str, IntArray], edges: IntArray
) -> dict[str, CellTable]:
    """Mean probability of true edges per group pair, each edge counted once.

    Args:
        embedding: (N, d) float32.
        graph: for its sides.
        groups: by attribute, (N,) int64 group of each node; below 0 leaves it out.
        edges: (2, E) the edges, held out of training.

    Returns:
        By attribute, its cells.
    """
    prob = edge_probabilities(embedding, edges)
    tables = {}
    for name, group in groups.items():
        num = int(group.max(initial=-1)) + 1
        first, second = group[edges[0]], group[edges[1]]
        if graph.bipartite:
            keep = first >= 0
            cell, a, b = first[keep], np.arange(num), None
            size = num
        else:
            keep = (first >= 0) & (second >= 0)
            cell = np.minimum(first, second)[keep] * num + np.maximum(first, second)[keep]
            a, b = np.triu_indices(num)
            size = num * num
        n = np.bincount(cell, minlength=size)
        total = np.bincount(cell, prob[keep], size)
        where = a if b is None else a * num + b
        tables[name] = CellTable(a, b, _ratio(total[where], n[where]), n[where])
    return tables


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


def gap(table: CellTable, minimum: int) -> Gap:
    """Max minus min of the cells with at least `minimum` pairs or edges."""
    counted = np.nonzero(table.n >= max(minimum, 1))[0]
    if len(counted) < 2:
        return Gap(None)
    means = table.mean[counted]
    highest, lowest = int(counted[means.argmax()]), int(counted[means.argmin()])
    return Gap(float(table.mean[highest] - table.mean[lowest]), highest, lowest)
