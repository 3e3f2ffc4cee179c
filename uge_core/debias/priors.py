r"""Maximum-entropy priors: how likely each pair is linked if nothing were known but some sums of the graph.

Among all models of independent pairs, the one of largest entropy that meets the sums:

    degrees                   logit P_ij = t_i + t_j                          CNE's prior
    degrees by group          logit P_ij = r_{i, g_j} + r_{j, g_i}            DeBayes' biased prior
    degrees and block totals  logit P_ij = t_i + t_j + w_{g_i g_j}

where "by group" fixes, for each node i and group b, the expected number of i's neighbours in b, and "totals"
fixes the expected number of edges between groups. Written over all pairs each takes O(N^2) an iteration. Here:
r_{i, b} of a node i in group a meets r_{j, a} of a node j in group b alone, so degrees by group fall apart into
G (G + 1) / 2 problems, one per pair of groups; and nodes whose sums are equal have equal parameters, as the
optimum is unique. What is left per block are types: the distinct numbers of neighbours, at most about
sqrt(2 E_ab); where neighbours are smoothed over groups, the distinct pairs of that number and the degree.

Sums of 0 and of all possible pairs have no finite parameter. A node without a neighbour in a group has
probability 0 there; so that the logit stays finite, such nodes share `SLIVER` of the block's edges, and an empty
block holds about `SLIVER` of an edge. A node linked to all of a group gets as large a parameter as the tolerance
asks for, and its block is listed as saturated.

Edges count once whatever they weigh: probabilities are of links, not of weights. On a bipartite graph pairs go
across the sides.

Sources: Kang, Lijffijt and De Bie, ICLR 2019; Buyl and De Bie, ICML 2020, Sec. 3; the degree-corrected form as in
Karrer and Newman, Phys. Rev. E 83, 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from uge_core.arrays import IntArray

Array = npt.NDArray[np.float64]

SLIVER = 1e-4
TOLERANCE = 1e-5
SATURATED = 0.99
_PASSES = 200
_FAR = 100.0
_MOST_TYPES = 2500  # above that, a Newton step's dense system costs more than passes


@dataclass(frozen=True)
class Saturated:
    """A block of two groups in which a sum is near its bound, so that the prior nearly tells the edges themselves.

    Attributes:
        a: the one group.
        b: the other, or the same.
        highest: the largest probability of a pair.
        error: the largest relative error of a sum.
    """

    a: int
    b: int
    highest: float
    error: float


@dataclass(frozen=True, eq=False)
class Prior:
    """Log odds of each pair: level[g_i, g_j] + node_offset[i, g_j] + node_offset[j, g_i].

    Attributes:
        group: (N,) group of each node.
        level: (G, G) part of a pair of groups.
        node_offset: (N, G) a node's own part towards each group.
        error: the largest relative error of a sum above 0.
        saturated: blocks with a pair of probability above `SATURATED`, or a sum missed by more than 1e-3; not
            looked for by `block_totals`.
    """

    group: IntArray
    level: Array
    node_offset: Array
    error: float
    saturated: tuple[Saturated, ...] = ()

    def logit(self, source: IntArray, target: IntArray) -> Array:
        """(P,) log odds of the pairs."""
        g = self.group
        out: Array = (
            self.level[g[source], g[target]] + self.node_offset[source, g[target]] + self.node_offset[target, g[source]]
        )
        return out


def degree_by_group(group: IntArray, side: IntArray, edges: IntArray, smoothing: float = 0.0) -> Prior:
    """The prior that meets each node's number of neighbours in each group; with one group (a side), its degree.

    Args:
        group: (N,) 0 to G - 1; a group lies on one side.
        side: (N,) 0 or 1 on a bipartite graph, else 0.
        edges: (2, E) each once.
        smoothing: share of a node's neighbours that is spread over the groups as its own group's neighbours are;
            degrees and block totals stay. 0: as published.
    """
    num, groups = len(group), int(group.max()) + 1
    across = _across(group, side)
    seen = np.bincount(group[edges[1]] + edges[0] * groups, minlength=num * groups) + np.bincount(
        group[edges[0]] + edges[1] * groups, minlength=num * groups
    )
    degree: Array = seen.reshape(num, groups).astype(np.float64)
    del seen
    if smoothing > 0:
        totals = np.zeros((groups, groups))
        np.add.at(totals, group, degree)
        share = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1.0)
        degree = (1 - smoothing) * degree + smoothing * degree.sum(axis=1, keepdims=True) * share[group]
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=groups))[:-1])
    node_offset = np.zeros((num, groups))
    worst, saturated = 0.0, []
    for a in range(groups):
        for b in range(a, groups):
            if across[a, b]:
                x, y, highest, error = _block(degree[members[a], b], None if a == b else degree[members[b], a])
                node_offset[members[a], b], node_offset[members[b], a] = x, y
                worst = max(worst, error)
                if highest > SATURATED or error > 1e-3:
                    saturated.append(Saturated(a, b, highest, error))
    return Prior(group, np.zeros((groups, groups)), node_offset, worst, tuple(saturated))


def block_totals(group: IntArray, side: IntArray, edges: IntArray, smoothing: float = 0.0) -> Prior:
    """The prior that meets each node's degree and each block's number of edges.

    Args:
        group: (N,) 0 to G - 1; a group lies on one side.
        side: (N,) 0 or 1 on a bipartite graph, else 0.
        edges: (2, E) each once.
        smoothing: share of the edges that is spread over the blocks as if ends met at random.
    """
    from uge_core.kernels.priors import balance_totals

    groups = int(group.max()) + 1
    allowed = _across(group, side)
    degree = np.bincount(edges.ravel(), minlength=len(group))
    totals = np.bincount(group[edges[0]] * groups + group[edges[1]], minlength=groups**2).reshape(groups, groups)
    totals = (totals + totals.T).astype(np.float64)
    ends = totals.sum(axis=1)
    at_random = np.outer(ends, ends) * allowed / np.maximum((allowed * ends).sum(axis=1), 1.0)[:, None]
    size = np.bincount(group[degree > 0], minlength=groups)
    # a group of one has no pair within
    totals = ((1 - smoothing) * totals + smoothing * at_random) * (np.outer(size, size) > np.diag(size))
    types, of = np.unique(np.stack([group, degree]), axis=1, return_inverse=True)
    of = of.reshape(-1)
    count = np.bincount(of).astype(np.float64)
    kind, wanted = types[0], types[1].astype(np.float64)
    active = wanted > 0
    start = np.searchsorted(kind[active], np.arange(groups + 1))
    x = np.full(len(wanted), -np.inf)
    x[active] = np.log(wanted[active]) - 0.5 * np.log(max(float(ends.sum()), 1.0))
    own, level = x[active], np.where(totals > 0, 0.0, -1e3)
    error = float(balance_totals(wanted[active], count[active], start, allowed, totals, own, level, TOLERANCE, _PASSES))
    x[active] = own
    near = np.exp(level) @ np.bincount(kind[active], count[active] * np.exp(own), groups)
    near[near == 0] = 1.0
    x[~active] = np.log(SLIVER * ends.sum() / max(1.0, float(count[~active].sum()))) - np.log(near[kind[~active]])
    mass = np.bincount(kind, count * np.exp(x), groups)
    empty = totals == 0
    level[empty] = np.log(SLIVER / groups) - np.log(np.outer(mass, mass)[empty])
    return Prior(group, level, np.broadcast_to(x[of][:, None], (len(of), groups)), error)


def _across(group: IntArray, side: IntArray) -> npt.NDArray[np.bool_]:
    """(G, G) pairs of groups that may carry an edge."""
    of = np.zeros(int(group.max()) + 1, np.int64)
    of[group] = side
    if not side.any():
        return np.ones((len(of), len(of)), bool)
    return np.asarray(of[:, None] != of[None, :])


def _block(one: Array, other: Array | None) -> tuple[Array, Array, float, float]:
    """Parameters of the nodes of two groups towards each other, or of one with itself, by their sums.

    Returns:
        the one group's parameters, the other's, the largest probability of a pair, the largest relative error.
    """
    from uge_core.kernels.priors import balance

    values, of, nodes = np.unique(one, return_inverse=True, return_counts=True)
    first = len(values) if other is not None else 0
    if other is not None:
        more, of_more, others = np.unique(other, return_inverse=True, return_counts=True)
        values, nodes = np.concatenate([values, more]), np.concatenate([nodes, others])
    count: Array = nodes.astype(np.float64)
    total = float(one.sum())
    active = values > 0
    x = np.full(len(values), 0.5 * np.log(SLIVER / (len(one) * len(one if other is None else other))))
    highest = error = 0.0
    if total > 0:
        d, m, left = values[active], count[active], int(active[:first].sum())
        own = np.log(d) - 0.5 * np.log(total)
        error = float(balance(d, m, left, own, TOLERANCE, _PASSES if len(d) > _MOST_TYPES else 20))
        if error > TOLERANCE and len(d) <= _MOST_TYPES:
            own, error = _newton(d, m, left, own)
        sides = (slice(0, left), slice(left, None)) if first else (slice(None), slice(None))
        highest = float(expit(_top(own, m, sides, bool(first))))
        x[active] = own
        # nodes without an edge into the other group share a sliver of the block's
        for mine, theirs in ((slice(0, first), sides[1]), (slice(first, None), sides[0])):
            none = np.zeros(len(x), bool)
            none[mine] = ~active[mine]
            if none.any():
                x[none] = np.log(SLIVER * total / count[none].sum()) - np.log((m[theirs] * np.exp(own[theirs])).sum())
    left_x = x[of.reshape(-1)]
    return left_x, (left_x if other is None else x[first:][of_more.reshape(-1)]), highest, error


def _top(x: Array, count: Array, sides: tuple[slice, slice], across: bool) -> float:
    """The largest log odds of a pair of different nodes."""
    if across:
        return float(x[sides[0]].max() + x[sides[1]].max())
    order = np.argsort(x)[::-1]
    best = x[order[0]]
    return float(2 * best if count[order[0]] > 1 or len(x) == 1 else best + x[order[1]])


def _newton(degree: Array, count: Array, first: int, x: Array) -> tuple[Array, float]:
    """Newton's method on the concave dual sum_i d_i x_i - sum_ij log(1 + exp(x_i + x_j)), types weighed by their nodes.

    Where a sum is at its bound the optimum lies at infinity; steps then grow the parameter by about 1 each, and end
    when the tolerance is met. Sums that smoothing made impossible are missed, and the nearest found is returned.
    """
    num = len(degree)
    partners = np.tile(count, (num, 1))
    if first:
        partners[:first, :first] = partners[first:, first:] = 0.0
    else:
        partners -= np.eye(num)
    pairs = count[:, None] * partners

    def value(at: Array) -> float:
        return float(count * degree @ at - 0.5 * (pairs * np.logaddexp(0.0, at[:, None] + at[None, :])).sum())

    now = value(x)
    best, least = x, np.inf
    for _ in range(100):
        p = expit(x[:, None] + x[None, :])
        expected = (partners * p).sum(axis=1)
        error = float((np.abs(expected - degree) / degree).max())
        if error < least:
            best, least = x, error
        if error <= TOLERANCE:
            break
        curve = pairs * p * (1.0 - p)
        slope = count * (degree - expected)
        hessian = curve + np.diag(curve.sum(axis=1))
        # a shift from one side to the other changes nothing, and saturated types are nearly flat
        hessian[np.diag_indices(num)] += 1e-9 * np.trace(hessian) / num + 1e-12
        move = np.linalg.solve(hessian, slope)
        move *= min(1.0, 5.0 / float(np.abs(move).max()))
        gain, size = float(slope @ move), 1.0
        while (then := value(x + size * move)) < now + 1e-4 * size * gain and size > 1e-6:
            size /= 2
        x, now = np.clip(x + size * move, -_FAR, _FAR), then
    return best, least
